"""A service that is started for a run on loopback, and ended with it."""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from pytest_ortbench.core import python_profilers
from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.descendants import MARK, end_marked
from pytest_ortbench.core.errors import WorkerError, says
from pytest_ortbench.core.failures import case_error, case_failure
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.launch import app_under_profiler
from pytest_ortbench.launch.ending import Ending, ending, read_log, tail
from pytest_ortbench.launch.native_text import readable

#: A service reads its model and builds engines before it answers.
_START_S = 300.0
#: It may answer requests and close connections; then it is killed.
_END_S = 30.0
_LOOK_S = 0.05
_PROBE_S = 5.0
#: Where the Open Inference Protocol says whether requests should come; 503 there is "not yet".
_READY = "/v2/health/ready"
_NOT_YET = 503
_HOST = "127.0.0.1"
#: Seconds that it has for this once the run is gone, which ended nothing because it was killed.
_POLITE_S = 10

#: Waits for a byte, which releases it, or for the end of the pipe.
_WATCH = f"""
import os, signal, sys, time
if not sys.stdin.buffer.read(1):
    def end(number):
        (os.killpg if hasattr(os, "killpg") else os.kill)(int(sys.argv[1]), number)
    try:
        end(signal.SIGTERM)
        for _ in range({_POLITE_S}):
            time.sleep(1)
            end(0)
        end(getattr(signal, "SIGKILL", signal.SIGTERM))
    except OSError:
        pass
"""
#: Runs the file that is named first, without its folder on the path.
_RUN_FILE = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"


