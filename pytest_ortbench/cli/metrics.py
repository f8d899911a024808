"""``ortbench metrics``: the newest numbers of a results folder, for Prometheus to collect."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.unusable_address import unusable_address
from pytest_ortbench.report.entries import ShownRun, shown_run
from pytest_ortbench.report.prometheus import registry_of
from pytest_ortbench.store.newest import NewestResults

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Runs that are looked at by default; older ones may have cases that no newer one has.
MOST_RUNS = 20
#: Where the numbers are.
_PATHS = ("/", "/metrics")


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
    if not results.is_dir():
        raise UsageError(
            f"the folder {str(results)!r} does not exist",
            place="RESULTS",
            hint="If pytest wrote its runs to another folder, run 'ortbench metrics FOLDER' with "
            "its path. If there is no run yet, run e.g. 'pytest MODEL.onnx' first",
        )
    newest = NewestResults(results, most=most)
    if not newest.runs():
        warn(
            f"note: {results} contains no run that can be read; there are no numbers until it does"
        )
    reading = threading.Lock()

    def shown() -> list[ShownRun]:
        # Requests come in threads of their own.
        with reading:
            return [shown_run(run) for run in newest.runs()]

    registry = registry_of(shown, place="metrics")
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, UnicodeError) as error:
        raise unusable_address(host, port, error) from error
    server.set_app(_at_its_paths(server.get_app()))
    try:
        say(f"http://{host}:{server.server_port}/metrics serves {results}; Ctrl-C ends it")
        thread.join()
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.shutdown()
        server.server_close()
    return ExitCode.FINE


def _at_its_paths(app: WSGIApplication | None) -> WSGIApplication:
    """Return an application that answers with 404 where the numbers are not."""
    assert app is not None

    def answered(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in _PATHS:
            return app(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"The numbers are at /metrics\n"]

    return answered
