"""The load pass: what it asks the generator for, what it makes of the answer; once for real."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.case import Case, Sampling, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out, due, without
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.load.facts import Load, LoadTest
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.run import measure_loads, missing_loads
from pytest_ortbench.schema.document import decode_result, encode_result
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.launch.cases import case_of, save, x_input
from tests.results_factory import draw_durations, make_case, make_measurement, make_result

#: Requests a second of the results below: 10 ms each, one caller.
CAPACITY = 100.0
Answer = Callable[[PutUnderLoad], LoadTest]


class Loaded(FakeLauncher):
    """Its workers answer as a function says."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(lambda case, index: 1e7)
        self.answer = answer
        self.asked: list[PutUnderLoad] = []
        self.deadlines: list[float | None] = []

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        self.deadlines.append(deadline)
        return opened.answering({PutUnderLoad: self._load})

    def _load(self, asked: PutUnderLoad) -> LoadTest:
        self.asked.append(asked)
        return self.answer(asked)


def up_to(edge: float) -> Answer:
    """VALID at rates up to an edge."""

    def answer(asked: PutUnderLoad) -> LoadTest:
        rate = asked.rate_per_s
        valid = rate is None or rate <= edge
        return LoadTest(
            rate_per_s=rate,
            valid=valid,
            reasons=() if valid else ("Performance constraints satisfied: NO",),
            latencies_ns=(1, 2, 3),
        )

    return answer


def result_of(*loads: str, timeout: float = 300.0, official: bool = False) -> CaseResult:
    sampling = Sampling(loads=loads, timeout_s=timeout, load_official=official)
    case = replace(make_case(), sampling=sampling)
    durations = draw_durations(400, median_ns=10_000_000, spread=0.0)
    return make_result(case=case, measurements=[make_measurement(durations)])


def only(result: CaseResult) -> Load:
    (load,) = result.loads
    return load


def test_a_server_is_asked_for_what_the_user_wrote() -> None:
    launcher = Loaded(up_to(1000.0))
    load = only(measure_loads(result_of(), ("server:20:50ms",), launcher))
    (asked,) = launcher.asked
    assert (asked.scenario, asked.rate_per_s, asked.latency_s) == ("server", 20.0, 0.05)
    assert (asked.percent, asked.least_s, asked.least_queries) == (99.0, 10.0, 700)
    assert asked.expected_per_s == pytest.approx(CAPACITY, rel=1e-3)
    assert not asked.official
    # 35 s of test: a queue of a fifth of that is hopeless.
    assert asked.most_outstanding == pytest.approx(0.2 * 35 * CAPACITY, rel=1e-2)
    assert (load.valid, load.answer, load.reason, load.official) == (True, 0, "", False)
    assert load.capacity_per_s == pytest.approx(CAPACITY, rel=1e-3)
    assert load.test is not None
    assert load.test.latencies_ns == (1, 2, 3)


def test_an_invalid_one_keeps_the_reasons() -> None:
    load = only(measure_loads(result_of(), ("server:200:50ms",), Loaded(up_to(100.0))))
    assert load.valid is False
    assert load.test is not None
    assert load.test.reasons == ("Performance constraints satisfied: NO",)


def test_single_queries_are_those_of_one_caller() -> None:
    result = result_of()
    case = replace(result.case, concurrency=2, sessions=2)
    launcher = Loaded(up_to(1000.0))
    texts = ("single-stream:p99", "server:20:50ms")
    single, server = measure_loads(replace(result, case=case), texts, launcher).loads
    assert (single.callers, single.sessions) == (1, 1)
    assert (server.callers, server.sessions) == (4, 2)
    # Enough queries are made beforehand, should one caller alone be as fast as all.
    assert launcher.asked[0].expected_per_s == pytest.approx(single.capacity_per_s)
    # 100/s of four callers are 25/s of one at least: 700 queries take 28 s, too long for 20.
    short = replace(result_of(timeout=20.0), case=replace(case, sampling=Sampling(timeout_s=20.0)))
    refused = only(measure_loads(short, ("single-stream:p99",), launcher))
    assert refused.reason.startswith("single-stream:p99 needs 28.")


