"""Reference outputs lie on the disk as long as a case that is still to come needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case
from pytest_ortbench.execution.execution import Execution
from pytest_ortbench.launch.reference import reference_case, reference_file
from pytest_ortbench.planning.matrix import Planned
from tests.execution.fakes import FakeLauncher
from tests.execution.test_passes import Listener
from tests.results_factory import make_case, make_run


class Writing(FakeLauncher):
    """Writes a file where the reference outputs of a case belong, once for equal cases."""

    def __init__(self) -> None:
        super().__init__(lambda *_: 1_000_000)
        self.written: list[Path] = []

    def reference(self, case: Case, folder: Path) -> Path:
        file = reference_file(reference_case(case), folder)
        if not file.exists():
            file.write_bytes(b"outputs")
            self.written.append(file)
        return file


@pytest.fixture
def launcher() -> Writing:
    return Writing()


def cases() -> list[Planned]:
    """Two cases of one model and one of another, in this order: one, other, one again."""
    cases = (make_case(), make_case(model="other"), make_case(provider="cuda"))
    return [Planned(case=case) for case in cases]


def test_a_file_goes_with_the_last_case_that_needs_it(launcher: Writing) -> None:
    first, other, again = planned = cases()
    engine = Execution(
        launcher=launcher, variants=Variants(launcher=launcher, folder=Path("unused")),
        header=make_run(), listener=Listener(),
        planned={entry.case.key: entry for entry in planned},
    )  # fmt: skip
    there = []
    try:
        for entry in (first, other, again):
            engine.result(entry)
            there.append([file.exists() for file in launcher.written])
    finally:
        engine.close()
    assert there == [[True], [True, False], [False, False]]
    assert len(launcher.written) == 2


def test_a_case_that_nobody_planned_keeps_nothing(launcher: Writing) -> None:
    engine = Execution(
        launcher=launcher, variants=Variants(launcher=launcher, folder=Path("unused")),
        header=make_run(), listener=Listener(),
    )  # fmt: skip
    try:
        for entry in cases():
            engine.result(entry)
        assert [file.exists() for file in launcher.written] == [False, False, False]
    finally:
        engine.close()
