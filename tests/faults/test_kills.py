"""Runs that are killed at random moments lose nothing that was stored, and double nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from .kill_trial import RECORD, trial


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "kills",
    [pytest.param(3, marks=pytest.mark.live), pytest.param(20, marks=pytest.mark.heavy)],
)
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path, kills: int) -> None:
    _assert_owed(trial(tmp_path, kills), kills)


def test_the_record_of_twenty_kills_is_what_is_owed() -> None:
    _assert_owed(json.loads(RECORD.read_text(encoding="utf-8")), 20)


def _assert_owed(record: dict[str, Any], kills: int) -> None:
    assert len(record["kills"]) == kills
    assert [step for step in record["kills"] if step["lost"]] == []
    # A machine may be through before the kill comes, but not each time.
    assert any("ended" not in step for step in record["kills"])
    assert record["cases"] == record["wanted"]
    assert record["resumed"] == len(record["stored"])
    assert record["left"] == []
