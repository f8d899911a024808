"""What the client of an endpoint found out about the requests of a load. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Why a request got no answer that counts, and what each means.
EXCHANGE_FAILURES: dict[str, str] = {
    "refused": "no connection was made",
    "timeout": "no whole answer came in time",
    "broken": "the connection ended before the answer was whole",
    "redirect": "the service named another address, which is not followed",
    "client error": "the service refused the request (HTTP 4xx)",
    "server error": "the service failed (HTTP 5xx)",
    "too large": "the answer is larger than any answer to this request can be",
    "invalid": "the answer is none of the protocol, or not that of this model",
    "wrong": "the answer has other values than it should",
    "raised": "the user's function that sends requests raised an error",
}

#: What the values of answers under load were compared with, and what that means.
COMPARED_WITH: dict[str, str] = {
    "": "nothing: answers are texts, or nobody compared them",
    "reference": "the outputs of the reference, by the floor of the precision",
    "first": "the answer before the load, which misses that floor, or has no reference",
}

#: Where delays of sending begin, and what that means.
DELAY_FROM: dict[str, str] = {
    "arrival": "when requests were due by the schedule of the load",
    "issue": "when the load generator handed them over, since nothing tells how late that was",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What a client takes by itself: its requests to a responder that computes nothing.

    The responder is a process of our own on this machine, which sends back an answer of the same
    size as that of the endpoint.

    Attributes:
        p50_ns: Median of a round trip, one at a time; ``None`` where there was no responder.
        p99_ns: 99th percentile of these.
        most_per_s: Requests a second that the client sends with many in flight.
        round_trips: Round trips behind these numbers.
        reason: Why there are none.
    """

    p50_ns: int | None = None
    p99_ns: int | None = None
    most_per_s: float | None = None
    round_trips: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """The requests of one test as their client saw them.

    Attributes:
        url: What they were sent to.
        protocol: A key of :data:`~pytest_ortbench.core.endpoint_address.FORMS`.
        encoding: How tensors were written.
        request_bytes: Size of the body of a request.
        answer_bytes: Size of the body of an answer.
        timeout_s: After which a request counts as failed, from its arrival at the client.
        sent: Requests that were sent, or waited for a connection until they failed.
        failed: Those that got no answer that counts, by a key of :data:`EXCHANGE_FAILURES`.
        first_failure: What became of the first of them, in words.
        away_s: Longest time from the sending of a request that failed to the next answer; 0 where
            none failed.
        came_back: Whether an answer came after the last request that failed.
        round_trip_ns: From sending to the last byte of the answer, by percentile, of requests that
            were answered.
        send_delay_ns: From the moment in ``delay_from`` to when the client had written a request,
            by percentile, with what it waited for a connection; of a request that failed to when it
            had a connection.
        delay_from: A key of :data:`DELAY_FROM`.
        cost: What the client takes by itself.
        compared: Requests whose answer was compared by its values.
        compared_with: What with, a key of :data:`COMPARED_WITH`.
    """

    url: str
    protocol: str
    encoding: str
    request_bytes: int
    answer_bytes: int
    timeout_s: float
    sent: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    first_failure: str = ""
    away_s: float = 0.0
    came_back: bool = True
    round_trip_ns: dict[str, int] = field(default_factory=dict)
    send_delay_ns: dict[str, int] = field(default_factory=dict)
    delay_from: str = "issue"
    cost: ClientCost = field(default_factory=ClientCost)
    compared: int = 0
    compared_with: str = ""

    @property
    def failures(self) -> int:
        """Requests that got no answer that counts."""
        return sum(self.failed.values())
