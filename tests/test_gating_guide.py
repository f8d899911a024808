"""The error rates of the gate in its page are what the trials in results/self-test say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ortbench.gate.measuring.trial_log import TrialLog
from pytest_ortbench.gate.numbers.self_test import EQUAL, tally

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[1]
TRIALS = ROOT / "results" / "self-test" / "two-threads.jsonl"
GUIDE = (ROOT / "docs" / "concepts" / "gate.md").read_text(encoding="utf-8")


def test_the_table_is_that_of_the_trials() -> None:
    block = re.search(
        r"```console\n\$ ortbench (gate --self-test --minutes=0 .*)\n([^`]*)```", GUIDE
    )
    assert block is not None
    ended = subprocess.run(
        [sys.executable, "-m", "pytest_ortbench.cli", *block[1].split()],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    assert ended.stdout == block[2]


def test_the_trials_are_on_two_threads_and_raise_no_alarm_on_equal_sides() -> None:
    trials = TrialLog(TRIALS).read()
    assert {trial.threads for trial in trials} == {2}
    assert tally(trials, EQUAL).slower <= 1
