"""Reference work whose blocks take turns with those of a model, as a scale for its latency.

A shared machine is slower in one minute than in another one, and so is reference work that runs in
between: their ratio moves less. Facts only; what is made of them is derived elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.samples import Block

#: What each yardstick does.
YARDSTICKS: dict[str, str] = {
    "serial": "a matrix product on one thread",
    "mixed": "a matrix product and a pass over memory that no cache holds, on one thread",
    "parallel": "the same on as many threads as the model has, side by side",
    "memory": "a pass over memory that no cache holds, on one thread",
}

#: What may be asked for: a choice by what the model does, none, or one of them.
YARDSTICK_CHOICES = ("auto", "off", *YARDSTICKS)

#: Threads of all yardsticks together that a run keeps from case to case, suspended: each thread has
#: 128 MiB of data.
MOST_KEPT_THREADS = 4

#: Why a worker has no yardstick, as it stands after "no yardstick:".
ABSENCES: dict[str, str] = {
    "off": "it is turned off",
    "short": "the model is timed too briefly to take turns",
    "device": "it is not the CPUs of the machine that compute",
    "remote": "the model does not run on this machine",
    "requests": "requests are timed, and no inferences",
    "callers": "several callers keep inferences in flight",
    "suspension": "processes can't be suspended here",
    "library": "the threads of the library behind it can't be set",
    "failed": "its process failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """All that decides how fast a yardstick is on one machine.

    Attributes:
        name: A key of :data:`YARDSTICKS`.
        digest: Of the definition of its work.
        library: The library that does the work: ``OpenBLAS``, ``numpy``.
        version: Of that library.
        kernels: What the library chose for this CPU: ``SkylakeX``; empty if it does not say.
        threads: Threads that do the work.
    """

    name: str
    digest: str
    library: str
    version: str
    kernels: str
    threads: int

    @property
    def identity(self) -> str:
        """One line that two yardsticks share exactly if their times compare on one machine."""
        parts = (self.name, self.digest, self.library, self.version, self.kernels)
        return " ".join((*(part or "-" for part in parts), f"{self.threads} threads"))


@dataclass(frozen=True, slots=True, kw_only=True)
class YardstickBlock:
    """What one turn of a yardstick gave.

    Attributes:
        block: Its units of work.
        memory_ns: What of each unit went into its pass over memory; empty if a unit is not a
            product and a pass.
        handover_ns: What a value took from one CPU to another and back right after them; ``None``
            if one did not come back in time, or the yardstick works on one thread.
    """

    block: Block
    memory_ns: tuple[int, ...] = ()
    handover_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class YardstickTurns:
    """The blocks of one worker and of a yardstick, which took turns; or why there was none.

    A round is one block of each, in either order. Each entry of the tuples is one round, in the
    order of time; rounds are left out evenly where there were too many.

    Attributes:
        absence: Why there is no yardstick, a key of :data:`ABSENCES`; empty if there is one.
        detail: More about that, for people; empty if there is no more to say.
        yardstick: What the model took turns with; ``None`` if there was none.
        rounds: How many rounds there were.
        model_mean_ns: Mean of the inferences of each block of the model.
        model_low_ns: The fastest inference of each block of the model.
        yardstick_mean_ns: Mean of the units of work of each block of the yardstick.
        yardstick_low_ns: The fastest unit of each block of the yardstick.
        memory_mean_ns: What of the units of each block went into their passes over memory, the
            mean; empty if a unit is not a product and a pass.
        memory_low_ns: Likewise of the fastest unit of each block.
        model_runs: Inferences that most blocks of the model have.
        yardstick_runs: Units of work that each block of the yardstick has.
        model_cpus: CPUs that the model kept busy in its blocks; ``None`` if unknown.
        yardstick_cpus: Likewise of the yardstick.
        best_ns: What a unit of work of the yardstick takes in quiet minutes of this machine, as
            far as it is known once this worker is done; ``None`` if it is not.
        handover_ns: What a value took from one CPU to another and back in each round; ``None``
            where it did not come back in time. Empty if the yardstick works on one thread.
        best_handover_ns: Likewise what it takes where the CPUs are nearest; ``None`` if that is
            not known.
    """

    absence: str = ""
    detail: str = ""
    yardstick: Yardstick | None = None
    rounds: int = 0
    model_mean_ns: tuple[int, ...] = ()
    model_low_ns: tuple[int, ...] = ()
    yardstick_mean_ns: tuple[int, ...] = ()
    yardstick_low_ns: tuple[int, ...] = ()
    memory_mean_ns: tuple[int, ...] = ()
    memory_low_ns: tuple[int, ...] = ()
    model_runs: int = 0
    yardstick_runs: int = 0
    model_cpus: float | None = None
    yardstick_cpus: float | None = None
    best_ns: int | None = None
    handover_ns: tuple[int | None, ...] = ()
    best_handover_ns: int | None = None
