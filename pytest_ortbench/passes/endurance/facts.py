"""A service under a steady load: its memory, and what was done to it. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.exchange import Exchanges

#: What can be done to a service while its load goes on, and what each is.
FAULTS: dict[str, str] = {
    "restart": "it is asked to end, and started again",
    "kill": "it is killed, and started again",
    "malformed": "requests whose body is cut off in the middle",
    "oversized": "requests that announce a body of a tebibyte",
    "slow": "requests whose body comes byte by byte, and never whole",
}
#: Those that take a service that this run has started.
ENDINGS = ("restart", "kill")
#: Why a case is not kept under load, and the next step.
NO_SERVICE = "this case sends no requests to a service"
ADD_SERVICE = (
    "To keep a service under load, name it: --ort-endpoint=http://HOST:PORT/v2/models/NAME/infer"
)
#: Stands for a status where a request got none.
NO_ANSWER = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnduranceFault:
    """One kind of what was done.

    Attributes:
        kind: A key of :data:`FAULTS`.
        count: How often.
        answers: Statuses that such requests were answered with, and how often each; ``none`` where
            no answer came.
        away_s: From the end of the service to its being ready again, the longest; 0 where it was
            not ended.
        reason: Why it was not done; empty otherwise.
    """

    kind: str
    count: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    away_s: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyLoad:
    """Requests that were sent at a rate for some time, and when.

    Attributes:
        began_ns: When it began, by the clock of all processes of the machine (``monotonic_ns``).
        ended_ns: When the last request was sent.
        exchanges: What became of them.
    """

    began_ns: int
    ended_ns: int
    exchanges: Exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Endurance:
    """A service that was sent requests at a steady rate, or why it was not.

    Attributes:
        seconds: How long requests were sent.
        rate_per_s: Requests a second that arrived, at random.
        capacity_per_s: Requests a second of the standard pass, one after the other; ``None`` where
            that is not known.
        exchanges: What became of them; ``None`` where none were sent.
        at: Requests that had been sent at each reading of the memory, as evenly as they arrive.
        resident_bytes: Resident memory of the service and its processes at each; readings begin
            with the load, or behind the last time that the service was started again.
        memory_note: Why there are no readings.
        faults: What was done to it meanwhile.
        reason: Why nothing was sent; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    seconds: float = 0.0
    rate_per_s: float = 0.0
    capacity_per_s: float | None = None
    exchanges: Exchanges | None = None
    at: tuple[int, ...] = ()
    resident_bytes: tuple[int, ...] = ()
    memory_note: str = ""
    faults: tuple[EnduranceFault, ...] = ()
    reason: str = ""
    interrupted: bool = False
