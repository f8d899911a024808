"""The two pipes to a worker, with deadlines: the host sleeps in the kernel and never spins."""

from __future__ import annotations

import math
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

#: Bytes taken from a pipe at once; its own size on Linux.
_CHUNK = 1 << 16
#: What may arrive unread while we write: banners of wrappers.
_EARLY_LIMIT = 1 << 20
#: ``poll`` takes no more than 24 days at once, and --ort-timeout may be any number of seconds.
_LONGEST_WAIT_S = 86_400.0
#: How long threads are waited for at once, and a process whose memory the host has to look at.
_SLICE_S = 0.25

_Item = TypeVar("_Item")


class DeadlinePassed(Exception):
    """Nothing happened in time."""


class Overweight(Exception):
    """The other end takes more memory than it may."""


class HungUp(Exception):
    """The other end is gone."""


class Flooded(Exception):
    """The other end talks on and on and does not read."""


class Pipes(Protocol):
    """Bytes to and from one process. Deadlines are of ``time.monotonic()``; ``None`` is never."""

    def write(self, data: bytes, deadline: float | None) -> None:
        """Write all of ``data``.

        Raises:
            DeadlinePassed: if it is not taken in time.
            HungUp: if nobody reads any more.
            Flooded: if it only talks.
        """

    def read(self, deadline: float | None) -> bytes:
        """Return the next bytes, empty at the end.

        Raises:
            DeadlinePassed: if none come in time.
        """

    def close(self) -> None:
        """Give both descriptors back."""


class PolledPipes:
    """Non-blocking descriptors and ``poll``.

    Args:
        incoming: Descriptor to read from; owned from now on.
        outgoing: Descriptor to write to; owned from now on.
        process: Descriptor that tells when the process ends (``pidfd_open``), owned from now on:
            a child of it may hold the pipes open much longer. ``None``: the pipes have to tell.
        overweight: Asked now and then whether it takes too much; ``None``: nobody has to look.
    """

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        process: int | None = None,
        overweight: Callable[[], bool] | None = None,
    ) -> None:
        self._incoming, self._outgoing, self._process = incoming, outgoing, process
        self._overweight = overweight
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)
        self._early: list[bytes] = []

    def write(self, data: bytes, deadline: float | None) -> None:
        """Write all of ``data``; what arrives meanwhile is kept, so that nobody blocks."""
        poll = select.poll()
        poll.register(self._outgoing, select.POLLOUT)
        poll.register(self._incoming, select.POLLIN)
        self._watch_process(poll)
        left = memoryview(data)
        while left:
            for descriptor, event in self._wait(poll, deadline):
                if descriptor == self._process:
                    raise HungUp
                if descriptor == self._incoming:
                    arrived = _read(self._incoming)
                    self._early.append(arrived)
                    if not arrived:
                        poll.unregister(self._incoming)
                    if sum(map(len, self._early)) > _EARLY_LIMIT:
                        raise Flooded
                elif event & (select.POLLERR | select.POLLHUP):
                    raise HungUp
                else:
                    left = left[_write(self._outgoing, left) :]

    def read(self, deadline: float | None) -> bytes:
        """Return the next bytes, empty at the end."""
        if self._early:
            return self._early.pop(0)
        poll = select.poll()
        poll.register(self._incoming, select.POLLIN)
        self._watch_process(poll)
        ready = [descriptor for descriptor, _ in self._wait(poll, deadline)]
        # What a process said before it ended comes first.
        return _read(self._incoming) if self._incoming in ready else b""

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._incoming)
        os.close(self._outgoing)
        if self._process is not None:
            os.close(self._process)

    def _wait(self, poll: select.poll, deadline: float | None) -> list[tuple[int, int]]:
        while True:
            # Rounded up: a fraction of a millisecond as 0 would spin until the deadline.
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            longest_s = _LONGEST_WAIT_S if self._overweight is None else _SLICE_S
            most_s = None if left_s is None else min(left_s, longest_s)
            if most_s is None and self._overweight is not None:
                most_s = longest_s
            events = poll.poll(None if most_s is None else most_s * 1000 + 1)
            if events:
                return events
            if self._overweight is not None and self._overweight():
                raise Overweight
            if deadline is not None and time.monotonic() >= deadline:
                raise DeadlinePassed

    def _watch_process(self, poll: select.poll) -> None:
        if self._process is not None:
            poll.register(self._process, select.POLLIN)


class ThreadedPipes:
    """Blocking descriptors and a thread for each, where there is no ``poll`` on pipes (Windows).

    Args:
        incoming: Descriptor to read from; owned from now on.
        outgoing: Descriptor to write to; owned from now on.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._leaving: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._left: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._pump_in, args=(incoming,), daemon=True),
            threading.Thread(target=self._pump_out, args=(outgoing,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes, deadline: float | None) -> None:
        """Write all of ``data``."""
        self._leaving.put(data)
        if not _take(self._left, deadline):
            raise HungUp

    def read(self, deadline: float | None) -> bytes:
        """Return the next bytes, empty at the end."""
        return _take(self._arrived, deadline)

    def close(self) -> None:
        """Let the threads end and close their descriptors; the process must be gone already."""
        self._leaving.put(None)
        for thread in self._threads:
            thread.join(1.0)

    def _pump_in(self, incoming: int) -> None:
        with os.fdopen(incoming, "rb", 0) as file:
            while data := file.read(_CHUNK):
                self._arrived.put(data)
        self._arrived.put(b"")

    def _pump_out(self, outgoing: int) -> None:
        with os.fdopen(outgoing, "wb", 0) as file:
            while (data := self._leaving.get()) is not None:
                left = memoryview(data)
                try:
                    while left:
                        left = left[file.write(left) :]
                except OSError:
                    self._left.put(False)
                    return
                self._left.put(True)


def open_pipes(
    incoming: int, outgoing: int, process: int | None, overweight: Callable[[], bool] | None
) -> Pipes:
    """Return the kind that works on this platform.

    Args:
        incoming: Descriptor to read from; owned from now on.
        outgoing: Descriptor to write to; owned from now on.
        process: Descriptor that tells when the process ends; owned from now on.
        overweight: Asked now and then whether it takes too much, where pipes are polled.
    """
    if hasattr(select, "poll"):
        return PolledPipes(incoming, outgoing, process, overweight)
    return ThreadedPipes(incoming, outgoing)


def _read(descriptor: int) -> bytes:
    return os.read(descriptor, _CHUNK)


def _write(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data)
    except BrokenPipeError:
        raise HungUp from None
    except BlockingIOError:
        return 0


def _take(source: queue.SimpleQueue[_Item], deadline: float | None) -> _Item:
    while True:
        left_s = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            # In slices: on Windows no Ctrl-C ends a wait before Python 3.13.
            return source.get(timeout=min(left_s, _SLICE_S))
        except queue.Empty:
            if left_s <= _SLICE_S:
                raise DeadlinePassed from None
