"""``ortbench fleet run`` on machines whose disks are full, which are small file systems in memory.

It mounts them, so it needs root, and a kernel that lets it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.fleet.hosts import parcel
from tests.cli.test_fleet import (
    QUICK,
    _inventory,
    _local,
    _outcomes,
    _with_environment,
    project,  # noqa: F401
)

pytestmark = [pytest.mark.heavy, pytest.mark.needs("tmpfs"), pytest.mark.needs("network")]

#: Bytes of each disk. That of ``near`` is the tests' own.
DISKS = {"full": 64 << 10, "filling": 12 << 20, "small": 4 << 20}


@pytest.fixture
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    with ExitStack() as stack:
        places = {}
        for name, size in DISKS.items():
            place = places[name] = tmp_path_factory.mktemp(name)
            options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
            subprocess.run(["mount", *options], check=True)
            stack.callback(subprocess.run, ["umount", str(place)], check=True)
        yield places


def test_a_full_disk_is_a_row_with_its_reason_and_the_others_measure(
    tool: Callable[..., Any],
    project: Path,  # noqa: F811
    disks: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (disks["full"] / "of others").write_bytes(b"x" * DISKS["full"])
    near = project / "near"
    _with_environment(near, monkeypatch)
    hosts = {name: _local(place / "agreed") for name, place in disks.items()}
    inventory = _inventory(project, {**hosts, "near": _local(near)})
    # What an environment takes is believed for one of them only: another finds out.
    monkeypatch.setattr(parcel, "ROOM_BYTES", 0)
    (disks["small"] / "of others").write_bytes(b"x" * (DISKS["small"] - (600 << 10)))
    ended = tool("fleet", "run", "-i", inventory, "--poll=0.5", "--", "test_suite.py", *QUICK)
    outcomes = _outcomes(project)
    print(ended.out, {name: outcome.reason for name, outcome in outcomes.items()})
    assert {name: (outcome.state, outcome.stage) for name, outcome in outcomes.items()} == {
        "full": ("failed", "look"),
        "small": ("failed", "space"),
        "filling": ("failed", "environment"),
        "near": ("measured", None),
    }
    assert "No space left on device" in outcomes["full"].reason
    assert ended.code == 1
