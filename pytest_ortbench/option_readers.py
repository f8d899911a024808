"""From the texts of command line and ini file to typed values, with one message for a wrong one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.load_plan import check_loads
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import CaseLimit, parse_case_limit
from pytest_ortbench.core.option_text import (
    Given,
    exists,
    input_path,
    minutes,
    output_file,
    output_folder,
    path_in,
    percent,
    seconds,
    window,
)
from pytest_ortbench.core.precision import PRECISIONS
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.gate.numbers.rules import parse_rules
from pytest_ortbench.option_registry import OPTIONS, OptionSpec
from pytest_ortbench.options import Options
from pytest_ortbench.planning.axes import (
    parse_choices,
    parse_dims,
    parse_int,
    parse_int_list,
    parse_settings,
    split_list,
)
from pytest_ortbench.planning.datasets import parse_dataset
from pytest_ortbench.planning.families import variant_names
from pytest_ortbench.planning.providers import check_specs, parse_provider_options, split_specs
from pytest_ortbench.planning.recipes import check_precisions, recipes
from pytest_ortbench.planning.session_options import GRAPH_LEVELS
from pytest_ortbench.planning.sides import parse_side
from pytest_ortbench.planning.stage_files import parse_stage_files

if TYPE_CHECKING:
    import pytest

FALLBACKS = ("report", "strict")
CALLS = ("sync", "async")
SWITCH = ("on", "off")
IO_MODES = ("end-to-end", "device")
SAMPLES = ("thinned", "all")
#: A timeout that leaves room for all that is not timed, in times of the timed seconds.
_TIMES_TIMED = 3
_SCHEMES = ("zoo:", "builtin:")
_MODEL_SUFFIXES = (".onnx", ".ort", ".onnx.gz")


def parse_options(config: pytest.Config) -> Options:
    """Return what command line and ini file ask for; the command line replaces the ini value.

    Raises:
        UsageError: for a value that breaks a rule, and for an option that is not built yet.
    """
    given = {spec.field: found for spec in OPTIONS if (found := _find(config, spec)) is not None}
    values: dict[str, object] = {"results": Path(config.invocation_params.dir) / "results"}
    for name, found in given.items():
        values[name] = _READERS[name](found)
    options = Options(
        **values,  # type: ignore[arg-type]  # each reader returns the type of its field
        given={name: ",".join(found.texts) for name, found in given.items()},
        places={name: found.place for name, found in given.items()},
    )
    _refuse_pending(options)
    _refuse_idle_gate(options)
    _refuse_time_beyond_timeout(options)
    check_loads(
        options.load,
        timeout_s=options.timeout_s,
        official=options.load_official,
        place=options.places.get("load", ""),
    )
    if set(options.runtimes) <= {"current"}:
        # Another runtime may have files of its own, which is known once it is chosen.
        refuse_absent_libraries(options)
    return options


def _refuse_idle_gate(options: Options) -> None:
    """Refuse limits of a gate that nothing is held to; those of an ini file wait for one."""
    if options.against or options.baseline:
        return
    for name in ("gate", "gate_strict", "gate_remeasure", "accepted"):
        place = options.places.get(name, "")
        if place.startswith("-") and getattr(options, name):
            raise UsageError(
                "there is no gate: nothing is compared",
                place=place,
                hint="Add --ort-against=SIDE or --ort-baseline=RUN; --ort-limits needs neither",
            )


def _refuse_time_beyond_timeout(options: Options) -> None:
    """Refuse more seconds of timing than a case may take altogether; the default may shrink."""
    if "time_s" not in options.given or options.time_s < options.timeout_s:
        return
    raise UsageError(
        f"{options.time_s:g} s of timing do not fit into --ort-timeout={options.timeout_s:g}, "
        "which includes starts, warm-up and comparing",
        place=options.places.get("time_s", "--ort-time"),
        hint=f"Use --ort-timeout={math.ceil(_TIMES_TIMED * options.time_s)}, or time less",
    )


def _find(config: pytest.Config, spec: OptionSpec) -> Given | None:
    """Return what the user set, the command line first."""
    written = config.getoption(spec.flag) if spec.flag else None
    if written is not None:
        return Given(
            texts=_texts(written), place=spec.flag, base=Path(config.invocation_params.dir)
        )
    place, base = _ini_place(config, spec.ini)
    try:
        configured = config.getini(spec.ini)
    except (TypeError, ValueError, _pytest_usage_error()) as error:
        # pytest checks the type, but names key and file in some messages only.
        text = str(error)
        named = "" if spec.ini in text else place
        raise UsageError(text, place=named, hint=_ini_example(spec)) from error
    if configured is None or configured == []:
        return None
    return Given(texts=_texts(configured), place=place, base=base)


def _ini_place(config: pytest.Config, key: str) -> tuple[str, Path]:
    """Where an ini value stands, and the folder that its relative paths start at."""
    overrides: list[str] = config.getoption("override_ini") or []
    if any(text.startswith(f"{key}=") for text in overrides):
        return f"-o {key}", Path(config.invocation_params.dir)
    if config.inipath is None:
        return key, Path(config.invocation_params.dir)
    return f"{key} in {config.inipath}", config.inipath.parent


def _pytest_usage_error() -> type[Exception]:
    import pytest

    return pytest.UsageError


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return ("true" if value else "false",) if isinstance(value, bool) else (str(value),)


def _ini_example(spec: OptionSpec) -> str:
    examples = {
        "args": f'{spec.ini} = ["A", "B"] under [tool.pytest], numbers in quotes too',
        "int": f"{spec.ini} = 3",
        "float": f"{spec.ini} = 2.5",
        "string": f'{spec.ini} = "text"',
        "bool": f"{spec.ini} = true",
    }
    return f"Write e.g. {examples[spec.ini_type]}"


def _refuse_pending(options: Options) -> None:
    defaults = {
        field.name: field.default if field.default is not MISSING else None
        for field in fields(Options)
    }
    for spec in OPTIONS:
        if spec.pending and getattr(options, spec.field) != defaults[spec.field]:
            what = "it" if spec.kind == "flag" else repr(options.given[spec.field])
            raise UsageError(
                f"{what} can't be had in this version: {spec.pending}",
                place=options.places[spec.field],
                hint="Leave the option out",
            )


def refuse_absent_libraries(options: Options) -> None:
    """Check that the custom operator libraries are among the host's files.

    Raises:
        UsageError: for one that isn't.
    """
    for library in options.custom_ops:
        if not exists(Path(library)):
            raise UsageError(
                f"there is nothing at {library!r}",
                place=options.places["custom_ops"],
                hint="Name a library of custom operators (.so, .dll, .dylib)",
            )


# -- readers: one an option that is not plain text ------------------------------------------------


def _models(given: Given) -> tuple[str, ...]:
    """Split at commas, but keep a path that exists with a comma in its name."""
    specs: list[str] = []
    for text in given.texts:
        pieces = split_list(text, place=given.place)
        while pieces:
            taken = _longest_path(pieces, given.base)
            specs.append(_rebase(",".join(pieces[:taken]), given))
            del pieces[:taken]
    return tuple(dict.fromkeys(specs))


def _longest_path(pieces: list[str], base: Path) -> int:
    for count in range(len(pieces), 1, -1):
        if exists(base / ",".join(pieces[:count])):
            return count
    return 1


def _rebase(spec: str, given: Given) -> str:
    """Make a path that stands in an ini file start at that file, wherever pytest was called."""
    if spec.startswith(_SCHEMES) or given.place.startswith("-"):
        return spec
    is_path = "/" in spec or "\\" in spec or spec.endswith(_MODEL_SUFFIXES)
    return str(given.base / spec) if is_path or exists(given.base / spec) else spec


def _providers(given: Given) -> tuple[str, ...]:
    specs = split_specs(given.texts, place=given.place)
    check_specs(specs, place=given.place)
    return tuple(dict.fromkeys(specs))


def _precisions(given: Given) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(split_list(given.texts, place=given.place)))
    if not set(names) <= set(PRECISIONS):
        # Names of the project's own; what they mean is read when a plan is made.
        check_precisions(
            names,
            place=given.place,
            known=recipes(given.base),
            variants=variant_names(given.base),
        )
    return names


def _runtimes(given: Given) -> tuple[str, ...]:
    # A version specifier goes on behind a comma (>=1.2,<1.3); a name starts a runtime.
    specs = split_list(
        given.texts, place=given.place, starts_item=lambda rest: rest[0].isalnum() or rest[0] == "_"
    )
    return tuple(dict.fromkeys(specs))


def _integers(given: Given) -> tuple[int, ...]:
    return parse_int_list(given.texts, place=given.place)


def _graph_opts(given: Given) -> tuple[str, ...]:
    return parse_choices(given.texts, GRAPH_LEVELS, place=given.place, what="optimisation level")


def _io(given: Given) -> tuple[str, ...]:
    return parse_choices(given.texts, IO_MODES, place=given.place, what="mode")


def _one_of(known: tuple[str, ...], given: Given) -> str:
    chosen = parse_choices(given.last, known, place=given.place)
    if len(chosen) > 1:
        raise UsageError(
            f"{given.last!r} names more than one", place=given.place, hint="Choose one of them"
        )
    return chosen[0]


def _libraries(given: Given) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            str(path_in(text, given)) for text in split_list(given.texts, place=given.place)
        )
    )


def _text(given: Given) -> str:
    if not given.last.strip():
        raise UsageError("the value is empty", place=given.place, hint="Leave the option out")
    return given.last.strip()


def _side(given: Given) -> str:
    text = _text(given)
    parse_side(text, place=given.place)
    kind, _, value = text.partition(":")
    return f"{kind}:{_rebase(value, given)}" if kind == "model" else text


def _baseline(given: Given) -> str:
    """A path of an ini file starts at that file, wherever pytest was called."""
    text = _text(given)
    if given.place.startswith("-") or text == LATEST:
        return text
    is_path = text.endswith(("/", "\\", ".json", ".jsonl")) or exists(given.base / text)
    if not is_path:
        return text
    slash = "/" if text.endswith(("/", "\\")) else ""
    return f"{given.base / text}{slash}"


def _gate(given: Given) -> tuple[str, ...]:
    """Kept as written, and read once here, so that a wrong limit costs no time."""
    texts = tuple(split_list(given.texts, place=given.place))
    parse_rules(texts, place=given.place)
    return texts


def _limits(given: Given) -> tuple[CaseLimit, ...]:
    texts = split_list(given.texts, place=given.place)
    return tuple(parse_case_limit(text, place=given.place) for text in texts)


def _flag(given: Given) -> bool:
    return given.last == "true"


_READERS: dict[str, Callable[[Given], object]] = {
    "models": _models,
    "providers": _providers,
    "precisions": _precisions,
    "batch_sizes": _integers,
    "dims": lambda given: parse_dims(given.texts, place=given.place),
    "inputs": input_path,
    "runtimes": _runtimes,
    "threads": _integers,
    "graph_opts": _graph_opts,
    "concurrency": _integers,
    "sessions": _integers,
    "calls": lambda given: parse_choices(given.texts, CALLS, place=given.place, what="way"),
    "spinning": lambda given: parse_choices(given.texts, SWITCH, place=given.place),
    "processes": _integers,
    "io": _io,
    "session_options": lambda given: parse_settings(given.texts, place=given.place),
    "provider_options": lambda given: parse_provider_options(given.texts, place=given.place),
    "custom_ops": _libraries,
    "time_s": seconds,
    "target": percent,
    "workers": lambda given: parse_int(given.last, place=given.place, example="3"),
    "fallback": lambda given: _one_of(FALLBACKS, given),
    "results": output_folder,
    "no_results": _flag,
    "json": output_file,
    "html": output_file,
    "plots": output_folder,
    "prometheus": output_file,
    "samples": lambda given: _one_of(SAMPLES, given),
    "dataset": lambda given: parse_dataset(_text(given), given.base, place=given.place),
    "soak_s": minutes,
    "soak_dims": lambda given: parse_dims(given.texts, place=given.place, ranges=True),
    "energy_window_s": window,
    "startup": _flag,
    "stages": lambda given: parse_stage_files(given.texts, base=given.base, place=given.place),
    "load": lambda given: tuple(dict.fromkeys(split_list(given.texts, place=given.place))),
    "load_official": _flag,
    "load_logs": output_folder,
    "profile": _flag,
    "limits": _limits,
    "against": _side,
    "baseline": _baseline,
    "gate": _gate,
    "gate_strict": _flag,
    "accepted": lambda given: path_in(given.last, given),
    "gate_remeasure": _flag,
    "resume": _flag,
    "timeout_s": seconds,
    "collect": _flag,
}
