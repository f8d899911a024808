"""Python's own profilers: which functions and lines they name, and that they stop."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from pytest_ortbench.core import python_profilers
from pytest_ortbench.core.python_profilers import profiler_of

#: The end of this file's path.
HERE = "/".join(PurePath(__file__).parts[-3:])


def counted_up(count: int) -> int:
    return sum(one_more(number) for number in range(count))


def one_more(number: int) -> int:
    return number + 1


def looked_at(profiler: str, work: Callable[[], object]) -> dict[str, Any]:
    looking = profiler_of(profiler)
    looking.begin()
    held = work()
    found = looking.found()
    del held
    return found


def test_functions_are_named_with_their_calls_and_times() -> None:
    before = sys.getprofile()
    found = looked_at("cprofile", lambda: counted_up(50))
    assert sys.getprofile() is before
    named = {row["name"]: row for row in found["functions"]}
    inner, outer = named["one_more"], named["counted_up"]
    assert (inner["calls"], outer["calls"]) == (50, 1)
    assert (inner["file"], inner["line"]) == (HERE, one_more.__code__.co_firstlineno)
    assert outer["whole_ns"] >= outer["own_ns"] >= 0
    own = [row["own_ns"] for row in found["functions"]]
    assert own == sorted(own, reverse=True)
    assert found["lines"] == []


def test_what_a_round_holds_is_named_by_its_line() -> None:
    found = looked_at("tracemalloc", lambda: [bytearray(10**6) for _ in range(3)])
    assert not tracemalloc.is_tracing()
    largest = found["lines"][0]
    assert largest["file"] == HERE
    assert 3 * 10**6 <= largest["held_bytes"] < 4 * 10**6
    assert found["peak_bytes"] >= 3 * 10**6
    assert found["functions"] == []


def test_what_was_given_back_counts_for_the_peak_alone() -> None:
    found = looked_at("tracemalloc", lambda: len(bytearray(10**7)))
    assert found["peak_bytes"] >= 10**7
    assert all(line["held_bytes"] < 10**6 for line in found["lines"])


def test_rows_and_texts_are_bounded() -> None:
    name, made = "f" * 1000, dict[str, Any]()
    source = "\n".join(f"def {name}{number}(): return 1" for number in range(40))
    exec(compile(source, f"/a/b/c/{'e' * 1000}.py", "exec"), made)
    functions = [function for key, function in made.items() if key.startswith(name)]
    found = looked_at("cprofile", lambda: [function() for function in functions])
    assert len(found["functions"]) == python_profilers._MOST_ROWS
    for row in found["functions"]:
        assert len(row["name"]) <= python_profilers._LONGEST_TEXT
        assert len(row["file"]) <= python_profilers._LONGEST_TEXT
