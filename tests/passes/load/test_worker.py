"""Tests under the real load generator: its verdicts, its reasons, and what latency counts from."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.passes.load.facts import LoadTest
from pytest_ortbench.passes.load.numbers.plan import queries_needed
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.worker.generator import (
    MISSING,
    _settings,
    put_under_load,
)
from pytest_ortbench.passes.load.worker.system import TOO_OLD, NoGenerator
from pytest_ortbench.schema.wire import from_plain, to_plain
from pytest_ortbench.worker.calling import call_of
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import case_of, relu
from tests.worker.asking import ask

#: Seconds of service at least: it is slept.
SERVICE_S = 0.01
#: A bound that no answer breaks, on a machine however busy.
AGES_S = 60.0
ASKED = PutUnderLoad(
    scenario="server",
    percent=90.0,
    expected_per_s=1 / SERVICE_S,
    rate_per_s=0.5 / SERVICE_S,
    latency_s=AGES_S,
    least_s=1.5,
    least_queries=68,
)


def rest() -> None:
    time.sleep(SERVICE_S)


def test_half_of_the_capacity_is_valid() -> None:
    found = put_under_load([rest], ASKED)
    assert found.valid is True
    assert found.reasons == ()
    assert found.late == 0
    assert found.queries == found.requests >= 68
    assert found.duration_s >= 0.9 * 1.5
    assert (found.least_s, found.least_queries, found.rate_per_s) == (1.5, 68, 50.0)
    # The arrivals are those of the seed, and none was lost.
    assert found.scheduled_per_s == pytest.approx(50.0, rel=0.3)
    assert found.completed_per_s is not None
    assert 0 < found.completed_per_s <= 1 / SERVICE_S
    assert set(found.percentiles_ns) == {"50", "90", "95", "97", "99", "99.9"}
    assert found.min_ns is not None
    assert found.min_ns >= SERVICE_S * 1e9
    assert found.version.startswith("6.")
    assert set(found.seeds) == {"qsl_rng_seed", "sample_index_rng_seed", "schedule_rng_seed"}
    assert "Result is : VALID" in found.log
    assert from_plain(LoadTest, to_plain(found)) == found


def test_twice_the_capacity_is_invalid_and_says_why() -> None:
    found = put_under_load([rest], replace(ASKED, rate_per_s=2 / SERVICE_S, latency_s=0.1))
    assert found.valid is False
    assert set(found.reasons) >= {
        "Performance constraints satisfied: NO",
        "Reduce target QPS to improve latency.",
    }
    assert found.late is not None
    assert found.late > 0.5 * found.queries
    assert found.percentiles_ns["90"] > 100_000_000
    # However much arrives, no more than the capacity is answered.
    assert found.completed_per_s is not None
    assert found.completed_per_s <= 1 / SERVICE_S


def test_the_generator_gives_up_when_the_queue_is_hopeless() -> None:
    asked = replace(ASKED, rate_per_s=1000.0, least_s=20.0, most_outstanding=50)
    found = put_under_load([rest], asked)
    assert found.valid is False
    assert any("Too many outstanding queries" in reason for reason in found.reasons)
    assert not any("more queries" in reason for reason in found.reasons)
    # Of the 20,000 that were to come in 20 s, and that would take 200 s to work off.
    assert found.requests < 2000


def test_too_few_queries_are_invalid_by_early_stopping_however_good_they_are() -> None:
    asked = replace(ASKED, percent=99.0, rate_per_s=20.0, least_queries=20)
    found = put_under_load([rest], asked)
    assert found.valid is False
    assert found.late == 0
    rule, unsuccessful, processed, more = found.reasons
    assert rule == "Early stopping satisfied: NO"
    assert (unsuccessful, processed) == (
        "Run unsuccessful.",
        f"Processed {found.queries} queries.",
    )
    # The generator's arithmetic is ours: with none late, 459 are enough.
    missing = queries_needed(99.0, late=0) - found.queries
    assert more.startswith(f"Would need to run at least {missing} more queries, ")
    assert found.early_stopping == " ".join(found.reasons[1:])


def answered(at_first: Callable[[], object], *, first_s: float = 0.004) -> GeneratedRequest:
    """A request of 5 tokens: the first after 4 ms, each later one after 2 ms."""
    time.sleep(first_s)
    at_first()
    time.sleep(0.008)
    return GeneratedRequest(steps_ns=(4, 2, 2, 2, 2), wall_ns=12, prompt_tokens=9, new_tokens=5)


OF_TOKENS = replace(
    ASKED, rate_per_s=40.0, latency_s=None, first_token_s=AGES_S, token_time_s=AGES_S, least_s=0.2
)


@pytest.mark.timed
def test_requests_in_time_are_valid_and_the_first_token_is_none_of_the_later_ones() -> None:
    found = put_under_load([partial(answered, first_s=0.02)], OF_TOKENS)
    assert (found.valid, found.reasons) == (True, ())
    assert (found.late, found.late_first_token, found.late_token_time) == (0, 0, 0)
    first, later = found.first_token_percentiles_ns, found.token_time_percentiles_ns
    assert set(first) == set(later) == {"50", "90", "95", "97", "99", "99.9"}
    assert first["50"] >= 20_000_000
    # 8 ms over four tokens: neither over five, nor with the 20 ms of the first one.
    assert 2_000_000 <= later["50"] < 5_600_000
    assert found.percentiles_ns["50"] >= 28_000_000
    assert found.tokens_per_s == pytest.approx(5 * (found.completed_per_s or 0), rel=0.1)
    assert from_plain(LoadTest, to_plain(found)) == found


@pytest.mark.parametrize("broken", ["first_token_s", "token_time_s"])
def test_requests_over_one_bound_are_invalid_and_counted(broken: str) -> None:
    found = put_under_load([answered], replace(OF_TOKENS, percent=80.0, **{broken: 1e-4}))
    assert found.valid is False
    late = {"first_token_s": found.late_first_token, "token_time_s": found.late_token_time}
    assert late.pop(broken) == found.queries == found.late
    assert late.popitem()[1] == 0
    # The generator reports no p80; it is read from the trace.
    assert found.first_token_percentiles_ns["50"] <= found.first_token_percentiles_ns["80"]


def test_one_bound_alone_is_judged_alone() -> None:
    found = put_under_load([answered], replace(OF_TOKENS, first_token_s=None))
    assert found.valid is True
    assert (found.late_first_token, found.late_token_time) == (None, 0)


def test_requests_that_never_told_of_a_token_are_not_valid() -> None:
    """The generator itself calls them VALID."""

    def silent(_at_first: Callable[[], object]) -> GeneratedRequest:
        return answered(lambda: None)

    found = put_under_load([silent], OF_TOKENS)
    assert found.valid is False
    assert found.first_token_percentiles_ns == found.token_time_percentiles_ns == {}
    assert found.reasons


def test_a_generator_without_bounds_of_tokens_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mlperf_loadgen

    monkeypatch.delattr(mlperf_loadgen, "FirstTokenComplete")
    with pytest.raises(NoGenerator) as error:
        put_under_load([answered], OF_TOKENS)
    assert str(error.value) == TOO_OLD


def test_latency_counts_from_the_scheduled_arrival() -> None:
    """One call that hangs makes all that arrive meanwhile late, though each is quick by itself."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.6 if calls == 20 else 0.001)

    found = put_under_load([call], replace(ASKED, rate_per_s=100.0, least_s=1.0, latency_s=0.3))
    assert len(found.latencies_ns) == found.queries
    late = [latency for latency in found.latencies_ns if latency > 300_000_000]
    # In 0.3 s arrive 30 on average; counted from their own start, only one call would be late.
    assert len(late) >= 10
    assert found.late == len(late)
    assert found.max_ns == max(found.latencies_ns)
    assert found.latencies_ns[19] >= 600_000_000


