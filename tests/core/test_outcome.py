"""What failures say of themselves."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.outcome import PHASES, Failure


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_can_stand_after_while(phase: str) -> None:
    assert PHASES[phase].split()[0].endswith("ing")


def test_what_was_being_done_is_said_once() -> None:
    said = Failure(kind="timeout", phase="measure", message="still measuring after 300 s")
    assert said.doing == ""
    unsaid = Failure(kind="unsupported", phase="first", message="no kernel for Conv")
    assert unsaid.doing == "running the first inference"
    assert Failure(kind="error", phase="a-later-one", message="odd").doing == "a-later-one"
