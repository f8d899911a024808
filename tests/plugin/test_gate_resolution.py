"""A margin below what this machine's self-test resolved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.gate.measuring.resolution import check_margins
from pytest_ortbench.gate.measuring.trial_log import TrialLog
from pytest_ortbench.gate.numbers.looks import detectable_effect
from pytest_ortbench.gate.numbers.self_test import Trial
from pytest_ortbench.launch.machine import fingerprint

from .conftest import QUICK

pytestmark = pytest.mark.live

CASE = "new/native/cpu/b1"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialLog:
    """Trials of this machine: launches scatter by 1.5 %, so that 20 know a ratio to 0.67 %."""
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: str(tmp_path / "state"))
    made = TrialLog.of(fingerprint())
    seen = detectable_effect([-0.02, -0.01, 0.0, 0.01, 0.02] * 4)
    for _ in range(5):
        made.append(
            Trial(
                kind="equal",
                slowdown=0.0,
                model="m",
                verdict="same",
                detectable=seen,
                launches=20,
            )
        )
    return made


@pytest.mark.usefixtures("log")
def test_it_is_refused_before_anything_is_measured(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    model_file("new.onnx")
    model_file("old.onnx")
    result = pytester.runpytest(
        "new.onnx", *QUICK, "--ort-against=model:old.onnx", "--ort-gate=latency:0.6%"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--ort-gate: *{CASE} *0.600 %*0.665 %*0.665 %*.jsonl*"])
    assert not (pytester.path / "results").exists()


@pytest.mark.usefixtures("log")
def test_others_are_not() -> None:
    check_margins({CASE: 0.007, "other": None}, place="--ort-gate")
    with pytest.raises(UsageError) as raised:
        check_margins({CASE: 0.007, "other": 0.006}, place="--ort-gate")
    assert raised.value.place == "--ort-gate"
    assert " other " in raised.value.message


def test_without_a_self_test_that_can_be_read_nothing_is_refused(log: TrialLog) -> None:
    log.path.write_bytes(b"hello\n" + log.path.read_bytes())
    check_margins({CASE: 0.0001}, place="--ort-gate")
    log.path.unlink()
    check_margins({CASE: 0.0001}, place="--ort-gate")
