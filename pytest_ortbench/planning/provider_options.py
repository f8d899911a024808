"""Provider options, checked before a session is made: a key that nobody knows never passes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.graph_capture import capture_option, captures_graph
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider import CHAIN
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.session_entries import NO_CPU
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.planning.devices import check_openvino
from pytest_ortbench.planning.option_tables import ANY, SWITCH, TABLES, WHOLE, Rule
from pytest_ortbench.planning.session_options import SESSION_OPTIONS
from pytest_ortbench.runtimes.project_file import entry_to_write

PLACE = "--ort-provider-option"
_HERE = Path()

_SWITCHES = ("0", "1", "true", "false", "True", "False")
#: Off and on, for providers that take nothing else.
_SWITCHED = {"tensorrt": ("False", "True"), "dml": ("False", "True"), "coreml": ("0", "1")}
#: What may stand before a key of WebGPU: ``ep.webgpuexecutionprovider.preferredLayout``.
_PREFIX = re.compile(r"ep\.[A-Za-z0-9_]+\.")
#: What the number of an option counts, by the end of its name, and an example.
_UNITS = {
    "mem_limit": ("bytes", "2147483648"),
    "subgraph_size": ("nodes", "5"),
    "size": ("bytes", "2147483648"),
    "_mb": ("megabytes", "512"),
    "_ms": ("milliseconds", "1000"),
}


def check_options(
    alias: str,
    options: Mapping[str, str],
    *,
    declared: Collection[str] = (),
    place: str = PLACE,
    root: Path = _HERE,
) -> None:
    """Check options against what the provider documents.

    Args:
        alias: Alias of the provider, or its own name if we have none.
        options: What was asked for.
        declared: Further keys, which the project declares for this provider: those of versions
            newer than this check, and of plug-ins that we have never heard of.
        place: Where the options were written.
        root: The project's folder.

    Raises:
        UsageError: for an unknown key, or a value that does not fit.
    """
    table = TABLES.get(alias)
    engine = engine_kind(alias) if table is None else None
    if engine is not None:
        table = dict.fromkeys(engine.options, ANY)
    for key, value in options.items():
        if key in declared:
            continue
        name = _PREFIX.sub("", key) if alias == "webgpu" else key
        if table is None:
            raise UsageError(
                f"pytest-ortbench does not know the options of {alias}, so {key!r} could be a "
                "mistake",
                place=place,
                hint=f"If {alias} has this option, write {_declared(root, alias, key)}. If not, "
                f"leave out {alias}.{key}={value}",
            )
        if name not in table:
            # A table of plug-ins makes a provider of ONNX Runtime of its name, and no engine.
            declare = (
                ""
                if engine
                else f"If your version of {alias} has it, write {_declared(root, alias, key)}"
            )
            leave_out = f"Leave out {alias}.{key}={value}"
            if alias == "cpu" and key in SESSION_OPTIONS:
                leave_out = f"Write --ort-session-option={key}={value} in place of it"
            raise UsageError(
                f"{alias} has no option {key!r}"
                if table
                else f"{alias} takes no options, but {key} is given",
                place=place,
                hint=did_you_mean(name, table, declare) if table else leave_out,
            )
        _check_value(alias, key, value, table[name], place)


def _declared(root: Path, alias: str, key: str) -> str:
    """How a further option of a provider is declared in the project's configuration."""
    return f'options = ["{key}"] under {entry_to_write(root, "plugins", alias)}'


def with_options(provider: Provider, options: Mapping[str, str]) -> Provider:
    """Return the provider with further options, switches written as it takes them.

    Raises:
        UsageError: if they choose another device than ``alias:DEVICE`` does.
    """
    options = {key: _as_taken(provider.alias, key, value) for key, value in options.items()}
    for key, value in options.items():
        fixed = provider.options.get(key, value)
        if fixed != value:
            raise UsageError(
                f"{provider.alias}.{key}={value!r} contradicts {provider.label}, which means "
                f"{key}={fixed!r}",
                place=PLACE,
                hint=f"To keep {provider.label}, leave out {provider.alias}.{key}={value}. To keep "
                f"the option, write {provider.alias} in place of {provider.label}",
            )
    both = {**provider.options, **options}
    if provider.alias == "qnn" and {"backend_path", "backend_type"} <= both.keys():
        if not provider.device:
            raise UsageError(
                "qnn.backend_path and qnn.backend_type both choose the backend, but only one of "
                "them can be set",
                place=PLACE,
                hint="To choose the backend by name, keep only "
                f"qnn.backend_type={both['backend_type']}. To choose it by its library, keep only "
                f"qnn.backend_path={both['backend_path']}",
            )
        name = next(name for name in ("backend_type", "backend_path") if name in options)
        raise UsageError(
            f"qnn.{name}={options[name]!r} can't be set, since {provider.label} chooses the "
            "backend already",
            place=PLACE,
            hint=f"To keep {provider.label}, leave out {PLACE}=qnn.{name}={options[name]}. To keep "
            f"the option, write qnn in place of {provider.label}",
        )
    return replace(provider, options={**provider.options, **options})


