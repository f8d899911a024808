"""Sends the requests of a load as they arrive, from one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pytest_ortbench.core.endpoint_address import EndpointAddress
from pytest_ortbench.core.exchange import ClientCost, Exchanges
from pytest_ortbench.engines.endpoint.worker.answer_check import AnswerCheck
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import (
    MOST_CONNECTIONS,
    HttpClient,
    Reply,
)
from pytest_ortbench.engines.endpoint.worker.own_cost import own_cost
from pytest_ortbench.engines.endpoint.worker.sent_request import SentRequest
from pytest_ortbench.engines.seam import Sender
from pytest_ortbench.worker.percentiles import percentiles_ns

T = TypeVar("T")

#: Requests that are written before they arrive.
_READY = 8
#: Different answers that are remembered as right ones.
_MOST_DIGESTS = 1024


class _Away:
    """Follows how long a service was away: from a request that failed to the next answer."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._longest_ns = 0

    @property
    def is_over(self) -> bool:
        return self._since is None

    def failed(self, sent_ns: int) -> None:
        self._since = sent_ns if self._since is None else min(self._since, sent_ns)

    def answered(self, sent_ns: int, ended_ns: int) -> None:
        """Note an answer; one to a request from before says nothing of the time since."""
        if self._since is not None and sent_ns > self._since:
            self._longest_ns = max(self._longest_ns, ended_ns - self._since)
            self._since = None

    def longest_ns(self, now_ns: int) -> int:
        return max(self._longest_ns, 0 if self._since is None else now_ns - self._since)


