"""Which of many runtimes was the first to be worse, in logarithmically many comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.numbers.rules import CaseRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """Where a case got worse.

    Attributes:
        last_good: Index of the last runtime that is as good as the first.
        first_bad: Index of the first one that is not; ``None`` if the last one is as good.
        undecided: Indices between the two on which the gate could not decide.
        results: Verdicts of the first runtime against others, by index, in order of comparing.
    """

    last_good: int
    first_bad: int | None
    undecided: tuple[int, ...]
    results: dict[int, GateResult]


def bisect(count: int, compare: Callable[[int], GateResult]) -> Bisected:
    """Find the first of ``count`` runtimes that is worse than the first.

    Args:
        count: Number of runtimes, in order of their release.
        compare: Compares the runtime at an index with the first one.

    Returns:
        The change, if the last runtime is worse. One that the gate can't decide on is passed over
        for its nearest neighbour towards the worse end; if none is left, the change lies among
        several.

    Raises:
        ValueError: with fewer than two runtimes.
        WorkerError: if the first one can't run it, so that there is nothing to be worse than.
    """
    if count < 2:
        raise ValueError("a bisection needs two runtimes or more")
    results: dict[int, GateResult] = {}

    def verdict(index: int) -> bool | None:
        results[index] = compare(index)
        return is_worse(results[index])

    good, bad = 0, count - 1
    if not verdict(bad):
        return Bisected(last_good=good, first_bad=None, undecided=(), results=results)
    skipped: set[int] = set()
    while candidates := [index for index in range(good + 1, bad) if index not in skipped]:
        index = candidates[len(candidates) // 2]
        worse = verdict(index)
        if worse is None:
            skipped.add(index)
        elif worse:
            bad = index
        else:
            good = index
    left = tuple(sorted(index for index in skipped if good < index < bad))
    return Bisected(last_good=good, first_bad=bad, undecided=left, results=results)


def is_worse(result: GateResult) -> bool | None:
    """Whether a contender is slower, larger, less accurate, unplaced or does not run.

    Returns:
        ``None`` where the gate could not tell, of its time or of its answers.

    Raises:
        WorkerError: if it can't be told for want of a baseline.
    """
    worse = any(metric.verdict == "worse" for metric in result.metrics)
    if result.verdict == "incomparable" and not worse:
        raise case_error(result.reason, kind="error", phase="measure")
    if result.verdict == "unjudged" and not worse and result.latency_verdict != "slower":
        return None
    if result.failures:
        return True
    return None if result.verdict == "inconclusive" else False


def bisect_runtimes(
    case: Case, runtimes: Sequence[Runtime], new_gate: Callable[[], Gate], rules: CaseRules
) -> Bisected:
    """Bisect the runtimes of one case.

    Args:
        case: What to measure; its own runtime does not matter.
        runtimes: In order of their release.
        new_gate: Makes a gate; every comparison is a family of its own, since each is followed.
        rules: What counts as worse.
    """
    first = replace(case, runtime=runtimes[0])

    def compare(index: int) -> GateResult:
        pair = Pair(baseline=first, contender=replace(case, runtime=runtimes[index]))
        return new_gate().judge(pair, rules, baseline=f"runtime:{runtimes[0].label}")

    return bisect(len(runtimes), compare)