def with_options_of_links(provider: Provider, options: Mapping[str, Mapping[str, str]]) -> Provider:
    """Return the provider, each link of a chain too, with the options of its own.

    Args:
        provider: As it was asked for.
        options: By alias or full name.

    Raises:
        UsageError: as :func:`with_options` does.
    """

    def changed(link: Provider) -> Provider:
        own = {**options.get(link.alias, {}), **options.get(link.name, {})}
        return with_options(link, own) if own else link

    return provider.of_links(changed)


def refuse_capture(
    provider: Provider, io: str, concurrency: int = 1, sessions: int = 1
) -> Failure | None:
    """Say why a recorded graph can't be replayed so, ``None`` where it can be.

    The graph holds addresses, so that inputs and outputs must stay where they are. And ONNX Runtime
    records and replays it in one thread only, whichever session another one runs: what that does
    on the GPU meanwhile breaks the recording.

    Args:
        provider: With its options.
        io: How inputs get there.
        concurrency: Inferences in flight at a time, in each session.
        sessions: Sessions side by side.
    """
    recording = next((link for link in provider.links if captures_graph(link)), None)
    if recording is None:
        return None
    option = capture_option(recording)
    switch = f"--ort-provider-option={option}"
    if recording.alias == "webgpu":
        return _refused(
            f"{option} needs fixed buffers on the GPU, which the Python API of ONNX Runtime can't "
            "make",
            f"Leave out {switch}",
        )
    if recording.alias in _CAPTURE_BOUND and io != "device":
        return _refused(
            f"{option} needs inputs and outputs that stay on the device, but this case copies them "
            "from and to the host",
            f"Write --ort-io=device. To measure the copies, too, leave out {switch}",
        )
    asked = {"--ort-concurrency": concurrency, "--ort-sessions": sessions}
    by = " and ".join(name for name, count in asked.items() if count > 1)
    if by:
        callers = concurrency * sessions
        return _refused(
            f"{option} works in one thread only, but this case has {callers} callers ({by})",
            f"To keep the option, write --ort-processes={callers} in place of {by}. To keep the "
            f"threads, leave out {switch}",
        )
    return None


def forbids(provider: Provider, session: SessionConfig) -> bool:
    """Whether a session option forbids the provider that was asked for."""
    links = {link.alias for link in provider.links}
    return "cpu" in links and session.entries.get(NO_CPU) == "1"


def check_allowed(providers: Sequence[Provider], sessions: Sequence[SessionConfig]) -> None:
    """Refuse a run whose session options forbid the only provider that it asks for.

    Raises:
        UsageError: if they do.
    """
    if providers and all(
        forbids(provider, session) for provider in providers for session in sessions
    ):
        labels = list(dict.fromkeys(provider.label for provider in providers))
        chains = [provider for provider in providers if provider.then]
        step = (
            f"Leave cpu out of the chain: --ort-providers={_without_cpu(chains[0])}"
            if chains
            else "Name the provider to measure, e.g. --ort-providers=cuda"
        )
        raise UsageError(
            f"{NO_CPU}=1 forbids the CPU, but "
            + (
                "cpu is the only provider that would be measured"
                if len(labels) == 1 and not chains
                else f"cpu is part of every requested provider: {', '.join(labels)}"
            ),
            place="--ort-session-option",
            hint=f"{step}. To measure the CPU, leave out --ort-session-option={NO_CPU}=1",
        )


