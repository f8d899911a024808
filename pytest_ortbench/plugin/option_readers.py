"""What options may say: a reader of the text of each, and rules between them.

Rows of options name these by dotted names, so that they are imported when a value is read.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterable
from pathlib import Path

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import CaseLimit, parse_case_limit
from pytest_ortbench.core.model_spec import SCHEMES, function_file, is_model_file
from pytest_ortbench.core.option_text import OptionText, exists, read_path, read_plain_text
from pytest_ortbench.core.precision import PRECISIONS
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.core.units import parse_span
from pytest_ortbench.core.yardstick import YARDSTICK_CHOICES
from pytest_ortbench.gate.numbers.rules import parse_rules
from pytest_ortbench.planning.axes import (
    SESSION_EXAMPLE,
    parse_choices,
    parse_dims,
    parse_exporter,
    parse_int,
    parse_int_list,
    parse_settings,
    split_list,
)
from pytest_ortbench.planning.families import variant_names
from pytest_ortbench.planning.providers import check_specs, parse_provider_options, split_specs
from pytest_ortbench.planning.recipes import check_precisions, recipes
from pytest_ortbench.planning.request import CALLS, IO_MODES, SWITCH_POSITIONS
from pytest_ortbench.planning.session_options import GRAPH_LEVELS
from pytest_ortbench.planning.sides import parse_side

#: A timeout that leaves room for all that is not timed, in times of the timed seconds.
_TIMES_TIMED = 3
#: The shortest budget: three workers of a small model, its reference, and the end of the run.
LEAST_BUDGET_S = 10.0
_MOST_BUDGET_S = 24 * 3600.0
#: More than that at a time no machine has CPUs for.
_MOST_AT_ONCE = 4096


def read_models(written: OptionText) -> tuple[str, ...]:
    """Read specifications of models, split at commas; a path that exists may hold one."""
    return tuple(dict.fromkeys(_specs(written)))


def read_several_models(written: OptionText) -> tuple[str, ...]:
    """Read specifications of models that stand beside each other.

    Raises:
        UsageError: for one that is named several times, and nothing else.
    """
    specs = _specs(written)
    if len(specs) > 1 and len(set(specs)) == 1:
        raise UsageError(
            f"{specs[0]!r} is named {len(specs)} times",
            place=written.place,
            hint="Name different models. To run one model several times at once, use "
            "--ort-sessions=2",
        )
    return tuple(dict.fromkeys(specs))


def _specs(written: OptionText) -> list[str]:
    specs: list[str] = []
    for text in written.texts:
        pieces = split_list(text, place=written.place)
        while pieces:
            taken = _longest_path(pieces, written.base)
            specs.append(_rebase(",".join(pieces[:taken]), written))
            del pieces[:taken]
    return specs


def _longest_path(pieces: list[str], base: Path) -> int:
    for count in range(len(pieces), 1, -1):
        if exists(base / ",".join(pieces[:count])):
            return count
    return 1


def _rebase(spec: str, written: OptionText) -> str:
    """Make a path that stands in an ini file start at that file, wherever pytest was called."""
    if spec.startswith(SCHEMES) or written.is_typed:
        return spec
    file = function_file(spec)
    if file and exists(written.base / file):
        return str(written.base / spec)
    is_path = "/" in spec or "\\" in spec or is_model_file(Path(spec)) or glob.has_magic(spec)
    return str(written.base / spec) if is_path or exists(written.base / spec) else spec


def read_providers(written: OptionText) -> tuple[str, ...]:
    """Read specifications of providers; devices are checked."""
    specs = split_specs(written.texts, place=written.place)
    check_specs(specs, place=written.place)
    return tuple(dict.fromkeys(specs))


def read_precisions(written: OptionText) -> tuple[str, ...]:
    """Read names of precisions, those of the project among them."""
    names = tuple(dict.fromkeys(split_list(written.texts, place=written.place)))
    if not set(names) <= set(PRECISIONS):
        # Names of the project's own; what they mean is read when a plan is made.
        check_precisions(
            names,
            place=written.place,
            known=recipes(written.base),
            variants=variant_names(written.base),
            root=written.base,
        )
    return names


def read_runtimes(written: OptionText) -> tuple[str, ...]:
    """Read specifications of runtimes."""
    # A version specifier goes on behind a comma (>=1.2,<1.3); a name starts a runtime.
    specs = split_list(
        written.texts,
        place=written.place,
        starts_item=lambda rest: rest[0].isalnum() or rest[0] == "_",
    )
    return tuple(dict.fromkeys(specs))


def read_whole_numbers(written: OptionText) -> tuple[int, ...]:
    """Read a list of whole numbers."""
    return parse_int_list(written.texts, place=written.place)


def read_counts(written: OptionText) -> tuple[int, ...]:
    """Read a list of numbers of threads, sessions, callers or processes."""
    return parse_int_list(written.texts, place=written.place, most=_MOST_AT_ONCE)


def read_graph_levels(written: OptionText) -> tuple[str, ...]:
    """Read levels of graph optimisation."""
    return parse_choices(
        written.texts, GRAPH_LEVELS, place=written.place, what="optimisation level"
    )


def read_io_modes(written: OptionText) -> tuple[str, ...]:
    """Read where inputs and outputs live."""
    return parse_choices(written.texts, IO_MODES, place=written.place, what="mode")


def _one_of(known: tuple[str, ...], written: OptionText) -> str:
    chosen = parse_choices(written.last, known, place=written.place, several=False)
    if len(chosen) > 1:
        raise UsageError(
            f"{written.last!r} names {len(chosen)} values, but this option takes one",
            place=written.place,
            hint=f"Write one of them, e.g. {chosen[0]}",
        )
    return chosen[0]


def read_libraries(written: OptionText) -> tuple[str, ...]:
    """Read paths of libraries."""
    return tuple(
        dict.fromkeys(
            str(read_path(text, written)) for text in split_list(written.texts, place=written.place)
        )
    )


def read_side(written: OptionText) -> str:
    """Read the other side of a comparison."""
    text = read_plain_text(written)
    parse_side(text, place=written.place)
    kind, _, value = text.partition(":")
    return f"{kind}:{_rebase(value, written)}" if kind == "model" else text


def read_baseline(written: OptionText) -> str:
    """Read which stored run is meant; a path of an ini file starts at that file."""
    text = read_plain_text(written)
    if written.is_typed or text == LATEST:
        return text
    is_path = text.endswith(("/", "\\", ".json", ".jsonl")) or exists(written.base / text)
    if not is_path:
        return text
    slash = "/" if text.endswith(("/", "\\")) else ""
    return f"{written.base / text}{slash}"


def read_gate_limits(written: OptionText) -> tuple[str, ...]:
    """Read limits of a gate as they are written; a wrong one is refused before it costs time."""
    texts = tuple(split_list(written.texts, place=written.place))
    parse_rules(texts, place=written.place)
    return texts


def read_case_limits(written: OptionText) -> tuple[CaseLimit, ...]:
    """Read limits, each with the cases that it is for."""
    texts = split_list(written.texts, place=written.place)
    return tuple(parse_case_limit(text, place=written.place) for text in texts)


def read_ways_of_calling(written: OptionText) -> tuple[str, ...]:
    """Read ways of calling."""
    return parse_choices(written.texts, CALLS, place=written.place, what="way")


def read_switches(written: OptionText) -> tuple[str, ...]:
    """Read ``on`` and ``off``."""
    return parse_choices(written.texts, SWITCH_POSITIONS, place=written.place)


def read_whole_number(written: OptionText) -> int:
    """Read one whole number."""
    return parse_int(written.last, place=written.place, most=_MOST_AT_ONCE, example="3")


def read_sizes(written: OptionText) -> dict[str, tuple[int, ...]]:
    """Read sizes of dimensions."""
    return parse_dims(written.texts, place=written.place)


def read_ranges_of_sizes(written: OptionText) -> dict[str, tuple[int, ...]]:
    """Read sizes of dimensions, ranges among them."""
    return parse_dims(written.texts, place=written.place, ranges=True)


def read_preparation(written: OptionText) -> dict[str, str]:
    """Read how files become values: pairs of keys and values."""
    return parse_settings(written.texts, place=written.place, example="size=224")


def read_session_options(written: OptionText) -> dict[str, str]:
    """Read session options of ONNX Runtime: pairs of keys and values."""
    return parse_settings(written.texts, place=written.place, example=SESSION_EXAMPLE)


def read_exporter_settings(written: OptionText) -> dict[str, str]:
    """Read settings of exporters; a word alone is the name of one."""
    return parse_exporter(written.texts, place=written.place)


def read_provider_settings(written: OptionText) -> dict[str, dict[str, str]]:
    """Read options of providers by alias."""
    return parse_provider_options(written.texts, place=written.place)


def read_budget(written: OptionText) -> float | None:
    """Read the time of a whole run, which names its unit, in seconds; ``none`` sets no limit."""
    text = written.last.strip()
    if text == "none":
        return None
    seconds = parse_span(text, place=written.place)
    if seconds < LEAST_BUDGET_S:
        raise UsageError(
            f"{text!r} is too short for three workers to start, warm up and be timed",
            place=written.place,
            hint=f"Write at least {LEAST_BUDGET_S:g}s",
        )
    if seconds > _MOST_BUDGET_S:
        raise UsageError(
            f"{text!r} is longer than a day, the most that a run may take",
            place=written.place,
            hint="Write at most 24h",
        )
    return seconds


def read_wait(written: OptionText) -> float | None:
    """Read how long to wait for another run, with its unit, in seconds; ``none`` has no end."""
    text = written.last.strip()
    return None if text == "none" else parse_span(text, place=written.place)


def read_fallback(written: OptionText) -> str:
    """Read what is done about nodes on another provider."""
    return _one_of(("report", "strict"), written)


def read_yardstick(written: OptionText) -> str:
    """Read what a model takes turns with."""
    return _one_of(YARDSTICK_CHOICES, written)


def read_kept_samples(written: OptionText) -> int:
    """Read how many durations are kept of a case; 0 keeps all."""
    return 0 if _one_of(("thinned", "all"), written) == "all" else Sampling().keep


# -- rules: each takes what it needs of its option, and other options by name ---------------------


def refuse_idle_gate(
    *, value: object, place: str, is_typed: bool, against: str, baseline: str
) -> None:
    """Refuse limits of a gate that nothing is held to; those of an ini file wait for one."""
    if value and is_typed and not against and not baseline:
        raise UsageError(
            "the option needs a baseline to compare with, but none is named",
            place=place,
            hint="Add --ort-baseline=latest to compare with the newest stored run, or "
            "--ort-against=git:main to compare with a Git revision. For a limit without a "
            "comparison, use --ort-limits",
        )


def refuse_wait_without_lock(
    *, value: float | None, place: str, is_typed: bool, no_lock: bool
) -> None:
    """Refuse a longest time of waiting for a run that does not wait; that of an ini file rests."""
    if value is not None and is_typed and no_lock:
        raise UsageError(
            "the option limits how long a run waits, but with --ort-no-lock it does not wait",
            place=place,
            hint="To wait at most this long, leave out --ort-no-lock. To measure at once beside "
            "other runs, leave out --ort-wait",
        )


def refuse_time_beyond_timeout(*, value: float, place: str, timeout_s: float) -> None:
    """Refuse more seconds of timing than a case may take altogether; the default may shrink."""
    if value >= timeout_s:
        raise UsageError(
            f"timing for {value:g} s does not fit into --ort-timeout={timeout_s:g}, which also "
            "covers start-up, warm-up and the comparison of outputs",
            place=place,
            hint=f"Write --ort-timeout={math.ceil(_TIMES_TIMED * value)}. To keep the timeout, "
            "write a shorter --ort-time",
        )


def refuse_budget_beside_shares(
    *, value: float | None, place: str, given: dict[str, str], places: dict[str, str]
) -> None:
    """Refuse a budget beside what it divides: the seconds and the workers of a case."""
    beside = [places[name] for name in ("time_s", "workers") if name in given]
    if value is not None and beside:
        raise UsageError(
            "a budget decides how long each case is measured and in how many workers, but "
            f"{' and '.join(beside)} {'is' if len(beside) == 1 else 'are'} given as well",
            place=place,
            hint=f"Leave out {' and '.join(beside)}. To measure without a budget, write "
            "--ort-budget=none",
        )


def refuse_absent_libraries_here(
    *, value: tuple[str, ...], place: str, runtimes: tuple[str, ...]
) -> None:
    """Refuse libraries that are absent, where every runtime sees the host's files.

    Another runtime may have files of its own, which is known once it is chosen.
    """
    if set(runtimes) <= {"current"}:
        refuse_absent_libraries(value, place=place)


def refuse_absent_libraries(libraries: Iterable[str], *, place: str) -> None:
    """Refuse libraries of custom operators that are not among the host's files."""
    for library in libraries:
        if not exists(Path(library)):
            raise UsageError(
                f"the library {library!r} does not exist",
                place=place,
                hint="Correct the path of the library of custom operators",
            )