class EndpointSender(Sender):
    """Sends requests that are alike, each when it arrives.

    Args:
        address: Where the endpoint is.
        encoding: How its tensors are written.
        next_request: Returns the next one that is sent.
        check: Looks at the answers.
        timeout_s: After which a request has failed.
        percents: Percentiles of its own times that it returns.
        holds_failures: Whether a request that failed is done when this time is over.

    Raises:
        ExchangeError: if the endpoint does not answer a first request.
    """

    def __init__(
        self,
        address: EndpointAddress,
        encoding: str,
        next_request: Callable[[], SentRequest],
        check: AnswerCheck,
        *,
        timeout_s: float,
        percents: Sequence[float],
        holds_failures: bool,
    ) -> None:
        self._address, self._encoding, self._check = address, encoding, check
        self._timeout_s, self._percents = timeout_s, percents
        self._hold_ns = int(timeout_s * 1e9) if holds_failures else 0
        self._sent = 0
        self._failed: dict[str, int] = {}
        self._compared = 0
        self._found_right: set[bytes] = set()
        self._first_failure = ""
        self._away = _Away()
        self._round_trip_ns: list[int] = []
        self._handed_over = 0
        # By the place of a request among those that were handed over.
        self._send_delay_ns: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._client = HttpClient(timeout_s)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._free: asyncio.Semaphore
        try:
            request = next_request()
            self._request_bytes = request.size_bytes
            self._first, self._cost = self._wait_for(self._prepared(request))
        except BaseException:
            self._end()
            raise
        self._next = next_request
        self._ready = deque(next_request() for _ in range(_READY))

    def send(self, done: Callable[[int], None], at_first: Callable[[], None]) -> None:
        """Send one request without waiting; ``done`` is called when it is over."""
        place, self._handed_over = self._handed_over, self._handed_over + 1
        self._loop.call_soon_threadsafe(self._start, place, time.perf_counter_ns(), done, at_first)

    def close(self, issue_delays_ns: Sequence[int] = ()) -> Exchanges:
        """Close the connections, and return what became of all requests.

        One that is not over got no answer in time. Delays are taken for those of its requests only
        where they are as many.
        """
        if not self._loop.is_closed():
            self._wait_for(self._given_up())
        self._end()
        is_from_arrival = 0 < len(issue_delays_ns) == self._handed_over
        delays = [
            delay + (issue_delays_ns[place] if is_from_arrival else 0)
            for place, delay in self._send_delay_ns.items()
        ]
        return Exchanges(
            url=self._address.url,
            protocol=self._address.protocol,
            encoding=self._encoding,
            request_bytes=self._request_bytes,
            answer_bytes=len(self._first.body),
            timeout_s=self._timeout_s,
            sent=self._sent,
            failed=dict(self._failed),
            first_failure=self._first_failure,
            away_s=self._away.longest_ns(time.perf_counter_ns()) * 1e-9,
            came_back=self._away.is_over,
            round_trip_ns=percentiles_ns(self._round_trip_ns, self._percents),
            send_delay_ns=percentiles_ns(delays, self._percents),
            delay_from="arrival" if is_from_arrival else "issue",
            cost=self._cost,
            compared=self._compared,
            compared_with=self._check.standard,
        )

    async def _prepared(self, request: SentRequest) -> tuple[Reply, ClientCost]:
        self._free = asyncio.Semaphore(MOST_CONNECTIONS)
        first = await request.send(self._client)
        self._check.take(first)
        return first, await own_cost(request, first, self._timeout_s)

    def _start(
        self, place: int, arrived_ns: int, done: Callable[[int], None], at_first: Callable[[], None]
    ) -> None:
        task = self._loop.create_task(self._exchange(place, arrived_ns, done, at_first))
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        """Forget an exchange, and write a request for a later one: none waits for being written."""
        self._tasks.discard(task)
        if len(self._ready) < _READY:
            self._ready.append(self._next())

    async def _given_up(self) -> None:
        """Give up every request that is not over."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _exchange(
        self, place: int, arrived_ns: int, done: Callable[[int], None], at_first: Callable[[], None]
    ) -> None:
        self._sent += 1
        kind, message = "invalid", ""
        started, sent_ns = time.perf_counter_ns(), 0
        # A request may wait for its connection, and only one that has one has the client's timeout.
        timer = self._timer_of(arrived_ns)
        try:
            async with self._free:
                started = sent_ns = time.perf_counter_ns()
                request = self._ready.popleft() if self._ready else self._next()
                reply = await request.after(self._first).send(self._client, at_first)
                ended = time.perf_counter_ns()
            sent_ns = reply.written_ns or started
            self._look_at(reply)
        except ExchangeError as error:
            kind, message = error.kind, str(error)
        except asyncio.CancelledError:
            kind, message = "timeout", f"no answer within {self._timeout_s:g} s"
        except Exception as error:  # noqa: BLE001 - a request that nobody ends would never end
            message = f"{type(error).__name__}: {error}"
        else:
            self._round_trip_ns.append(ended - started)
            self._away.answered(started, ended)
            done(reply.tokens)
            return
        finally:
            timer.cancel()
            if sent_ns:
                self._send_delay_ns[place] = sent_ns - arrived_ns
        self._away.failed(started)
        self._failed[kind] = self._failed.get(kind, 0) + 1
        self._first_failure = self._first_failure or message
        left_s = (arrived_ns + self._hold_ns - time.perf_counter_ns()) * 1e-9
        if left_s > 0:
            with suppress(asyncio.CancelledError):  # the load is over
                await asyncio.sleep(left_s)
        done(0)

    def _timer_of(self, arrived_ns: int) -> asyncio.TimerHandle:
        """Return what ends the exchange that is running when its time is over."""
        task = asyncio.current_task()
        assert task is not None
        left_s = self._timeout_s - (time.perf_counter_ns() - arrived_ns) * 1e-9
        return self._loop.call_later(left_s, task.cancel)

    def _look_at(self, reply: Reply) -> None:
        """Look at an answer, unless the same bytes were found right before."""
        self._compared += bool(self._check.standard)
        if (reply.told, reply.body) == (self._first.told, self._first.body):
            return
        digest = _digest(reply)
        if digest in self._found_right:
            return
        self._check.take(reply)
        if len(self._found_right) < _MOST_DIGESTS:
            self._found_right.add(digest)

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        if self._loop.is_closed():
            return
        self._wait_for(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _digest(reply: Reply) -> bytes:
    return hashlib.blake2b(reply.told.encode() + b":" + reply.body, digest_size=16).digest()
