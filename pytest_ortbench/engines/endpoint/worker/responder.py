"""A responder that computes nothing: it sends the same answer to every request.

It runs as a process of its own, from its source alone, with the answer on stdin, and writes its
port to stdout. It ends when stdin does. What a round trip to it takes is what the client takes.
"""

from __future__ import annotations

import asyncio
import sys
import threading

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Responder(asyncio.Protocol):
    """One connection: requests are counted off by their length, and each is answered.

    Args:
        answer: Head and body of the answer.
    """

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note where answers go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._held += data
        while (size := request_size(self._held)) and len(self._held) >= size:
            self._held = self._held[size:]
            if self._transport is not None:
                self._transport.write(self._answer)


def request_size(held: bytes) -> int:
    """Return the size of the request that some bytes begin with; 0 while its head is not whole."""
    head, end, _ = held.partition(_END)
    if not end:
        return 0
    lines = head.lower().split(b"\r\n")
    told = [line[len(_LENGTH) :] for line in lines if line.startswith(_LENGTH)]
    return len(head) + len(end) + (int(told[0]) if told else 0)


async def respond(answer: bytes) -> None:
    """Answer on a free port of loopback until stdin ends."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    server = await loop.create_server(lambda: Responder(answer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    await over.wait()
    server.close()


def main() -> None:
    """Read the size of the answer and the answer, and respond."""
    size = int(sys.stdin.buffer.readline())
    asyncio.run(respond(sys.stdin.buffer.read(size)))


if __name__ == "__main__":
    main()
