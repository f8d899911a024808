"""How the standard pass spends the time of a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.engine.standard import measure
from tests.results_factory import make_case

from .clocked import ClockedLauncher


def test_a_reference_that_is_too_slow_takes_nothing_of_the_case_s_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a model that runs well ends as timeout, still starting the interpreter after 0 s."""
    launcher = ClockedLauncher(monkeypatch, each_s=0.01, start_s=1.0)
    launcher.no_reference_after_s = 300.0
    result = measure(make_case(), launcher, tmp_path)  # type: ignore[arg-type]  # the fake answers what is asked
    assert result.status == "measured"
    assert len(result.measurements) == 3
    assert result.accuracy is not None
    assert result.accuracy.reason == "no reference: too late"