def refuse_session(
    provider: Provider, session: SessionConfig, asked: Sequence[Provider] = ()
) -> Failure | None:
    """Say why a session can't be as asked on a provider, ``None`` where it can.

    DirectML changes some options by itself: ONNX Runtime runs it without memory patterns and
    sequentially, whatever was asked for.

    Args:
        provider: The provider.
        session: What was asked for.
        asked: All providers of the run.
    """
    labels = [each.label for each in asked]
    if forbids(provider, session):
        return _refused(
            f"{NO_CPU}=1 forbids the CPU, but this case runs on {provider.label}",
            _step_without_cpu(provider, asked)
            + ". To keep cpu, and forbid other providers to fall back to it, write "
            f"--ort-fallback=strict in place of --ort-session-option={NO_CPU}=1",
        )
    if session.sets_arena and all(link.name != CPU for link in provider.links):
        values = {
            "arena_extend_strategy": session.arena_extend_strategy,
            "arena_initial_chunk_bytes": session.arena_initial_chunk_bytes,
        }
        named = [f"{name}={value}" for name, value in values.items() if value]
        own = [text for text in named if text.partition("=")[0] in TABLES.get(provider.alias, ())]
        if own and "cpu" not in labels:
            rest = [text for text in named if text not in own]
            step = (
                f"To set memory of {provider.alias}, write "
                f"{' '.join(f'{PLACE}={provider.alias}.{text}' for text in own)} in place of "
                f"{' and '.join(f'--ort-session-option={text}' for text in own)}"
            )
            left = f". Leave out --ort-session-option={rest[0]}" if rest else ""
        return _refused(
            f"{' and '.join(named)} {'set' if len(named) > 1 else 'sets'} memory of the provider "
            f"cpu, but this case runs on {provider.label}",
            step + left
            if own and "cpu" not in labels
            else f"To measure {provider.label}, leave out "
            f"{' and '.join(f'--ort-session-option={text}' for text in named)}. To measure cpu "
            f"with {'these settings' if len(named) > 1 else 'this setting'}, write "
            "--ort-providers=cpu",
        )
    if all(link.alias != "dml" for link in provider.links):
        return None
    if session.execution_mode == "parallel":
        return _refused(
            "execution_mode=parallel can't be used with dml, which runs a model's nodes only one "
            "after the other",
            "To measure dml, leave out --ort-session-option=execution_mode=parallel. To keep the "
            "option, leave dml out of --ort-providers",
        )
    if session.enable_mem_pattern:
        return _refused(
            "enable_mem_pattern=1 can't be used with dml, which has no memory patterns",
            "To measure dml, leave out --ort-session-option=enable_mem_pattern=1. To keep the "
            "option, leave dml out of --ort-providers",
        )
    return None


def _step_without_cpu(provider: Provider, asked: Sequence[Provider]) -> str:
    """How a provider that has the CPU is left out of a run."""
    if provider.then:
        shorter = _without_cpu(provider)
        if shorter in [each.label for each in asked]:
            return f"Leave {provider.label} out of --ort-providers"
        return f"Write {shorter} in place of {provider.label}"
    others = [each.label for each in asked if each.label != provider.label]
    if provider.named or not others:
        return f"Leave {provider.label} out of --ort-providers"
    return f"Write --ort-providers={','.join(others)} in place of --ort-providers=all"


def _without_cpu(chain: Provider) -> str:
    """The specification of a chain without the CPU."""
    return CHAIN.join(link.label for link in chain.links if link.alias != "cpu")


def _refused(message: str, hint: str) -> Failure:
    return Failure(kind="unsupported", phase="session", message=message, hint=hint)


#: Providers that need bound inputs and outputs for it.
_CAPTURE_BOUND = ("cuda", "rocm", "tensorrt", "nvtensorrtrtx")


def _as_taken(alias: str, key: str, value: str) -> str:
    """A switch as the provider takes it.

    TensorRT and DirectML refuse ``1`` and ``0``; CoreML takes whatever is not ``1`` for off.
    """
    if alias not in _SWITCHED or TABLES[alias].get(key) != SWITCH:
        return value
    off, on = _SWITCHED[alias]
    return {"0": off, "false": off, "1": on, "true": on}.get(value.lower(), value)


def _check_value(alias: str, key: str, value: str, rule: Rule, place: str) -> None:
    if alias == "openvino" and key == "device_type":
        check_openvino(value, place, f"{alias}.{key}=")
        return
    if rule == ANY:
        return
    if rule == WHOLE:
        if not re.fullmatch(r"-?\d+", value):
            unit, example = next(
                (known for ending, known in _UNITS.items() if key.lower().endswith(ending)),
                ("", "1"),
            )
            raise UsageError(
                f"{alias}.{key}={value!r} is not a whole number{unit and f' of {unit}'}",
                place=place,
                hint=f"Write e.g. {alias}.{key}={example}",
            )
        return
    known = _SWITCHES if rule == SWITCH else rule
    if value not in known:
        raise UsageError(
            f"{value!r} is not a value of {alias}.{key}",
            place=place,
            hint=f"Write {alias}.{key}=1 or {alias}.{key}=0"
            if rule == SWITCH
            else did_you_mean(value, known),
        )
