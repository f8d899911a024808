"""Cases whose mean is far above their median: a few long inferences, which throughput counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.passes.registry import unit_of

#: From so many times the median on, a reader who divides 1 by it wonders about the throughput.
APART = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """A case that is held up now and then.

    Attributes:
        summary: Its numbers.
        mean: Mean time of an inference.
        median: Median time.
        p99: The slowest of a hundred; ``None`` with too few samples.
        blurred_by: Flags that say what held it up.
    """

    summary: Summary
    mean: Quantity
    median: Quantity
    p99: Quantity | None
    blurred_by: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        """How many times the median the mean is."""
        return self.mean.value / self.median.value


def pauses(summaries: Sequence[Summary]) -> Iterator[Pauses]:
    """Yield the cases whose mean is far above their median.

    Args:
        summaries: Those of a run.
    """
    for summary in summaries:
        mean, median = (summary.quantities.get(name) for name in ("latency_mean", "latency_p50"))
        if mean is None or median is None or not median.value or unit_of(summary.case) is not None:
            continue
        if mean.value >= APART * median.value:
            yield Pauses(
                summary=summary,
                mean=mean,
                median=median,
                p99=summary.quantities.get("latency_p99"),
                blurred_by=flag_names(summary.flags, "blurs"),
            )
