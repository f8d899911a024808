"""One request to a language model in OpenAI's protocol: its tokens come one after the other.

How many tokens an answer has is told by the service at its end (``usage``). The parts in which the
text comes are not counted: a service may send several tokens in one, or one in none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import HttpClient, Reply, short_line
from pytest_ortbench.serving.protocol import decode_error
from pytest_ortbench.worker.generation.requests import nothing

_DATA, _END = b"data:", b"[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A prompt of tokens, and how many are to be written.

    Attributes:
        url: Where it is sent.
        body: The request.
        new_tokens: Tokens that are to be written.
    """

    url: str
    body: bytes
    new_tokens: int

    @property
    def size_bytes(self) -> int:
        """Size of its body."""
        return len(self.body)

    def at(self, url: str) -> TokenRequest:
        """Return the same request to another address."""
        return replace(self, url=url)

    @property
    def whole_answer(self) -> bytes:
        """The body of an answer that has all tokens at once."""
        parts = [{"choices": [{"index": 0, "text": "x"}]}] * self.new_tokens
        usage = {"choices": [], "usage": {"completion_tokens": self.new_tokens}}
        lines = [json.dumps(part).encode() for part in (*parts, usage)]
        return b"".join(_DATA + line + b"\n\n" for line in (*lines, _END))

    def after(self, reply: Reply) -> TokenRequest:
        """Return itself: no answer tells of the next one."""
        del reply
        return self

    async def send(self, client: HttpClient, at_first: Callable[[], None] = nothing) -> Reply:
        """Send it, and return what the answer took.

        Args:
            client: Sends it.
            at_first: Called at the first part of the text.

        Raises:
            ExchangeError: if no answer came that counts, or one of another number of tokens.
        """
        parts = _StreamedParts(at_first)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        written_ns = await client.post_lines(self.url, self.body, headers, parts.take)
        first_ns, last_ns = parts.first_ns, parts.last_ns
        if not parts.is_whole:
            raise ExchangeError("broken", "the answer broke off before the service marked the end")
        if first_ns is None or last_ns is None:
            raise ExchangeError("invalid", "the answer holds no text")
        if parts.tokens is None:
            raise ExchangeError("invalid", "the service does not report the number of new tokens")
        if parts.tokens != self.new_tokens:
            raise ExchangeError(
                "invalid", f"{parts.tokens} tokens were written, not {self.new_tokens} as asked"
            )
        return Reply(
            b"",
            {},
            tokens=parts.tokens,
            # What the client takes to write a request is not of the service.
            first_ns=first_ns - written_ns,
            later_ns=last_ns - first_ns,
            written_ns=written_ns,
        )


def token_body(model: str, prompt: list[int], new_tokens: int, *, ignores_end: bool) -> bytes:
    """Return the body of a request.

    Args:
        model: What the service calls the model.
        prompt: Tokens that are read.
        new_tokens: Tokens that are to be written.
        ignores_end: Whether the service is asked to write on behind the end of a text.
    """
    asked: dict[str, Any] = {
        "model": model,
        "prompt": prompt,
        "max_tokens": new_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ignores_end:
        asked["ignore_eos"] = True
    return json.dumps(asked).encode()


class _StreamedParts:
    """The parts of an answer as they come.

    Attributes:
        first_ns: When the first text was there.
        last_ns: When the last one was.
        tokens: Tokens that the service says it wrote.
        is_whole: Whether the answer came to its end.

    Args:
        at_first: Called at the first text.
    """

    def __init__(self, at_first: Callable[[], None]) -> None:
        self._at_first = at_first
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.tokens: int | None = None
        self.is_whole = False

    def take(self, line: bytes) -> None:
        """Take one line of the answer.

        Raises:
            ExchangeError: for one that is no part of such an answer.
        """
        now = time.perf_counter_ns()
        if not line.startswith(_DATA):
            return
        data = line[len(_DATA) :].strip()
        if data == _END:
            self.is_whole = True
            return
        try:
            part = json.loads(data)
        except (ValueError, RecursionError):
            raise ExchangeError("invalid", "a part of the answer is no JSON") from None
        if not isinstance(part, dict):
            raise ExchangeError("invalid", "a part of the answer is no object")
        if part.get("error"):
            text, message = short_line(decode_error(data)), "the service broke the answer off"
            raise ExchangeError(
                "server error", f"{message}: {text}" if text else f"{message} with an error"
            )
        if _has_text(part):
            self.last_ns = now
            if self.first_ns is None:
                self.first_ns = now
                self._at_first()
        usage = part.get("usage")
        told = usage.get("completion_tokens") if isinstance(usage, dict) else None
        if type(told) is int and told >= 0:
            self.tokens = told


def _has_text(part: dict[str, Any]) -> bool:
    choices = part.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    return bool(choices[0].get("text"))
