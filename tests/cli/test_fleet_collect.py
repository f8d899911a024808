"""``ortbench fleet collect``: documents that jobs left in a folder, as one comparison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import FleetRun
from pytest_ortbench.fleet.hosts.records import read_record
from pytest_ortbench.store.documents import load
from pytest_ortbench.store.folder import write_document
from tests.cli.conftest import Ended
from tests.cli.test_compare import of

COSTS = ("--machines=machines.toml", "--rate=5/s", "--p99=10s")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A folder that two machines wrote into, and prices of both."""
    (tmp_path / "machines.toml").write_text(
        "[machines.desk]\nprice = 1000\n[machines.rack]\nprice = 2000\n"
    )
    for name, latency_ms in (("desk", 1.0), ("rack", 0.5)):
        write_document(of(name, latency_ms), tmp_path / "jobs" / f"{name}.json")
    return tmp_path / "jobs"


def test_documents_are_copied_and_compared_with_their_costs(
    jobs: Path, tool: Callable[..., Ended], tmp_path: Path
) -> None:
    ended = tool("fleet", "collect", jobs, *COSTS)
    assert ended.code == 0, ended.err
    copies = {path.parent.name: load(path) for path in tmp_path.glob("results/fleet/*/*/run.json")}
    assert {name: run.machine.host for name, run in copies.items()} == {
        "desk": "desk",
        "rack": "rack",
    }
    bare = tool("fleet", "collect", jobs)
    assert bare.code == 0
    prices = (" 1000 ", " 2000 ")
    assert [price in ended.out for price in prices] == [True, True]
    assert [price in bare.out for price in prices] == [False, False]


def test_a_file_that_is_no_document_does_not_keep_the_others_from_it(
    jobs: Path, tool: Callable[..., Ended], tmp_path: Path
) -> None:
    (jobs / "edge.json").write_text("{}")
    assert tool("fleet", "collect", jobs).code == 1
    (record,) = tmp_path.glob("results/fleet/*/fleet.json")
    outcomes = read_record(record.parent, FleetRun).outcomes
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "desk": "measured",
        "edge": "failed",
        "rack": "measured",
    }


def test_costs_are_checked_before_anything_is_collected(
    jobs: Path, tool: Callable[..., Ended], tmp_path: Path
) -> None:
    ended = tool("fleet", "collect", jobs, "--rate=5/s")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert not (tmp_path / "results").exists()