def test_a_peak_is_searched_from_the_capacity_and_every_test_is_recorded() -> None:
    launcher = Loaded(up_to(83.0))
    load = only(measure_loads(result_of(), ("peak:p99:50ms",), launcher))
    rates = [test.rate_per_s for test in load.tests]
    assert rates == [asked.rate_per_s for asked in launcher.asked]
    assert all(asked.scenario == "server" for asked in launcher.asked)
    assert rates[0] == pytest.approx(0.7 * CAPACITY, rel=1e-3)
    assert load.test is not None
    assert load.test.rate_per_s == max(test.rate_per_s or 0 for test in load.tests if test.valid)
    assert load.beyond_per_s == min(test.rate_per_s or 0 for test in load.tests if not test.valid)
    assert load.test.rate_per_s <= 83.0 < load.beyond_per_s <= 1.05 * load.test.rate_per_s
    assert (load.reason, load.note) == ("", "")
    # Latencies of the one that answers only.
    assert [bool(test.latencies_ns) for test in load.tests].count(True) == 1
    # The rate that ends the search was tested twice.
    assert rates.count(load.beyond_per_s) == 2
    # One worker for all of them.
    assert len(launcher.opened) == 1


def test_a_peak_that_no_rate_keeps_says_how_low_it_looked() -> None:
    load = only(measure_loads(result_of(), ("peak:p99:1ms",), Loaded(up_to(0.0))))
    assert load.valid is False
    assert load.answer is None
    assert load.reason.startswith("no rate was VALID down to ")
    assert load.beyond_per_s == min(test.rate_per_s or 0 for test in load.tests)


def test_what_the_timeout_forbids_is_refused_before_a_worker_starts() -> None:
    launcher = Loaded(up_to(1000.0))
    load = only(measure_loads(result_of(timeout=60.0), ("server:5:50ms",), launcher))
    assert load.valid is None
    assert "p97" in load.reason
    assert "--ort-timeout=168" in load.reason
    assert launcher.opened == []
    load = only(measure_loads(result_of(official=True), ("offline",), launcher))
    assert "MLPerf's rules require 600 s" in load.reason
    official = measure_loads(result_of(official=True, timeout=1000.0), ("offline",), launcher)
    assert only(official).official
    assert launcher.asked[-1].official


def test_a_case_that_is_called_otherwise_is_not_put_under_load_as_if_it_were_that() -> None:
    result, launcher = result_of(), Loaded(up_to(1000.0))
    result = replace(result, case=replace(result.case, call="async"))
    load = only(measure_loads(result, ("offline",), launcher))
    assert (load.valid, launcher.opened) == (None, [])
    assert "run_async" in load.reason


def test_a_load_that_can_not_be_read_has_a_reason() -> None:
    load = only(measure_loads(result_of(), ("sever:5",), Loaded(up_to(1.0))))
    assert "is not a load scenario" in load.reason


@pytest.mark.parametrize("text", ["server:20:50ms", "peak:p99:50ms"])
def test_without_the_generator_there_is_no_verdict(text: str) -> None:
    launcher = Loaded(lambda asked: LoadTest(reasons=("absent",)))
    load = only(measure_loads(result_of(), (text,), launcher))
    assert (load.valid, load.tests, load.reason) == (None, (), "absent")


def test_a_worker_that_dies_is_a_reason_and_the_case_stays_measured() -> None:
    def die(asked: PutUnderLoad) -> LoadTest:
        raise WorkerError(Failure(kind="crash", phase="load", message="died"))

    result = measure_loads(result_of(), ("server:20:50ms", "offline"), Loaded(die))
    assert [load.reason for load in result.loads] == ["crash: died"] * 2
    assert result.status == "measured"


