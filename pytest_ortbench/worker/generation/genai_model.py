"""A folder with ``genai_config.json``, opened by onnxruntime-genai as a case asks.

What the case asks goes into genai's configuration: the file, the provider with its options, the
session options. Whatever the configuration can't hold is refused. onnxruntime-genai brings a copy
of ONNX Runtime of its own into the process, beside that of the package ``onnxruntime``.
"""

from __future__ import annotations

import gc
import json
import os
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import WorkerError, first_line, says, supply_step
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.worker.generation.requests import decoder_in
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.session import options_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]

#: Name of the engine for people, and of what installs it.
PACKAGE = "onnxruntime-genai"
#: What genai calls ONNX Runtime's providers; it hands on any other name as it is.
_PROVIDERS = {
    "CUDAExecutionProvider": "cuda",
    "DmlExecutionProvider": "DML",
    "NvTensorRTRTXExecutionProvider": "NvTensorRtRtx",
    "OpenVINOExecutionProvider": "OpenVINO",
    "QNNExecutionProvider": "QNN",
    "VitisAIExecutionProvider": "VitisAI",
    "WebGpuExecutionProvider": "WebGPU",
}
#: How it says that it does not know what the configuration says of the kind of network.
_UNKNOWN_KIND = "Unsupported model_type"
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


@cache
def load_genai(runtime: str, requirements: tuple[str, ...]) -> tuple[ModuleType, int]:
    """Import onnxruntime-genai.

    Args:
        runtime: Label of the runtime that measures.
        requirements: The list that made it; none for others.

    Returns:
        The module and the nanoseconds that the first import took; that of ONNX Runtime, which
        comes first, is not among them.

    Raises:
        WorkerError: if it is not there, or too old to be configured.
    """
    load()
    started = perf_counter_ns()
    try:
        import onnxruntime_genai as genai  # an extra
    except (ImportError, OSError) as error:
        raise _refused(
            f"{PACKAGE} can't be imported. {says('Python', first_line(error))}",
            _supply(error, runtime, requirements),
            kind="unavailable",
            phase="import",
        ) from error
    took = perf_counter_ns() - started
    if not hasattr(genai, "Config") or not hasattr(genai.Config, "overlay"):
        version = getattr(genai, "__version__", "")
        raise _refused(
            f"{PACKAGE} {version} takes no session options, but version 0.9 and later do",
            f"Run: pip install '{PACKAGE}>=0.9'",
            phase="import",
        )
    return genai, took


def _supply(error: ImportError | OSError, runtime: str, requirements: tuple[str, ...]) -> str:
    """Return the next step where it can't be imported, for the environment that lacks it."""
    if isinstance(error, ModuleNotFoundError) and requirements:
        return f"Add it to the runtime: '--ort-runtimes={'+'.join((*requirements, PACKAGE))}'"
    installed = packages_distributions().get("onnxruntime_genai", [PACKAGE])
    step = supply_step(error, "Run: pip install 'pytest-ortbench[genai]'", *installed)
    is_current = runtime == Runtime().label
    return step if is_current else f"{step}. Do this where the runtime {runtime!r} measures"


