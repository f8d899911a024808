"""The worker's side of the conversation: read a question, answer it, until the host hangs up.

A worker whose host is gone ends, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pytest_ortbench.core.descendants import MARK, end_marked
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.schema.protocol import (
    Close,
    PhaseEntered,
    Refusal,
    pack_answer,
    unpack_question,
)
from pytest_ortbench.schema.question import CaseQuestion, Question
from pytest_ortbench.schema.question_table import handler_of
from pytest_ortbench.schema.wire import decode_frame, encode_frame
from pytest_ortbench.worker.session import FellBack, blamed
from pytest_ortbench.worker.state import WorkerState


def serve(incoming: BinaryIO, outgoing: BinaryIO, token: str) -> None:
    """Answer questions until the host closes the channel or says :class:`Close`.

    Args:
        incoming: Where frames come from.
        outgoing: Where frames go, unbuffered.
        token: What every frame starts with.
    """
    _give_way()
    conversation = Conversation(outgoing, token)
    end_with_host(incoming, conversation.end)
    for line in incoming:
        ours, plain = decode_frame(token, line)
        if not ours:
            continue
        question = unpack_question(plain)
        if isinstance(question, Close):
            break
        conversation.answer(question)
    conversation.end()
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the destructors of native libraries: they take time, and some crash in them.
    os._exit(0)


class Conversation:
    """Answers questions in frames.

    Args:
        outgoing: Where frames go, unbuffered.
        token: What every frame starts with.
    """

    def __init__(self, outgoing: BinaryIO, token: str) -> None:
        self._outgoing = outgoing
        self._token = token
        self._phase = "start"
        self._state = WorkerState(self._enter)

    def end(self) -> None:
        """Leave nothing behind; safe to repeat."""
        self._state.end()

    def answer(self, question: Question[Any]) -> None:
        """Answer one question, with a refusal if anything is raised on the way."""
        try:
            answer = self._handled(question)
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            answer = self._refusal(error)
        self._send(answer)

    def _handled(self, question: Question[Any]) -> object:
        kind = type(question)
        if not isinstance(question, CaseQuestion):
            return handler_of(kind)(question, self._state)
        measured = self._state.measured
        if measured is None:
            raise RuntimeError(f"{kind.__name__} before any case was opened")
        return handler_of(kind)(question, measured)

    def _enter(self, phase: str) -> None:
        # Blocks come by the dozen; only changes are news.
        if phase != self._phase:
            self._phase = phase
            self._send(PhaseEntered(phase=phase))

    def _send(self, message: object) -> None:
        frame = memoryview(encode_frame(self._token, pack_answer(message)))
        while frame:
            frame = frame[self._outgoing.write(frame) :]

    def _refusal(self, error: Exception) -> Refusal:
        if isinstance(error, WorkerError):
            return Refusal(
                phase=self._phase, error="WorkerError", text=str(error), failure=error.failure
            )
        if not _is_native(error):
            # An error of ours or of Python's: the log is where its place can be looked up.
            traceback.print_exception(error)
        measured = self._state.measured
        session = measured.session if measured is not None else None
        return Refusal(
            phase=self._phase,
            error=type(error).__name__,
            text=str(error),
            version=_version("onnxruntime"),
            numpy=_version("numpy"),
            available_providers=_available(),
            session_providers=error.session_providers if isinstance(error, FellBack) else (),
            fed=_fed(measured.feeds) if measured is not None else (),
            declared=tuple(f"{i.name}: {i.type} {i.shape}" for i in session.get_inputs())
            if session is not None
            else (),
            provider=blamed(error),
        )


def _is_native(error: Exception) -> bool:
    return type(error).__module__.startswith(("onnxruntime", "pytest_ortbench"))


def _version(package: str) -> str:
    """Version of a package if it got imported at all."""
    return str(getattr(sys.modules.get(package), "__version__", ""))


def _available() -> tuple[str, ...]:
    ask = getattr(sys.modules.get("onnxruntime"), "get_available_providers", None)
    return tuple(ask()) if ask is not None else ()


def _fed(feeds: Mapping[str, object]) -> tuple[str, ...]:
    described = []
    for name, value in feeds.items():
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        kind = type(value).__name__ if shape is None else f"{dtype} {list(shape)}"
        described.append(f"{name}: {kind}")
    return tuple(described)


#: After the host hung up, a call that still runs gets this long before the process ends anyway.
_GRACE_S = 2.0

#: Of 1000, for which there is no other choice.
_FIRST_TO_GO = 800
#: From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def end_with_host(incoming: BinaryIO, end: Callable[[], None]) -> None:
    """End this process group when the host is gone, even if a native call never returns.

    The thread sleeps until the channel hangs up and takes no time meanwhile. The main loop sees the
    end of file too and normally is faster. On Windows there is neither.

    Args:
        incoming: The channel.
        end: Leaves nothing behind.
    """
    _wake_when_orphaned()
    if sys.platform == "win32":
        return

    def wait() -> None:
        _await_end(incoming)
        time.sleep(_GRACE_S)
        end()
        end_marked(os.environ.get(MARK, ""))
        os.killpg(0, signal.SIGKILL)
        # Nobody kills the first process of a container from inside it.
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=wait, name="ortbench-hang-up", daemon=True).start()


def _give_way() -> None:
    """Be the first that the kernel ends when the machine is out of memory (Linux only)."""
    with contextlib.suppress(OSError, ValueError):
        file = Path("/proc/self/oom_score_adj")
        file.write_text(str(max(_FIRST_TO_GO, int(file.read_text()))), encoding="ascii")


def _await_end(incoming: BinaryIO) -> None:
    """Sleep until the host is gone."""
    if sys.platform == "darwin":
        # Its poll knows no hang-up on which nothing else is asked for.
        exit_of_host = select.kevent(
            os.getppid(), select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT
        )
        with contextlib.suppress(ProcessLookupError), select.kqueue() as queue:
            queue.control([exit_of_host], 1)
        return
    poll = select.poll()
    poll.register(incoming.fileno(), 0)
    poll.poll()


def _wake_when_orphaned() -> None:
    """Have the kernel let this process go on when its parent dies (Linux only).

    A worker that is suspended while the other side of a pair is measured sees no end of file, and
    would stay stopped for ever if the host were killed meanwhile.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # costs milliseconds, and only workers need it

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT))