def after(count: int, answer: Answer, failure: Failure) -> Answer:
    """The worker fails at the test behind so many others."""
    asked_for: list[PutUnderLoad] = []

    def answer_or_fail(asked: PutUnderLoad) -> LoadTest:
        asked_for.append(asked)
        if len(asked_for) > count:
            raise WorkerError(failure)
        return answer(asked)

    return answer_or_fail


DIED = Failure(kind="crash", phase="load", message="died")


def test_a_search_that_a_failing_worker_ends_keeps_what_it_found() -> None:
    launcher = Loaded(after(3, up_to(83.0), DIED))
    load = only(measure_loads(result_of(), ("peak:p99:50ms",), launcher))
    # 70/s is VALID, 91/s INVALID twice; the next one was the last.
    assert [test.valid for test in load.tests] == [True, False, False]
    assert (load.valid, load.answer, load.reason) == (True, 0, "")
    assert load.beyond_per_s == pytest.approx(0.7 * 1.3 * CAPACITY, rel=1e-3)
    assert load.note.startswith("the search was stopped (crash: died), 30 % apart")


def test_a_search_that_a_failing_worker_ends_without_a_valid_rate_says_why() -> None:
    launcher = Loaded(after(2, up_to(0.0), DIED))
    load = only(measure_loads(result_of(), ("peak:p99:1ms",), launcher))
    assert [test.valid for test in load.tests] == [False, False]
    assert (load.valid, load.answer, load.reason) == (False, None, "crash: died")


def test_passes_are_due_until_every_load_is_there() -> None:
    result = result_of("offline", "server:20:50ms")
    wanted = {"load", "load:single-stream"}
    assert due(result, wanted) == ["load", "load:single-stream"]
    launcher = Loaded(up_to(1000.0))
    for name in due(result, wanted):
        result = carry_out(name, result, Means(launcher=launcher))
    assert [load.spec.text for load in result.loads] == [
        "offline", "server:20:50ms", "single-stream",
    ]  # fmt: skip
    assert due(result, wanted) == []
    assert missing_loads(result, ("offline", "peak:p99:1s")) == ["peak:p99:1s"]
    assert decode_result(encode_result(result), "here") == result


def test_logs_of_each_test_get_a_folder_of_their_own() -> None:
    launcher = Loaded(up_to(83.0))
    result = result_of()
    sampling = replace(result.case.sampling, load_logs="/kept")
    result = replace(result, case=replace(result.case, sampling=sampling))
    measure_loads(result, ("peak:p99:50ms",), launcher)
    folders = [asked.keep_logs for asked in launcher.asked]
    assert len(set(folders)) == len(folders)
    assert folders[0].startswith("/kept/")
    assert folders[0].endswith("/peak_p99_50ms/1")


def test_logs_of_models_that_read_alike_are_kept_apart() -> None:
    folders = set()
    for name in ("a/net", "a_net", "b/a/net", f"{'x' * 200}/net", f"{'y' * 200}/net"):
        launcher = Loaded(up_to(83.0))
        result = result_of()
        case = replace(
            result.case,
            model=replace(result.case.model, name=name),
            sampling=replace(result.case.sampling, load_logs="/kept"),
        )
        measure_loads(replace(result, case=case), ("offline",), launcher)
        folders |= {asked.keep_logs.split("/")[2] for asked in launcher.asked}
    assert len(folders) == 5
    assert all(len(folder) <= 120 for folder in folders)


def matrix_product(path: Path) -> Case:
    """A product of some ten milliseconds on one thread."""
    weight = np.linspace(-1, 1, 1024 * 1024, dtype=np.float32).reshape(1024, 1024)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    save(path, [node], shape=(512, 1024), weights=[numpy_helper.from_array(weight, "w")])
    return replace(
        case_of(path, inputs=(x_input((512, 1024)),)),
        sampling=Sampling(time_s=1.0, workers=1),
        session=SessionConfig(intra_op_num_threads=1),
    )


