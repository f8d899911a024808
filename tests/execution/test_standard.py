"""How the standard pass spends the time of a case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, InputSpec, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.core.outcome import CHANGED_FILE, CaseResult, Failure, OutputCheck, Placement
from pytest_ortbench.core.placement import judge_placement
from pytest_ortbench.core.run import NO_HYPERVISOR, NO_QUOTA, Machine
from pytest_ortbench.execution import standard
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.case_questions import CheckOutputs, ProfilePlacement
from tests.results_factory import make_case

from .clocked import ClockedLauncher, ClockedWorker
from .fakes import FakeLauncher, FakeWorker


def measure(case: Case, launcher: Any, folder: Path) -> CaseResult:
    """The standard pass with a launcher that has as much of one as it is asked for."""
    return standard.measure(case, launcher, folder)


def test_a_reference_that_is_too_slow_takes_nothing_of_the_case_s_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a model that runs well ends as timeout, still starting the interpreter after 0 s."""
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    launcher.no_reference_after_s = 300.0
    result = measure(make_case(), launcher, tmp_path)
    assert result.status == "measured"
    assert len(result.measurements) == 3
    assert result.accuracy is not None
    assert result.accuracy.reason.endswith(": too late")


def _samples(result: CaseResult) -> list[int]:
    return [each.samples.count for each in result.measurements]


def test_every_worker_has_its_share_of_a_time_that_is_too_short_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last worker runs into the timeout, and the samples of the others go with it."""
    launcher = ClockedLauncher(monkeypatch, each_s=0.1, start_s=3.0)
    began = launcher.clock.now
    case = make_case(sampling=Sampling(time_s=290.0, timeout_s=300.0, target=0.0))
    result = measure(case, launcher, tmp_path)
    assert (result.status, result.failure) == ("measured", None)
    assert [each.stop for each in result.measurements] == ["timeout"] * 3
    assert min(_samples(result)) > 0.9 * max(_samples(result)) > 600
    assert result.accuracy is not None
    assert launcher.clock.now - began <= 300.0


def test_inferences_of_eight_seconds_are_measured_with_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker also profiles and compares, which takes nine inferences more."""
    launcher = ClockedLauncher(monkeypatch, each_s=8.0, start_s=2.0)
    result = measure(make_case(), launcher, tmp_path)
    assert (result.status, result.failure) == ("measured", None)
    assert len(result.measurements) == 3
    assert min(_samples(result)) >= 1
    assert sum(_samples(result)) >= 5
    assert (result.placement is None, result.accuracy is None) == (False, False)


def test_one_worker_keeps_time_to_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=1.0, start_s=1.0)
    sampling = Sampling(time_s=50.0, timeout_s=60.0, target=0.0, workers=1)
    result = measure(make_case(sampling=sampling), launcher, tmp_path)
    assert result.status == "measured"
    assert result.accuracy is not None
    assert sum(_samples(result)) > 15


def test_a_late_worker_without_time_leaves_what_the_others_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    launcher.start_of = lambda index: 1000.0 if index == 2 else 1.0
    result = measure(make_case(), launcher, tmp_path)
    assert (result.status, result.failure) == ("measured", None)
    assert [each.worker for each in result.measurements] == [0, 1]
    assert {flag.name: flag.detail for flag in result.flags}["FEWER-WORKERS"] == "2 of 3"


def test_without_a_finished_worker_it_is_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=60.0, start_s=1.0)
    result = measure(make_case(), launcher, tmp_path)
    assert result.status == "timeout"
    assert result.measurements == ()


def test_a_late_worker_that_crashes_is_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    case = make_case()
    crash = Failure(kind="crash", phase="session", message="SIGSEGV")
    launcher.fails, launcher.fails_from = {case.model.name: crash}, 1
    result = measure(case, launcher, tmp_path)
    assert (result.status, result.failure) == ("crash", crash)
    assert "FEWER-WORKERS" not in {flag.name for flag in result.flags}


