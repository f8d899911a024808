"""What a test asks for: axes and limits of its ``ortbench`` marker, and passes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.errors import (
    NoModelError,
    OrtbenchError,
    UsageError,
    did_you_mean,
)
from pytest_ortbench.core.limits import Limit, parse_limit
from pytest_ortbench.core.metrics import PASS_OF_METRIC
from pytest_ortbench.core.option import Keyword
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.plugin.marked_paths import (
    folders_of,
    placed_specs,
    texts_of_specs,
    with_folders,
)
from pytest_ortbench.plugin.options import MARKER_KEYWORDS, ROWS, Options

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.gate.numbers.rules import Rule
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.planning.request import PlanRequest

#: What a keyword sets of the plan (``request.io``); all other keywords are read when a test runs.
AXES = {row.field: row.to for row in ROWS if row.keyword and row.to}

#: Passes by the names by which a test asks for them: metrics, and what it calls of the fixture.
_ASKED_BY_NAME = {
    **PASS_OF_METRIC,
    **{name: entry.name for entry in PASSES for name in entry.asked_by},
}
#: Options that ask for a pass of a case as far as their value goes with it: where that stands, its
#: name, and the pass.
_ASKING = [
    (row.to.partition(".")[0], row.to.partition(".")[2] or row.field, row.asks_for)
    for row in ROWS
    if row.asks_for
]
#: Keywords by the flag of their option, the place that messages give.
BY_FLAG = {row.flag: row.field for row in ROWS if row.keyword}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerValues:
    """What the markers of one test say; the closest marker wins for each keyword.

    Attributes:
        axes: Values by what they set of the plan, as in :data:`AXES`.
        limits: What the case must keep.
        gate: What its comparison must keep.
    """

    axes: dict[str, Any]
    limits: tuple[Limit, ...]
    gate: tuple[Rule, ...] = ()

    def apply(self, request: PlanRequest) -> PlanRequest:
        """Return ``request`` with the axes that the marker names."""
        values: dict[str, dict[str, Any]] = {"request": {}, "sampling": {}, "case": {}}
        for to, value in self.axes.items():
            room, _, name = to.partition(".")
            values[room][name] = value
        sampling = replace(request.sampling, **values["sampling"])
        of_passes = {**request.of_passes, **values["case"]}
        return replace(request, sampling=sampling, of_passes=of_passes, **values["request"])


class MarkerError(UsageError):
    """The marker of a test is wrong, or names no model where nothing else does."""


def marker_of(item: pytest.Item) -> MarkerValues:
    """Return what the ``ortbench`` markers of a test say; raises as :func:`read_marker` does."""
    marks = tuple(item.iter_markers("ortbench"))
    place = f"{item.nodeid}, ortbench marker"
    return read_marker(marks, place=place, folders=folders_of(item) if marks else ())


def read_marker(
    marks: Iterable[pytest.Mark], *, place: str, folders: Sequence[Path]
) -> MarkerValues:
    """Return what the ``ortbench`` markers of a test say.

    Args:
        marks: As ``iter_markers("ortbench")`` gives them, the closest first.
        place: What gives them, for messages: the marker of a test, or a call in it.
        folders: Where relative paths may start, the first wins.

    Raises:
        MarkerError: for positional arguments, unknown keywords and values that do not fit.
    """
    try:
        return _read(marks, place, folders)
    except UsageError as error:
        raise MarkerError(error.message, place=error.place, hint=error.hint) from error


def _for_the_run(name: str, value: object) -> str:
    """Return the step for what can be set for a whole run only; empty for anything else."""
    flag = next((row.flag for row in ROWS if row.field == name), "")
    if not flag:
        return ""
    text = f"={value}" if isinstance(value, int | float | str) and value is not True else ""
    return f"It can be set only for a whole run, with {flag}{text}"


def _read(marks: Iterable[pytest.Mark], place: str, folders: Sequence[Path]) -> MarkerValues:
    merged: dict[str, object] = {}
    for mark in marks:
        if mark.args:
            raise UsageError(
                f"{mark.args[0]!r} stands without a keyword",
                place=place,
                hint=f"Write the keyword before it, e.g. batch_sizes=[{mark.args[0]}]"
                if isinstance(mark.args[0], int)
                else f"Write the keyword before it, e.g. models={_as_models(mark.args[0])}",
            )
        for name, value in mark.kwargs.items():
            if name not in MARKER_KEYWORDS:
                raise UsageError(
                    f"there is no keyword {name!r}",
                    place=place,
                    hint=_for_the_run(name, value) or did_you_mean(name, MARKER_KEYWORDS),
                )
            merged.setdefault(name, value)
    values = {
        name: _value(name, value, place, folders)
        for name, value in merged.items()
        if value is not None or MARKER_KEYWORDS[name].takes != "sizes"
    }
    return MarkerValues(
        axes={AXES[name]: value for name, value in values.items() if name in AXES},
        limits=tuple(
            parse_limit(text, place=f"{place}, limits") for text in values.get("limits", ())
        ),
        gate=_gate(values["gate"], place) if "gate" in values else (),
    )


def _as_models(value: object) -> str:
    """Return a value as it is written for the keyword ``models``; an example if it can't be one."""
    return repr(value) if isinstance(value, str | list) else "['model.onnx']"


def _value(name: str, value: object, place: str, folders: Sequence[Path]) -> Any:
    keyword = MARKER_KEYWORDS[name]
    if keyword.takes == "numbers":
        return _numbers(name, value, place, least=keyword.least)
    if keyword.takes == "choice":
        return _choice(name, value, keyword.choices, place)
    if keyword.takes == "sizes":
        return _sizes(name, value, place)
    if keyword.takes == "models":
        return placed_specs(_specs(name, value, place), folders)
    if keyword.takes == "data":
        return _data(name, value, place, folders)
    return _texts(name, value, place, may_be_empty=keyword.may_be_empty)


