"""``ortbench watch``: a run while it measures, from its journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import DocumentError, OrtbenchError, UsageError
from pytest_ortbench.core.run import LATEST, Run
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.core.unusable_address import unusable_address
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.live import LiveRow, live_rows, render_live
from pytest_ortbench.store.documents import list_runs, load, resolve_run
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL

#: Seconds between two looks: a line of a journal is written once a case, which takes seconds.
EVERY_S = 1.0
#: Where its page is served.
_HOST = "127.0.0.1"
#: Seconds after which a browser asks for the page again.
PAGE_EVERY_S = 2


@click.command(
    epilog=epilog(
        "ortbench watch",
        "ortbench watch --once",
        "ortbench watch --http=8765",
        "ortbench watch RUN --results=DIR",
    )
)
@click.argument("run", default=LATEST, metavar="[RUN]")
@click.option("--once", is_flag=True, help="Show what is there, and end.")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Show it as a page at this port of loopback instead, until Ctrl-C; 0 for a free port.",
)
@results_option
def command(run: str, once: bool, port: int | None, results: Path) -> int:
    """Show each case of RUN when it is finished, and end with the run.

    RUN is the newest one, finished or not, if none is named. A run that was killed looks like one
    whose next case takes long: how long ago the last one was written stands there.
    """
    if port is not None:
        if once:
            raise UsageError(
                "--once ends at once, but the page of --http stays until Ctrl-C",
                place="--once, --http",
                hint="Leave out one of the two options",
            )
        return _serve(lambda: _path(run, results), port)
    path = _path(run, results)
    told = 0
    while True:
        current = _read(path)
        for row in live_rows(current, first=told):
            told += 1
            say(f"[{told}/{current.expected}] {_line(row)}")
        if current.finished_at is not None:
            say(f"{one_line(current.run_id)} is finished: {told} of {current.expected} cases")
            return ExitCode.FINE
        if once:
            try:
                ago = format_amount(_written_s(path), "s")
            except FileNotFoundError:
                continue  # its document has just taken the journal's place
            say(
                f"{one_line(current.run_id)}: {told} of {current.expected} cases, the last line "
                f"was written {ago} ago"
            )
            return ExitCode.FINE
        time.sleep(EVERY_S)


def _path(run: str, results: Path) -> Path:
    return _newest(results) if run == LATEST else resolve_run(run, results)


def _written_s(path: Path) -> float:
    """Return the seconds since a file was written to."""
    return max(0.0, time.time() - path.stat().st_mtime)


def _newest(results: Path) -> Path:
    """Return the newest run that can be read, finished or not.

    Raises:
        UsageError: if there is none.
    """
    what = "contains no run" if results.exists() else "does not exist"
    for stored in list_runs(results):
        if stored.state in ("finished", "unfinished"):
            return stored.path
        warn(f"note: {stored.path} was skipped: {stored.problem}")
        what = "contains no run that can be read"
    raise UsageError(
        f"the folder {str(results)!r} {what}",
        place="--results",
        hint="If your runs are in another folder, name it with --results=DIR. If not, start a run, "
        "e.g. 'pytest MODEL.onnx'",
    )


def _read(path: Path) -> Run:
    """Read a run: its document, which takes the place of the journal at the end, if it is there."""
    document = path.with_name(DOCUMENT)
    if path.name != JOURNAL:
        return load(path)
    try:
        return load(document if document.exists() else path)
    except DocumentError:
        # It was removed between the two looks.
        return load(document)


def _line(row: LiveRow) -> str:
    if row.failure:
        return f"{row.case}: {row.failure}: {row.message}"
    number = f"{row.metric} {row.value}" if row.value else "not measured"
    flags = " ".join(row.flags)
    return f"{row.case}: {number}{f'  {flags}' if flags else ''}"


def _serve(find: Callable[[], Path], port: int) -> int:
    """Serve the page of a run on loopback until Ctrl-C.

    Args:
        find: Gives the run; it is asked at each request, since a newer run may have begun.
        port: 0 for a free one.

    Raises:
        UsageError: if the port can't be listened on, or there is no run.
    """
    find()
    try:
        server = ThreadingHTTPServer((_HOST, port), _handler(find))
    except OSError as error:
        raise unusable_address(_HOST, port, error, port_place="--http") from error
    try:
        say(f"http://{_HOST}:{server.server_port}/ shows the run; Ctrl-C ends it")
        server.serve_forever()
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.server_close()
    return ExitCode.FINE


def _handler(find: Callable[[], Path]) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        """Answers one path with the page of the run, and every other one with 404."""

        def do_GET(self) -> None:
            # A page of another site must not reach it by a name that leads to loopback.
            if self.headers.get("Host", "").rpartition(":")[0] not in (_HOST, "localhost"):
                self.send_error(403)
                return
            if self.path != "/":
                self.send_error(404)
                return
            try:
                path = find()
                run = _read(path)
                written_s = _written_s(path) if run.finished_at is None else None
                body = render_live(run, written_s=written_s).encode()
            except (OrtbenchError, OSError):
                # Between two looks a run may be removed, or turn into its document.
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Refresh", str(PAGE_EVERY_S))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing: each look of a browser would be a line in the terminal."""

    return Page