def _spoiled(
    monkeypatch: pytest.MonkeyPatch, kind: str, *phases: str, only_worker: int | None = None
) -> ClockedLauncher:
    """Workers whose answers to these questions are a failure."""
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    opened = launcher.open

    def fail(phase: str) -> Any:
        raise WorkerError(Failure(kind=kind, phase=phase, message=f"no {phase}", hint="Run again"))

    def spoiled(case: Case, *, worker: int, deadline: float | None) -> ClockedWorker:
        made = opened(case, worker=worker, deadline=deadline)
        if only_worker in (None, len(launcher.opened) - 1):
            for phase in phases:
                monkeypatch.setattr(made, phase, lambda *_, of=phase: fail(of))
        return made

    monkeypatch.setattr(launcher, "open", spoiled)
    return launcher


@pytest.mark.parametrize("kind", ["timeout", "crash", "out_of_memory", "error"])
def test_a_profile_that_fails_leaves_what_was_measured(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = _spoiled(monkeypatch, kind, "profile", only_worker=0)
    result = measure(make_case(), launcher, tmp_path)
    assert (result.status, result.failure) == ("measured", None)
    assert len(result.measurements) == 3
    assert result.placement is not None
    reason = f"{kind} while profiling placement: no profile. Run again"
    assert result.placement.reason == reason
    assert judge_placement(result.placement).is_unjudged
    summary = summarise(result)
    assert "latency_p50" in summary.quantities
    assert {"placement", "time_on_provider"} <= summary.missing.keys()
    # In a fresh worker, since the one that failed is of no more use.
    assert result.accuracy is not None
    assert result.accuracy.outputs


def test_no_worker_is_started_to_compare_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)

    def too_long(worker: ClockedWorker, _: ProfilePlacement) -> Placement:
        worker.spend(1e9, "profile")
        raise AssertionError

    monkeypatch.setattr(ClockedWorker, "profile", too_long)
    result = measure(make_case(), launcher, tmp_path)
    assert (result.status, len(result.measurements), len(launcher.opened)) == ("measured", 1, 1)
    assert result.accuracy is not None
    assert (result.accuracy.outputs, bool(result.accuracy.reason)) == ((), True)


def test_an_accuracy_that_fails_leaves_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measure(make_case(), _spoiled(monkeypatch, "timeout", "accuracy"), tmp_path)
    assert (result.status, len(result.measurements)) == ("measured", 3)
    assert judge_placement(result.placement).is_good
    assert result.accuracy is not None
    assert (result.accuracy.outputs, result.accuracy.reason) == (
        (),
        "timeout while comparing outputs: no accuracy. Run again",
    )


def test_memory_that_can_t_be_read_leaves_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measure(make_case(), _spoiled(monkeypatch, "error", "memory"), tmp_path)
    assert (result.status, len(result.measurements)) == ("measured", 3)
    assert "peak_rss" in summarise(result).missing


@pytest.mark.parametrize("kind", ["unavailable", "unsupported", "fallback"])
def test_a_profile_that_shows_another_work_than_asked_leaves_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measure(make_case(), _spoiled(monkeypatch, kind, "profile"), tmp_path)
    assert result.status == kind
    assert not summarise(result).quantities.keys() & {"latency_p50"}


def test_a_cut_profile_is_no_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    launcher.placement_of = lambda case: Placement(  # noqa: ARG005
        provider="CUDAExecutionProvider",
        executed={},
        seen={"CPUExecutionProvider": 3},
        cut_after=10,
    )
    result = measure(make_case(), launcher, tmp_path)
    assert result.status == "measured"
    assert " 10 " in summarise(result).missing["placement"]


