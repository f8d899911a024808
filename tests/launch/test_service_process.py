"""A service that a run starts: what it leaves behind, what it says when it fails."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.service_process import ServiceProcess, Services
from tests.results_factory import make_case
from tests.serving.started import free_port

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]

#: Answers what is asked, and does what a test wants before.
SERVICE = """
import http.server, os, subprocess, sys
{before}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/end":
            print("out of luck", flush=True)
            os._exit(7)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session={apart})
open("child", "w").write(str(child.pid))
"""


def command(port: int, before: str = "") -> list[str]:
    return [sys.executable, "-c", SERVICE.format(before=before), str(port)]


@contextmanager
def services(folder: Path) -> Iterator[tuple[Services, Case]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v2/models/m/infer"
    case = make_case()
    case = replace(case, provider=replace(case.provider, options={"url": url}))
    with closing(Services()) as made:
        made.expect(url, lambda _: command(port), folder)
        yield made, case


def ended(process: ServiceProcess) -> None:
    """Have a service end by itself."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        urllib.request.urlopen(f"http://127.0.0.1:{process.port}/end", timeout=60)
    assert wait_until(lambda: process.has_ended)


def wait_until(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


@pytest.mark.parametrize(("apart", "kill"), [(False, False), (True, True)])
def test_what_a_service_has_started_ends_with_it(tmp_path: Path, apart: bool, kill: bool) -> None:
    port = free_port()
    line = command(port, CHILD.format(apart=apart))
    with closing(ServiceProcess(line, port, folder=tmp_path)) as process:
        child = psutil.Process(int((tmp_path / "child").read_text()))
        if kill:
            process.start_again(kill=True)
            assert wait_until(lambda: not child.is_running())
            child = psutil.Process(int((tmp_path / "child").read_text()))
    assert wait_until(lambda: not child.is_running())


def test_what_a_service_has_printed_and_how_it_ended_is_told(tmp_path: Path) -> None:
    port = free_port()
    with closing(ServiceProcess(command(port), port, folder=tmp_path)) as process:
        assert process.read_log() == ""
        ended(process)
        lines = process.read_log().splitlines()
    assert lines[0] == "out of luck"
    assert "7" in lines[-1]


def test_a_service_that_has_ended_is_started_for_the_next_case(tmp_path: Path) -> None:
    with services(tmp_path) as (made, case):
        first = made.of(case)
        assert first is not None
        assert made.of(case) is first
        ended(first)
        again = made.of(case)
        assert again is not None
        assert again.pid != first.pid
        assert again.use().processes == 1


def test_a_port_that_somebody_has_is_refused(tmp_path: Path) -> None:
    with services(tmp_path) as (made, case):
        service = made.of(case)
        assert service is not None
        with pytest.raises(WorkerError) as caught:
            ServiceProcess(command(service.port), service.port, folder=tmp_path)
    assert caught.value.failure.kind == "unavailable"


def test_a_service_that_fails_at_its_start_is_told_with_what_it_printed_last(
    tmp_path: Path,
) -> None:
    port = free_port()
    with pytest.raises(WorkerError) as caught:
        ServiceProcess(command(port, "raise KeyError(17)"), port, folder=tmp_path)
    assert caught.value.failure.kind == "unavailable"
    assert "KeyError: 17" in caught.value.failure.message


#: A run that is killed while its service answers.
RUN = """
import sys, time
from pathlib import Path
from pytest_ortbench.launch.service_process import ServiceProcess
service = ServiceProcess(sys.argv[2:], int(sys.argv[1]), folder=Path("."))
print(service.pid, flush=True)
time.sleep(600)
"""


def test_a_service_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(port), *command(port)],
        cwd=tmp_path, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as run:  # fmt: skip
        assert run.stdout is not None
        service = psutil.Process(int(run.stdout.readline()))
        run.kill()
    gone, _ = psutil.wait_procs([service], timeout=60)
    assert gone == [service]
