"""Results of an earlier run that get a further pass: it is measured on the files of today."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case
from pytest_ortbench.execution.execution import Execution
from pytest_ortbench.planning.matrix import Planned
from tests.results_factory import make_case, make_result, make_run

from .fakes import FakeLauncher, FakeWorker
from .test_passes import Listener


class Opening(FakeLauncher):
    """Its workers have no meter, which the energy pass finds out by opening one."""

    def __init__(self) -> None:
        super().__init__(lambda case, index: 1e6)

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        opened.opened = replace(opened.opened, impossible={"energy": "no driver"})
        return opened


def _moved(case: Case, folder: str) -> Case:
    return replace(
        case,
        model=replace(case.model, path=f"{folder}/m.onnx"),
        variant=replace(case.variant, path=f"{folder}/v.onnx"),
    )


def _engine(launcher: FakeLauncher, earlier: Case, *passes: str) -> Execution:
    finished = {earlier.key: make_result(case=earlier)}
    return Execution(
        launcher=launcher, variants=Variants(launcher=launcher, folder=Path("unused")),
        header=make_run(), listener=Listener(), finished=finished,
        passes={earlier.key: set(passes)},
    )  # fmt: skip


@pytest.mark.parametrize("later", [False, True], ids=["at once", "asked for later"])
def test_a_pass_that_is_due_opens_the_files_where_they_lie_now(later: bool) -> None:
    """The models may have moved, and the earlier paths are of files that are gone."""
    launcher = Opening()
    then, now = _moved(make_case(), "/then"), _moved(make_case(), "/now")
    engine = _engine(launcher, then, *(() if later else ("energy",)))
    if later:
        assert engine.result(Planned(case=now)).case == now
    result = engine.result(Planned(case=now), *(("energy",) if later else ()))
    [opened] = launcher.opened
    assert opened.case == now
    assert result.case == now
    assert result.measurements == make_result(case=then).measurements
    assert engine.resumed == 1
    engine.close()


def test_without_a_pass_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    then, now = _moved(make_case(), "/then"), _moved(make_case(), "/now")
    engine = _engine(Opening(), then)
    # Making a variant takes minutes, and nobody would open it.
    monkeypatch.setattr(Execution, "prepare", lambda self, planned: pytest.fail("prepared"))
    assert engine.result(Planned(case=now)) == make_result(case=now)
    engine.close()


def test_a_result_of_another_file_is_measured_again() -> None:
    launcher = Opening()
    then, now = _moved(make_case(), "/then"), _moved(make_case(), "/now")
    other = replace(now, variant=replace(now.variant, digest="00" * 32))
    engine = _engine(launcher, then, "energy")
    result = engine.result(Planned(case=other))
    assert engine.resumed == 0
    assert result.case.variant == other.variant
    assert {opened.case.variant.path for opened in launcher.opened} == {"/now/v.onnx"}
    engine.close()


def test_no_pass_measures_another_variant_than_the_one_that_was_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has to be made again, by tools that make another file of it now."""
    launcher = Opening()
    then = _moved(make_case(), "/then")
    unmade = replace(then, variant=replace(then.variant, path="", digest="", size_bytes=0))
    again = replace(then, variant=replace(then.variant, path="/now/v.onnx", digest="00" * 32))
    monkeypatch.setattr(Execution, "prepare", lambda self, planned: again)
    engine = _engine(launcher, then, "energy", "soak")
    result = engine.result(Planned(case=unmade))
    assert launcher.opened == []
    assert engine.resumed == 1
    assert result.measurements == make_result(case=then).measurements
    assert result.energy is not None
    assert result.energy.reason.startswith("error: ")
    assert result.soak is not None
    assert result.soak.reason == result.energy.reason
    engine.close()


def test_nothing_of_a_stored_case_is_started() -> None:
    """A journal that somebody else wrote: whatever it says, the planned case runs."""
    launcher = Opening()
    now = _moved(make_case(), "/now")
    planted = replace(
        now,
        runtime=replace(now.runtime, command=("/bin/sh", "-c", "true")),
        session=replace(now.session, custom_ops=("/tmp/x.so",)),
    )
    engine = _engine(launcher, planted, "energy")
    engine.result(Planned(case=now))
    assert engine.resumed == 0
    assert launcher.opened
    for opened in launcher.opened:
        assert (opened.case.runtime, opened.case.session) == (now.runtime, now.session)
    engine.close()
