"""``ortbench fleet``: one suite on the machines of an inventory, and one comparison."""

from __future__ import annotations

import re
import secrets
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import click

from pytest_ortbench.cli import compare
from pytest_ortbench.cli.arguments import FiniteRange, epilog, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome
from pytest_ortbench.fleet.hosts.inventory import read_inventory
from pytest_ortbench.fleet.hosts.measuring import RECORD, Fleet, read_record
from pytest_ortbench.fleet.hosts.parcel import Parcel, project_files, wheels_of
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL

#: Folder of such runs below the results; each has one of its tag, and in it one for each machine.
FOLDER = "fleet"
#: Clocks that are apart by more than this are remarked.
_CLOCK_S = 60.0
#: Characters of a reason in the table; fleet.json has more of it.
_LONGEST_REASON = 200
_TAG = re.compile(r"[0-9A-Za-z-]+\Z")


@click.group(
    epilog=epilog(
        "ortbench fleet run --inventory=hosts.yml -- suites --ort-providers=all",
        "ortbench fleet run --inventory=hosts.yml --resume",
    )
)
def command() -> None:
    """Measure on many machines, and compare them."""


@command.command(
    "run",
    epilog=epilog(
        "ortbench fleet run --inventory=hosts.yml -- suites --ort-providers=all",
        "ortbench fleet run --inventory=hosts.yml --limit=rack -- model.onnx --ort-providers=all",
        "ortbench fleet run --inventory=hosts.yml --resume",
    ),
)
@click.argument("arguments", metavar="[-- PYTEST-ARGUMENT...]", nargs=-1)
@click.option(
    "--inventory",
    "-i",
    type=click.Path(path_type=Path),
    required=True,
    help="Inventory of Ansible: hosts, groups, and variables ortbench_…",
)
@click.option(
    "--limit",
    "pattern",
    default="all",
    show_default=True,
    help="Which machines of it: a name, a group, or a pattern of Ansible's.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="latest",
    metavar="[TAG]",
    help="Go on with an earlier run: measure on the machines that did not end, the rest of theirs.",
)
@click.option(
    "--send",
    "further",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File or folder that goes along though git ignores it. Repeatable.",
)
@click.option(
    "--wheel",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Wheel of this package for the machines; by default what is installed here is packed.",
)
@click.option(
    "--wheelhouse",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of wheels for machines without network: nothing else is installed.",
)
@click.option(
    "--poll",
    type=FiniteRange(min=0.5, max=600),
    default=10.0,
    show_default=True,
    help="Seconds between two looks at a machine.",
)
@results_option
def run_fleet(
    arguments: tuple[str, ...],
    inventory: Path,
    pattern: str,
    resume: str | None,
    further: tuple[Path, ...],
    wheel: Path | None,
    wheelhouse: Path | None,
    poll: float,
    results: Path,
) -> int:
    """Run pytest with these arguments on every machine of an inventory, and compare them.

    The files of the project that git knows, and those that the arguments name, are sent to each
    machine, which makes an environment and measures by itself. A machine that can't be reached or
    dies is a row with its reason.
    """
    hosts = read_inventory(inventory, pattern)
    fleet_run = _resumed(resume, arguments, results) if resume else _new(arguments)
    waiting = [host for host in hosts if not _is_measured(fleet_run, host)]
    folder = results / FOLDER / fleet_run.tag
    if waiting:
        _measure(fleet_run, waiting, inventory, folder, further, wheel, wheelhouse, poll)
    say(table([_row(fleet_run, host) for host in hosts], header=_HEADER))
    sides = [_side(folder, host, fleet_run.outcomes[host.name]) for host in hosts]
    return _compared(fleet_run, hosts, [side for side in sides if side], folder)


_HEADER = ["machine", "state", "cases", "stage", "why"]


def _new(arguments: tuple[str, ...]) -> FleetRun:
    if not arguments:
        raise UsageError(
            "nothing is asked of the machines",
            place="ortbench fleet run",
            hint="Add what pytest takes behind --: -- suites --ort-providers=all",
        )
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return FleetRun(tag=f"{now}-{secrets.token_hex(2)}", arguments=arguments)