@pytest.mark.live
@pytest.mark.timed
def test_a_tenth_of_the_capacity_is_valid_and_four_times_is_invalid_for_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real session: the only test here that takes as long as a load must."""
    case = matrix_product(tmp_path / "m.onnx")
    launcher = ProcessLauncher()
    try:
        result = measure(case, launcher, tmp_path)
        assert result.failure is None
        samples = result.measurements[0].samples
        # Nothing but a machine that stood still for most of the test could make that INVALID.
        tenth = 0.1 * samples.count / (samples.sum_ns * 1e-9)
        gentle = f"server:{tenth:.1f}:5s:p90"
        # Four times what it does at its very best: no quiet moment can make that VALID.
        fourfold = 4.0 / (samples.min_ns * 1e-9)
        [good] = measure_loads(result, (gentle,), launcher).loads
        monkeypatch.setattr("pytest_ortbench.passes.load.numbers.plan.LEAST_S", 1.0)
        [bad] = measure_loads(result, (f"server:{fourfold:.1f}:100ms:p90",), launcher).loads
    finally:
        launcher.close()
    assert good.valid is True
    assert good.test is not None
    assert good.test.reasons == ()
    assert good.test.queries == good.test.requests == len(good.test.latencies_ns)
    assert min(good.test.latencies_ns) > 0
    assert good.test.duration_s >= 9.5
    assert bad.valid is False
    assert bad.test is not None
    assert set(bad.test.reasons) >= {
        "Performance constraints satisfied: NO",
        "Reduce target QPS to improve latency.",
    }
    assert bad.test.percentiles_ns["90"] > 100_000_000
    assert (good.callers, good.sessions) == (1, 1)
    assert good.total_threads == good.threads == 1


def pressed_after(tests: int, answer: Answer) -> Answer:
    """A user who ends the run during the test behind so many."""
    done: list[LoadTest] = []

    def answered(asked: PutUnderLoad) -> LoadTest:
        if len(done) == tests:
            raise KeyboardInterrupt
        done.append(answer(asked))
        return done[-1]

    return answered


def kept_by(loads: tuple[str, ...], answer: Answer) -> CaseResult:
    """What is known of a case whose loads a user ended."""
    result = result_of(*loads)
    kept = [result]
    with pytest.raises(KeyboardInterrupt):
        carry_out("load", result, Means(launcher=Loaded(answer)), keep=kept.append)
    return without(kept[-1], due(kept[-1], ["load"]), "stopped", interrupted=True)


def test_an_interrupted_search_keeps_the_tests_that_ended() -> None:
    whole = only(measure_loads(result_of(), ("peak:p99:50ms",), Loaded(up_to(60.0))))
    ended = len(whole.tests) - 1
    result = kept_by(("peak:p99:50ms",), pressed_after(ended, up_to(60.0)))
    load = only(result)
    assert load.interrupted
    assert [test.rate_per_s for test in load.tests] == [
        test.rate_per_s for test in whole.tests[:ended]
    ]
    assert load.test is not None
    assert load.test.rate_per_s == max(test.rate_per_s or 0 for test in load.tests if test.valid)
    assert load.test.latencies_ns == (1, 2, 3)
    assert load.note
    # What was not over is measured when the run is resumed, and replaces what was kept.
    assert due(result, ["load"]) == ["load"]
    assert only(decode_result(encode_result(result), "here")) == load
    again = only(measure_loads(result, ("peak:p99:50ms",), Loaded(up_to(60.0))))
    assert replace(again, tests=()) == replace(whole, tests=())


def test_an_interrupted_search_without_a_valid_rate_answers_nothing() -> None:
    load = only(kept_by(("peak:p99:50ms",), pressed_after(2, up_to(0.0))))
    assert (load.interrupted, load.valid, load.answer) == (True, None, None)
    assert load.reason == "stopped"


def test_an_interrupt_costs_nothing_of_the_loads_before() -> None:
    loads = ("server:20:50ms", "server:30:50ms")
    result = kept_by(loads, pressed_after(1, up_to(1000.0)))
    first, second = result.loads
    assert (first.valid, first.interrupted) == (True, False)
    assert (second.valid, second.interrupted) == (None, True)
    assert missing_loads(result, loads) == ["server:30:50ms"]
