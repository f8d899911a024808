"""What one consumer says about an input's values, and how several such findings become one hint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.models.symbols import quote

#: Kinds of hints that say how values stand beside each other.
ARRANGEMENTS = frozenset({"permutation", "coordinates", "ascending", "positive-definite"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFinding:
    """What one consumer accepts.

    Attributes:
        why: The consumer, for people.
        low: Smallest accepted value of an index or count.
        high: Largest one, ``None`` if only a symbol bounds it.
        high_symbol: Expression that bounds it (``batch - 1``), empty if a number does.
        values: Exactly these, in order, as numbers or expressions.
        choices: Any of these.
        kind: Otherwise, the kind of hint, with ``low`` and ``high``.
        arrangement: Axis of a ``permutation``, sizes of the box of ``coordinates``.
        length: How many values the consumer needs along the first axis, ``None`` if any number.
        is_guess: Whether the consumer takes other values as well, so that a name says more: how far
            a Range counts tells nothing of a sequence's length.
    """

    why: str
    low: float = 0.0
    high: float | None = None
    high_symbol: str = ""
    values: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    kind: str = ""
    arrangement: tuple[str, ...] = ()
    length: int | None = None
    is_guess: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether it bounds integers."""
        return not (self.values or self.choices or self.kind)


def below(size: int | str | None, op: str, what: str) -> ConsumerFinding:
    """A finding for an index into ``what`` of ``size``: 0 … size - 1; 0 if the size is unknown."""
    if size is None:
        return ConsumerFinding(high=0, why=f"{op}({what} of unknown size)")
    why = f"{op}({what} of size {size})"
    if isinstance(size, int):
        return ConsumerFinding(high=max(size - 1, 0), why=why)
    return ConsumerFinding(high_symbol=f"{quote(size)} - 1", why=why)


def unshift(finding: ConsumerFinding, scale: float, offset: float) -> ConsumerFinding | None:
    """Turn what a consumer accepts into what may be fed, where it reads ``scale·fed + offset``."""
    if (scale, offset) == (1.0, 0.0):
        return finding
    in_range = finding.is_bound or finding.kind == "uniform"
    if not in_range or finding.high is None or scale == 0:
        return None
    ends = sorted(((finding.low - offset) / scale, (finding.high - offset) / scale))
    if finding.kind:
        return replace(finding, low=ends[0], high=ends[1])
    low, high = math.ceil(ends[0]), math.floor(ends[1])
    if high >= 0:
        low = max(low, 0)  # 0 … is what such inputs hold; below it only where nothing else fits
    if low > high:
        return None
    return ConsumerFinding(low=low, high=high, why=finding.why)


def combine(findings: Sequence[ConsumerFinding]) -> ValueHint | None:
    """Join what all consumers of one input say.

    Exact values win, then choices, then an arrangement within all bounds, then bounds alone, then
    the range that all share.
    """
    for finding in findings:
        if finding.values:
            return ValueHint(kind="constant", choices=finding.values, why=finding.why)
    choices = [finding for finding in findings if finding.choices]
    if choices:
        return _shared_choices(choices)
    bounds = [finding for finding in findings if finding.is_bound]
    arranged = next((finding for finding in findings if finding.kind in ARRANGEMENTS), None)
    if arranged is not None:
        return _arranged(arranged, bounds)
    if bounds:
        return _narrowest(bounds)
    return _shared_range(findings) if findings else None


def _arranged(finding: ConsumerFinding, bounds: Sequence[ConsumerFinding]) -> ValueHint:
    """A permutation lies within what other consumers accept; what else is arranged stands alone."""
    if finding.kind != "permutation":
        high = 1.0 if finding.high is None else finding.high
        return ValueHint(
            kind=finding.kind,
            low=finding.low,
            high=high,
            choices=finding.arrangement,
            why=finding.why,
        )
    within = _narrowest([replace(finding, kind="", arrangement=()), *bounds])
    return replace(within, kind=finding.kind, choices=finding.arrangement, why=finding.why)


def _shared_range(findings: Sequence[ConsumerFinding]) -> ValueHint:
    """The range that all consumers accept; that of the first one if they share none."""
    first = findings[0]
    same = [finding for finding in findings if finding.kind == first.kind]
    low = max(finding.low for finding in same)
    high = min(1.0 if finding.high is None else finding.high for finding in same)
    if low > high:
        low, high = first.low, 1.0 if first.high is None else first.high
    return ValueHint(kind=first.kind, low=low, high=high, why=first.why)


def _shared_choices(findings: Sequence[ConsumerFinding]) -> ValueHint:
    """Values that all consumers know; those of the first one if they share none."""
    shared = [
        choice
        for choice in dict.fromkeys(findings[0].choices)
        if all(choice in other.choices for other in findings[1:])
    ]
    choices = tuple(shared) or findings[0].choices
    return ValueHint(kind="choice", choices=choices, why=findings[0].why)


def _narrowest(bounds: Sequence[ConsumerFinding]) -> ValueHint:
    low = max(finding.low for finding in bounds)
    numbers = [finding for finding in bounds if finding.high is not None]
    symbols = list(dict.fromkeys(item.high_symbol for item in bounds if item.high_symbol))
    tightest = min(numbers, key=lambda item: item.high or 0.0, default=None)
    high = low if tightest is None or tightest.high is None else max(tightest.high, low)
    parts = symbols if tightest is None else [*symbols, str(int(high))]
    whys = [finding.why for finding in bounds if finding.high_symbol]
    why = tightest.why if tightest is not None else whys[0]
    if not symbols:
        return ValueHint(kind="integers", low=low, high=high, why=why)
    expression = parts[0] if len(parts) == 1 else f"min({', '.join(parts)})"
    return ValueHint(kind="integers", low=low, high=high, high_dim=expression, why=why)
