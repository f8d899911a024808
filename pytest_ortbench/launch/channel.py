"""Frames over the pipes to a worker, picked out of whatever else is printed there."""

from __future__ import annotations

from typing import Any, TypeVar

from pytest_ortbench.launch.pipes import Flooded, HungUp, Pipes
from pytest_ortbench.schema.protocol import (
    Close,
    PhaseEntered,
    Refusal,
    pack_question,
    unpack_answer,
)
from pytest_ortbench.schema.question import Question
from pytest_ortbench.schema.wire import WireError, decode_frame, encode_frame

A = TypeVar("A")

#: A wrapper's banner is a few lines; a command that prints on and on is no worker.
_NOISE_LIMIT = 1 << 20
_NOISE_KEPT = 2000
_TOO_MUCH = f"over {_NOISE_LIMIT} bytes of other output"


class Garbage(Exception):
    """What comes through the channel is not the worker's."""


class Channel:
    """One conversation.

    Args:
        pipes: How bytes travel.
        token: What every frame starts with.
    """

    def __init__(self, pipes: Pipes, token: str) -> None:
        self._pipes = pipes
        self._token = token
        self._buffer = bytearray()
        self._searched = 0
        self._noise = b""
        self._noise_size = 0

    @property
    def noise(self) -> str:
        """The last of what somebody else printed on the channel."""
        return self._noise.decode("utf-8", "replace")

    def send_line(self, line: bytes, deadline: float | None) -> None:
        """Send a line as it is.

        Raises:
            DeadlinePassed, HungUp: see :class:`~pytest_ortbench.launch.pipes.Pipes`.
            Garbage: if the other end only talks and does not read.
        """
        try:
            self._pipes.write(line, deadline)
        except Flooded:
            raise Garbage(_TOO_MUCH) from None

    def ask(self, question: Question[Any] | Close, deadline: float | None) -> None:
        """Send a question, or that the worker is to end.

        Raises:
            DeadlinePassed, HungUp: see :class:`~pytest_ortbench.launch.pipes.Pipes`.
        """
        self.send_line(encode_frame(self._token, pack_question(question)), deadline)

    def receive(self, answer: type[A], deadline: float | None) -> A | PhaseEntered | Refusal:
        """Return what the worker says next.

        Args:
            answer: The type of the answer that is waited for.
            deadline: When it must have come, of ``time.monotonic()``.

        Raises:
            HungUp: at the end of the channel.
            DeadlinePassed: if none comes in time.
            Garbage: if what comes can't be the worker's.
        """
        while True:
            while (line := self._next_line()) is not None:
                try:
                    ours, plain = decode_frame(self._token, line)
                    if ours:
                        return unpack_answer(plain, answer)
                except WireError as error:
                    raise Garbage(str(error)) from error
                self._add_noise(line)
            data = self._pipes.read(deadline)
            if not data:
                self._add_noise(bytes(self._buffer))
                self._buffer.clear()
                raise HungUp
            self._buffer += data
            self._check_buffer()

    def close(self) -> None:
        """Close the pipes."""
        self._pipes.close()

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def _check_buffer(self) -> None:
        """Refuse an endless line that has no frame in it."""
        if (
            len(self._buffer) > _NOISE_LIMIT
            and self._token.encode() not in self._buffer[:_NOISE_LIMIT]
        ):
            self._add_noise(bytes(self._buffer))

    def _add_noise(self, line: bytes) -> None:
        self._noise = (self._noise + line)[-_NOISE_KEPT:]
        self._noise_size += len(line)
        if self._noise_size > _NOISE_LIMIT:
            raise Garbage(_TOO_MUCH)
