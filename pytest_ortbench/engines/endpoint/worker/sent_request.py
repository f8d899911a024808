"""One request, written once, that is sent many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_ortbench.engines.endpoint.worker.http_client import MOST_BYTES, HttpClient, Reply
from pytest_ortbench.worker.generation.requests import nothing

#: An answer may be larger than the first one, whose numbers are written with other digits.
_LARGER, _LARGER_BYTES = 4, 65536


class SentRequest(Protocol):
    """What is sent, and how."""

    @property
    def size_bytes(self) -> int:
        """Size of its body."""

    async def send(self, client: HttpClient, at_first: Callable[[], None] = nothing) -> Reply:
        """Send it, and return the answer.

        Args:
            client: Sends it.
            at_first: Called at the first token of an answer that comes in tokens.

        Raises:
            ExchangeError: if none came that counts.
        """

    def after(self, reply: Reply) -> SentRequest:
        """Return the same request, with what a first answer tells of later ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What is sent over HTTP, and where.

    Attributes:
        url: Where.
        body: The bytes.
        headers: What is said of them.
        most_bytes: Size of the largest answer that is read.
    """

    url: str
    body: bytes
    headers: Mapping[str, str]
    most_bytes: int = MOST_BYTES

    @property
    def size_bytes(self) -> int:
        """Size of its body."""
        return len(self.body)

    def at(self, url: str) -> HttpRequest:
        """Return the same request to another address."""
        return replace(self, url=url)

    def after(self, reply: Reply) -> HttpRequest:
        """Return the same request, whose answers are not much larger than a first one."""
        return replace(self, most_bytes=_LARGER * len(reply.body) + _LARGER_BYTES)

    async def send(self, client: HttpClient, at_first: Callable[[], None] = nothing) -> Reply:
        """Send it, and return the answer.

        Raises:
            ExchangeError: if none came that counts.
        """
        del at_first
        return await client.post(self.url, self.body, self.headers, self.most_bytes)
