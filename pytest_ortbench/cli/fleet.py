"""``ortbench fleet``: one suite on the machines of an inventory, and one comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_ortbench.cli import compare
from pytest_ortbench.cli.arguments import FiniteRange, epilog, results_option
from pytest_ortbench.cli.fleet_folder import FOLDER, new_or_earlier
from pytest_ortbench.cli.fleet_shard import shard_fleet
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome, new_tag
from pytest_ortbench.fleet.hosts.inventory import read_inventory
from pytest_ortbench.fleet.hosts.measuring import Fleet
from pytest_ortbench.fleet.hosts.parcel import Parcel, project_files, wheels_of
from pytest_ortbench.fleet.hosts.records import write_record
from pytest_ortbench.fleet.hosts.returned import collect, short_reason

#: Clocks that are apart by more than this are remarked.
_CLOCK_S = 60.0
#: Characters of a reason in the table; fleet.json has more of it.
_LONGEST_REASON = 200
_HEADER = ["machine", "state", "cases", "stage", "why"]

_inventory_option = click.option(
    "--inventory",
    "-i",
    type=click.Path(path_type=Path),
    required=True,
    help="Inventory of Ansible: hosts, groups, and variables ortbench_…",
)
_limit_option = click.option(
    "--limit",
    "pattern",
    default="all",
    show_default=True,
    help="Machines of the inventory to use: a name, a group, or a pattern of Ansible's.",
)


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
@_inventory_option
@_limit_option
@click.option(
    "--resume",
    is_flag=False,
    flag_value="latest",
    metavar="[TAG]",
    help="Continue an earlier run: measure what is missing, on the machines that did not finish.",
)
@click.option(
    "--send",
    "further",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File or folder to send although git ignores it. Repeatable.",
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
    help="Seconds between two checks of a machine.",
)
@compare.cost_options
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
    **costs: Any,
) -> int:
    """Run pytest with these arguments on every machine of an inventory, and compare them.

    The files of the project that git knows, and those that the arguments name, are sent to each
    machine, which makes an environment and measures by itself. A machine that can't be reached or
    dies is a row with its reason.
    """
    compare.terms_of(**costs)
    hosts = read_inventory(inventory, pattern)
    fleet_run = new_or_earlier(FleetRun, resume, arguments, results, place="fleet run")
    waiting = [host for host in hosts if not _is_measured(fleet_run, host)]
    folder = results / FOLDER / fleet_run.tag
    if waiting:
        _measure(fleet_run, waiting, inventory, folder, further, wheel, wheelhouse, poll)
    code = show_outcomes(fleet_run, hosts, folder, costs)
    if not all(_is_measured(fleet_run, host) for host in hosts):
        say(f"to continue this run: ortbench fleet run --inventory=… --resume={fleet_run.tag}")
    return code


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


@command.command(
    "collect",
    epilog=epilog(
        "ortbench fleet collect results",
        "ortbench fleet collect artifacts --machines=machines.toml --rate=500/s --p99=50ms",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path))
@compare.cost_options
@results_option
def collect_documents(folder: Path, results: Path, **costs: Any) -> int:
    """Take the documents of machines out of FOLDER, and compare them.

    NAME.json, or the newest run below NAME/, is that of the machine NAME: a shared folder that jobs
    of Slurm or Kubernetes wrote into, or artifacts of a CI service. They are read as data and
    copied; a file that is no run document is a row with the reason.
    """
    compare.terms_of(**costs)
    run = FleetRun(tag=new_tag(), arguments=())
    kept = results / FOLDER / run.tag
    collect(folder, kept, run)
    write_record(run, kept)
    hosts = [Host(name=name) for name in run.outcomes]
    return show_outcomes(run, hosts, kept, costs)


@command.command("clean", epilog=epilog("ortbench fleet clean --inventory=hosts.yml"))
@_inventory_option
@_limit_option
def clean_hosts(inventory: Path, pattern: str) -> int:
    """Remove what runs keep on the machines of an inventory: environments, files, caches.

    A machine that still measures is left alone, and so are other files in the folder.
    """
    hosts = read_inventory(inventory, pattern)
    left = Fleet(
        FleetRun(tag="", arguments=()),
        hosts,
        inventory=inventory,
        folder=Path(),
        tell=lambda name, text: warn(f"{name} {text}"),
        poll_s=1,
    ).clean()
    rows = [
        [host.name, "left" if host.name in left else "clean", left.get(host.name, "")]
        for host in hosts
    ]
    say(table(rows, header=["machine", "state", "why"]))
    return ExitCode.LIMIT_FAILED if left else ExitCode.FINE


command.add_command(shard_fleet)


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
        say(f"at most {compare.MOST_RUNS} documents can be compared at a time")
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