@pytest.mark.parametrize(
    ("provider", "precision", "size", "step"),
    [
        ("cuda", "native", "N", "--ort-precisions=fp16"),
        ("cuda", "fp16", "N", "--ort-precisions=native"),
        ("qnn", "native", 3, "--ort-precisions=fp16"),
        ("qnn", "native", "N", "--ort-fix-dims=off"),
        ("qnn", "native", "", "fixed sizes"),
    ],
)
def test_a_provider_that_took_no_node_gets_the_step_for_its_case(
    provider: str,
    precision: str,
    size: int | str,
    step: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    case = replace(make_case(precision=precision), provider=parse_provider(provider))
    declared = TensorInfo(name="x", type="tensor(float)", shape=(size, 4))
    spec = InputSpec(name="x", type="tensor(float)", shape=(3, 4), hint=ValueHint(kind="normal"))
    case = replace(case, model=replace(case.model, inputs=(declared,)), inputs=(spec,))
    launcher.placement_of = lambda case: Placement(
        provider=case.provider.name, executed={"CPUExecutionProvider": 1}
    )
    failure = measure(case, launcher, tmp_path).failure
    assert failure is not None
    assert failure.kind == "fallback"
    assert "(1 node)" in failure.message
    assert step in failure.hint


def _empty(worker: ClockedWorker, question: CheckOutputs) -> OutputCheck:
    return OutputCheck(run=question.run, nonfinite=0, constant=False, digest="d", empty=True)


@pytest.mark.parametrize(
    ("size", "path", "status"),
    [(0, "", "unsupported"), (0, "/data/x.npy", "measured"), (3, "", "measured")],
)
def test_nothing_is_timed_where_empty_inputs_give_empty_outputs(
    size: int, path: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs alone do not tell: a detector that finds nothing has worked all the same.

    Who names an empty input in a file gets the time of the call, with a flag.
    """
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    monkeypatch.setattr(ClockedWorker, "check", _empty)
    hint = ValueHint(kind="normal")
    spec = InputSpec(name="x", type="tensor(float)", shape=(size, 4), hint=hint, path=path)
    result = measure(replace(make_case(), inputs=(spec,)), launcher, tmp_path)
    assert result.status == status
    flagged = status == "measured"
    assert ("EMPTY" in [flag.name for flag in flags_of(result)]) == flagged


@pytest.mark.parametrize(
    ("declared", "option"),
    [((0, 4), ""), ((2, 0), ""), (("N", 4), "--ort-dims=N:"), (None, "--ort-inputs=")],
)
def test_a_size_that_the_model_fixes_is_not_to_be_set(
    declared: tuple[int | str, ...] | None,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No option changes it: another export does."""
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    monkeypatch.setattr(ClockedWorker, "check", _empty)
    case = make_case()
    fed = tuple(size if isinstance(size, int) else 0 for size in declared or (0, 4))
    model = replace(
        case.model, inputs=(TensorInfo(name="x", type="tensor(float)", shape=declared),)
    )
    spec = InputSpec(name="x", type="tensor(float)", shape=fed, hint=ValueHint(kind="normal"))
    result = measure(replace(case, model=model, inputs=(spec,)), launcher, tmp_path)
    assert result.failure is not None
    assert result.failure.hint
    assert ("--ort" in result.failure.hint) == bool(option)
    assert option in result.failure.hint


def test_what_was_measured_before_a_file_changed_is_not_kept(tmp_path: Path) -> None:
    launcher = FakeLauncher(lambda *_: 1e6)
    case = make_case()
    failure = Failure(kind="error", phase=CHANGED_FILE, message="m.onnx changed")
    launcher.fails, launcher.fails_from = {case.model.name: failure}, 1
    result = measure(case, launcher, tmp_path)
    assert len(launcher.opened) == 1
    assert (result.status, result.failure) == ("error", failure)
    assert result.measurements == ()
    assert (result.placement, result.accuracy, result.energy) == (None, None, None)


@pytest.mark.parametrize("phase", ["check", "block", "memory", "profile", "accuracy"])
def test_a_file_that_changed_fails_the_case_whenever_it_is_found_out(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other trouble behind the timed blocks leaves the durations, this one does not."""
    failure = Failure(kind="error", phase=CHANGED_FILE, message="m.onnx changed")

    def fails(*_: object) -> None:
        raise WorkerError(failure)

    monkeypatch.setattr(FakeWorker, phase, fails)
    result = measure(make_case(), FakeLauncher(lambda *_: 1e6), tmp_path)
    assert (result.status, result.failure) == ("error", failure)
    assert (result.measurements, result.placement, result.accuracy) == ((), None, None)


@pytest.mark.parametrize(
    ("virtual", "provider", "is_shared"),
    [("KVM", "cpu", True), (NO_HYPERVISOR, "cpu", False), ("KVM", "cuda", False)],
)
def test_samples_say_whether_the_machine_is_shared(
    virtual: str,
    provider: str,
    is_shared: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(host="vm", stable={"virtualisation": virtual, "cpu_quota": NO_QUOTA})
    monkeypatch.setattr(standard, "_machine", lambda: machine)
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    result = measure(make_case(provider=provider), launcher, tmp_path)
    assert [each.samples.on_shared_machine for each in result.measurements] == [is_shared] * 3
