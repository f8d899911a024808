"""``ortbench metrics``: the newest numbers of a results folder, for Prometheus to collect."""

from __future__ import annotations

import threading
from importlib.resources import files
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.unusable_address import unusable_address
from pytest_ortbench.report.entries import ShownRun, shown_run
from pytest_ortbench.report.prometheus import registry_of
from pytest_ortbench.store.newest import NewestResults

#: Runs that are looked at by default; older ones may have cases that no newer one has.
MOST_RUNS = 20


@click.command(
    epilog=epilog(
        "ortbench metrics",
        "ortbench metrics results/ --port=9100",
        "ortbench metrics --dashboard > dashboard.json",
    ),
)
@click.argument(
    "results", type=click.Path(path_type=Path, file_okay=False), default=Path("results")
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9100,
    show_default=True,
    help="Port to listen on; 0 for a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Whoever can reach it can read every number: unless it is "
    "loopback, put a proxy with a password before it.",
)
@click.option(
    "--runs",
    "most",
    type=click.IntRange(1, 1000),
    default=MOST_RUNS,
    show_default=True,
    help="How many of the newest runs are read.",
)
@click.option(
    "--dashboard",
    is_flag=True,
    help="Print a dashboard for Grafana, of these numbers and of ortbench serve, and end.",
)
def command(results: Path, port: int, host: str, most: int, dashboard: bool) -> int:
    """Serve the newest numbers of RESULTS in Prometheus' format, until it is interrupted.

    Of each case of each machine the newest result counts, that of a run in progress too. The
    folder is read again at each request.
    """
    if dashboard:
        say(files("pytest_ortbench.report").joinpath("dashboard.json").read_text("utf-8").rstrip())
        return ExitCode.FINE
    refuse_without("prometheus_client", "prometheus", place="metrics")
    from prometheus_client import start_http_server

    newest = NewestResults(results, most=most)
    reading = threading.Lock()

    def shown() -> list[ShownRun]:
        # Requests come in threads of their own.
        with reading:
            return [shown_run(run) for run in newest.runs()]

    registry = registry_of(shown, place="metrics")
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, UnicodeError) as error:
        raise unusable_address(host, port, error) from error
    try:
        say(f"http://{host}:{server.server_port}/metrics serves {results}; Ctrl-C ends it")
        thread.join()
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.shutdown()
        server.server_close()
    return ExitCode.FINE