def _resumed(tag: str, arguments: tuple[str, ...], results: Path) -> FleetRun:
    """Return the record of an earlier run.

    Raises:
        UsageError: if there is none, or the arguments are others.
    """
    parent = results / FOLDER
    if tag == "latest":
        tags = sorted(path.parent.name for path in parent.glob(f"*/{RECORD}"))
        if not tags:
            raise UsageError(
                f"{str(parent)!r} holds no run of a fleet", place="--resume", hint="Leave it out"
            )
        tag = tags[-1]
    if not _TAG.match(tag):
        raise UsageError(
            f"{tag!r} is no tag", place="--resume", hint=f"One is a folder of {parent}"
        )
    earlier = read_record(parent / tag)
    if arguments and arguments != earlier.arguments:
        raise UsageError(
            f"{tag} ran with other arguments: {' '.join(earlier.arguments)}",
            place="--resume",
            hint="Leave them out, or start a new run without --resume",
        )
    return replace(earlier, tag=tag)


def _is_measured(fleet_run: FleetRun, host: Host) -> bool:
    outcome = fleet_run.outcomes.get(host.name)
    return outcome is not None and outcome.state == "measured"


def _measure(
    fleet_run: FleetRun,
    hosts: Sequence[Host],
    inventory: Path,
    folder: Path,
    further: Sequence[Path],
    wheel: Path | None,
    wheelhouse: Path | None,
    poll_s: float,
) -> None:
    with OwnFolder("wheel") as made:
        parcel = Parcel(
            files=tuple(project_files(Path.cwd(), fleet_run.arguments, further)),
            wheels=wheels_of(wheel, wheelhouse, made),
            offline=wheelhouse is not None,
            arguments=fleet_run.arguments,
        )
        warn(
            f"{fleet_run.tag}: {counted(len(hosts), 'machine')}, "
            f"{counted(len(parcel.files), 'file')}, at most {format_amount(parcel.size, 'bytes')} "
            "for each"
        )
        Fleet(
            fleet_run,
            hosts,
            inventory=inventory,
            folder=folder.absolute(),
            tell=lambda name, text: warn(f"{name} {text}"),
            poll_s=poll_s,
        ).measure(parcel)


def _row(fleet_run: FleetRun, host: Host) -> list[str]:
    outcome = fleet_run.outcomes[host.name]
    cases = f"{outcome.cases} of {outcome.expected}" if outcome.run_id else ""
    remarks = [textwrap.shorten(outcome.reason, _LONGEST_REASON, placeholder=" …")]
    if outcome.clock_s is not None and abs(outcome.clock_s) > _CLOCK_S:
        ahead = "ahead" if outcome.clock_s > 0 else "behind"
        remarks.append(f"its clock is {abs(outcome.clock_s):.0f} s {ahead}")
    if outcome.state == "measured" and outcome.code:
        remarks.append(f"pytest ended with exit status {outcome.code}")
    return [host.name, outcome.state, cases, outcome.stage or "", "; ".join(filter(None, remarks))]


def _side(folder: Path, host: Host, outcome: HostOutcome) -> str:
    """Return what ``ortbench compare`` calls the document of a machine, empty if there is none."""
    paths = [folder / host.name / name for name in (DOCUMENT, JOURNAL)]
    there = [path for path in paths if path.exists()]
    return f"{host.called}={there[0]}" if there and outcome.run_id else ""


def _compared(
    fleet_run: FleetRun, hosts: Sequence[Host], sides: Sequence[str], folder: Path
) -> int:
    ended = all(_is_measured(fleet_run, host) for host in hosts)
    if not ended:
        say(f"go on with: ortbench fleet run --inventory=… --resume={fleet_run.tag}")
    if not sides:
        return ExitCode.NOTHING
    say(f"documents: {folder}")
    if len(sides) > 1:
        arguments = ["--by=machine", *sides]
        say("ortbench compare " + " ".join(arguments) + "\n")
        compare.command.main(arguments, standalone_mode=False)
    return ExitCode.FINE if ended else ExitCode.LIMIT_FAILED
