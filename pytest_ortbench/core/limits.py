"""The grammar of limits: ``metric op value unit``; a bare value means at most.

One grammar serves marker, ini and command line::

    latency_p90 <= 30 ms
    placement >= 95 %
    peak_rss: 500 MB          (a value without an operator is an upper bound: peak_rss <= 500 MB)

Outside of a marker, which stands at its test, ``PATTERN@`` may say which cases are meant.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.metric import Metric
from pytest_ortbench.core.metrics import METRICS, SIDE_METRICS, metric_hint
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.units import (
    ASKING_FOR_A_UNIT,
    format_amount,
    has_unit,
    parse_amount,
    written_with,
)

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}

_FORM = re.compile(
    r"\s*(?P<metric>[A-Za-z_][A-Za-z0-9_]*)\b\s*:?\s*(?P<op><=|>=|==|<|>)?\s*(?P<value>[^<>=\s].*)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit on one metric, in SI units.

    Attributes:
        metric: Which metric.
        op: A key of :data:`OPERATORS`.
        value: The bound, in the metric's unit.
        text: As the user wrote it.
    """

    metric: Metric
    op: str
    value: float
    text: str

    def holds(self, measured: Quantity | float) -> bool:
        """Whether ``measured`` keeps the limit."""
        return OPERATORS[self.op](float(measured), self.value)

    def kept_by(self) -> set[bool]:
        """Return whether values that the metric can have keep the limit: all, none, or both."""
        return {self.holds(value) for value in self.metric.possible(self.value)}

    def explain(self, measured: Quantity) -> str:
        """Return one line for a limit that does not hold: measured value, interval and limit."""
        number, bound = measured.beside(self.value)
        line = f"{self.metric.name} is {number}, the limit is {self.op} {bound}"
        if (
            measured.low is not None
            and measured.high is not None
            and (self.holds(measured.low) or self.holds(measured.high))
        ):
            line += (
                " (the limit lies inside the interval: measure longer or in more processes to be "
                "sure)"
            )
        return line


def parse_limit(text: str, *, place: str, metrics: Mapping[str, Metric] = METRICS) -> Limit:
    """Read one limit.

    Args:
        text: What was written.
        place: Where it stands.
        metrics: Which metrics there are.

    Raises:
        UsageError: if the form, the metric, the number or the unit is wrong, and for a limit that
            no value of the metric keeps, or every one.
    """
    match = _FORM.match(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a limit",
            place=place,
            hint="Write a metric, an operator (<=, >=, <, > or ==) and a value, e.g. "
            "'latency_p90 <= 30 ms'",
        )
    name = match["metric"]
    metric = metrics.get(name)
    if metric is None and name in SIDE_METRICS:
        raise UsageError(
            f"{name!r} in {text!r} compares two versions of a model, but a limit is about one",
            place=place,
            hint=f"Write --ort-gate='{name}:>={match['value'].strip()}' and "
            "--ort-against=git:main instead of this limit",
        )
    if metric is None:
        raise UsageError(
            f"{name!r} in {text!r} is not a metric", place=place, hint=metric_hint(name)
        )
    written = match["value"].strip()
    limit = Limit(
        metric=metric,
        op=match["op"] or "<=",
        value=parse_amount(written, metric.unit, place=place, of=name),
        text=text.strip(),
    )
    if limit.value and metric.unit in ASKING_FOR_A_UNIT and not has_unit(written):
        forms = [f"'{name} {limit.op} {amount}'" for amount in written_with(written, metric.unit)]
        raise UsageError(
            f"{written!r} in {limit.text!r} has no unit",
            place=place,
            hint=f"Write {' or '.join(forms)}",
        )
    kept = limit.kept_by()
    if len(kept) == 1:
        which = "every value meets" if True in kept else "no value meets"
        raise UsageError(
            f"{which} {limit.text!r}: {name} is {_reach(metric)}",
            place=place,
            hint=_meant(limit, written),
        )
    return limit


def _reach(metric: Metric) -> str:
    """Say which values a metric can have."""
    reach = metric.reach
    if metric.is_yes_or_no:
        return "1 or 0"
    if math.isinf(reach.high):
        return f"at least {reach.low:g}" if reach.has_low else f"above {reach.low:g}"
    low, high = (format_amount(bound, metric.unit) for bound in (reach.low, reach.high))
    return f"from {low} to {high}"


def _meant(limit: Limit, written: str) -> str:
    """Say what may have been meant by a limit that decides nothing, or what its metric is.

    Args:
        limit: The limit.
        written: Its amount.
    """
    metric = limit.metric
    upright = replace(limit, op=">=" if metric.better == "higher" else "<=")
    amounts = {}
    if metric.unit == "ratio" and upright.value > 1 and not written.endswith("%"):
        amounts[f"{written} %"] = upright.value / 100
    amounts[written] = upright.value
    if metric.reach.low >= 0:
        amounts[written.lstrip("-")] = abs(upright.value)
    for amount, value in amounts.items():
        if len(replace(upright, value=value).kept_by()) == 2:
            return f"Write '{metric.name} {upright.op} {amount}'"
    return f"Write another value. {metric.description}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimit:
    """A limit for those cases that a pattern fits.

    Attributes:
        pattern: Which cases, by id; empty for all.
        limit: What they must keep.
        text: As the user wrote it.
    """

    pattern: str
    limit: Limit
    text: str


def parse_case_limit(text: str, *, place: str) -> CaseLimit:
    """Read one limit, with ``PATTERN@`` before it or without.

    Raises:
        UsageError: as :func:`parse_limit`.
    """
    pattern, _, limit = text.rpartition("@")
    return CaseLimit(
        pattern=pattern.strip(), limit=parse_limit(limit, place=place), text=text.strip()
    )
