"""What failures say of themselves."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.outcome import PHASES, Failure


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_can_stand_after_while(phase: str) -> None:
    assert PHASES[phase].split()[0].endswith("ing")


def test_what_was_being_done_is_said_once() -> None:
    said = Failure(kind="timeout", phase="measure", message="took 300 s", tells_phase=True)
    assert said.doing == ""
    unsaid = Failure(kind="unsupported", phase="first", message="no running the first inference")
    assert unsaid.doing == "running the first inference"
    assert Failure(kind="error", phase="a-later-one", message="odd").doing == "a-later-one"
