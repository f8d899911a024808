"""A case under MLPerf's load generator, inside this process.

Where tokens are bounded, a request is one to a language model: it tells the generator when its
first token is there, and with the last one how many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.engines.seam import Sender
from pytest_ortbench.passes.load.facts import LoadTest
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.worker.log import (
    Logged,
    TokenTimes,
    read_detail,
    read_issue_delays,
    read_latencies,
    read_summary,
    read_token_times,
)
from pytest_ortbench.passes.load.worker.over_network import (
    percents_of,
    timeout_of,
    with_exchanges,
)
from pytest_ortbench.passes.load.worker.system import (
    TOO_OLD,
    NoGenerator,
    SentSystem,
    System,
    TokenSystem,
)
from pytest_ortbench.worker.percentiles import percentile_ns

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: Names of the scenarios for the generator.
_NAMES = {
    "single-stream": "SingleStream",
    "multi-stream": "MultiStream",
    "server": "Server",
    "offline": "Offline",
}
#: Tracing takes some 20 µs a query: at this rate 1 % of a core.
_TRACED_PER_S = 500.0
#: Latencies that are kept.
_KEPT = 3000
#: An offline query must last as long as asked for, also where the capacity was read too low.
_OFFLINE_SURPLUS = 1.2
#: Queries are made beforehand; where they run out, the test is INVALID.
_QUERIES_SURPLUS = 2.0
_PREFIX = "mlperf_log_"
_TRACE = f"{_PREFIX}trace.json"
#: Stands for a bound of tokens that was not asked for: a day.
_NO_BOUND_S = 86400.0
#: How versions of the generator call the settings of these bounds.
_FIRST_TOKEN_NAMES = ("ttft_latency", "server_ttft_latency")
_TOKEN_TIME_NAMES = ("tpot_latency", "server_tpot_latency")

MISSING = (
    "MLPerf's load generator is not installed in this runtime: run pip install mlcommons-loadgen "
    "there (extra 'load' of pytest-ortbench)"
)


def run_load_test(question: PutUnderLoad, measured: MeasuredCase) -> LoadTest:
    """Run one test of MLPerf's load generator; the callers are the case's own number."""
    measured.enter("load")
    try:
        sender = measured.sender(
            timeout_s=timeout_of(question),
            percents=percents_of(question),
            holds_failures=question.scenario == "server",
            reference=question.reference,
        )
        return put_under_load(measured.calls(), question, sender)
    except NoGenerator as error:
        return LoadTest(reasons=(str(error),))


def put_under_load(
    calls: Sequence[Callable[..., object]], asked: PutUnderLoad, sender: Sender | None = None
) -> LoadTest:
    """Run one test.

    Args:
        calls: One a caller: runs one inference to its end. Where tokens are bounded, it takes what
            is to be called at the first token, and returns what the request took.
        asked: The test.
        sender: Sends requests in place of callers; it is closed here.

    Raises:
        NoGenerator: if the generator is not installed here.
        Exception: what an inference raised.
    """
    if sender is None:
        return _put_under_load(calls, asked, None)[0]
    delays_ns: Sequence[int] = ()
    try:
        test, delays_ns = _put_under_load(calls, asked, sender)
    finally:
        exchanges = sender.close(delays_ns)
    return with_exchanges(test, asked, exchanges)


def _put_under_load(
    calls: Sequence[Callable[..., object]], asked: PutUnderLoad, sender: Sender | None
) -> tuple[LoadTest, Sequence[int]]:
    """Run one test, and return it with how late its requests were issued, if they were traced."""
    generator = _generator()
    keep = Path(asked.keep_logs) if asked.keep_logs else None
    with OwnFolder("load") as scratch:
        folder = str(scratch if keep is None else keep)
        Path(folder).mkdir(parents=True, exist_ok=True)
        settings = _settings(generator, asked)
        system: System
        if sender is not None:
            system = SentSystem(generator, sender, of_tokens=asked.is_of_tokens)
        else:
            kind = TokenSystem if asked.is_of_tokens else System
            system = kind(generator, calls, inline=asked.scenario == "single-stream")
        traced = _expected_per_s(asked) <= _TRACED_PER_S
        try:
            _run(generator, system, settings, folder, traced=traced)
        finally:
            system.close()
        if system.error is not None:
            raise system.error
        delays_ns = read_issue_delays(Path(folder) / _TRACE) if traced else ()
        return _read(Path(folder), asked, system, traced=traced), delays_ns


def _generator() -> ModuleType:
    try:
        import mlperf_loadgen  # only this pass needs it
    except ImportError as error:
        raise NoGenerator(f"{MISSING} ({error})") from error
    return mlperf_loadgen  # type: ignore[no-any-return,unused-ignore]  # it has no types


def _expected_per_s(asked: PutUnderLoad) -> float:
    return asked.expected_per_s if asked.rate_per_s is None else asked.rate_per_s


def _settings(generator: ModuleType, asked: PutUnderLoad) -> Any:
    settings = generator.TestSettings()
    name = _NAMES[asked.scenario]
    # MLPerf's own defaults: seeds, percentiles, durations.
    settings.FromConfig("", "ortbench", name, 0)
    settings.scenario = getattr(generator.TestScenario, name)
    settings.mode = generator.TestMode.PerformanceOnly
    if not asked.official:
        settings.min_duration_ms = round(asked.least_s * 1000)
        settings.min_query_count = asked.least_queries
    share = asked.percent / 100.0
    fastest_per_s = _QUERIES_SURPLUS * asked.expected_per_s
    if asked.scenario == "server":
        settings.server_target_qps = asked.rate_per_s
        settings.server_target_latency_ns = round((asked.latency_s or 0.0) * 1e9)
        settings.server_target_latency_percentile = share
        settings.server_max_async_queries = asked.most_outstanding
        if asked.is_of_tokens:
            settings.use_token_latencies = True
            _set(settings, _FIRST_TOKEN_NAMES, asked.first_token_s)
            _set(settings, _TOKEN_TIME_NAMES, asked.token_time_s)
    elif asked.scenario == "single-stream":
        settings.single_stream_expected_latency_ns = max(1, round(1e9 / fastest_per_s))
        settings.single_stream_target_latency_percentile = share
    elif asked.scenario == "multi-stream":
        samples = settings.multi_stream_samples_per_query
        settings.multi_stream_expected_latency_ns = max(1, round(samples * 1e9 / fastest_per_s))
        settings.multi_stream_target_latency_percentile = share
    else:
        settings.offline_expected_qps = _OFFLINE_SURPLUS * asked.expected_per_s
    return settings


def _set(settings: Any, names: Sequence[str], bound_s: float | None) -> None:
    """Set the bound of a time of tokens by the first of its names that the generator knows.

    Raises:
        NoGenerator: if it knows none.
    """
    known = next((name for name in names if hasattr(settings, name)), None)
    if known is None:
        raise NoGenerator(TOO_OLD)
    setattr(settings, known, round((bound_s or _NO_BOUND_S) * 1e9))


def _run(
    generator: ModuleType,
    system: System,
    settings: Any,
    folder: str,
    *,
    traced: bool,
) -> None:
    logs = generator.LogSettings()
    logs.enable_trace = traced
    logs.log_output.outdir = folder
    logs.log_output.prefix = _PREFIX
    logs.log_output.copy_summary_to_stdout = False
    sut = generator.ConstructSUT(system.issue, _nothing)
    # Every request is the same input, which is in memory already.
    samples = generator.ConstructQSL(1, 1, _nothing, _nothing)
    try:
        # The last argument: a file that would be read where the worker happens to run.
        none = str(Path(folder) / "no-audit.config")
        generator.StartTestWithLogSettings(sut, samples, settings, logs, none)
    finally:
        generator.DestroyQSL(samples)
        generator.DestroySUT(sut)


def _nothing(*_: object) -> None:
    return None


def _read(folder: Path, asked: PutUnderLoad, system: System, *, traced: bool) -> LoadTest:
    with (folder / f"{_PREFIX}detail.txt").open(encoding="utf-8", errors="replace") as file:
        logged = read_detail(file)
    duration_s = (system.last_ns - system.first_ns) * 1e-9
    kept: list[int] = []
    stride, note = 1, ""
    if asked.scenario == "offline":
        note = "all requests are available from the start, so latencies show only the waiting time"
    elif traced:
        latencies = read_latencies(folder / _TRACE)
        stride = max(1, -(-len(latencies) // _KEPT))
        kept = latencies[::stride]
    else:
        note = f"more than {_TRACED_PER_S:g} queries a second, where tracing would cost time"
    completed = logged.number("result_completed_samples_per_sec", "result_samples_per_second")
    if completed is None and duration_s > 0:
        completed = system.answered / duration_s
    test = LoadTest(
        rate_per_s=asked.rate_per_s,
        least_s=(logged.number("effective_min_duration_ms") or 0.0) / 1000,
        least_queries=logged.integer("effective_min_query_count") or 0,
        most_outstanding=asked.most_outstanding,
        valid=logged.valid,
        reasons=() if logged.valid else logged.reasons,
        queries=logged.integer("result_query_count") or 0,
        requests=system.answered,
        late=logged.integer("result_overlatency_query_count"),
        duration_s=duration_s,
        scheduled_per_s=logged.number("result_scheduled_samples_per_sec"),
        completed_per_s=completed,
        min_ns=logged.integer("result_min_query_latency_ns", "result_min_latency_ns"),
        max_ns=logged.integer("result_max_query_latency_ns", "result_max_latency_ns"),
        mean_ns=logged.integer("result_mean_query_latency_ns", "result_mean_latency_ns"),
        percentiles_ns=logged.percentiles_ns,
        latencies_ns=tuple(kept),
        stride=stride,
        latencies_note=note,
        early_stopping=logged.early_stopping,
        seeds=logged.seeds,
        version=logged.text("loadgen_version").partition(" ")[0],
        log=read_summary(folder / f"{_PREFIX}summary.txt"),
    )
    if system.told is None:
        return test
    if system.told < system.answered:
        # The generator calls such a test VALID, with times of 0.
        return replace(test, valid=False, reasons=logged.reasons, late=None)
    times = None
    if traced:
        times = read_token_times(folder / _TRACE, system.new_tokens)
    return _with_tokens(test, asked, logged, times)


def _with_tokens(
    test: LoadTest, asked: PutUnderLoad, logged: Logged, times: TokenTimes | None
) -> LoadTest:
    """Return a test with what is known of its tokens.

    Args:
        test: What is known of whole requests.
        asked: What was asked for.
        logged: The log.
        times: Those of each query; ``None`` where it was not traced.
    """
    first, later = logged.first_token_percentiles_ns, logged.token_time_percentiles_ns
    late_first = late_later = late = None
    if times is not None:
        own = f"{asked.percent:g}"
        for known, times_ns in ((first, times.first_ns), (later, times.later_ns)):
            percentile = percentile_ns(times_ns, asked.percent)
            if percentile is not None:
                # The generator reports some percentiles only.
                known.setdefault(own, percentile)
        over_first = _over(times.first_ns, asked.first_token_s)
        over_later = _over(times.later_ns, asked.token_time_s)
        late_first = None if asked.first_token_s is None else sum(over_first)
        late_later = None if asked.token_time_s is None else sum(over_later)
        late = sum(map(max, over_first, over_later))
    return replace(
        test,
        late=late,
        first_token_percentiles_ns=first,
        token_time_percentiles_ns=later,
        late_first_token=late_first,
        late_token_time=late_later,
        tokens_per_s=logged.number("result_completed_tokens_per_second"),
    )


def _over(times_ns: Sequence[int], bound_s: float | None) -> list[bool]:
    bound_ns = (_NO_BOUND_S if bound_s is None else bound_s) * 1e9
    return [time_ns > bound_ns for time_ns in times_ns]
