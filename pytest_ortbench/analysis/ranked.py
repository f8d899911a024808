"""Which cases may be ranked with each other, what they are called, and how they compare."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.candidates import Candidate, speed_metric
from pytest_ortbench.analysis.judgements import barring_words, flag_names
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import WORKLOAD_KNOBS, Case
from pytest_ortbench.core.interval import is_unstable
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity

#: What the mode of input and output is called as a knob: it separates answers, too.
SEPARATING_KNOBS = (*WORKLOAD_KNOBS, "io")

#: An interval that spans more of its value than this says little.
WIDE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """How many times better the winner is than the reference, with its 95 % interval.

    Attributes:
        value: Above 1 where the winner is better.
        low: Lower end; ``None`` where one side has no interval, and for sizes, which are exact.
        high: Upper end, likewise.
        reference: Label of the reference: ``fp32/cpu/b1``.
        blurred_by: Flags that blur the reference's number.
        is_wide: Whether an interval spans more than half of its value, of either side.
    """

    value: float
    low: float | None
    high: float | None
    reference: str
    blurred_by: tuple[str, ...] = ()
    is_wide: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether the winner is better for certain: by steady numbers that no flag blurs."""
        if self.low is None or self.high is None or self.blurred_by or self.is_wide:
            return False
        return self.low > 1 and not is_unstable(self.value, self.low, self.high)


def workload_of(case: Case) -> tuple[object, ...]:
    """What must agree for two cases to be ranked with each other, the batch apart."""
    knobs = [(name, case.knobs.get(name)) for name in SEPARATING_KNOBS]
    where = "over the network" if case.provider.is_endpoint else "in this process"
    return (case.model.name, tuple(sorted(case.dims.items())), case.io, where, *knobs)


def why_not_ranked(summary: Summary) -> str:
    """Why a case can't be ranked; empty if it can."""
    if summary.status != "measured":
        return summary.missing.get("latency_p50", summary.status)
    barred = " ".join(flag_names(summary.flags, "bars")) or barring_words(summary.judgements)
    if barred:
        return barred
    return summary.missing.get(speed_metric(summary.case), "")


def label_of(result: CaseResult, *, runtimes: bool, batch: bool = True) -> str:
    """Name a case within its work, and what it is if it is no execution provider."""
    case = result.case
    parts = [case.variant.precision, case.provider.label]
    parts += [f"b{case.batch}"] if batch else []
    parts += [
        f"{name}:{value}" for name, value in case.knobs.items() if name not in SEPARATING_KNOBS
    ]
    where = f"+{case.runtime.label}" if runtimes else ""
    return "/".join(parts) + where + case.provider.role_note


def factor_between(best: Candidate, reference: Candidate, metric: str) -> Factor:
    """Ratio of the two numbers, the better one's way round, with the ends of both intervals."""
    ours, theirs = best.summary.quantities[metric], reference.summary.quantities[metric]
    if METRICS[metric].better == "higher":
        ours, theirs = theirs, ours
    low = high = None
    if (
        ours.low is not None
        and ours.high is not None
        and theirs.low is not None
        and theirs.high is not None
        and ours.low > 0
    ):
        low, high = theirs.low / ours.high, theirs.high / ours.low
    return Factor(
        value=theirs.value / ours.value,
        low=low,
        high=high,
        reference=reference.label,
        blurred_by=reference.blurred_by,
        is_wide=is_wide(ours) or is_wide(theirs),
    )


def is_wide(quantity: Quantity) -> bool:
    """Whether the interval of a number spans more than half of its value."""
    if quantity.low is None or quantity.high is None:
        return False
    return quantity.high - quantity.low > WIDE * quantity.value
