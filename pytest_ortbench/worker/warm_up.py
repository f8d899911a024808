"""When warm-up is over: enough runs, enough time, no trend, and durations that agree."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Sequence

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.samples import WarmUp
from pytest_ortbench.worker.timing import median

_MIN_RUNS = 3
#: Runs of which the trend is asked, two windows.
_SPAN = 20
_WINDOW = 10
_SIGNIFICANCE = 0.05
#: A plain 1 % rule was seen to be a coin toss on a warm network; 3 % or 3 MAD is what noise allows.
_TOLERANCE = 0.03
_MADS = 3.0
_KEPT = 500

#: From here on an inference is long: the fewer of them settle it. What warms up takes time, not
#: runs (pages that are touched first, threads that start, clocks that rise), and a long inference
#: is its own average over short disturbances. Simulated: level runs with 2 % of noise end after
#: 5.4 runs on average; a 30 % excess that fades over three runs is down to 1 % by the end. One that
#: fades more slowly than the noise shows is left to ``UNSTEADY``.
_LONG_NS = 100_000_000
_LONG_SPAN = 5
#: Three of a second each are enough if they agree within the tolerance itself, no MAD allowed, and
#: do not keep falling: whatever trend is left in them is smaller than what is tolerated anyway.
_VERY_LONG_NS = 1_000_000_000

#: Seconds at least, by provider; devices raise their clocks and pick algorithms meanwhile.
_ON_CPU = ("CPU", "OpenVINO", "Xnnpack", "Dnnl", "ACL", "ArmNN")
_ENGINES = ("Tensorrt", "NvTensorRTRTX")
_MIN_S_CPU, _MIN_S_DEVICE, _MIN_S_ENGINE = 0.25, 1.0, 2.0


def least_seconds(provider: Provider) -> float:
    """Return how long a provider is warmed up at least; a chain as long as any of its links."""
    return max(map(_least_seconds, provider.links))


def _least_seconds(provider: Provider) -> float:
    if not provider.is_execution_provider:
        return _MIN_S_CPU if provider.computes_on_host else _MIN_S_DEVICE
    family = provider.name.removesuffix("ExecutionProvider")
    if family in _ENGINES:
        return _MIN_S_ENGINE
    device = provider.options.get("device_type", provider.device)
    if family in _ON_CPU and device.upper() in ("", "CPU"):
        return _MIN_S_CPU
    return _MIN_S_DEVICE


def warm_up(
    run_timed: Callable[[int], array[int]], *, least_s: float, budget_s: float, callers: int = 1
) -> WarmUp:
    """Run until no trend is left.

    Args:
        run_timed: Times that many inferences and returns their nanoseconds, in the
            order in which they started.
        least_s: Seconds at least, even if no trend is seen.
        budget_s: Seconds at most; three runs happen in any case.
        callers: How many inferences run side by side. They do so here, too, and a trend is one
            from round to round: of those that run at a time one counts. One round happens in any
            case.
    """
    started = time.perf_counter_ns()
    deadline = started + int(budget_s * 1e9)
    least = min(started + int(least_s * 1e9), deadline)
    # Side by side from the first one on.
    durations = run_timed(callers * math.ceil(_MIN_RUNS / callers))
    settled = ""
    while True:
        now = time.perf_counter_ns()
        rounds = durations[(len(durations) - 1) % callers :: callers]
        settled = settled_by(rounds) if now >= least else ""
        if settled or now >= deadline:
            break
        durations += run_timed(_chunk(rounds, deadline - now) * callers)
    return WarmUp(
        durations_ns=_thin(durations, _KEPT),
        count=len(durations),
        total_ns=now - started,
        steady=bool(settled),
        rule=settled or _cut_off(max(budget_s, (now - started) * 1e-9), rounds, callers),
    )


def settled_by(durations: Sequence[int]) -> str:
    """Return the rule by which warm-up is over, for people; empty if it is not.

    By the last 20 durations, or by fewer of those that are long.
    """
    if _windows_agree(durations):
        return f"no trend over {_SPAN}, windows of {_WINDOW} agree within 3 % or 3 MAD"
    if _few_agree(durations):
        return f"no trend over {_LONG_SPAN} long runs, which agree within 3 % or 3 MAD"
    if _three_agree(durations):
        return f"{_MIN_RUNS} runs of a second or more agree within 3 %"
    return ""


def _windows_agree(durations: Sequence[int]) -> bool:
    """Whether the last 20 show no trend and their two halves agree."""
    if len(durations) < _SPAN:
        return False
    span = durations[-_SPAN:]
    if trend_p(span) <= _SIGNIFICANCE:
        return False
    earlier, later = span[:_WINDOW], span[_WINDOW:]
    before, after = median(earlier), median(later)
    # Each window around its own median: a step between the two must not widen its own tolerance.
    spread = median(
        [abs(value - before) for value in earlier] + [abs(value - after) for value in later]
    )
    return abs(after - before) <= max(_TOLERANCE * before, _MADS * spread)


def _few_agree(durations: Sequence[int]) -> bool:
    """Whether the last five are long, show no trend and each of them agrees with their median.

    Of five values, Student's distribution puts p too low: all in order but for two neighbours
    still counts as a trend (8 % of level series do, not 5 %). That only costs another run.
    """
    span = durations[-_LONG_SPAN:]
    if len(span) < _LONG_SPAN or median(span) < _LONG_NS or trend_p(span) <= _SIGNIFICANCE:
        return False
    middle = median(span)
    away = [abs(value - middle) for value in span]
    return max(away) <= max(_TOLERANCE * middle, _MADS * median(away))


def _three_agree(durations: Sequence[int]) -> bool:
    span = durations[-_MIN_RUNS:]
    if len(span) < _MIN_RUNS or min(span) < _VERY_LONG_NS or span[0] > span[1] > span[2]:
        return False
    middle = median(span)
    return max(abs(value - middle) for value in span) <= _TOLERANCE * middle


def trend_p(values: Sequence[float]) -> float:
    """Return the two-sided p of Spearman's rank correlation between values and their order.

    Under no trend, ``t = r·sqrt((n−2)/(1−r²))`` follows Student's distribution with ``n − 2``
    degrees of freedom nearly enough (Kendall & Gibbons, Rank Correlation Methods, 5th ed., ch. 4).
    Ties get their mean rank; constant values have no trend: 1.
    """
    n = len(values)
    ranks = _mean_ranks(values)
    middle = (n - 1) / 2
    spread = sum((rank - middle) ** 2 for rank in ranks)
    if spread == 0:
        return 1.0
    even_spread = n * (n * n - 1) / 12
    covariance = sum((index - middle) * (rank - middle) for index, rank in enumerate(ranks))
    r = covariance / math.sqrt(spread * even_spread)
    if abs(r) >= 1:
        return 0.0
    freedom = n - 2
    return student_two_sided(abs(r) * math.sqrt(freedom / (1 - r * r)), freedom)


def _mean_ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or values[order[stop]] != values[order[start]]:
            for index in order[start:stop]:
                ranks[index] = (start + stop - 1) / 2
            start = stop
    return ranks


def student_two_sided(t: float, freedom: int) -> float:
    """Return P(|T| > t) for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    even = freedom % 2 == 0
    term = 1.0 if even else cosine
    total = term
    for k in range(1 if even else 2, freedom - 2, 2):
        term *= cosine * cosine * k / (k + 1)
        total += term
    if even:
        inside = sine * total
    else:
        inside = 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return max(0.0, 1.0 - inside)


def _chunk(durations: Sequence[int], left_ns: int) -> int:
    """Runs of a caller: a window at a time, or 10 ms of a fast model, and no more than is left.

    Long ones come one by one, up to the five that may end it.
    """
    typical = max(1, durations[-1])
    wanted = max(_WINDOW, 10_000_000 // typical)
    if typical >= _LONG_NS:
        wanted = 1
    return max(1, min(wanted, left_ns // typical))


def _cut_off(used_s: float, durations: Sequence[int], callers: int) -> str:
    count = len(durations)
    if count < (_LONG_SPAN if median(durations) >= _LONG_NS else _SPAN):
        noun = "runs" if callers == 1 else f"rounds of {callers}"
        return f"{used_s:.3g} s used after {count} {noun}, too few to see a trend"
    return f"{used_s:.3g} s used while a trend was left"


def _thin(durations: Sequence[int], keep: int) -> tuple[int, ...]:
    """Take every k-th, in order, so that at most ``keep`` remain."""
    stride = -(-len(durations) // keep)
    return tuple(durations[::stride])
