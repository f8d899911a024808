"""What Python's profilers found in code of the user's, as tables."""

from __future__ import annotations

from pytest_ortbench.core.python_profile import CPROFILE, PythonProfile
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import PassTable

#: Rows of a table.
_SHOWN = 10
_FUNCTIONS = ("function", "calls", "own time", "with callees")
_LINES = ("line", "held", "allocations")


def profile_tables(
    profiles: tuple[PythonProfile, ...], of_what: str, round_name: str
) -> tuple[PassTable, ...]:
    """Return a table for each profiler.

    Args:
        profiles: What they found.
        of_what: What they looked at, for people.
        round_name: What they looked at is made of: ``frame``.
    """
    return tuple(_table(profile, of_what, round_name) for profile in profiles)


def _table(profile: PythonProfile, of_what: str, round_name: str) -> PassTable:
    title = f"{profile.profiler} of {of_what}"
    if profile.reason:
        return PassTable(title=one_line(title), remarks=(one_line(profile.reason),))
    rounds = counted(profile.rounds, round_name)
    if profile.profiler == CPROFILE:
        return PassTable(
            title=one_line(f"{title} (for each of {rounds}; the profiler makes them slower)"),
            headings=_FUNCTIONS,
            rows=_functions(profile),
        )
    peak = format_amount(profile.peak_bytes, "bytes")
    return PassTable(
        title=one_line(f"{title} (held at the end of {rounds}; {peak} at most meanwhile)"),
        headings=_LINES,
        rows=_lines(profile),
        remarks=() if profile.lines else ("nothing more is held than before",),
    )


def _functions(profile: PythonProfile) -> tuple[tuple[str, ...], ...]:
    def each(ns: int) -> str:
        return format_amount(ns * 1e-9 / max(1, profile.rounds), "s")

    return tuple(
        (
            one_line(f"{function.file}:{function.line} {function.name}".removeprefix(":0 ")),
            significant(function.calls / max(1, profile.rounds)),
            each(function.own_ns),
            each(function.whole_ns),
        )
        for function in profile.functions[:_SHOWN]
    )


def _lines(profile: PythonProfile) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            one_line(f"{line.file}:{line.line}"),
            format_amount(line.held_bytes, "bytes"),
            str(line.blocks),
        )
        for line in profile.lines[:_SHOWN]
    )
