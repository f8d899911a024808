"""What Python code of the user's takes, by function and by line. Raw facts, never of timed runs."""

from __future__ import annotations

from dataclasses import dataclass

#: Ways of looking, by the modules of Python that do it.
CPROFILE, TRACEMALLOC = "cprofile", "tracemalloc"
PYTHON_PROFILERS = (CPROFILE, TRACEMALLOC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTime:
    """One function.

    Attributes:
        file: Its file, the last parts of the path; empty for one of Python itself.
        line: Where it begins there; 0 likewise.
        name: Its name.
        calls: How often it was called.
        own_ns: Time in it, without that in what it called.
        whole_ns: Time in it with that.
    """

    file: str = ""
    line: int = 0
    name: str
    calls: int
    own_ns: int
    whole_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMemory:
    """What one line has allocated and is still held.

    Attributes:
        file: Its file, the last parts of the path.
        line: Its number.
        held_bytes: Memory of it, more than before the first round.
        blocks: Allocations that it consists of, likewise.
    """

    file: str
    line: int
    held_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonProfile:
    """What one of Python's profilers found.

    Attributes:
        profiler: One of :data:`PYTHON_PROFILERS`.
        rounds: Frames or requests that it looked at.
        functions: Those with the most time of their own, the first one with most.
        lines: Those that hold the most memory when the last round has its answer, likewise.
        peak_bytes: Most memory that Python held at a time, beside what it held before.
        reason: Why there is nothing; empty otherwise.
    """

    profiler: str
    rounds: int = 0
    functions: tuple[FunctionTime, ...] = ()
    lines: tuple[LineMemory, ...] = ()
    peak_bytes: int = 0
    reason: str = ""
