"""``ortbench fleet shard``: one suite over the workers of a Dask cluster, as one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from pytest_ortbench.cli.arguments import FiniteRange, epilog, results_option
from pytest_ortbench.cli.fleet_folder import FOLDER, new_or_earlier
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted
from pytest_ortbench.fleet.hosts.cluster import Certificates, Cluster
from pytest_ortbench.fleet.hosts.facts import ShardedRun
from pytest_ortbench.fleet.hosts.parcel import project_files
from pytest_ortbench.fleet.hosts.sharding import Sharding, refuse_mixed
from pytest_ortbench.launch.machine import commit
from pytest_ortbench.store.folder import DOCUMENT, write_document

_HEADER = ["worker", "machine", "models", "cases", "interrupted", "failed"]


@click.command(
    "shard",
    epilog=epilog(
        "ortbench fleet shard --scheduler=tcp://10.0.0.1:8786 -- suites --ort-providers=all",
        "ortbench fleet shard --scheduler=tls://10.0.0.1:8786 --tls-ca=ca.pem --tls-cert=me.pem "
        "--tls-key=me.key -- suites",
        "ortbench fleet shard --scheduler=tcp://10.0.0.1:8786 --resume",
    ),
)
@click.argument("arguments", metavar="[-- PYTEST-ARGUMENT...]", nargs=-1)
@click.option(
    "--scheduler",
    required=True,
    metavar="ADDRESS",
    help="Dask's scheduler: tcp://HOST:PORT or tls://HOST:PORT. Whoever reaches it can run code "
    "on all that speak to it.",
)
@click.option("--tls-ca", type=click.Path(dir_okay=False, exists=True), help="Authority (PEM).")
@click.option("--tls-cert", type=click.Path(dir_okay=False, exists=True), help="Own certificate.")
@click.option(
    "--tls-key", type=click.Path(dir_okay=False, exists=True), help="Key of the certificate."
)
@click.option(
    "--mixed",
    type=click.Choice(["refuse", "apart"]),
    default="refuse",
    show_default=True,
    help="Machines that are not alike: refuse them, or write one document of each kind.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="latest",
    metavar="[TAG]",
    help="Continue an earlier run: measure the models that it lacks.",
)
@click.option(
    "--send",
    "further",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File or folder to send although git ignores it. Repeatable.",
)
@click.option(
    "--folder",
    default="~/.ortbench-fleet",
    show_default=True,
    help="Folder on the workers in which all files are kept.",
)
@click.option(
    "--wait",
    "wait_s",
    type=FiniteRange(min=1),
    default=300.0,
    show_default=True,
    help="Seconds to wait for a worker while none is connected.",
)
@results_option
def shard_fleet(
    arguments: tuple[str, ...],
    scheduler: str,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    mixed: str,
    resume: str | None,
    further: tuple[Path, ...],
    folder: str,
    wait_s: float,
    results: Path,
) -> int:
    """Divide a suite over the workers of a Dask cluster, by model, and write one document.

    Each machine runs one worker with the resource ORTBENCH=1. Both sides of a comparison are
    measured by the same worker. What a lost worker did not finish is measured by another one.
    """
    certificates = _certificates(
        tls_ca, tls_cert, tls_key, is_needed=urlsplit(scheduler).scheme == "tls"
    )
    run = new_or_earlier(ShardedRun, resume, arguments, results, place="fleet shard")
    place = results / FOLDER / run.tag
    sharding = Sharding(run, place, warn)
    files = project_files(Path.cwd(), run.arguments, further)
    apart = mixed == "apart"
    if sharding.left() or not run.models:
        with Cluster(
            scheduler, certificates=certificates, folder=folder, tell=warn, wait_s=wait_s
        ) as cluster:
            refuse_mixed(cluster.facts(), apart=apart)
            warn(f"{run.tag}: {counted(len(cluster.workers()), 'worker')}")
            sharding.measure(cluster, files)
    merged = sharding.merged(apart=apart, commit=commit(Path.cwd()))
    say(table(_rows(sharding.run, merged), header=_HEADER))
    return _ended(sharding, merged, results)


def _certificates(
    ca: str | None, cert: str | None, key: str | None, *, is_needed: bool
) -> Certificates | None:
    if ca and cert and key:
        return Certificates(ca=ca, cert=cert, key=key)
    given = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    missing = [option for option, file in given.items() if not file]
    named = [option for option, file in given.items() if file]
    if named:
        raise UsageError(
            f"TLS needs an authority, a certificate and its key, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not given",
            place="fleet shard",
            hint=f"If {cert} contains the key, too, add {in_shell([f'--tls-key={cert}'])}. If not, "
            "add --tls-key=FILE with the file of the key"
            if missing == ["--tls-key"]
            else f"Add {' and '.join(f'{option}=FILE' for option in missing)}"
            + ("" if is_needed else f". To do without TLS, leave {' and '.join(named)} out"),
        )
    return None


def _rows(run: ShardedRun, merged: Sequence[Run]) -> list[list[str]]:
    """Return a row for each worker, and one for what none of them had."""
    hosts = {
        shard.name: shard.machine.host for each in merged for shard in each.shards if shard.machine
    }
    cases = Counter(result.shard for each in merged for result in each.cases)
    rows = []
    for worker in sorted({shard.worker for shard in run.shards}):
        own = [shard for shard in run.shards if shard.worker == worker]
        states = Counter(shard.state for shard in own)
        host = dict.fromkeys(hosts[shard.name] for shard in own if shard.name in hosts)
        numbers = (states["measured"], sum(cases[shard.name] for shard in own))
        others = (states["interrupted"], states["failed"])
        rows.append([worker, ", ".join(host), *map(str, numbers), *map(str, others)])
    return rows


def _ended(sharding: Sharding, merged: Sequence[Run], results: Path) -> int:
    run = sharding.run
    for shard in run.shards:
        if shard.state != "measured":
            say(f"{shard.state}: {', '.join(shard.models)}: {shard.reason}")
    left = sharding.left()
    if left:
        say(f"to continue this run: ortbench fleet shard --scheduler=… --resume={run.tag}")
    if not merged:
        return ExitCode.NOTHING
    for each in merged:
        path = results / each.run_id / DOCUMENT
        write_document(each, path)
        say(f"{path}: {len(each.cases)} of {counted(each.expected, 'case')}")
    return ExitCode.FINE if sharding.passed() else ExitCode.LIMIT_FAILED
