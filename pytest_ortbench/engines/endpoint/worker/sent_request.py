"""One request, written once, that is sent many times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_ortbench.engines.endpoint.worker.http_client import MOST_BYTES, HttpClient, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """What is sent, and where.

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

    def at(self, url: str) -> SentRequest:
        """Return the same request to another address."""
        return replace(self, url=url)

    async def send(self, client: HttpClient) -> Reply:
        """Send it, and return the answer.

        Raises:
            ExchangeError: if none came that counts.
        """
        return await client.post(self.url, self.body, self.headers, self.most_bytes)
