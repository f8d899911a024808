"""Python's own profilers around some rounds of work.

Standard library only, and nothing of this package: the process of a user's application loads this
file by its path (:mod:`pytest_ortbench.launch.app_under_profiler`).
"""

from __future__ import annotations

import cProfile
import gc
import tracemalloc
from pathlib import PurePath
from types import CodeType
from typing import Any

#: Functions and lines that are kept.
_MOST_ROWS = 20
#: Parts of a path that are kept, and characters of it and of a name.
_PARTS, _LONGEST_TEXT = 3, 120


class CallProfile:
    """``cProfile`` around rounds, of the thread that begins it."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def begin(self) -> None:
        """Begin to look."""
        self._profile.enable()

    def found(self) -> dict[str, Any]:
        """Stop, and return the functions with the most time of their own."""
        self._profile.disable()
        entries = [entry for entry in self._profile.getstats() if _file_of(entry.code) != _HERE]
        slowest = sorted(entries, key=lambda entry: -entry.inlinetime)[:_MOST_ROWS]
        functions = [
            {
                "file": _end_of(_file_of(entry.code)),
                "line": 0 if isinstance(entry.code, str) else entry.code.co_firstlineno,
                "name": _name_of(entry.code)[:_LONGEST_TEXT],
                "calls": entry.callcount,
                "own_ns": round(entry.inlinetime * 1e9),
                "whole_ns": round(entry.totaltime * 1e9),
            }
            for entry in slowest
        ]
        return {"functions": functions, "lines": [], "peak_bytes": 0}


class MemoryProfile:
    """``tracemalloc`` around rounds, of all threads."""

    def __init__(self) -> None:
        self._before: tracemalloc.Snapshot | None = None
        self._held = 0

    def begin(self) -> None:
        """Begin to look."""
        gc.collect()
        tracemalloc.start()
        self._before = tracemalloc.take_snapshot()
        tracemalloc.reset_peak()
        self._held, _ = tracemalloc.get_traced_memory()

    def found(self) -> dict[str, Any]:
        """Stop, and return the lines that hold the most memory."""
        _, peak = tracemalloc.get_traced_memory()
        after = tracemalloc.take_snapshot()
        tracemalloc.stop()
        assert self._before is not None
        others = [tracemalloc.Filter(False, file) for file in (_HERE, tracemalloc.__file__)]
        changes = after.filter_traces(others).compare_to(
            self._before.filter_traces(others), "lineno"
        )
        largest = sorted(changes, key=lambda change: -change.size_diff)[:_MOST_ROWS]
        lines = [
            {
                "file": _end_of(change.traceback[0].filename),
                "line": change.traceback[0].lineno,
                "held_bytes": change.size_diff,
                "blocks": max(0, change.count_diff),
            }
            for change in largest
            if change.size_diff > 0
        ]
        return {"functions": [], "lines": lines, "peak_bytes": max(0, peak - self._held)}


#: This file as profilers name it.
_HERE = CallProfile.begin.__code__.co_filename


def profiler_of(name: str) -> CallProfile | MemoryProfile:
    """Return what looks, by the name of its module."""
    return CallProfile() if name == "cprofile" else MemoryProfile()


def _file_of(code: CodeType | str) -> str:
    """The file of a function; empty for one of Python itself, which has a text for its code."""
    return "" if isinstance(code, str) else code.co_filename


def _name_of(code: CodeType | str) -> str:
    return code if isinstance(code, str) else code.co_name


def _end_of(path: str) -> str:
    return "/".join(PurePath(path).parts[-_PARTS:])[-_LONGEST_TEXT:]