class GenaiModel:
    """A model of onnxruntime-genai, and its tokenizer if the folder has one.

    Attributes:
        create_ns: Nanoseconds that making both took, reading the files included.
        tokenizer: Between texts and tokens; ``None`` where the folder has none.
        has_template: Whether the folder says how a text becomes a prompt.
        is_chunked: Whether its configuration has prompts read in chunks.
        no_tokenizer: Why there is none, in the words of onnxruntime-genai; empty if there is one.

    Args:
        case: What is asked for.
        threads: Intra-op threads.
        profile: What the names of profiles begin with; ``None`` records none.

    Raises:
        WorkerError: for what genai's configuration can't hold.
        RuntimeError: what onnxruntime-genai raises.
    """

    def __init__(self, case: Case, *, threads: int, profile: Path | None = None) -> None:
        self._genai, _ = load_genai(case.runtime.label, case.runtime.requirements)
        self._batch = case.batch
        #: The least tokens that a generator must have room for.
        self._window = decoder_in(case).window
        refuse_unsupported(case)
        folder = Path(decoder_in(case).folder).resolve()
        if not (folder / "genai_config.json").is_file():
            raise _refused(
                f"the folder {str(folder)!r} has no genai_config.json on the machine that measures",
                f"Copy the whole folder of the model there. To measure without {PACKAGE}, use "
                "--ort-engines=session",
            )
        options = _session_options(case, threads)
        if profile is not None:
            options["enable_profiling"] = str(profile)
        self.has_template = _has_template(folder)
        self.is_chunked = _is_chunked(folder)
        started = perf_counter_ns()
        config = self._genai.Config(str(folder))
        config.clear_providers()
        self._append_provider(config, case.provider)
        decoder = {"filename": _relative(case.variant.path, folder), "session_options": options}
        config.overlay(json.dumps({"model": {"decoder": decoder}}))
        self._model = self._made(config)
        self.tokenizer: Any = None
        self.no_tokenizer = ""
        try:
            self.tokenizer = self._genai.Tokenizer(self._model)
        except Exception as error:  # noqa: BLE001 - its own errors have no common base class
            self.no_tokenizer = " ".join(str(error).split())
        self.create_ns = perf_counter_ns() - started

    def generator(self, *, length: int, batch: int | None = None, is_whole: bool = False) -> Any:
        """Return what generates greedily, and exactly, so many tokens of a sequence in all.

        Tokens that end a text are not chosen before that, since the least length is so long, too.
        There is room for a window, where a layer of the model has one.

        Args:
            length: Tokens of a sequence at its end.
            batch: Number of sequences; by default that of the case.
            is_whole: Whether a prompt is read in one run, so that outputs are those of all its
                tokens, where the configuration wants it in chunks.
        """
        parameters = self._parameters(length, batch or self._batch)
        if is_whole and self.is_chunked:
            parameters.set_search_options(chunk_size=0)
        return self._genai.Generator(self._model, parameters)

    def search_options(self, *, length: int) -> dict[str, str]:
        """Return what generates so many tokens in all, as genai reads it back, else as it is set.

        Args:
            length: Tokens of a sequence at its end.
        """
        read = getattr(self._parameters(length, self._batch), "get_search_options", None)
        options = dict(self._search(length, self._batch) if read is None else read())
        return {name: _text(value) for name, value in options.items()}

    def close(self) -> None:
        """Let go of model and tokenizer; a profile is complete then."""
        self._model = self.tokenizer = None
        gc.collect()

    def _made(self, config: Any) -> Any:
        try:
            return self._genai.Model(config)
        except RuntimeError as error:
            if _UNKNOWN_KIND in str(error):
                version = getattr(self._genai, "__version__", "")
                raise _refused(
                    f"{PACKAGE} {version} does not know this kind of network. "
                    f"{says(PACKAGE, first_line(error))}. By config.json it means "
                    "genai_config.json, where the kind is model.type",
                    f"Run: pip install --upgrade {PACKAGE}. If the newest version does not know it "
                    "either, use --ort-engines=session",
                ) from error
            raise

    def _parameters(self, length: int, batch: int) -> Any:
        parameters = self._genai.GeneratorParams(self._model)
        parameters.set_search_options(**self._search(length, batch))
        return parameters

    def _search(self, length: int, batch: int) -> dict[str, Any]:
        return {
            "batch_size": batch,
            "max_length": max(length, self._window),
            "min_length": length,
            "do_sample": False,
            "num_beams": 1,
            "num_return_sequences": 1,
            "repetition_penalty": 1.0,
            "no_repeat_ngram_size": 0,
        }

    def _append_provider(self, config: Any, provider: Provider) -> None:
        if provider.name == CPU:
            return
        if provider.library:
            self._genai.register_execution_provider_library(provider.name, provider.library)
        name = _PROVIDERS.get(provider.name, provider.name)
        config.append_provider(name)
        for option, value in options_for(provider).items():
            config.set_provider_option(name, option, value)


