"""What ``ortbench fleet`` ends with, by what became of machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.cli.fleet import show_outcomes
from pytest_ortbench.cli.terminal import ExitCode
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome
from pytest_ortbench.store.folder import DOCUMENT, write_document
from tests.cli.test_compare import of


@pytest.mark.parametrize(
    ("state", "code", "ends"),
    [
        ("measured", 0, ExitCode.FINE),
        # Documents that somebody left in a folder: what their pytest ended with is not known.
        ("measured", None, ExitCode.FINE),
        ("measured", 1, ExitCode.LIMIT_FAILED),
        ("partial", None, ExitCode.LIMIT_FAILED),
    ],
)
def test_a_suite_that_failed_on_one_machine_failed(
    state: str, code: int | None, ends: ExitCode, tmp_path: Path
) -> None:
    outcomes = {}
    for name, own, status in (("desk", "measured", 0), ("rack", state, code)):
        write_document(of(name, 1.0), tmp_path / name / DOCUMENT)
        outcomes[name] = HostOutcome(
            host=name, state=own, code=status, cases=2, expected=2, run_id=f"run-{name}"
        )
    run = FleetRun(tag="T1", arguments=("suites",), outcomes=outcomes)
    hosts = [Host(name=name) for name in outcomes]
    assert show_outcomes(run, hosts, tmp_path, {}) == ends


def test_the_row_of_a_machine_has_both_ends_of_a_long_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "pip: " + "/a/path\n" * 200 + "ENOSPC"
    outcome = HostOutcome(host="desk", state="failed", stage="environment", reason=reason)
    run = FleetRun(tag="T1", arguments=("suites",), outcomes={"desk": outcome})
    assert show_outcomes(run, [Host(name="desk")], tmp_path, {}) == ExitCode.NOTHING
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "environment" in line)
    assert ("pip: " in row, row.endswith("ENOSPC")) == (True, True)
