"""The start-up pass: which conditions, how often, which further shapes."""

# ruff: noqa: ARG002, ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out
from pytest_ortbench.passes.startup.facts import StartTrial, StartUps
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.passes.startup.run import further_shapes
from tests.execution.fakes import FakeLauncher
from tests.results_factory import make_case, make_result


class Starting(FakeLauncher):
    """Notes what it is asked; a provider that keeps engines finds them where they were built."""

    def __init__(self, *, keeps_engines: bool = False) -> None:
        super().__init__(lambda case, index: 1e6)
        self.keeps_engines = keeps_engines
        self.asked: list[StartUp] = []
        self.built: set[str] = set()
        self.fails_after = 1000

    def ask(self, question: StartUp, *, deadline: float) -> StartTrial:
        if len(self.asked) == self.fails_after:
            raise WorkerError(Failure(kind="timeout", phase="session", message="it took too long"))
        self.asked.append(question)
        engines = "none"
        if self.keeps_engines and question.engines:
            engines = "warm" if question.engines in self.built else "cold"
            self.built.add(question.engines)
        return StartTrial(
            page_cache=question.page_cache,
            engines=engines,
            import_ns=1,
            session_create_ns=2,
            first_inference_ns=3,
            again_ns=4,
        )


def spec(*shape: int) -> InputSpec:
    return InputSpec(name="x", type="tensor(float)", shape=shape, hint=ValueHint(kind="normal"))


CASE = replace(make_case(), inputs=(spec(1, 8),), sampling=Sampling(workers=3))


def started(launcher: Starting, case: Case = CASE, *others: Case) -> StartUps:
    means = Means(launcher=launcher, others=others)
    return carry_out("startup", make_result(case=case), means).start_ups


def test_every_turn_starts_a_process_with_cold_files_and_one_with_warm_ones() -> None:
    launcher = Starting()
    found = started(launcher)
    assert [trial.page_cache for trial in found.trials] == ["cold", "warm"] * 3
    assert all(question.case == CASE for question in launcher.asked)


def test_a_provider_that_keeps_engines_is_started_with_and_without_them() -> None:
    launcher = Starting(keeps_engines=True)
    found = started(launcher)
    states = [(trial.page_cache, trial.engines) for trial in found.trials]
    assert states == [("cold", "cold"), ("warm", "cold"), ("warm", "warm")] * 3
    # Built again in every turn; the folders are gone afterwards.
    folders = [question.engines for question in launcher.asked]
    assert len(set(folders)) == 6
    assert not any(Path(folder).exists() for folder in folders)


def test_a_runtime_that_sees_no_files_of_ours_keeps_no_engines() -> None:
    launcher = Starting(keeps_engines=True)
    started(launcher, replace(CASE, runtime=Runtime(label="far", shares_files=False)))
    assert {question.engines for question in launcher.asked} == {""}


def test_what_finished_before_a_failure_is_kept() -> None:
    launcher = Starting()
    launcher.fails_after = 3
    assert len(started(launcher).trials) == 3
    launcher = Starting()
    launcher.fails_after = 0
    assert started(launcher) == StartUps(reason="timeout: it took too long")


def test_further_shapes_are_those_of_cases_that_differ_in_sizes_only() -> None:
    larger = replace(CASE, batch=8, inputs=(spec(8, 8),))
    longer = replace(CASE, dims={"seq": 512}, inputs=(spec(1, 512),))
    others = [
        larger,
        longer,
        replace(larger, knobs={"threads": "1"}),
        replace(larger, runtime=Runtime(label="other")),
        replace(larger, variant=replace(CASE.variant, precision="fp16")),
        replace(larger, model=replace(CASE.model, name="another")),
        replace(CASE, seed=7),
        replace(larger, inputs=()),
    ]
    shapes = further_shapes(CASE, others)
    assert [(shape.label, shape.inputs) for shape in shapes] == [
        ("b8", larger.inputs),
        ("b1/seq:512", longer.inputs),
    ]
    launcher = Starting()
    started(launcher, CASE, *others)
    assert all(question.shapes == shapes for question in launcher.asked)


@pytest.mark.parametrize("converted", [False, True])
def test_external_data_are_those_of_the_file_that_is_measured(*, converted: bool) -> None:
    case = replace(CASE, model=replace(CASE.model, external_files=("weights.bin",)))
    variant = replace(case.variant, path=case.model.path)
    if converted:
        variant = replace(variant, path="/cache/made.onnx", external_files=("made.data",))
    launcher = Starting()
    started(launcher, replace(case, variant=variant))
    expected = ("made.data",) if converted else ("weights.bin",)
    assert {question.external_files for question in launcher.asked} == {expected}
