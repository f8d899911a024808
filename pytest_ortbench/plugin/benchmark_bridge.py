"""The bridge to pytest-benchmark: our cases in its table, JSON, storage and comparison.

Only its public interface is used: a timer set by its marker, ``benchmark.pedantic``,
``benchmark.stats``, ``extra_info`` and its hooks. A test that takes both fixtures, ``ortbench`` and
``benchmark``, gets the recorded durations of its case replayed once it has measured; nothing runs a
second time, so that pytest-benchmark shows what the run document holds. Where it is asked for a
file or a comparison, a user's own tests get its fixture without taking it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_ortbench.plugin.own_tests import planned_of
from pytest_ortbench.plugin.taken import existing_bench

if TYPE_CHECKING:
    from pytest_ortbench.analysis.summary import Summary
    from pytest_ortbench.core.outcome import CaseResult

#: What JSON can hold; pytest-benchmark writes anything else as its ``repr``.
Plain = str | int | float | bool | None

#: Most durations replayed for a case, however many are kept: pytest-benchmark stores every one of
#: them as text (550,000 made a file of 85 MB).
MOST_ROUNDS = 3000

_FACTS_KEY = "ortbench"


#: What asks pytest-benchmark for more than its table.
_ASKING = ("json", "save", "autosave", "compare", "compare_fail", "histogram")
#: Test functions that were given the fixture without taking it, and the cases that have a row.
_JOINED = pytest.StashKey[set[object]]()
_WITH_ROW = pytest.StashKey[set[object]]()


class BenchmarkStats(Protocol):
    """Statistics of one row, each computed from the durations when it is first read."""

    median: float
    mean: float
    min: float
    max: float
    stddev: float
    rounds: int
    total: float
    ops: float

    def as_dict(self) -> Mapping[str, object]:
        """Read all of them."""


class BenchmarkRow(Protocol):
    """What ``benchmark.stats`` is once something was timed."""

    stats: BenchmarkStats


class Benchmark(Protocol):
    """What we use of pytest-benchmark's fixture."""

    enabled: bool
    stats: BenchmarkRow | None
    extra_info: dict[str, Plain]
    params: dict[str, Plain] | None

    def pedantic(self, target: Callable[[], None], *, rounds: int, iterations: int) -> None:
        """Time ``target`` as often as told."""


class ReplayTimer:
    """A clock that lets recorded durations pass, one between every two readings.

    Without recorded durations it is ``time.perf_counter``, for a test that times something itself.
    """

    __name__ = "recorded"

    def __init__(self) -> None:
        self._durations_s: Sequence[float] = ()
        self._next = 0
        self._running = False

    def load(self, durations_s: Sequence[float]) -> None:
        """Replay ``durations_s`` from the first one on; an empty sequence ends the replay."""
        self._durations_s = durations_s
        self._next = 0
        self._running = False

    def __call__(self) -> float:
        if self._next >= len(self._durations_s):
            return time.perf_counter()
        self._running = not self._running
        if self._running:
            # From zero, so that the difference of both readings is the duration to the last bit.
            return 0.0
        self._next += 1
        return self._durations_s[self._next - 1]


#: One for all tests: they run one after the other, and each loads its own durations.
TIMER = ReplayTimer()


def register(config: pytest.Config) -> None:
    """Join pytest-benchmark where it is active, once."""
    plugins, name = config.pluginmanager, "ortbench-benchmark-bridge"
    if hasattr(config.hook, "pytest_benchmark_update_json") and not plugins.hasplugin(name):
        # Of the package, since sys.modules may have been reset between two runs of one process.
        from pytest_ortbench.plugin import benchmark_bridge

        plugins.register(benchmark_bridge, name)


