"""What machines are asked to do, as Ansible reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_ortbench.fleet.hosts.play import write_play


def fetched(tasks: list[dict[str, Any]]) -> list[tuple[str, bool, bool]]:
    """Name, checksum and whether it must be there, of each file that is fetched."""
    asked = [task["ansible.builtin.fetch"] for task in tasks if "ansible.builtin.fetch" in task]
    return [
        (Path(file["dest"]).name, file["validate_checksum"], file["fail_on_missing"])
        for file in asked
    ]


def test_a_journal_that_grows_or_is_gone_meanwhile_ends_no_machine(tmp_path: Path) -> None:
    write_play(tmp_path, tag="T1", destination=tmp_path / "out", poll_s=1)
    assert fetched(json.loads((tmp_path / "poll.json").read_text())) == [
        ("journal.jsonl", False, False)
    ]
    (play,) = json.loads((tmp_path / "fleet.json").read_text())
    assert fetched(play["tasks"]) == [
        ("run.json", True, True),
        ("journal.jsonl", True, True),
    ]
