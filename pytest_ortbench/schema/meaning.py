"""Whether a run document makes sense: every value within its bounds, and all of them together.

A document that fits its types can still say that minus five inferences took no time. Whoever reads
it would divide by that, or count to 2^63; so it is refused before anybody does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import cast

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.schema.bound_kinds import ANY, LONGEST_NAME, Bound, Numbers, Text, Words
from pytest_ortbench.schema.bounds import bound_of
from pytest_ortbench.schema.relations import RELATIONS

#: The next step where a document says what no release writes.
CHANGED = (
    "The file was changed by hand or by another program. Copy the original again. If there is "
    "none, measure again"
)
#: So many faults are looked for; a reader of more has seen enough.
MOST_FAULTS = 1000
#: A value is shown up to here.
_SHOWN = 60

_NAMES = Text(LONGEST_NAME)
_SINGLE = frozenset({int, float, str})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One value that can't be.

    Attributes:
        path: Where it stands: ``$.cases[0].measurements[1].samples.count``.
        value: What stands there, shortened.
        rule: What it must be.
    """

    path: str
    value: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path} is {self.value}, but {self.rule}"


class NonsenseError(DocumentError):
    """A document that can be read, and whose values can't be true.

    Attributes:
        faults: What is wrong with it, up to :data:`MOST_FAULTS`.
    """

    def __init__(self, faults: tuple[Fault, ...], *, place: str) -> None:
        self.faults = faults
        more = f". {len(faults)} values are not valid. To list them, run: ortbench schema {place}"
        super().__init__(
            f"a value of the document is not valid: {faults[0]}",
            place=place,
            hint=f"{CHANGED}{more if len(faults) > 1 else ''}",
        )


def refuse_nonsense(value: object, place: str) -> None:
    """Check what was read of a document.

    Args:
        value: A run, a case's result, or any other type of the document.
        place: Where it was read, for messages.

    Raises:
        NonsenseError: if a value breaks its rule.
    """
    faults = tuple(islice(faults_of(value), MOST_FAULTS))
    if faults:
        raise NonsenseError(faults, place=place)


def faults_of(value: object, path: str = "$") -> Iterator[Fault]:
    """Yield every value in ``value``, a type of the document, that breaks its rule.

    Relations are looked at only where all single values of their type are within their bounds.
    """
    kind: type = type(value)
    sound = True
    for name in _fields(kind):
        held = getattr(value, name)
        of: type = type(held)
        # Most values are single and within their bounds: nothing is spelt out for them.
        if held is None or of is bool or (of in _SINGLE and _keeps(held, bound_of(kind, name, of))):
            continue
        for fault in _of_field(held, f"{path}.{name}", kind, name):
            sound = False
            yield fault
    relation = RELATIONS.get(kind)
    if relation is not None and sound:
        for name, rule in relation(value):
            yield Fault(path=f"{path}.{name}", value=shown(_at(value, name)), rule=rule)


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _of_field(value: object, path: str, owner: type, name: str) -> Iterator[Fault]:
    kind: type = type(value)
    if kind in _SINGLE:
        bound = bound_of(owner, name, kind)
        if not _keeps(value, bound):
            yield Fault(path=path, value=shown(value), rule=str(bound))
    elif kind is tuple:
        assert isinstance(value, tuple)
        if not _all_keep(value, owner, name):
            for index, item in enumerate(value):
                yield from _of_field(item, f"{path}[{index}]", owner, name)
    elif kind is dict:
        assert isinstance(value, dict)
        for key, item in value.items():
            if not _keeps(key, _NAMES):
                yield Fault(
                    path=path, value=f"an object with the key {shown(key)}", rule=str(_NAMES)
                )
            yield from _of_field(item, f"{path}.{str(key)[:_SHOWN]}", owner, name)
    elif kind is not bool and value is not None:
        yield from faults_of(value, path)


def _all_keep(values: tuple[object, ...], owner: type, name: str) -> bool:
    """Whether a row of whole numbers is within bounds, told from its ends: there are thousands."""
    if not values:
        return True
    if type(values[0]) is not int:
        return False
    try:
        numbers = cast("tuple[int, ...]", values)  # any other is found out below
        low, high = min(numbers), max(numbers)
    except TypeError:
        return False
    bound = bound_of(owner, name, int)
    return type(low) is type(high) is int and _keeps(low, bound) and _keeps(high, bound)


def _keeps(value: object, bound: Bound) -> bool:
    if isinstance(value, str):
        if isinstance(bound, Words):
            return value in bound.known
        return len(value) <= (bound.longest if isinstance(bound, Text) else Text().longest)
    if isinstance(value, float) and not math.isfinite(value):
        return False
    numbers = bound if isinstance(bound, Numbers) else ANY
    assert isinstance(value, int | float)
    return numbers.low <= value <= numbers.high


def _at(value: object, path: str) -> object:
    """What stands at ``failure.kind``, or at ``measurements[0].worker``."""
    for step in path.split("."):
        name, _, index = step.partition("[")
        value = getattr(value, name, None)
        if index:
            value = cast("tuple[object, ...]", value)[int(index.removesuffix("]"))]
    return value


def shown(value: object) -> str:
    """Return a value on one line, as JSON says it and shortened."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