def replay(
    benchmark: Benchmark,
    durations_s: Sequence[float],
    extra_info: Mapping[str, Plain],
    params: Mapping[str, Plain] | None = None,
) -> BenchmarkRow | None:
    """Hand recorded durations to pytest-benchmark, as if it had timed them.

    Args:
        benchmark: Its fixture. Nothing happens if it is disabled or the test has used it already.
        durations_s: Seconds of single inferences in order; thinned to :data:`MOST_ROUNDS`.
        extra_info: Facts that go into its JSON beside the statistics.
        params: What ``--benchmark-group-by=param:NAME`` may name.

    Returns:
        The row; ``None`` where nothing was replayed.
    """
    if not durations_s or not benchmark.enabled or benchmark.stats is not None:
        return None
    # Only where something is replayed: analysis costs the start of pytest otherwise.
    from pytest_ortbench.analysis.samples import thinned

    kept = thinned(durations_s, MOST_ROUNDS)
    benchmark.extra_info.update(extra_info)
    if params is not None:
        benchmark.params = dict(params)
    TIMER.load(kept)
    try:
        benchmark.pedantic(_recorded_inference, rounds=len(kept), iterations=1)
    finally:
        TIMER.load(())
    return benchmark.stats


def tell_of_all(stats: BenchmarkStats, result: CaseResult, summary: Summary) -> None:
    """Make statistics those of all inferences, as our table has them, not of the kept durations.

    Quartiles and outliers stay those of the kept ones.

    Args:
        stats: What pytest-benchmark computed.
        result: The case.
        summary: Its numbers.
    """
    known = {name: quantity.value for name, quantity in summary.quantities.items()}
    workers = [measurement.samples for measurement in result.measurements]
    if not {"latency_p50", "latency_mean", "latency_min", "throughput"} <= known.keys():
        return
    stats.as_dict()  # what is read later is not computed anew
    count, mean = summary.samples, known["latency_mean"]
    stats.median, stats.mean, stats.min = known["latency_p50"], mean, known["latency_min"]
    stats.max = max(samples.max_ns for samples in workers) / 1e9
    squares = math.fsum(samples.sum_of_squares_s2 for samples in workers)
    stats.stddev = math.sqrt(max(0.0, squares - count * mean**2) / (count - 1)) if count > 1 else 0
    stats.rounds = count
    stats.ops = known["throughput"] / result.case.batch
    stats.total = count / stats.ops


def _recorded_inference() -> None:
    """What pytest-benchmark calls between two readings of the timer."""


def durations_of(result: CaseResult) -> list[float]:
    """Kept durations of all workers of a case in seconds, one worker after the other."""
    return [
        duration / 1e9
        for measurement in result.measurements
        for duration in measurement.samples.durations_ns
    ]


def params_of(result: CaseResult) -> dict[str, Plain]:
    """What the case was asked for, by the names of its axes."""
    case = result.case
    return {
        "model": case.model.name,
        "precision": case.variant.precision,
        "provider": case.provider.label,
        "batch": case.batch,
        "runtime": case.runtime.label,
        **case.dims,
        **case.knobs,
    }


def extra_info_of(result: CaseResult, summary: Summary) -> dict[str, Plain]:
    """Return the facts about a measured case that pytest-benchmark's own statistics lack."""
    case = result.case
    info: dict[str, Plain] = {
        "case_id": case.case_id,
        "status": result.status,
        "flags": " ".join(flag.name for flag in result.flags),
        "model": case.model.name,
        "precision": case.variant.precision,
        "provider": case.provider.label if case.provider.then else case.provider.alias,
        "role": case.provider.role,
        "device": "" if case.provider.then else case.provider.device,
        "runtime": case.runtime.label,
        "batch": case.batch,
        "io": case.io,
        "workers": summary.workers,
        "samples": summary.samples,
    }
    for name in ("latency_p50", "throughput", "placement"):
        quantity = summary.quantities.get(name)
        if quantity is not None:
            bounds = {"": quantity.value, "_low": quantity.low, "_high": quantity.high}
            info.update({name + end: value for end, value in bounds.items() if value is not None})
    if result.measurements:
        first = result.measurements[0]
        if first.runtime.engine:
            info["engine_version"] = first.runtime.engine_version
        else:
            info["onnxruntime"] = first.runtime.version
        info["threads"] = first.threads
    return info


