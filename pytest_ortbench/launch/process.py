"""One worker process: started, asked, stopped, and whatever way it ends turned into a failure."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.descendants import MARK, end_marked
from pytest_ortbench.core.errors import WorkerError, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.outcome import PHASES, Failure
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.launch import bootstrap
from pytest_ortbench.launch.channel import Channel, Garbage
from pytest_ortbench.launch.diagnose import out_of_memory
from pytest_ortbench.launch.diagnose_system import how_to_start
from pytest_ortbench.launch.ending import Ending, ending, oom_kills, read_log, tail
from pytest_ortbench.launch.lost_device import lost_device
from pytest_ortbench.launch.memory_limit import MemoryLimit
from pytest_ortbench.launch.pipes import DeadlinePassed, HungUp, Overweight, Pipes, open_pipes
from pytest_ortbench.launch.steps import EndSteps, by_hand, less_memory, own_command, raised_limit
from pytest_ortbench.schema.protocol import Close, PhaseEntered, Refusal
from pytest_ortbench.schema.question import Question, answer_type
from pytest_ortbench.schema.wire import new_token

if TYPE_CHECKING:
    import psutil

A = TypeVar("A")

#: A process whose channel is at its end is given this long to end itself.
_ENDING_S = 5.0
#: So is one that was told to close; it leaves at once unless something hangs.
_CLOSING_S = 2.0


#: What a worker's environment holds unless it says otherwise: numpy's OpenBLAS has threads that go
#: on spinning for about 20 ms after their work, which would run into the timed blocks.
_OF_WORKERS = {"OPENBLAS_NUM_THREADS": "1"}


def can_stop_processes() -> bool:
    """Whether processes can be suspended here."""
    return sys.platform == "win32" or hasattr(signal, "SIGSTOP")


class Refused(Exception):
    """The worker lives but could not do what it was asked."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class WorkerProcess:
    """A process in a session and group of its own: no Ctrl-C of the terminal reaches it.

    Attributes:
        phase: What the worker is doing, a key of :func:`~pytest_ortbench.core.failure.phases`.
        log: File that holds what native code printed.
        steps: What helps where it ends by itself.
        case: The case that it measures, if that is known.
        time_limit_s: That of the case that the worker measures, of which this process may have had
            a part only; 0 without a case.

    Args:
        runtime: The interpreter.
        compiled: Whether the worker gets its modules compiled, too.
        log: Where what native code prints goes; removed again if it stays empty.
        memory_bytes: What memory it may take; ``None`` sets no limit.
        on_phase: Called with each phase that the worker enters.

    Raises:
        WorkerError: if the interpreter can't be started.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        compiled: bool,
        log: Path,
        memory_bytes: int | None,
        on_phase: Callable[[str], None] | None,
    ) -> None:
        self.phase = "start"
        self.log = log
        self.steps = EndSteps()
        self.case: Case | None = None
        self.time_limit_s = 0.0
        self._runtime = runtime
        self._on_phase = on_phase
        self._started = time.monotonic()
        self._oom_kills = oom_kills()
        # It starts, and nobody has said anything to it.
        self._busy, self._unsent = True, bootstrap.module_lines(compiled=compiled)
        self._paused = False
        token, self._mark = new_token(), new_token()
        self._process = self._start(runtime, token)
        self._limit = None if memory_bytes is None else MemoryLimit(self.pid, memory_bytes)
        self._channel = Channel(_take_pipes(self._process, self._limit), token)
        try:
            self._say("start")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether the process is gone and its descriptors given back."""
        return self._process.returncode is not None

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone, also by itself."""
        return self.closed or self._ended(0)

    def begin(self, question: Question[Any], deadline: float | None) -> None:
        """Ask; :meth:`finish` waits for the answer.

        Args:
            question: What to do.
            deadline: When it must have been taken, of ``time.monotonic()``.

        Raises:
            WorkerError: if the process died or did not listen; it is gone then.
        """
        if self.closed:
            how = ending(self._process.returncode)
            message = f"the measured process {how} while it waited for the next step"
            hint = self.steps.usual(how.signal) or self.steps.again()
            raise WorkerError(self._failure("crash", message, hint))
        self._busy = True
        line, self._unsent = self._unsent, b""
        if line:
            self._guarded(lambda: self._channel.send_line(line, deadline))
        self._guarded(lambda: self._channel.ask(question, deadline))

    def finish(self, question: Question[A], deadline: float | None) -> A:
        """Wait for the answer to what was asked.

        Args:
            question: What was asked.
            deadline: When it must have come, of ``time.monotonic()``.

        Raises:
            Refused: if the worker could not do it.
            WorkerError: if the process died, was too slow or talked garbage; it is gone then.
        """
        answer: type[A] = answer_type(type(question))
        received = self._guarded(lambda: self._receive(answer, deadline))
        self._busy = False
        if isinstance(received, Refusal):
            raise Refused(received)
        return received

    def pause(self) -> None:
        """Stop the process and all its threads until :meth:`resume`.

        An idle session's threads go on spinning for a while, which would disturb whoever is
        measured meanwhile. Returns when it has stopped.
        """
        if self.closed or self._paused:
            return
        self._paused = True
        if sys.platform == "win32":
            _each(self.pid, lambda process: process.suspend())
            return
        self._signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on."""
        if self.closed or not self._paused:
            return
        self._paused = False
        if sys.platform == "win32":
            _each(self.pid, lambda process: process.resume())
        else:
            self._signal(signal.SIGCONT)

    def read_log(self) -> str:
        """Return what native code printed so far, the end of it."""
        return read_log(self.log)

    def close(self) -> None:
        """End the process group, wait for it and give the descriptors back; safe to repeat.

        A worker that is idle is told to leave; one that is in the middle of something is killed.
        """
        if self.closed:
            return
        try:
            if not self._busy and not self._paused:
                self._channel.ask(Close(), time.monotonic() + _CLOSING_S)
                self._ended(_CLOSING_S)
        except (DeadlinePassed, HungUp):
            pass
        finally:
            self._finish()

    def _start(self, runtime: Runtime, token: str) -> subprocess.Popen[bytes]:
        command = bootstrap.command(runtime, token)
        environment = {**_OF_WORKERS, **os.environ, **runtime.environment, MARK: self._mark}
        try:
            with self.log.open("ab") as log:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    env=environment,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                )
        except OSError as error:
            raise case_error(
                f"the program {command[0]!r}, which starts the runtime {runtime.label!r}, can't be "
                f"started. {says('The system', error.strerror or str(error))}",
                how_to_start(error, runtime),
                kind="unavailable",
                phase="start",
            ) from error

    def _receive(self, answer: type[A], deadline: float | None) -> A | Refusal:
        while True:
            received = self._channel.receive(answer, deadline)
            if not isinstance(received, PhaseEntered):
                return received
            self._say(received.phase)

    def _say(self, phase: str) -> None:
        self.phase = phase
        if self._on_phase is not None:
            self._on_phase(phase)

    def _guarded(self, step: Callable[[], A]) -> A:
        """Do one step of the conversation; if it breaks off, end the process and say why."""
        try:
            return step()
        except DeadlinePassed:
            after = time.monotonic() - self._started
            raised = 2 * max(int(after) + 1, math.ceil(self.time_limit_s))
            self._give_up(
                "timeout",
                f"the time limit was reached while the process was {_doing(self.phase)}, "
                f"{after:.0f} s after its start",
                f"Raise the limit, e.g. --ort-timeout={raised}",
                tells_phase=True,
            )
        except Overweight:
            self._give_up(
                "out_of_memory", self._over_limit(), raised_limit(self.phase), tells_phase=True
            )
        except Garbage as error:
            message = f"the measured process sent no valid answer: {error}"
            self._give_up("error", message, self._noise())
        except HungUp:
            self._explain_end()

    def _explain_end(self) -> NoReturn:
        if not self._ended(_ENDING_S):
            message = f"the measured process stopped answering while {_doing(self.phase)}"
            self._give_up("crash", message, self._what_to_read(self.read_log()), tells_phase=True)
        limited = self._limit is not None and self._limit.killed()
        how = self._finish()
        log = self.read_log()
        memory = self._memory_failure(how, log, limited=limited)
        lost = lost_device(tail(log))
        if memory is not None:
            failure = memory
        elif lost:
            message = f"{lost.what} while {_doing(self.phase)}: '{lost.words}'. The process {how}"
            failure = self._failure(
                "unavailable", message, lost.hint, tells_phase=True, tells_signal=True
            )
        elif self.phase == "start" and not how.signal:
            own = own_command(self._runtime)
            message = (
                f"the {'command' if own else 'Python'} of the runtime {self._runtime.label!r} "
                f"{how} before it could measure"
            )
            silent = by_hand(self._runtime) if own and not log.strip() else ""
            hint = self._noise() or silent or self._what_to_read(log)
            failure = self._failure("error", message, hint)
        else:
            message = f"the measured process {how} while {_doing(self.phase)}"
            hint = self.steps.usual(how.signal) or self._what_to_read(log)
            failure = self._failure("crash", message, hint, tells_phase=True, tells_signal=True)
        raise WorkerError(_with_end(failure, how, log))

    def _over_limit(self) -> str:
        assert self._limit is not None
        most = format_amount(self._limit.limit_bytes, "bytes")
        return f"the process needed more memory than the {most} that it may use"

    def _memory_failure(self, how: Ending, log: str, *, limited: bool) -> Failure | None:
        """The failure of a process that ended for want of memory; ``None`` of any other."""
        words = out_of_memory(tail(log))
        if how.signal == "SIGKILL" and limited:
            message = f"{self._over_limit()}, while {_doing(self.phase)}"
            step = raised_limit(self.phase)
            return self._failure("out_of_memory", message, step, tells_phase=True)
        if how.signal == "SIGKILL" and oom_kills() > self._oom_kills:
            message = f"memory ran out while {_doing(self.phase)}, so the kernel killed the process"
            tells_signal = False
        elif words:
            message = f"memory ran out while {_doing(self.phase)}: '{words}'. The process {how}"
            tells_signal = True
        else:
            return None
        return self._failure(
            "out_of_memory",
            message,
            less_memory(self.case, self.phase),
            tells_phase=True,
            tells_signal=tells_signal,
        )

    def _give_up(
        self, kind: str, message: str, hint: str = "", *, tells_phase: bool = False
    ) -> NoReturn:
        log = self.read_log()
        self._finish()
        failure = self._failure(kind, message, hint, tells_phase=tells_phase)
        raise WorkerError(_with_end(failure, Ending(), log))

    def _failure(
        self,
        kind: str,
        message: str,
        hint: str = "",
        *,
        tells_phase: bool = False,
        tells_signal: bool = False,
    ) -> Failure:
        return Failure(
            kind=kind,
            phase=self.phase,
            message=message,
            hint=hint,
            tells_phase=tells_phase,
            tells_signal=tells_signal,
        )

    def _what_to_read(self, log: str) -> str:
        """The next step where what native code printed may say why: if it printed anything."""
        if not log.strip():
            return self.steps.again()
        return (
            "Read what the process printed: it stands below 'Native log:' in the failure of the "
            "test"
        )

    def _noise(self) -> str:
        noise = self._channel.noise.strip()
        return f"The process printed: {noise[-200:]!r}" if noise else ""

    def _ended(self, timeout_s: float) -> bool:
        """Wait until the process ended, unreaped where possible: its group id stays ours."""
        descriptor = _pidfd(self.pid)
        if descriptor is not None:
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                return bool(poll.poll(timeout_s * 1000))
            finally:
                os.close(descriptor)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _finish(self) -> Ending:
        """Kill what is left of the group, reap the process, close the pipes."""
        if sys.platform == "win32":
            self._kill_tree()
        else:
            self._signal(signal.SIGKILL)
        code = self._process.wait()
        # Those of them that made a session of their own, and hold the log and the pipes open.
        end_marked(self._mark)
        if self._limit is not None:
            self._limit.close()
        self._channel.close()
        # Windows lets no file be removed that somebody has open still.
        with contextlib.suppress(OSError):
            if self.log.stat().st_size == 0:
                self.log.unlink()
        return ending(code)

    def _kill_tree(self) -> None:
        """Kill the process and those that it started, and wait for them."""
        import psutil  # only where there are no process groups to kill

        processes = _processes(self.pid)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.kill()
        psutil.wait_procs(processes, timeout=_CLOSING_S)

    def _signal(self, number: signal.Signals) -> None:
        # Nothing may be left of the group; macOS says so with EPERM.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _take_pipes(process: subprocess.Popen[bytes], limit: MemoryLimit | None) -> Pipes:
    """Take over the descriptors, so that Popen neither buffers nor closes them."""
    assert process.stdin is not None
    assert process.stdout is not None
    incoming, outgoing = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
    process.stdin.close()
    process.stdout.close()
    overweight = None if limit is None or limit.by_kernel else limit.exceeded
    return open_pipes(incoming, outgoing, _pidfd(process.pid), overweight)


def _pidfd(pid: int) -> int | None:
    """A descriptor that tells when a process ends, ``None`` where there is no such thing.

    Python may know the call while the kernel does not (Linux before 5.3, gVisor), or a container
    forbids it.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _processes(pid: int) -> list[psutil.Process]:
    """A process and those that it started.

    The ``python.exe`` of a virtual environment only starts the interpreter, which is its child.
    """
    import psutil  # only where there are neither stop signals nor process groups

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:  # it is gone, and the next question says so
        return []


def _each(pid: int, act: Callable[[psutil.Process], None]) -> None:
    """Do something to a process and those that it started, as far as they are there still."""
    import psutil

    for process in _processes(pid):
        with contextlib.suppress(psutil.Error):
            act(process)


def _doing(phase: str) -> str:
    return PHASES.get(phase, phase)


def _with_end(failure: Failure, how: Ending, log: str) -> Failure:
    return replace(failure, exit_code=how.exit_code, signal=how.signal, log_tail=tail(log))
