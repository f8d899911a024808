"""First token, time per token and rates, from the kept requests of all workers.

Tokens of one request are not independent of each other: a request counts as one sample, and the
interval of a percentile over tokens comes from drawing whole requests anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import interval_ranks, samples_needed
from pytest_ortbench.core.generation import GeneratedRequest, Generation
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.generation.declaration import PASS
from pytest_ortbench.passes.generation.numbers.quality import add_check

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Percentiles of the time between tokens.
_PERCENTS = (50, 90, 99)
#: How often whole requests are drawn anew for an interval.
_DRAWS = 400

Requests = Sequence[GeneratedRequest]


def add_generation(collector: Collector, result: CaseResult) -> None:
    """Add what the requests of a case took."""
    case = result.case
    if case.generation is None:
        collector.reject(PASS.metric_names, "single inferences were measured, not requests")
        return
    of_workers = [
        [request for request in worker.samples.requests if took_time(request)]
        for worker in result.measurements
    ]
    of_workers = [requests for requests in of_workers if requests]
    if not of_workers:
        collector.reject(PASS.metric_names, "no request was measured")
        return
    add_check(collector, result)
    batch = case.batch
    for name, number in (
        ("ttft", ttft_s),
        ("prefill_rate", lambda request: batch * request.prompt_tokens / _seconds(request)),
        ("tpot", tpot_s),
        ("decode_rate", lambda request: 1 / tpot_s(request)),
        ("decode_rate_batch", lambda request: batch / tpot_s(request)),
    ):
        _add_median(collector, name, of_workers, number)
    if all(request.prepared_ns is not None for own in of_workers for request in own):
        _add_median(collector, "request_ttft", of_workers, request_ttft_s)
    else:
        collector.reject(
            ("request_ttft",),
            "nothing was prepared: requests were given as tokens, or the folder's chat template "
            "can't be applied",
        )
    _add_encoder(collector, case.generation, of_workers)
    if case.provider.is_endpoint:
        collector.reject(
            [f"itl_p{percent}" for percent in _PERCENTS],
            "a service sends parts of a text, which are no tokens: only their number is told",
        )
        return
    for percent in _PERCENTS:
        _add_percentile(collector, f"itl_p{percent}", of_workers, percent)


def took_time(request: GeneratedRequest) -> bool:
    """Whether a first token and later ones took time; a document may say anything."""
    return len(request.steps_ns) > 1 and request.steps_ns[0] > 0 and sum(request.steps_ns[1:]) > 0


def _add_encoder(collector: Collector, asked: Generation, of_workers: Sequence[Requests]) -> None:
    """Add what an encoder took, and the time of a request by that of the sound."""
    if any(request.encoder_ns is None for own in of_workers for request in own):
        collector.reject(("encoder_time", "real_time_factor"), "no encoder ran in the requests")
        return
    _add_median(
        collector, "encoder_time", of_workers, lambda request: (request.encoder_ns or 0) * 1e-9
    )
    sound_s = asked.sound_s
    if sound_s is None:
        collector.reject(("real_time_factor",), "the encoder does not read sound")
    else:
        _add_median(
            collector,
            "real_time_factor",
            of_workers,
            lambda request: request.wall_ns * 1e-9 / sound_s,
        )


def ttft_s(request: GeneratedRequest) -> float:
    """Return the time of the encoder, of reading the prompt and of choosing the first token."""
    return (request.steps_ns[0] + request.chosen_ns + (request.encoder_ns or 0)) * 1e-9


def request_ttft_s(request: GeneratedRequest) -> float:
    """Return the same time with that of preparing the request before it."""
    return ttft_s(request) + (request.prepared_ns or 0) * 1e-9


def tpot_s(request: GeneratedRequest) -> float:
    """Return the time per output token: that of all but the first, by their number."""
    later = request.steps_ns[1:]
    return sum(later) / len(later) * 1e-9


def _seconds(request: GeneratedRequest) -> float:
    return request.steps_ns[0] * 1e-9


def _add_median(
    collector: Collector,
    name: str,
    of_workers: Sequence[Requests],
    number: Callable[[GeneratedRequest], float],
) -> None:
    values = [[number(request) for request in requests] for requests in of_workers]
    pooled = [value for own in values for value in own]
    processes = [_of_process(own) for own in values]
    low, high = over_processes(processes, _median_interval(pooled))
    middle = median(process.value for process in processes)
    collector.add(name, middle, low=low, high=high, samples=len(pooled))


def _of_process(values: Sequence[float]) -> OfProcess:
    interval = _median_interval(values)
    value = median(values)
    return (
        OfProcess.alone(value) if interval is None else OfProcess(interval[0], value, interval[1])
    )


def _median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    ranks = interval_ranks(50, len(values))
    if ranks is None:
        return None
    ordered = sorted(values)
    return ordered[ranks[0] - 1], ordered[ranks[1] - 1]


def _add_percentile(
    collector: Collector, name: str, of_workers: Sequence[Requests], percent: float
) -> None:
    """Add a percentile over the tokens of all requests, if there are enough of both."""
    import numpy as np  # only where something was measured

    gaps = [
        [np.array(request.steps_ns[1:], dtype=np.int64) for request in requests]
        for requests in of_workers
    ]
    pooled = [own for worker in gaps for own in worker]
    tokens = sum(len(own) for own in pooled)
    if tokens < samples_needed(percent):
        collector.need(name, samples_needed(percent))
        return
    own = [OfProcess(*_redrawn(worker, percent)) for worker in gaps]
    low, value, high = _redrawn(pooled, percent)
    low, high = over_processes(own, (low, high))
    collector.add(name, value, low=low, high=high, samples=len(pooled))


def _redrawn(
    requests: Sequence[npt.NDArray[np.int64]], percent: float
) -> tuple[float, float, float]:
    """Return low end, value and high end of a percentile over the tokens of requests, in seconds.

    The ends are 2.5 % and 97.5 % of the percentiles of requests that were drawn with replacement
    (B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, section 8.2).
    """
    import numpy as np

    def taken(which: Sequence[int] | npt.NDArray[np.int64]) -> float:
        tokens = np.concatenate([requests[index] for index in which])
        return float(np.percentile(tokens, percent, method="inverted_cdf"))

    count = len(requests)
    value = taken(range(count))
    if count == 1:
        return value * 1e-9, value * 1e-9, value * 1e-9
    draws = np.random.default_rng(0).integers(0, count, size=(_DRAWS, count))
    redrawn = sorted(taken(draw) for draw in draws)
    edge = int(0.025 * _DRAWS)
    ends = min(redrawn[edge], value), max(redrawn[-1 - edge], value)
    return ends[0] * 1e-9, value * 1e-9, ends[1] * 1e-9