# -- pytest's hooks ------------------------------------------------------------------------------


def _join(item: pytest.Item, names: list[str]) -> None:
    """Give a user's own test the fixture where pytest-benchmark is asked for a file."""
    from pytest_ortbench.plugin.model_files import is_suite

    function, config = getattr(item, "function", None), item.config
    asked = any(getattr(config.option, f"benchmark_{name}", None) for name in _ASKING)
    if not asked or "benchmark" in names or function is None:
        return
    if not is_suite(Path(function.__code__.co_filename)):
        config.stash.setdefault(_JOINED, set()).add(function)
        names.append("benchmark")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Set our timer on the tests that have both fixtures; keep what their own marker says."""
    names = getattr(item, "fixturenames", [])
    if "ortbench" not in names or not _takes_theirs(item):
        return
    _join(item, names)
    if "benchmark" not in names:
        return
    marker = item.get_closest_marker("benchmark")
    settings = {**(marker.kwargs if marker else {}), "timer": TIMER}
    item.add_marker(pytest.mark.benchmark(**settings), append=False)
    # A case that gives no number has nothing to replay, and its message says why.
    unused = "ignore:Benchmark fixture was not used at all"
    item.add_marker(pytest.mark.filterwarnings(unused))


def _takes_theirs(item: pytest.Item) -> bool:
    """Whether a test gets pytest-benchmark's fixture, as it is or through others of its name."""
    for definition in reversed(
        item.session._fixturemanager.getfixturedefs("benchmark", item) or ()
    ):
        if definition.func.__module__.startswith("pytest_benchmark"):
            return True
        if "benchmark" not in definition.argnames:
            return False
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Replay the case behind the test, also if the test then failed by a limit or an assertion."""
    try:
        yield
    finally:
        _replay_case(item)


def _replay_case(item: pytest.Item) -> None:
    arguments = getattr(item, "funcargs", {})
    if "ortbench" not in arguments or "benchmark" not in arguments or not _takes_theirs(item):
        return
    known = known_numbers(item)
    if known is not None and known[0].status == "measured":
        result, summary = known
        benchmark: Benchmark = arguments["benchmark"]
        rows = item.config.stash.setdefault(_WITH_ROW, set())
        joined = item.config.stash.get(_JOINED, set())
        if getattr(item, "function", None) in joined and result.case.key in rows:
            return
        rows.add(result.case.key)
        info = extra_info_of(result, summary)
        row = replay(benchmark, durations_of(result), info, params_of(result))
        if row is not None:
            tell_of_all(row.stats, result, summary)


def known_numbers(item: pytest.Item) -> tuple[CaseResult, Summary] | None:
    """Return the result of a test's case and its numbers if it was measured; never measures it."""
    bench, planned = existing_bench(item.config), planned_of(item)
    if bench is None or planned is None or not bench.started:
        return None
    result = bench.execution.known(planned)
    return None if result is None else (result, bench.session.summary_of(result))


# -- pytest-benchmark's hooks --------------------------------------------------------------------


def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, object]
) -> None:
    """Add the stable facts about this machine where cases of ours were measured."""
    if _has_cases(config):
        machine_info[_FACTS_KEY] = _machine_facts()


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_compare_machine_info(
    machine_info: dict[str, object], compared_benchmark: dict[str, dict[str, object]]
) -> None:
    """Compare our facts with a stored run that has them, and only then.

    The stored runs are read before any test is collected, when it is not known yet whether there
    will be cases; without this, the mere presence of our facts would be taken for another machine.
    """
    if _FACTS_KEY in compared_benchmark.get("machine_info", {}):
        machine_info[_FACTS_KEY] = _machine_facts()
    else:
        machine_info.pop(_FACTS_KEY, None)


def _has_cases(config: pytest.Config) -> bool:
    bench = existing_bench(config)
    return bench is not None and bench.started


def _machine_facts() -> dict[str, str]:
    from pytest_ortbench.launch.machine import fingerprint

    return fingerprint().stable
