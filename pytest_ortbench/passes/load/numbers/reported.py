"""What a service reported to Prometheus: the rate of its requests, bounds of percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_ortbench.analysis.order import nearest_rank, samples_needed
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.load.numbers.counters import (
    KNOWN,
    CounterSeries,
    NamedMetrics,
    RequestCounters,
    histogram,
)

#: A rate of so many requests that arrive at random is known to 20 %, at 95 %.
LEAST_REQUESTS = 100
#: Counts and times beyond it are not exact.
_LARGEST = 2.0**53
#: Percentiles that a message may propose.
_PROPOSED = (95.0, 90.0, 50.0)
#: Labels that tell parts of one count apart, not who counts.
_OF_PARTS = frozenset(("le", "code", "reason"))
#: Labels that hold the name of a model.
_OF_MODELS = ("model", "model_name")
#: Names of foreign files that a message shows, and characters of each.
_MOST_SHOWN, _LONGEST_SHOWN = 5, 40
#: Characters of the one name that a proposed query or load has.
_LONGEST_PROPOSED = 120
#: What tells the model of a service that serves one.
_MODEL_INFO = "ortbench_serve_model_info"
#: When a process started, for counters that do not say when they did.
_PROCESS_START = "process_start_time_seconds"
#: How a histogram of times must end, so that nobody guesses its unit.
_SECONDS = "_seconds"
_BY_HAND = "write the load by hand, e.g. server:100:20ms"


@dataclass(frozen=True, slots=True)
class ReportedRequests:
    """The requests of a service over some time.

    Attributes:
        metric: Where they are counted; empty for a rate that a query has computed.
        rate_per_s: Requests a second.
        requests: How many there were; ``None`` where only the rate is known.
        buckets: Upper bound in seconds and number of requests up to it, ascending, the last one
            infinite; empty where no times were kept.
    """

    metric: str
    rate_per_s: float
    requests: int | None = None
    buckets: tuple[tuple[float, int], ...] = ()


def reported(
    series: Sequence[CounterSeries], *, model: str, metric: str, file: NamedMetrics
) -> ReportedRequests:
    """Return what a file says of the requests of one service.

    Args:
        series: All that the file holds.
        model: Name of the model, where the file has several; empty for the only one.
        metric: Where requests are counted; empty for the one known metric of the file.
        file: Where it was named.

    Raises:
        UsageError: where the file does not tell it, or tells it of several services.
    """
    place = file.place
    computed = [entry for entry in series if not entry.name]
    if computed and not metric:
        return _computed(computed, file)
    name = metric or _known_metric(series, file)
    source = KNOWN.get(name) or histogram(name)
    if name not in KNOWN and not name.endswith(_SECONDS):
        raise UsageError(
            f"the name of the metric {_shown(name)} does not end in {_SECONDS}, so the unit of its "
            "latencies is not known",
            place=place,
            hint=_with_seconds(name, series, file),
        )
    counters = [entry for entry in series if entry.name in source.counters]
    counters.sort(key=lambda entry: source.counters.index(entry.name))
    if not counters:
        _refuse_uncounted(series, [name], place)
        is_other = any(entry.name == name for entry in series)
        raise UsageError(
            f"the metric {_shown(name)} is not a histogram"
            if is_other
            else f"the file has no metric {_shown(name)}",
            place=place,
            hint=_which_it_has(series, file),
        )
    owner = _owner(counters, series, model, file)
    start_s = _start(series, source, owner)
    counts = [_increase(entry, start_s, place) for entry in counters if _owner_of(entry) == owner]
    seconds = max(count.end_s for count in counts) - min(count.begin_s for count in counts)
    requests = round(sum(count.increase for count in counts))
    if seconds <= 0:
        raise UsageError(
            f"the file was saved when {name} began to count, or earlier, so it gives no rate",
            place=place,
            hint="Let the service run for some minutes, then save its metrics again",
        )
    if requests < LEAST_REQUESTS:
        raise UsageError(
            f"{name} counts {requests} requests in {format_amount(seconds, 's')}, but a rate needs "
            f"at least {LEAST_REQUESTS} requests",
            place=place,
            hint="Save the metrics of a longer time",
        )
    buckets = [
        entry for entry in series if entry.name == source.buckets and _owner_of(entry) == owner
    ]
    return ReportedRequests(
        metric=name,
        rate_per_s=requests / seconds,
        requests=requests,
        buckets=_cumulative(buckets, start_s, requests, name, place) if buckets else (),
    )


def latency_bound(found: ReportedRequests, percent: float, *, file: NamedMetrics) -> float:
    """Return the seconds that a percentile did not exceed: the upper bound of its bucket.

    Raises:
        UsageError: where no times were kept, too few, or its bucket has no bound.
    """
    if not found.buckets or found.requests is None:
        raise UsageError(
            f"{found.metric} has no buckets of latencies, so no latency limit can be taken from it"
            if found.metric
            else "the file has only a rate, so no latency limit can be taken from it",
            place=file.place,
            hint=f"Write a latency limit of your own, e.g. {file.load}:50ms",
        )
    if found.requests < samples_needed(percent):
        reachable = [p for p in _PROPOSED if samples_needed(p) <= found.requests]
        raise UsageError(
            f"the file counts {found.requests} requests, but the p{percent:g} latency, from which "
            f"the limit is taken, needs at least {samples_needed(percent)}",
            place=file.place,
            hint="Save the metrics of a longer time. If that is not possible, write a lower "
            f"percentile: {file.load}:p{reachable[0]:g}",
        )
    rank = nearest_rank(percent, found.requests)
    bound_s = next(bound_s for bound_s, count in found.buckets if count >= rank)
    if math.isinf(bound_s):
        largest_s = max((bound for bound, _ in found.buckets[:-1]), default=0.0)
        raise UsageError(
            f"p{percent:g} of {found.metric} is above {format_amount(largest_s, 's')}, the bound "
            "of its largest bucket, so no latency limit can be taken from it",
            place=file.place,
            hint="Write a latency limit of your own, e.g. "
            f"{file.load}:{math.ceil(2000 * largest_s) or 50}ms",
        )
    return bound_s


def _computed(series: Sequence[CounterSeries], file: NamedMetrics) -> ReportedRequests:
    """A rate that a query has computed, and whose name is lost therefore."""
    numbers = [value for entry in series for _, value in entry.points]
    correct = "Correct the query, so that its answer is a number of requests a second above 0"
    if not numbers:
        raise UsageError(
            "the stored answer of Prometheus has no value, but a rate is one number",
            place=file.place,
            hint=correct,
        )
    if any(len(entry.points) > 1 for entry in series):
        raise UsageError(
            f"the file has the answer to a range query, with {len(numbers)} values, but a rate is "
            "one number",
            place=file.place,
            hint="Ask Prometheus at /api/v1/query, not at /api/v1/query_range, and save its answer",
        )
    if len(numbers) > 1:
        limited = "" if file.has_limit else f". Then add a latency limit, e.g. {file.load}:50ms"
        raise UsageError(
            f"the stored answer of Prometheus has {len(numbers)} values, but a rate is one number",
            place=file.place,
            hint=f"Write sum(...) around the query, and save its answer{limited}",
        )
    rate = numbers[0]
    if rate == 0:
        raise UsageError(
            "the file has a rate of 0, so the service had no requests in the time of the query",
            place=file.place,
            hint="Ask Prometheus for a time with requests, and save its answer",
        )
    if not (math.isfinite(rate) and rate > 0):
        raise UsageError(
            f"the file has the number {rate:g}, which can't be a rate of requests",
            place=file.place,
            hint=correct,
        )
    return ReportedRequests(metric="", rate_per_s=rate)


def _known_metric(series: Sequence[CounterSeries], file: NamedMetrics) -> str:
    names = {entry.name for entry in series}
    present = [name for name, source in KNOWN.items() if names & set(source.counters)]
    if len(present) == 1:
        return present[0]
    if present:
        raise UsageError(
            f"the file has several metrics that count requests: {', '.join(present)}",
            place=file.place,
            hint=f"Name one of them, e.g. {file.load}:metric={present[0]}",
        )
    _refuse_uncounted(series, KNOWN, file.place)
    raise UsageError(
        f"the file has none of the known metrics ({', '.join(KNOWN)})",
        place=file.place,
        hint=_which_it_has(series, file),
    )


def _refuse_uncounted(series: Sequence[CounterSeries], metrics: Iterable[str], place: str) -> None:
    """Refuse a histogram whose buckets are there without the count of its requests."""
    names = {entry.name for entry in series}
    for metric in metrics:
        if f"{metric}_bucket" in names and f"{metric}_count" not in names:
            raise UsageError(
                f"the file has buckets of {_shown(metric)}, but not the count of its requests, "
                f"{_shown(f'{metric}_count')}",
                place=place,
                hint="Save all that the service gives at /metrics",
            )


def _with_seconds(name: str, series: Sequence[CounterSeries], file: NamedMetrics) -> str:
    """Return how to name a histogram of seconds; one of its counters names it."""
    for ending in ("_count", "_bucket", "_sum"):
        whole = name.removesuffix(ending)
        if whole != name and whole.endswith(_SECONDS):
            begun = file.load.partition(":metric=")[0]
            return f"Leave {ending} out: {begun}:metric={whole[:_LONGEST_PROPOSED]}"
    return _which_it_has(series, file) if _that_count(series) else _BY_HAND.capitalize()


def _that_count(series: Sequence[CounterSeries]) -> list[str]:
    """Return which metrics of a file can tell a load: histograms of seconds, and known ones."""
    names = {entry.name for entry in series}
    buckets = {entry.name.removesuffix("_bucket") for entry in series if "le" in entry.labels}
    times = {x for x in buckets if x.endswith(_SECONDS) and f"{x}_count" in names}
    return sorted(times.union(x for x, known in KNOWN.items() if names & set(known.counters)))


def _which_it_has(series: Sequence[CounterSeries], file: NamedMetrics) -> str:
    """Name the metrics of a file that count requests."""
    times = _that_count(series)
    if not times:
        return (
            "Save the metrics of a service that has a histogram of the times of its requests. "
            f"If there is none, {_BY_HAND}"
        )
    begun = file.load.partition(":metric=")[0]
    if len(times) == 1:
        return f"Write the one that the file has: {begun}:metric={times[0][:_LONGEST_PROPOSED]}"
    return (
        f"Name the one that has the times of requests ({_several(times)}), e.g. "
        f"{begun}:metric={times[0][:_LONGEST_PROPOSED]}"
    )


def _owner_of(entry: CounterSeries) -> frozenset[tuple[str, str]]:
    """Who counts: the labels but those that tell parts of the count apart."""
    return frozenset(pair for pair in entry.labels.items() if pair[0] not in _OF_PARTS)


def _model_of(owner: frozenset[tuple[str, str]]) -> str | None:
    labels = dict(owner)
    return next((labels[label] for label in _OF_MODELS if label in labels), None)


def _owner(
    counters: Sequence[CounterSeries],
    series: Sequence[CounterSeries],
    model: str,
    file: NamedMetrics,
) -> frozenset[tuple[str, str]]:
    """Return who counts the requests of the model: one service, or the file is refused."""
    place = file.place
    owners = list(dict.fromkeys(map(_owner_of, counters)))
    # A service of one model tells its name apart.
    served = {entry.labels.get("model", "") for entry in series if entry.name == _MODEL_INFO}
    models = {
        owner: {name} if (name := _model_of(owner)) is not None else served for owner in owners
    }
    names = sorted(set().union(*models.values()))
    if len(owners) == 1 and len(names) > 1:
        raise UsageError(
            f"the file counts the requests of several models together ({_several(names)}), but a "
            "load is of one",
            place=place,
            hint=f"Save the metrics of a service of one model. If there is none, {_BY_HAND}",
        )
    if model:
        owners = [owner for owner in owners if model in models[owner]]
        if not owners:
            raise UsageError(
                f"the file has no metrics of the model {_shown(model)}",
                place=place,
                hint=f"Name a model that the file has: {_several(names)}"
                if names
                else "Leave out :model= and its value, since the file names no model",
            )
    if len(owners) == 1 and len(models[owners[0]]) <= 1:
        return owners[0]
    if len(names) > 1 and not model:
        raise UsageError(
            f"the file has metrics of several models ({_several(names)}), but a load is of one",
            place=place,
            hint=f"Write the name of one of them in place of NAME: {file.load}:model=NAME",
        )
    apart = sorted({label for owner in owners for label, _ in owner ^ owners[0]})
    labels = (f'{x}="{dict(owner)[x]}"' for x in apart for owner in owners if x in dict(owner))
    example = next(labels, 'instance="HOST:PORT"')
    raise UsageError(
        f"the file has metrics of {len(owners)} instances (told apart by {_several(apart)}), but a "
        "load is of one",
        place=place,
        hint="Ask Prometheus for one of the instances, e.g. with "
        f"{{{example[:_LONGEST_PROPOSED]}}} behind the name of the metric, and save its answer",
    )


def _start(
    series: Sequence[CounterSeries], source: RequestCounters, owner: frozenset[tuple[str, str]]
) -> float | None:
    """Return when counters started, else when their process did; ``None`` where nobody tells it."""
    own = [entry for entry in series if entry.name in source.created and _owner_of(entry) == owner]
    process = [
        entry
        for entry in series
        if entry.name == _PROCESS_START and owner.issuperset(entry.labels.items())
    ]
    times = [value for entry in own or process for _, value in entry.points[-1:]]
    return min((time_s for time_s in times if 0 < time_s <= _LARGEST), default=None)


@dataclass(frozen=True, slots=True)
class _Count:
    """What a counter counted, from when to when."""

    begin_s: float
    end_s: float
    increase: float


def _increase(entry: CounterSeries, start_s: float | None, place: str) -> _Count:
    """Return what a counter counted over the points of a file, or since it started."""
    for _, value in entry.points:
        if not 0 <= value <= _LARGEST:
            raise UsageError(
                f"the counter {_shown(entry.name)} has the value {value:g}, which is not a count",
                place=place,
                hint="Correct this counter in the service, then save the metrics again",
            )
    times = [time_s for time_s, _ in entry.points if time_s is not None and 0 < time_s <= _LARGEST]
    values = [value for _, value in entry.points]
    if len(times) < len(values) or not values:
        raise UsageError(
            f"the values of {_shown(entry.name)} have no timestamps, so no rate can be computed",
            place=place,
            hint="Save the answer of your Prometheus server to this query of the last hour: "
            f"/api/v1/query?query={entry.name[:_LONGEST_PROPOSED]}[1h]",
        )
    if len(values) == 1:
        if start_s is None:
            raise UsageError(
                f"the file does not say when {_shown(entry.name)} began to count",
                place=place,
                hint="Save the metrics twice, some minutes apart, and name both files, the earlier "
                "one first, e.g. from:before.txt+after.txt",
            )
        return _Count(start_s, times[0], values[0])
    if any(later < earlier for earlier, later in pairwise(values)):
        raise UsageError(
            f"the counter {_shown(entry.name)} goes down: the service was restarted meanwhile",
            place=place,
            hint="Save the metrics of a time in which the service runs without a restart",
        )
    if not all(later > earlier for earlier, later in pairwise(times)):
        raise UsageError(
            f"the times of {_shown(entry.name)} do not ascend",
            place=place,
            hint="Save the answer to one query, and don't change the file",
        )
    return _Count(times[0], times[-1], values[-1] - values[0])


def _cumulative(
    buckets: Sequence[CounterSeries], start_s: float | None, requests: int, name: str, place: str
) -> tuple[tuple[float, int], ...]:
    """Return bounds and requests up to them, ascending; buckets that can't be are refused."""
    counts: dict[float, int] = {}
    for entry in buckets:
        try:
            bound_s = float(entry.labels.get("le", ""))
        except ValueError:
            bound_s = math.nan
        if math.isnan(bound_s) or bound_s < 0:
            raise UsageError(
                f"a bucket of {name} has the bound {_shown(entry.labels.get('le', ''))}, but a "
                "bound is a time of 0 s or more",
                place=place,
                hint="Save the file unchanged from the service. If the bound stands there, too, "
                "correct the buckets of the service",
            )
        counts[bound_s] = counts.get(bound_s, 0) + round(_increase(entry, start_s, place).increase)
    ordered = tuple(sorted(counts.items()))
    wrong = _wrong_buckets(ordered, requests)
    if wrong:
        raise UsageError(
            f"{name} {wrong}",
            place=place,
            hint="Ask Prometheus for buckets and count in one query, and save its answer: "
            f'/api/v1/query?query={{__name__=~"{name}_(bucket|count)"}}[1h]',
        )
    return ordered


def _wrong_buckets(ordered: Sequence[tuple[float, int]], requests: int) -> str:
    """Return why buckets can't be those of so many requests; empty if they can."""
    for (earlier_s, earlier), (later_s, later) in pairwise(ordered):
        if later < earlier:
            return (
                f"has {later} requests up to {later_s:g} s, but {earlier} up to {earlier_s:g} s, "
                "which can't be"
            )
    bound_s, last = ordered[-1]
    if not math.isinf(bound_s):
        return f'has no bucket le="+Inf", which would hold all {requests} requests'
    if last != requests:
        return f'has {last} requests in the bucket le="+Inf", but its count is {requests}'
    return ""


def _shown(text: str) -> str:
    """A text of a file as a message may hold it."""
    return repr(text[:_LONGEST_SHOWN])


def _several(texts: Sequence[str]) -> str:
    shown = ", ".join(map(_shown, texts[:_MOST_SHOWN]))
    return f"{shown} and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else shown
