"""One exchange over HTTP at a time: what is sent, what comes back, and what counts as neither.

Whatever the other side sends is taken as data: no redirect is followed, no cookie kept, nothing
unpacked, and an answer is read up to a size and for a time.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.serving.protocol import decode_error
from pytest_ortbench.serving.tensor_values import HEADER_LENGTH

#: What goes into the header ``Authorization``, if it is set; it stands in no document.
AUTHORIZATION = "ORTBENCH_ENDPOINT_AUTHORIZATION"
#: Size of an answer of which nothing is known.
MOST_BYTES = 256 << 20
#: Connections at a time; what arrives beyond waits for one.
MOST_CONNECTIONS = 512
#: Services close what is idle for longer: gunicorn after 2 s, uvicorn after 5 s by default. A
#: request on a connection that is just being closed would fail, and not by a fault of the service.
_KEPT_S = 1.5
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with status 200.

    Attributes:
        body: Its bytes.
        headers: Its headers.
        outputs: What a function of the user's returned; ``None`` where HTTP brought the bytes.
        tokens: Tokens that the answer consists of; 0 where it is none of a language model.
        first_ns: From when the request was written to the first of them.
        later_ns: From the first one to the last.
        written_ns: When the request was written, by ``time.perf_counter_ns``; 0 if unknown.
    """

    body: bytes
    headers: Mapping[str, str]
    outputs: Sequence[Any] | None = None
    tokens: int = 0
    first_ns: int = 0
    later_ns: int = 0
    written_ns: int = 0

    @property
    def told(self) -> str:
        """What its headers say of how its bytes are read; empty for nothing."""
        return self.headers.get(HEADER_LENGTH, "")


class HttpClient:
    """Sends requests of one event loop, over connections that it keeps.

    Attributes:
        timeout_s: From sending to the last byte of the answer.

    Args:
        timeout_s: As above.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._session: Any = None  # made in the loop that it belongs to

    async def get(self, url: str) -> Reply:
        """Ask for what is at an address."""
        return await self._exchange("GET", url, None, {}, MOST_BYTES)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], most_bytes: int = MOST_BYTES
    ) -> Reply:
        """Send a body, and return the answer.

        Raises:
            ExchangeError: if none came that counts.
        """
        return await self._exchange("POST", url, body, headers, most_bytes)

    async def close(self) -> None:
        """Close all connections; safe to repeat."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> Any:
        import aiohttp  # not everybody has it

        if self._session is None:
            authorization = os.environ.get(AUTHORIZATION, "")
            traced = aiohttp.TraceConfig()
            traced.on_request_chunk_sent.append(_note_written)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, keepalive_timeout=_KEPT_S),
                timeout=aiohttp.ClientTimeout(total=self.timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                trace_configs=[traced],
                headers={
                    "Accept-Encoding": "identity",
                    **({"Authorization": authorization} if authorization else {}),
                },
            )
        return self._session

    async def post_lines(
        self, url: str, body: bytes, headers: Mapping[str, str], on_line: Callable[[bytes], None]
    ) -> int:
        """Send a body, and hand over each line of the answer as it comes.

        Returns:
            When the body was written, by ``time.perf_counter_ns``.

        Raises:
            ExchangeError: if no answer came that counts.
        """
        sending = _Sending()
        async with self._answer("POST", url, body, headers, sending) as response:
            if response.status != 200:
                raise _refused(response, await _read(response, MOST_BYTES))
            _require_plain(response)
            size = 0
            async for line in response.content:
                size += len(line)
                _require_size(response, size, MOST_BYTES)
                on_line(line)
        return sending.written_ns

    async def _exchange(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        most_bytes: int,
    ) -> Reply:
        sending = _Sending()
        async with self._answer(method, url, body, headers, sending) as response:
            read = await _read(response, most_bytes)
            if response.status != 200:
                raise _refused(response, read)
            _require_plain(response)
            return Reply(read, response.headers, written_ns=sending.written_ns)

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        sending: _Sending,
    ) -> AsyncIterator[Any]:
        """Send, and give the answer while it is read; what goes wrong with either has its kind."""
        import aiohttp  # as above

        session = self._open()
        try:
            async with session.request(
                method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                trace_request_ctx=sending,
            ) as response:
                yield response
        except (TimeoutError, asyncio.TimeoutError):
            raise ExchangeError("timeout", f"no answer within {self.timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise ExchangeError("refused", f"no connection: {_one_line(error)}") from None
        except aiohttp.ServerDisconnectedError:
            raise ExchangeError("broken", "the connection ended without an answer") from None
        except aiohttp.ClientPayloadError:
            raise ExchangeError(
                "broken", "the connection ended before the answer was whole"
            ) from None
        except aiohttp.ClientConnectionError as error:
            raise ExchangeError("broken", f"the connection broke: {_one_line(error)}") from None
        except aiohttp.ClientResponseError as error:
            raise ExchangeError(
                "invalid", f"the answer is no HTTP: {short_line(error.message)}"
            ) from None
        except (aiohttp.ClientError, ValueError) as error:
            raise ExchangeError("invalid", f"the answer is no HTTP: {_one_line(error)}") from None


class _Sending:
    """When the body of a request was written; at first the time at which it was asked for."""

    def __init__(self) -> None:
        self.written_ns = time.perf_counter_ns()


async def _note_written(session: Any, context: Any, sent: Any) -> None:
    """Note that a part of a body is written, the last of which counts."""
    del session, sent
    context.trace_request_ctx.written_ns = time.perf_counter_ns()


def _require_plain(response: Any) -> None:
    """Refuse a compressed answer, whose size tells nothing of what is in it; none was asked for."""
    coding = short_line(response.headers.get("Content-Encoding", "identity").strip().lower())
    if coding not in ("", "identity"):
        raise ExchangeError(
            "invalid", f"the answer is compressed ({coding}), which the request does not allow"
        )


async def _read(response: Any, most_bytes: int) -> bytes:
    """Read a body, up to a size."""
    parts, size = [], 0
    while part := await response.content.readany():
        size += len(part)
        _require_size(response, size, most_bytes)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _require_size(response: Any, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        response.close()
        raise ExchangeError("too large", f"the answer has more than {most_bytes} bytes")


def _refused(response: Any, body: bytes) -> ExchangeError:
    status: int = response.status
    kind = {3: "redirect", 4: "client error", 5: "server error"}.get(status // 100, "invalid")
    text = short_line(decode_error(body))
    message = f"the service answered with status {status}"
    target = short_line(response.headers.get("Location", ""))
    if kind == "redirect" and target:
        return ExchangeError(kind, f"{message}, which redirects to {target}", status=status)
    return ExchangeError(kind, f"{message}: {text}" if text else message, status=status, said=text)


def _one_line(error: Exception) -> str:
    return short_line(str(error) or type(error).__name__)


def short_line(text: str) -> str:
    """Return a text of a service as a message may hold it."""
    # What came as half of a surrogate pair has no form in a document.
    line = " ".join(text.encode(errors="replace").decode().split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