def _gate(texts: tuple[str, ...], place: str) -> tuple[Rule, ...]:
    # Only where a marker has some: most runs have no gate.
    from pytest_ortbench.gate.numbers.rules import parse_rules

    return parse_rules(texts, place=f"{place}, gate")


def _texts(name: str, value: object, place: str, *, may_be_empty: bool) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise _misfit(name, value, "a string or a list of strings", place)
    if not items and not may_be_empty:
        raise _misfit(name, value, "a list of at least one entry", place)
    return tuple(items)


def _specs(name: str, value: object, place: str) -> tuple[str, ...]:
    rule = "a path or a name of a model, or a list of them"
    if not isinstance(value, str | os.PathLike | list | tuple) or value in ([], ()):
        raise _misfit(name, value, rule, place)
    try:
        return texts_of_specs(value)
    except TypeError:
        raise _misfit(name, value, rule, place) from None


def _choice(name: str, value: object, choices: Sequence[str], place: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise _misfit(name, value, f"one of {', '.join(choices)}", place)
    return value


def _numbers(
    name: str, value: object, place: str, *, least: int = 1, dimension: str | None = None
) -> tuple[int, ...]:
    """The numbers of a keyword.

    Args:
        name: The keyword.
        value: What it was given, or one of the values of its mapping.
        place: Where.
        least: The smallest number.
        dimension: Which of the mapping's values it is; ``None`` for that of the keyword.
    """
    items = (value,) if isinstance(value, int) else value
    if (
        not isinstance(items, list | tuple)
        or not items
        or not all(isinstance(item, int) and not isinstance(item, bool) for item in items)
        or any(item < least for item in items)
    ):
        rule = f"a whole number from {least} up, or a list of such numbers"
        raise _misfit(name, value, rule, place, dimension)
    return tuple(dict.fromkeys(items))


def _sizes(name: str, value: object, place: str) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, Mapping):
        raise _misfit(name, value, "a mapping from dimension to size or sizes", place)
    return {
        str(dimension): _numbers(name, sizes, place, dimension=str(dimension))
        for dimension, sizes in value.items()
    }


def _data(name: str, value: object, place: str, folders: Sequence[Path]) -> Any:
    """What the option makes of a value; a path is that of the first folder where there is one."""
    if isinstance(value, Mapping):
        texts = tuple(f"{key}={setting}" for key, setting in value.items())
    elif isinstance(value, str | os.PathLike) and os.fspath(value):
        texts = (os.fsdecode(value),)
    else:
        raise _misfit(name, value, "text or a path, or a mapping of settings", place)
    read = import_named(next(row.reader for row in ROWS if row.field == name))
    errors: list[UsageError] = []
    for base in folders:
        where = f"{place}, {name}"
        try:
            return read(OptionText(texts=texts, place=where, is_typed=True, base=base))
        except UsageError as error:
            errors.append(error)
    raise errors[0]


def _misfit(
    name: str, value: object, rule: str, place: str, dimension: str | None = None
) -> UsageError:
    is_empty = isinstance(value, str | Sequence) and not value
    shown, example = name, _example(MARKER_KEYWORDS[name])
    if dimension is not None:
        shown, example = f"{name}[{dimension!r}]", f"{{{dimension!r}: [128, 512]}}"
    return UsageError(
        f"{shown} is {value!r}, but must " + ("not be empty" if is_empty else f"be {rule}"),
        place=place,
        hint=f"Write e.g. {name}={example}" + (f", or leave {name} out" if is_empty else ""),
    )


def _example(keyword: Keyword) -> str:
    """A value of a keyword, as Python has it."""
    of_kind = {
        "models": "['model.onnx']",
        "numbers": f"[{keyword.least}, 8]",
        "choice": repr(next(iter(keyword.choices), "")),
        "sizes": "{'seq': [128, 512]}",
    }
    return keyword.example or of_kind[keyword.takes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Stands in a test's place whose marker is wrong: the test fails with the message."""

    message: str


def marker_error(error: OrtbenchError, item: pytest.Item) -> str | None:
    """Return what to say if the marker of a test is to blame for an error, else ``None``.

    Args:
        error: What came up while the test's cases were planned.
        item: The test.
    """
    if isinstance(error, MarkerError):
        return str(error)
    marks = reversed([*item.iter_markers("ortbench")])
    named = {name: value for mark in marks for name, value in mark.kwargs.items()}
    keyword = BY_FLAG.get(error.place)
    if keyword is None or keyword not in named:
        return None
    place = f"{item.nodeid}, {keyword} of the ortbench marker"
    if isinstance(error, NoModelError):
        error = with_folders(error, item, named[keyword])
    return str(UsageError(error.message, place=place, hint=error.hint))


def passes_of(
    item: pytest.Item, planned: Planned, limits: Iterable[Limit], options: Options
) -> set[str]:
    """Return the passes that a test needs; one that asks for more while it runs gets it then.

    Args:
        item: The test, whose code is searched for the names of metrics.
        planned: Its case.
        limits: What the case must keep.
        options: What the run was asked for.
    """
    code = getattr(getattr(item, "function", None), "__code__", None)
    named = {limit.metric.name for limit in limits}
    named.update(code.co_names if code is not None else ())
    passes = {_ASKED_BY_NAME[name] for name in named if name in _ASKED_BY_NAME}
    case = planned.case
    holders = {"": options, "request": case, "case": case, "sampling": case.sampling}
    passes |= {asked for room, name, asked in _ASKING if getattr(holders[room], name)}
    passes |= {entry.name for entry in PASSES if entry.is_for(case)}
    return passes
