"""What became of machines, as a table, and the comparison of those that measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ortbench.cli import compare
from pytest_ortbench.cli.terminal import ExitCode, say, table
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome
from pytest_ortbench.fleet.hosts.returned import short_reason

#: Clocks that are apart by more than this are remarked.
_CLOCK_S = 60.0
#: Characters of a reason in the table; fleet.json has more of it.
_LONGEST_REASON = 200
_HEADER = ["machine", "state", "cases", "stage", "why"]


def show_outcomes(
    run: FleetRun, hosts: Sequence[Host], folder: Path, costs: Mapping[str, Any]
) -> int:
    """Show a row for each machine, then their comparison; return the exit status.

    A machine that was not measured to the end, or whose pytest failed, fails the whole.

    Args:
        run: What became of the machines.
        hosts: Them, in the order of the rows.
        folder: Where their documents lie.
        costs: Values of :func:`compare.cost_options`.
    """
    say(table([_row(run.outcomes[host.name], host) for host in hosts], header=_HEADER))
    sides = [side for host in hosts if (side := _side(folder, host, run.outcomes[host.name]))]
    if not sides:
        return ExitCode.NOTHING
    say(f"documents: {folder}")
    if len(sides) > 1:
        _compare(sides, costs)
    outcomes = [run.outcomes[host.name] for host in hosts]
    failed = any(outcome.state != "measured" or outcome.code for outcome in outcomes)
    return ExitCode.LIMIT_FAILED if failed else ExitCode.FINE


def _compare(sides: Sequence[str], costs: Mapping[str, Any]) -> None:
    """Compare documents as ``ortbench compare`` does, and print how that is called."""
    priced = [f"--{name}={value}" for name, value in costs.items() if value is not None]
    arguments = ["--by=machine", *priced, *sides]
    say("ortbench compare " + " ".join(arguments) + "\n")
    if len(sides) > compare.MOST_RUNS:
        say(f"compare {compare.MOST_RUNS} of them at a time")
        return
    compare.command.main(arguments, standalone_mode=False)


def _row(outcome: HostOutcome, host: Host) -> list[str]:
    cases = f"{outcome.cases} of {outcome.expected}" if outcome.run_id else ""
    remarks = [short_reason(outcome.reason, _LONGEST_REASON)]
    if outcome.clock_s is not None and abs(outcome.clock_s) > _CLOCK_S:
        ahead = "ahead" if outcome.clock_s > 0 else "behind"
        remarks.append(f"its clock is {abs(outcome.clock_s):.0f} s {ahead}")
    if outcome.state == "measured" and outcome.code:
        remarks.append(f"pytest ended with exit status {outcome.code}")
    return [host.name, outcome.state, cases, outcome.stage or "", "; ".join(filter(None, remarks))]


def _side(folder: Path, host: Host, outcome: HostOutcome) -> str:
    """Return what ``ortbench compare`` calls the document of a machine, empty if there is none."""
    path = folder / host.name / outcome.file
    return f"{host.called}={path}" if outcome.run_id and path.exists() else ""
