"""The operators of a reduced build, in the format of ``required_operators.config``.

ONNX Runtime's own tool reads them from files in its own format, and its own parser reads them back.
"""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.errors import class_and_line, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.model_questions import ListOperators, RequiredOperators
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.state import WorkerState

#: A build loads a file as it is (and may be told to optimise nothing), or optimises it itself.
_LEVELS = ("disable", "all")
_ON_CPU = Provider(alias="cpu", name=CPU)


def list_operators(question: ListOperators, state: WorkerState) -> RequiredOperators:
    """Save each model in ONNX Runtime's own format, and list what is in these files.

    Raises:
        WorkerError: if this ONNX Runtime has no such tool, or what it wrote does not parse.
        Exception: what ONNX Runtime raises.
    """
    state.import_runtime()
    state.enter("session")
    try:
        from onnxruntime.tools.ort_format_model import create_config_from_models
        from onnxruntime.tools.reduced_build_config_parser import parse_config
    except ImportError as error:
        raise case_error(
            f"ONNX Runtime {load()[0].__version__} can't list operators. "
            f"{says('Python', class_and_line(error))}",
            "Run: pip install flatbuffers"
            if error.name == "flatbuffers"
            else "Use ONNX Runtime 1.16 or newer",
            kind="unavailable",
            phase="import",
        ) from error
    folder = Path(question.folder)
    saved = [
        _saved(path, folder / f"{number}-{level}.ort", level, question.custom_ops)
        for number, path in enumerate(question.paths)
        for level in _LEVELS
    ]
    written = folder / "required_operators.config"
    create_config_from_models(saved, written, True)
    lines = [line for line in written.read_text().splitlines() if line and line[0] != "#"]
    operators, types = parse_config(str(written), enable_type_reduction=True)
    if not operators:
        raise case_error(
            "the models have no operators, so there is nothing to list",
            "Name a model that computes something",
            phase="session",
        )
    return RequiredOperators(
        lines=tuple(lines),
        operators=sum(len(names) for sets in operators.values() for names in sets.values()),
        has_types=types is not None,
        version=load()[0].__version__,
    )


def _saved(path: str, target: Path, level: str, custom_ops: tuple[str, ...]) -> Path:
    config = SessionConfig(
        graph_optimization_level=level,
        custom_ops=custom_ops,
        entries={"session.save_model_format": "ORT"},
    )
    options = session_options(config, threads=1)
    options.optimized_model_filepath = str(target)
    create(path, _ON_CPU, options)
    return target
