"""From a case to a live session, without any silent substitution on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.errors import WorkerError, first_line, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import CPU, NVIDIA, WEBGPU
from pytest_ortbench.core.session_entries import NO_CPU
from pytest_ortbench.worker.assignment import ENTRY as ASSIGNMENT_ENTRY
from pytest_ortbench.worker.cpu_arena import use_arena
from pytest_ortbench.worker.gpu_choice import number_of
from pytest_ortbench.worker.gpus import NoSuchGpu, visible_gpus
from pytest_ortbench.worker.ort_values import take_stand_ins
from pytest_ortbench.worker.plugins import (
    Plugin,
    ProviderMissing,
    built_in,
    choose,
    devices,
    is_bundled,
    is_plugged_in,
    plugin_of,
)
from pytest_ortbench.worker.python_operators import library_for
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.tiny import MATRIX_PRODUCT, tiny_feeds

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtEpDevice, SessionOptions


#: Our names of ONNX Runtime's levels, in order.
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}


class FellBack(Exception):
    """A session was made, but without the asked provider."""

    def __init__(self, asked: str, got: tuple[str, ...]) -> None:
        super().__init__(f"the session runs on {', '.join(got)}, not on {asked}")
        self.session_providers = got


class OptionIgnored(Exception):
    """The provider does not know an option that was set."""


class LevelMissing(Exception):
    """This version of ONNX Runtime does not have the graph optimisation level."""


class CustomOpsAbsent(Exception):
    """A Python file of operators is not there; says its path."""


class CustomOpsRefused(Exception):
    """A custom operator library can't be loaded; the text is ONNX Runtime's."""


def create(
    model: str | bytes, provider: Provider, options: SessionOptions
) -> tuple[InferenceSession, int]:
    """Create a session on ``provider``, with the CPU behind it for what it does not take.

    Behind TensorRT CUDA comes first. There is no CPU behind where the options have
    ``session.disable_cpu_ep_fallback``. A chain is taken as it is written.

    Args:
        model: Path of the file, or its bytes.
        provider: Where it should run.
        options: From :func:`session_options`.

    Returns:
        The session, with its fallback switched off, and the nanoseconds that creating it took,
        reading the file included.

    Raises:
        ProviderMissing: if this runtime does not have the provider.
        FellBack: if the session was made without it.
        OptionIgnored: if the provider does not know one of the options.
        Exception: what ONNX Runtime raises.
    """
    ort, _ = load()
    providers = put_into(options, provider)
    started = time.perf_counter_ns()
    # Otherwise a failing provider is replaced by another one, with no more than a printed banner.
    try:
        session = ort.InferenceSession(model, options, providers=providers, enable_fallback=0)
    except Exception as error:
        if provider.then:
            vars(error)["provider"] = _failing(provider)
        raise
    elapsed = time.perf_counter_ns() - started
    session.disable_fallback()
    got = tuple(session.get_providers())
    for link in provider.links:
        with _blaming(link):
            if link.name not in got:
                raise FellBack(link.name, got)
            _require_options(session, link)
    take_stand_ins(ort, session)
    return session, elapsed


@contextmanager
def _blaming(link: Provider) -> Iterator[None]:
    """Note on what is raised which link of a chain it is about."""
    try:
        yield
    except Exception as error:
        vars(error)["provider"] = link.name
        raise


def blamed(error: Exception) -> str:
    """Return the name of the link of a chain that an error is about; empty if nothing tells."""
    return str(vars(error).get("provider", ""))


def _failing(provider: Provider) -> str:
    """Return the name of the first link that has no session by itself; empty if each has one."""
    for link in provider.links:
        try:
            create(MATRIX_PRODUCT.content, link, session_options(SessionConfig(), threads=1))
        except Exception:  # noqa: BLE001 - native errors have no common base class
            return link.name
    return ""


def put_into(
    options: SessionOptions, provider: Provider
) -> list[tuple[str, dict[str, str]]] | None:
    """Put plug-ins into session options, and return the list of providers that a session takes.

    A session takes either the one or the other, so that what is compiled in stands in the options
    as well, where it is a link beside a plug-in. There is no list then.

    Args:
        options: What a session is made with.
        provider: Where it should run.

    Raises:
        ProviderMissing: if this runtime does not have the provider.
    """
    ort, _ = load()
    links = provider.links
    taken: list[tuple[str, dict[str, str], OrtEpDevice | None]] = []
    for link in links:
        with _blaming(link):
            given, device = options_for(link), None
            preload(link.name)
            plugin = _plugin(link)
            if plugin is None:
                _require(ort, link.name)
            else:
                # A UUID has become a number there, and the option alone may name the device.
                option = _DEVICE_OPTIONS.get(link.name, "")
                device = choose(devices(plugin), link, device=given.get(option))
                given = {key: value for key, value in given.items() if key != option}
            taken.append((link.name, given, device))
    if any(device is not None for _, _, device in taken):
        for name, given, device in taken:
            if device is None:
                options.add_provider(name, given)
            else:
                options.add_provider_for_devices([device], given)
        return None
    listed = [(name, given) for name, given, _ in taken]
    if len(links) == 1:
        listed += _behind(ort, *listed[0])
        if provider.name != CPU and not _forbids_cpu(options):
            listed.append((CPU, {}))
    return listed


@contextmanager
def told_as_compiled(case: Case) -> Iterator[None]:
    """Turn what a session of a compiled file is refused with into a failure that says so.

    Args:
        case: The case; nothing changes for one of a plain file.

    Raises:
        WorkerError: if the file is refused.
    """
    if not (case.variant.compilation or case.model.compiled):
        yield
        return
    try:
        yield
    except (WorkerError, ProviderMissing, FellBack):
        raise  # says all
    except Exception as error:
        raise _not_loaded(case, first_line(error)) from error


def _not_loaded(case: Case, native: str) -> WorkerError:
    version = load()[0].__version__
    made = case.variant.compilation
    if made is not None:
        return case_error(
            f"{case.provider.label} in ONNX Runtime {version} can't load the file that it "
            f"compiled. {says('ONNX Runtime', native)}",
            f"To compile it again, delete {Path(case.variant.path).parent}. If that fails too, use "
            "another version of the provider (--ort-runtimes), or leave --ort-compiled out",
            phase="session",
        )
    told = ", ".join(part.text for part in case.model.compiled)
    compiled_for = {part.provider for part in case.model.compiled}
    is_another = "" not in compiled_for and case.provider.name not in compiled_for
    return case_error(
        f"{case.provider.label} in ONNX Runtime {version} can't load the file, which was compiled "
        f"for {told}. {says('ONNX Runtime', native)}",
        "Name a provider that it was compiled for, or measure the file that it was compiled from"
        if is_another
        else "Compile the model again, or use the version that compiled it (--ort-runtimes)",
        phase="session",
    )


def session_options(
    config: SessionConfig, *, threads: int, profile_prefix: Path | None = None
) -> SessionOptions:
    """Build ONNX Runtime's session options.

    Args:
        config: What was asked for.
        threads: Intra-op threads in force.
        profile_prefix: Where profiling writes its file; ``None`` leaves it off.

    Raises:
        LevelMissing: if this version does not have the asked optimisation level.
        ArenaMissing: if the CPU arena can't be made as asked.
        CustomOpsRefused: if a custom operator library can't be loaded.
        CustomOpsAbsent: if a Python file of operators is not there.
        WorkerError: if a Python file of operators can't be used.
    """
    ort, _ = load()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if config.inter_op_num_threads is not None:
        options.inter_op_num_threads = config.inter_op_num_threads
    options.graph_optimization_level = _level(ort, config.graph_optimization_level)
    options.execution_mode = getattr(ort.ExecutionMode, _MODES[config.execution_mode])
    if config.enable_mem_pattern is not None:
        options.enable_mem_pattern = config.enable_mem_pattern
    if config.enable_mem_reuse is not None:
        options.enable_mem_reuse = config.enable_mem_reuse
    if config.enable_cpu_mem_arena is not None:
        options.enable_cpu_mem_arena = config.enable_cpu_mem_arena
    for key, value in config.entries.items():
        options.add_session_config_entry(key, value)
    use_arena(options, config)
    for name, size in config.fixed_dims.items():
        options.add_free_dimension_override_by_name(name, size)
    for library in _libraries(config):
        try:
            options.register_custom_ops_library(library)
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise CustomOpsRefused(str(error)) from error
    if profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile_prefix)
        options.add_session_config_entry(*ASSIGNMENT_ENTRY)
    return options


def require_fixed(session: InferenceSession, config: SessionConfig) -> None:
    """Refuse a session that leaves a dimension open whose size it was told.

    Raises:
        WorkerError: ``unsupported``, with the first such dimension.
    """
    for declared in session.get_inputs():
        still = [name for name in declared.shape if name in config.fixed_dims]
        if still:
            raise case_error(
                f"the dimension {still[0]!r} of the input {declared.name!r} was to be fixed to "
                f"{config.fixed_dims[still[0]]}, but ONNX Runtime left it open",
                "Use --ort-fix-dims=off. To measure with the fixed dimension, name another ONNX "
                "Runtime with --ort-runtimes",
                phase="session",
            )


def _libraries(config: SessionConfig) -> list[str]:
    """Libraries of custom operators, each once: that which calls functions serves all files."""
    python = config.python_operators
    absent = next((path for path in python if not Path(path).exists()), "")
    if absent:
        raise CustomOpsAbsent(absent)
    paths = [library_for(path) if path in python else path for path in config.custom_ops]
    return list(dict.fromkeys(paths))


def _level(ort: ModuleType, name: str) -> object:
    member = getattr(ort.GraphOptimizationLevel, _LEVELS[name], None)
    if member is None:
        known = [
            ours for ours, theirs in _LEVELS.items() if hasattr(ort.GraphOptimizationLevel, theirs)
        ]
        raise LevelMissing(
            f"ONNX Runtime {ort.__version__} has no graph optimisation level {name!r}, "
            f"only {', '.join(known)}"
        )
    return member


def _forbids_cpu(options: SessionOptions) -> bool:
    """Whether nodes that the provider leaves are an error; then nobody may name the CPU either."""
    try:
        return bool(options.get_session_config_entry(NO_CPU) == "1")
    except RuntimeError:  # its way to say that the entry is not set
        return False


def options_for(provider: Provider) -> dict[str, str]:
    """Return a provider's options as ONNX Runtime takes them: a GPU's UUID becomes its number.

    Raises:
        ProviderMissing: if no such GPU is visible.
    """
    device = provider.options.get("device_id", "")
    if not device.lower().startswith(("gpu-", "mig-")):
        return provider.options
    try:
        return {**provider.options, "device_id": str(number_of(device, visible_gpus()))}
    except NoSuchGpu as error:
        raise ProviderMissing(str(error)) from error


def options_in_force(session: InferenceSession, name: str) -> dict[str, str]:
    """Return the options that a session reads back for a provider.

    A plug-in's are left out: *seen*, a session gives back whatever it was given, known or not.
    """
    if is_plugged_in(name):
        return {}
    read = session.get_provider_options().get(name, {})
    return {str(key): str(value) for key, value in read.items()}


def _plugin(provider: Provider) -> Plugin | None:
    """The plug-in that brings a provider, ``None`` for one that is compiled in, or nowhere."""
    if is_bundled(provider.name):
        return Plugin(name=provider.name, library="")
    return None if is_compiled_in(provider) else plugin_of(provider)


def is_compiled_in(provider: Provider) -> bool:
    """Whether ONNX Runtime itself has a provider, so that no plug-in brings it."""
    return not provider.library and provider.name in built_in()


#: The option that chooses a device; a plug-in gets the device itself instead.
_DEVICE_OPTIONS = {
    "OpenVINOExecutionProvider": "device_type",
    "CUDAExecutionProvider": "device_id",
    "TensorrtExecutionProvider": "device_id",
    "NvTensorRTRTXExecutionProvider": "device_id",
    "MIGraphXExecutionProvider": "device_id",
}


def _require(ort: ModuleType, name: str) -> None:
    available = ort.get_available_providers()
    if name not in available:
        raise ProviderMissing(f"{name} is not among {', '.join(available)}")


def _behind(ort: ModuleType, name: str, given: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """What takes nodes before the CPU does: those that TensorRT leaves, CUDA, as is advised."""
    cuda = "CUDAExecutionProvider"
    if name != "TensorrtExecutionProvider" or cuda not in ort.get_available_providers():
        return []
    return [(cuda, {key: value for key, value in given.items() if key == "device_id"})]


def preload(name: str) -> None:
    """Load CUDA's and cuDNN's libraries from the packages that brought them.

    ``pip install onnxruntime-gpu[cuda,cudnn]`` puts them where the loader does not look; ONNX
    Runtime finds them there when it is told to (since 1.21), and then registers a CUDA provider
    that it brings as a plug-in. Those of the system are used otherwise, as always.
    """
    ort, _ = load()
    if name in NVIDIA and hasattr(ort, "preload_dlls") and not _preloaded:
        _preloaded.append(name)
        ort.preload_dlls()


#: The provider that the libraries were loaded for, once a process: it prints what it misses.
_preloaded: list[str] = []


def _require_options(session: InferenceSession, provider: Provider) -> None:
    """Refuse an option that the provider dropped.

    A provider that reads back nothing at all can't be checked here (the plan did, against what its
    makers document), except for the CPU's, which takes no options.
    """
    in_force = options_in_force(session, provider.name)
    if not in_force and provider.name != CPU:
        return
    unknown = sorted(provider.options.keys() - in_force.keys())
    if unknown:
        known = ", ".join(sorted(in_force)) or "none"
        raise OptionIgnored(f"{provider.name} does not know {unknown[0]!r}; it knows: {known}")


#: Providers whose device context goes with their last session. *Seen* with WebGPU on SwiftShader:
#: 140 MB, which the case's own session would take again.
_CONTEXT_OF_SESSIONS = (WEBGPU,)
#: Sessions that keep the context of a device.
_kept: list[InferenceSession] = []


def initialise(provider: Provider, *, threads: int) -> int | None:
    """Load a provider's libraries and make its device context, through a tiny session.

    So the memory that they take is in the baseline of a case, and their time stands apart from that
    of session creation. Whether it works is the case's own session's business.

    Args:
        provider: The case's provider.
        threads: Intra-op threads.

    Returns:
        Nanoseconds; ``None`` for the CPU, and where it did not work.
    """
    if all(link.name == CPU for link in provider.links):
        return None
    started = time.perf_counter_ns()
    try:
        options = session_options(SessionConfig(), threads=threads)
        session, _ = create(MATRIX_PRODUCT.content, provider, options)
        session.run(None, tiny_feeds(MATRIX_PRODUCT))
        if any(link.name in _CONTEXT_OF_SESSIONS for link in provider.links):
            _kept.append(session)
    except Exception:  # noqa: BLE001 - native errors have no common base class
        return None
    return time.perf_counter_ns() - started
