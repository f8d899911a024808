"""What requests to a service took, and what it used meanwhile. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.python_profile import PythonProfile

#: Requests are sent for so long, at most.
MOST_S = 5.0
#: What the service calls the step in which the model runs.
INFERENCE = "inference"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUse:
    """Requests to a service that was started for the run, one after the other.

    Attributes:
        app: What was started, as the user wrote it.
        durations_ns: From sending each request to the last byte of its answer.
        steps_ns: Median of each step that the service tells of a request, by its name for it; empty
            where it tells none.
        cpu_ns: Processor time of the service and of what it started, for all of these requests.
        resident_bytes: Resident memory of them after the requests.
        processes: How many processes these are.
        cpus: Processors that the service may use.
        memory_bytes: Memory of the machine.
        python: What profilers of Python found in it, while nothing was timed.
        reason: Why nothing was found out; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    app: str = ""
    durations_ns: tuple[int, ...] = ()
    steps_ns: dict[str, int] = field(default_factory=dict)
    cpu_ns: int = 0
    resident_bytes: int = 0
    processes: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    python: tuple[PythonProfile, ...] = ()
    reason: str = ""
    interrupted: bool = False