class Guard:
    """A process that ends a service once this one is gone, unless it is released.

    It waits at the far end of a pipe that only this process holds.

    Args:
        pid: The service, which leads a group of its own.
    """

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Let the service be; safe to repeat."""
        with suppress(OSError, ValueError):
            self._process.communicate(b".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    """What a service and the processes that it started have used, at one moment.

    Attributes:
        cpu_s: Processor time since they started, in the mode of users and of the system.
        resident_bytes: Resident memory of all of them.
        processes: How many there are.
    """

    cpu_s: float
    resident_bytes: int
    processes: int


def app_command(path: Path, name: str, runtime: Runtime, port: int) -> list[str]:
    """Return what serves an ASGI application of the user's in a runtime.

    Args:
        path: Its Python file.
        name: What it is called there.
        runtime: Whose Python runs it; it has uvicorn.
        port: Where on loopback.
    """
    python = list(runtime.command) or [sys.executable]
    place = ["--host", _HOST, "--port", str(port), "--app-dir", str(path.parent)]
    quiet = ["--no-access-log", "--log-level", "warning"]
    return [*python, "-m", "uvicorn", f"{path.stem}:{name}", *place, *quiet]


def profiled_command(
    command: Sequence[str], profiler: str, found: Path, *, warm_up: int, rounds: int
) -> list[str]:
    """Return what serves an application with a profiler of Python around it.

    Args:
        command: From :func:`app_command`.
        profiler: Name of the profiler.
        found: File for what it finds.
        warm_up: Requests before it begins.
        rounds: Requests that it looks at.
    """
    at = command.index("-m")
    counts = (profiler, str(found), str(warm_up), str(rounds))
    own = (app_under_profiler.__file__, python_profilers.__file__, *counts)
    return [*command[:at], "-c", _RUN_FILE, *own, *command[at + 2 :]]


class ServiceProcess:
    """A service that answers.

    Args:
        command: What starts it.
        port: Where it is to answer on loopback.
        folder: Where it is started.
        environment: Variables that differ from ours.
        start_s: How long it may take until it is ready.

    Raises:
        WorkerError: ``unavailable`` if it does not start, with the end of what it printed.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        *,
        folder: Path,
        environment: dict[str, str] | None = None,
        start_s: float = _START_S,
    ) -> None:
        _require_free(port)
        self.port = port
        self._command = tuple(command)
        self._own = OwnFolder("service")
        self._log = self._own.path / "log"
        self._mark = uuid.uuid4().hex
        self._folder = folder
        self._environment = {**os.environ, **(environment or {}), MARK: self._mark}
        self._start_s = start_s
        self._process = self._started()
        try:
            self._wait(start_s)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, whoever ended it."""
        return self._process.poll() is not None

    def wait(self, within_s: float) -> Ending | None:
        """Return how it ended; ``None`` if it still runs.

        Args:
            within_s: How long it may take for this.
        """
        with suppress(subprocess.TimeoutExpired):
            return ending(self._process.wait(within_s))
        return None

    def read_log(self) -> str:
        """Return the end of what it has printed and, of one that is gone, how it ended."""
        told, code = read_log(self._log), self._process.poll()
        return told if code is None else f"{told.rstrip()}\nThe service {ending(code)}.\n"

    def use(self) -> ProcessUse:
        """Return what it has used so far.

        Raises:
            WorkerError: ``crash`` if it is gone.
        """
        try:
            own = psutil.Process(self.pid)
            members = [own, *own.children(recursive=True)]
            times = [member.cpu_times() for member in members]
            return ProcessUse(
                cpu_s=sum(one.user + one.system for one in times),
                resident_bytes=sum(member.memory_info().rss for member in members),
                processes=len(members),
            )
        except psutil.NoSuchProcess as error:
            raise self._failure("it ended while requests were sent to it", kind="crash") from error

    def start_again(self, *, kill: bool) -> float:
        """End it and start it again, and return the seconds until it was ready again.

        Args:
            kill: Whether it is killed, with all that it has started; else it may answer what it
                took.

        Raises:
            WorkerError: ``unavailable`` if it does not start again.
        """
        began = time.monotonic()
        if kill:
            self._process.kill()
        self._end()
        self._process = self._started()
        self._wait(self._start_s)
        return time.monotonic() - began

    @property
    def command(self) -> tuple[str, ...]:
        """What has started it."""
        return self._command

    def start_as(self, command: Sequence[str]) -> None:
        """End it, and start it by another command.

        Args:
            command: What starts it from now on.

        Raises:
            WorkerError: ``unavailable`` if it does not start.
        """
        self._command = tuple(command)
        self.start_again(kill=False)

    def close(self) -> None:
        """End it: politely first; safe to repeat."""
        self._end()
        self._own.close()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        self._guard = Guard(process.pid)
        return process

    def _end(self) -> None:
        """End it, and what it has started and left behind."""
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.pid).children(recursive=True)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for member in below:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        end_marked(self._mark)
        self._guard.release()

    def _wait(self, start_s: float) -> None:
        until = time.monotonic() + start_s
        while not self._is_ready():
            code = self._process.poll()
            if code is not None:
                printed = readable(read_log(self._log).strip().rpartition("\n")[2])
                why = f". It printed last: {printed}" if printed else ""
                raise self._failure(f"it {ending(code)} before it answered{why}")
            if time.monotonic() > until:
                raise self._failure(f"it was not ready within {start_s:g} s")
            time.sleep(_LOOK_S)

    def _is_ready(self) -> bool:
        """Whether it answers, and does not say that it is not ready."""
        connection = http.client.HTTPConnection(_HOST, self.port, timeout=_PROBE_S)
        try:
            connection.request("GET", _READY)
            return connection.getresponse().status != _NOT_YET
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _failure(self, what: str, *, kind: str = "unavailable") -> WorkerError:
        log = tail(read_log(self._log))
        printed = "Read what it printed, below 'Native log:' in the failure of the test. "
        failure = case_failure(
            f"the service can't be measured: {what}",
            f"{printed if log else ''}To see all that it says, start it by hand: "
            f"{shlex.join(self._command)}",
            kind=kind,
            phase="start",
        )
        return WorkerError(replace(failure, log_tail=log))


def _require_free(port: int) -> None:
    """Refuse a port where something else would be measured.

    Raises:
        WorkerError: ``unavailable`` if somebody listens there.
    """
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        other = port % 65535 + 1 if port >= 1024 else 8011  # lower ones are the system's
        raise case_error(
            f"the port {port} of {_HOST} can't be used for the service. "
            f"{says('The system', os.strerror(error.errno) if error.errno else str(error))}",
            f"Choose another port, e.g. --ort-serve-port={other}",
            kind="unavailable",
            phase="start",
        ) from error


class Services:
    """Services that a run starts when a case first needs one, and keeps until it ends.

    One at a time has a port: where another one is needed there, the first is ended.
    """

    def __init__(self) -> None:
        self._expected: dict[str, tuple[Callable[[Runtime], list[str]], Path]] = {}
        self._running: dict[int, tuple[tuple[str, str], ServiceProcess]] = {}

    def expect(self, url: str, command: Callable[[Runtime], list[str]], folder: Path) -> None:
        """Learn what starts the service behind an address.

        Args:
            url: The address, as the provider option of its cases has it.
            command: Takes the runtime that it is to run in.
            folder: Where it is started.
        """
        self._expected[url] = (command, folder)

    def of(self, case: Case) -> ServiceProcess | None:
        """Return the service of a case, started if it is not there; ``None`` if it has none.

        Raises:
            WorkerError: ``unavailable`` if it does not start.
        """
        url, runtime = case.provider.options.get("url", ""), case.runtime
        if url not in self._expected:
            return None
        port = urlsplit(url).port or 0
        wanted = (url, runtime.label)
        running = self._running.get(port)
        if running is not None and running[0] == wanted and not running[1].has_ended:
            return running[1]
        if running is not None:
            del self._running[port]
            running[1].close()
        if not runtime.shares_files:
            raise case_error(
                "the service would run on this machine, but the runtime "
                f"{runtime.label!r} measures in a container or on another machine",
                "Measure this service in the Python that runs pytest: --ort-runtimes=current",
                kind="unavailable",
                phase="start",
            )
        command, folder = self._expected[url]
        service = ServiceProcess(
            command(runtime), port, folder=folder, environment=runtime.environment
        )
        self._running[port] = (wanted, service)
        return service

    def close(self) -> None:
        """End all of them; safe to repeat."""
        while self._running:
            _, (_, service) = self._running.popitem()
            service.close()