def refuse_unsupported(case: Case) -> None:
    """Refuse what genai's configuration can't hold.

    Raises:
        WorkerError: with the reason.
    """
    session, provider = case.session, case.provider
    if provider.name == CPU and provider.options:
        raise _refused(
            f"{PACKAGE} takes no options of the CPU provider, such as "
            f"{', '.join(provider.options)}",
            _without(
                " ".join(
                    f"--ort-provider-option={provider.alias}.{name}={value}"
                    for name, value in provider.options.items()
                )
                + " out",
                "these options" if len(provider.options) > 1 else "this option",
            ),
        )
    foreign = {
        "enable_mem_reuse": session.enable_mem_reuse,
        "arena_extend_strategy": session.arena_extend_strategy or None,
        "arena_initial_chunk_bytes": session.arena_initial_chunk_bytes,
        "execution_mode": None if session.execution_mode == "sequential" else "parallel",
    }
    given = [name for name, value in foreign.items() if value is not None]
    if given:
        names = " and ".join(given)
        raise _refused(
            f"{PACKAGE} does not take {' and '.join(f'{name}={foreign[name]}' for name in given)}",
            _without(f"{names} out of --ort-session-option", names),
        )
    if session.graph_optimization_level not in _LEVELS:
        raise _refused(
            f"{PACKAGE} has no graph optimisation level {session.graph_optimization_level!r}, "
            f"only {', '.join(_LEVELS)}",
            "Write one of these levels with --ort-graph-opt",
        )
    if session.python_operators:
        python = session.python_operators
        left = " and ".join(f"--ort-custom-ops={path}" for path in python)
        raise _refused(
            f"{PACKAGE} takes no operators that are defined in Python, but these files are given: "
            f"{', '.join(python)}"
            if len(python) > 1
            else f"{PACKAGE} takes no operators that are defined in Python, but {python[0]!r} is "
            "given",
            _without(f"{left} out", "these operators"),
        )
    if len(session.custom_ops) > 1:
        raise _refused(
            f"{PACKAGE} takes only one library of custom operators, but these are given: "
            f"{', '.join(session.custom_ops)}",
            "Name only one library with --ort-custom-ops. To measure with all of them, use "
            "--ort-engines=session",
        )


def _without(left: str, what: str) -> str:
    """Return what to do where genai can't be told a setting.

    Args:
        left: What is left, and out of what.
        what: The setting.
    """
    return f"Leave {left}. To measure with {what}, use --ort-engines=session"


def _session_options(case: Case, threads: int) -> dict[str, object]:
    session = case.session
    asked: dict[str, object | None] = {
        "intra_op_num_threads": threads,
        "inter_op_num_threads": session.inter_op_num_threads,
        "graph_optimization_level": _LEVELS[session.graph_optimization_level],
        "enable_mem_pattern": session.enable_mem_pattern,
        "enable_cpu_mem_arena": session.enable_cpu_mem_arena,
        "custom_ops_library": session.custom_ops[0] if session.custom_ops else None,
        **session.entries,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _is_chunked(folder: Path) -> bool:
    """Return whether a configuration has prompts read in chunks.

    A release that knows no such thing refuses the option, so that nothing is set where nobody asks.
    """
    try:
        told = json.loads((folder / "genai_config.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):  # genai says what is wrong with it
        return False
    search = told.get("search") if isinstance(told, dict) else None
    return isinstance(search, dict) and bool(search.get("chunk_size"))


def _has_template(folder: Path) -> bool:
    """Return whether a folder has a chat template: a file of its own, or in its configuration."""
    if (folder / "chat_template.jinja").is_file():
        return True
    try:
        told = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such file, or none that can be read: the tokenizer says it
        return False
    return isinstance(told, dict) and bool(told.get("chat_template"))


def _relative(file: str, folder: Path) -> str:
    """Return a file's path from a folder: genai puts the folder before whatever it is given.

    Links among the folders are followed, and the file itself may be one.
    """
    path = Path(file)
    try:
        relative = os.path.relpath(path.parent.resolve() / path.name, folder)
    except ValueError as error:  # another drive of Windows
        raise _refused(
            f"{PACKAGE} can't read {file!r}, since it lies on another drive than the folder "
            f"{str(folder)!r}",
            f"Name a folder on the drive of {str(folder)!r} in the environment variable "
            "ORTBENCH_CACHE",
        ) from error
    return relative.replace(os.sep, "/")


def _text(value: object) -> str:
    """Return a value as people write it: it reads whole numbers back as floats."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _refused(
    message: str, hint: str = "", *, kind: str = "unsupported", phase: str = "session"
) -> WorkerError:
    return case_error(message, hint, kind=kind, phase=phase)
