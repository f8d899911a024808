"""A stored run, played again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.load import Load, LoadTest
from pytest_ortbench.core.load_spec import parse_load
from pytest_ortbench.core.outcome import Accuracy, Failure
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.launch.replay import ReplayLauncher
from pytest_ortbench.schema.pass_questions import PutUnderLoad
from tests.results_factory import make_result, make_run

RESULT = make_result()
RUN = make_run([RESULT])


def test_a_recorded_case_is_played_from_its_first_duration_on() -> None:
    launcher: Launcher = ReplayLauncher(RUN)
    recorded = RESULT.measurements[1]
    worker: Worker = launcher.open(RESULT.case, worker=1, deadline=None)
    durations = recorded.samples.durations_ns
    assert worker.block(3).durations_ns == durations[:3]
    assert worker.block(2).durations_ns == durations[3:5]
    whole = worker.block(len(durations))
    assert whole.durations_ns == durations[5:] + durations[:5]
    assert whole.wall_ns >= sum(durations)
    assert worker.warm(0.0) == recorded.warm_up
    assert worker.memory() == recorded.memory
    assert worker.info == recorded.runtime
    assert worker.startup == recorded.startup
    assert worker.threads == recorded.threads
    assert worker.profile() == RESULT.placement
    assert worker.accuracy(Path("x")) == (RESULT.accuracy or Accuracy(reason="none"))
    assert [worker.check(check.run) for check in recorded.output_checks] == list(
        recorded.output_checks
    )
    worker.pause()
    worker.resume()
    worker.close()


def test_after_the_last_worker_the_first_comes_again() -> None:
    launcher = ReplayLauncher(RUN)
    count = len(RESULT.measurements)
    again = launcher.open(RESULT.case, worker=count, deadline=None)
    assert again.block(1).durations_ns == RESULT.measurements[0].samples.durations_ns[:1]
    launcher.close()
    assert all(worker.closed for worker in launcher.opened)


def test_a_recorded_failure_is_raised_again() -> None:
    failure = Failure(kind="crash", phase="measure", message="boom", signal="SIGSEGV")
    failed = replace(RESULT, status="crash", measurements=(), failure=failure)
    with pytest.raises(WorkerError) as caught:
        ReplayLauncher(make_run([failed])).open(failed.case, worker=0, deadline=None)
    assert caught.value.failure == failure


def test_what_was_not_recorded_is_an_error() -> None:
    launcher = ReplayLauncher(RUN)
    other = replace(RESULT.case, batch=77)
    with pytest.raises(WorkerError, match="has no case"):
        launcher.open(other, worker=0, deadline=None)
    with pytest.raises(WorkerError, match="has no runtime 'elsewhere'"):
        launcher.inspect(Runtime(label="elsewhere"))
    with pytest.raises(WorkerError, match="no look at the other run"):
        launcher.open(RESULT.case, worker=0, deadline=None).check("other")


def test_probing_says_what_was_measured() -> None:
    here, absent = ReplayLauncher(RUN).probe(
        RESULT.case.runtime,
        [RESULT.case.provider, Provider(alias="qnn", name="QNNExecutionProvider")],
    )
    assert here.usable
    assert not absent.usable
    assert "measured no case on it" in absent.reason


def test_a_load_is_answered_by_the_recorded_test_of_that_rate() -> None:
    slow, fast = LoadTest(valid=True, rate_per_s=10.0), LoadTest(valid=False, rate_per_s=20.0)
    stream = LoadTest(valid=True)
    peak = parse_load("peak:p99:20ms", place="")
    single = parse_load("single-stream", place="")
    loads = (Load(spec=peak, tests=(slow, fast), answer=0), Load(spec=single, tests=(stream,)))
    launcher = ReplayLauncher(make_run([replace(RESULT, loads=loads)]))
    worker = launcher.open(RESULT.case, worker=0, deadline=None)

    def asked(scenario: str, rate: float | None, latency: float | None) -> LoadTest:
        return worker.load(
            PutUnderLoad(
                scenario=scenario, percent=99.0, expected_per_s=50.0, rate_per_s=rate,
                latency_s=latency, least_s=10.0, least_queries=700,
            )
        )  # fmt: skip

    assert asked("server", 20.0, 0.02) is fast
    assert asked("server", 10.0, 0.02) is slow
    assert asked("single-stream", None, None) is stream
    for unknown in (("server", 30.0, 0.02), ("server", 20.0, 0.05), ("offline", None, None)):
        assert asked(*unknown).valid is None
        assert asked(*unknown).reasons == ("the recording holds no such test",)
