"""The ``ortbench`` marker: which axes a test names, and its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import OrtbenchError, UsageError, near_and_known
from pytest_ortbench.core.limits import Limit, parse_limit
from pytest_ortbench.option_registry import MARKER_KEYWORDS

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.gate.numbers.rules import Rule
    from pytest_ortbench.planning.request import PlanRequest

_TEXTS = ("models", "providers", "precisions")
_NUMBERS = ("batch_sizes", "threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerValues:
    """What the markers of one test say; the closest marker wins for each keyword."""

    texts: dict[str, tuple[str, ...]]
    numbers: dict[str, tuple[int, ...]]
    dims: dict[str, tuple[int, ...]] | None
    limits: tuple[Limit, ...]
    gate: tuple[Rule, ...] = ()

    def apply(self, request: PlanRequest) -> PlanRequest:
        """Return ``request`` with the axes that the marker names."""
        fields: dict[str, object] = {**self.texts, **self.numbers}
        if self.dims is not None:
            fields["dims"] = self.dims
        return replace(request, **fields)  # type: ignore[arg-type]  # keys are its fields


def read_marker(marks: Iterable[pytest.Mark], *, place: str) -> MarkerValues:
    """Read the ``ortbench`` markers of a test, closest first.

    Args:
        marks: As ``iter_markers("ortbench")`` gives them.
        place: The test's node id, for messages.

    Raises:
        UsageError: for positional arguments, unknown keywords and values that do not fit.
    """
    merged: dict[str, object] = {}
    for mark in marks:
        if mark.args:
            raise UsageError(
                f"the ortbench marker takes keywords only, got {mark.args[0]!r}",
                place=place,
                hint=f"Known: {', '.join(MARKER_KEYWORDS)}",
            )
        for name, value in mark.kwargs.items():
            if name not in MARKER_KEYWORDS:
                raise UsageError(
                    f"the ortbench marker has no keyword {name!r}",
                    place=place,
                    hint=near_and_known(name, MARKER_KEYWORDS),
                )
            merged.setdefault(name, value)
    dims = merged.get("dims")
    return MarkerValues(
        texts={n: _texts(n, merged[n], place) for n in _TEXTS if n in merged},
        numbers={n: _numbers(n, merged[n], place) for n in _NUMBERS if n in merged},
        dims=None if dims is None else _dims(dims, place),
        limits=tuple(
            parse_limit(text, place=f"{place}, limits")
            for text in _texts("limits", merged.get("limits", ()), place)
        ),
        gate=_gate(_texts("gate", merged["gate"], place), place) if "gate" in merged else (),
    )


def _gate(texts: tuple[str, ...], place: str) -> tuple[Rule, ...]:
    # Only where a marker has some: most runs have no gate.
    from pytest_ortbench.gate.numbers.rules import parse_rules

    return parse_rules(texts, place=f"{place}, gate")


def _texts(name: str, value: object, place: str) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise _misfit(name, value, "a string or a list of strings", place)
    if not items and name != "limits":
        raise _misfit(name, value, "at least one entry", place)
    return tuple(items)


def _numbers(name: str, value: object, place: str) -> tuple[int, ...]:
    items = (value,) if isinstance(value, int) else value
    if (
        not isinstance(items, list | tuple)
        or not items
        or not all(isinstance(item, int) and not isinstance(item, bool) for item in items)
        or any(item < 1 for item in items)
    ):
        raise _misfit(name, value, "a positive whole number or a list of them", place)
    return tuple(dict.fromkeys(items))


def _dims(value: object, place: str) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, Mapping):
        raise _misfit("dims", value, "a mapping from dimension to size or sizes", place)
    return {str(name): _numbers(f"dims[{name!r}]", sizes, place) for name, sizes in value.items()}


def _misfit(name: str, value: object, rule: str, place: str) -> UsageError:
    return UsageError(
        f"the ortbench marker's {name} is {value!r}, it must be {rule}",
        place=place,
        hint=f"{name}: {MARKER_KEYWORDS.get(name, 'see the guide')}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Stands in a test's place whose marker is wrong: the test fails with the message."""

    message: str


#: Options whose values a marker may name instead, by the place that messages give.
_OPTIONS = {f"--ort-{name.replace('_', '-')}": name for name in MARKER_KEYWORDS}


def marker_error(error: OrtbenchError, item: pytest.Item) -> str | None:
    """Return what to say if the marker of a test is to blame for an error, else ``None``.

    Args:
        error: What came up while the test's cases were planned.
        item: The test.
    """
    if error.place.startswith(item.nodeid):
        return str(error)
    named = {name for mark in item.iter_markers("ortbench") for name in mark.kwargs}
    keyword = _OPTIONS.get(error.place)
    if keyword is None or keyword not in named:
        return None
    place = f"{item.nodeid}, {keyword} of the ortbench marker"
    return str(UsageError(error.message, place=place, hint=error.hint))