def test_in_the_single_stream_each_counts_from_its_own_issue() -> None:
    """There is no schedule: whoever comes after a call that hangs was not there before."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.3 if calls == 10 else 0.002)

    asked = replace(
        ASKED, scenario="single-stream", expected_per_s=400.0, rate_per_s=None, latency_s=None,
        least_s=1.0,
    )  # fmt: skip
    began = time.perf_counter_ns()
    found = put_under_load([call], asked)
    assert found.latencies_ns[9] >= 300_000_000
    # None waits for another one, so that together they took no longer than the test.
    assert sum(found.latencies_ns) <= time.perf_counter_ns() - began
    assert found.late is None


def single(scenario: str) -> PutUnderLoad:
    return replace(ASKED, scenario=scenario, rate_per_s=None, latency_s=None, least_s=1.0)


def test_single_stream_runs_one_at_a_time_in_one_thread() -> None:
    threads: set[int] = set()

    def call() -> None:
        threads.add(threading.get_ident())
        rest()

    found = put_under_load([call, call], single("single-stream"))
    assert found.valid is True
    assert len(threads) == 1
    assert found.percentiles_ns["50"] >= SERVICE_S * 1e9
    assert found.completed_per_s is not None
    assert found.completed_per_s <= 1 / SERVICE_S


def test_a_query_of_the_multi_stream_is_eight_requests() -> None:
    found = put_under_load([rest], replace(single("multi-stream"), least_queries=12))
    assert found.requests == 8 * found.queries
    # A query ends with its last request.
    assert found.percentiles_ns["50"] >= 8 * SERVICE_S * 1e9
    assert found.min_ns is not None
    assert found.min_ns >= 8 * SERVICE_S * 1e9
    assert min(found.latencies_ns) == found.min_ns


def test_offline_answers_everything_and_knows_no_latency() -> None:
    both = threading.Barrier(2, timeout=AGES_S)
    calls = itertools.count()

    def side_by_side() -> None:
        """Rest; the first call is not over before another one has begun."""
        if next(calls) < 2:
            both.wait()
        rest()

    asked = replace(single("offline"), expected_per_s=200.0)
    found = put_under_load([side_by_side, side_by_side], asked)
    assert found.valid is True
    assert found.queries == 1
    assert found.requests >= 200
    assert found.latencies_ns == ()
    assert "waiting" in found.latencies_note
    assert found.completed_per_s is not None
    assert 0 < found.completed_per_s <= 2 / SERVICE_S


def test_fast_arrivals_are_not_traced() -> None:
    found = put_under_load([lambda: None], replace(ASKED, rate_per_s=2000.0, least_s=0.5))
    assert found.latencies_ns == ()
    assert "more than 500 queries a second" in found.latencies_note
    assert found.percentiles_ns["99"] > 0


def test_what_an_inference_raises_ends_the_test() -> None:
    def fail() -> None:
        raise ValueError("no such tensor")

    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="no such tensor"):
        put_under_load([fail], ASKED)
    left = set(threading.enumerate()) - before
    assert [thread.name for thread in left if "_serve" in thread.name] == []


@pytest.mark.parametrize(
    ("scenario", "queries"),
    [("server", 100), ("single-stream", 100), ("multi-stream", 662), ("offline", 100)],
)
def test_official_durations_are_those_that_the_generator_brings_along(
    scenario: str, queries: int
) -> None:
    import mlperf_loadgen

    asked = replace(ASKED, scenario=scenario, percent=99.0, official=True)
    settings = _settings(mlperf_loadgen, asked)
    assert (settings.min_duration_ms, settings.min_query_count) == (600_000, queries)
    ours = _settings(mlperf_loadgen, replace(asked, official=False))
    assert (ours.min_duration_ms, ours.min_query_count) == (1500, 68)
    # The arrivals are MLPerf's in both.
    assert ours.schedule_rng_seed == settings.schedule_rng_seed != 0


def test_logs_are_kept_on_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    put_under_load([rest], single("single-stream"))
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "logs"
    put_under_load([rest], replace(single("single-stream"), keep_logs=str(kept)))
    assert (kept / "mlperf_log_summary.txt").read_text().startswith("=====")
    assert (kept / "mlperf_log_detail.txt").exists()


@pytest.mark.live
def test_without_the_generator_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    with pytest.raises(NoGenerator) as error:
        put_under_load([rest], ASKED)
    assert str(error.value).startswith(MISSING)
    measured = MeasuredCase(case_of(relu(tmp_path / "m.onnx")), lambda _: None)
    measured.open()
    found = ask(measured, ASKED)
    assert found.valid is None
    assert found.reasons[0].startswith(MISSING)


@pytest.mark.live
@pytest.mark.parametrize(("concurrency", "sessions"), [(1, 1), (2, 2)])
def test_a_real_session_serves_its_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int, sessions: int
) -> None:
    case = replace(case_of(relu(tmp_path / "m.onnx")), concurrency=concurrency, sessions=sessions)
    phases: list[str] = []
    measured = MeasuredCase(case, phases.append)
    measured.open()
    made: list[object] = []

    def note(case: Case, session: object, feeds: object) -> Callable[[], object]:
        made.append(session)
        return call_of(case, session, feeds)  # type: ignore[arg-type]  # a spy

    monkeypatch.setattr("pytest_ortbench.worker.measured.call_of", note)
    found = ask(measured, replace(ASKED, rate_per_s=100.0, least_s=0.5))
    assert found.valid is True
    assert found.requests == found.queries >= 68
    assert len(made) == concurrency * sessions
    assert len({id(session) for session in made}) == sessions
    assert phases[-1] == "load"
    # The measured loop still stands behind it.
    durations = array("q", bytes(8 * 3))
    measured.live_loop()(durations)
    assert all(durations)
