"""How many assertions check English sentences outside the tests of wording, at most."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

#: Tests of what people read: the sentences are what these modules make, so tests assert them.
WORDING = (
    "report/*",
    "fleet/report/*",
    "gate/report/*",
    "passes/*/test_report.py",
    "passes/*/test_section.py",
    "passes/*/test_figures.py",
    "passes/profile/test_bottlenecks.py",
    "analysis/test_answers.py",
    "analysis/test_limits.py",
    "analysis/test_recommendation.py",
    "analysis/test_scaling.py",
    "analysis/test_validity.py",
    "fleet/numbers/test_matrix.py",
    "fleet/numbers/test_shipping.py",
)

#: Tests of what reads sentences of others: here those of MLPerf's generator.
FOREIGN = ("passes/load/test_log.py", "engines/test_messages.py")

#: Assertions on sentences in all other tests, at most. Whoever makes them fewer lowers it.
LIMIT = 330

#: A word with what may stand around it in a sentence or in a pattern.
_WORD = re.compile(r"[^\w\s]*[A-Za-z]{2,}(?:['’-][A-Za-z]+)*[^\w\s]*")

_LINE_MATCHERS = ("fnmatch_lines", "no_fnmatch_line", "re_match_lines")


def _asserted(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield each expression that a test compares with something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _LINE_MATCHERS
        ):
            yield node


def _is_sentence(node: ast.AST) -> bool:
    """Return whether a node is a text of three words or more; names of code are no words."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return sum(map(bool, map(_WORD.fullmatch, node.value.split()))) >= 3


def _parts(expression: ast.expr) -> Iterator[ast.AST]:
    """Yield what an assertion consists of, but for keys that look something up: they are names."""
    keys = {node.slice for node in ast.walk(expression) if isinstance(node, ast.Subscript)}
    return (part for part in ast.walk(expression) if part not in keys)


def count(source: str) -> int:
    """Return how many assertions of a module hold a sentence."""
    return sum(any(map(_is_sentence, _parts(each))) for each in _asserted(ast.parse(source)))


def test_sentences_are_counted_once_for_each_assertion() -> None:
    assert count('assert "the end is near" in x and "the end is far" in x') == 1
    assert count('with raises(E, match="is no such file"): pass') == 1
    assert count('result.stdout.fnmatch_lines(["one two three*", "four five six"])') == 1
    assert count('assert x.place == "--ort-dims" and "3 kB" in x.message') == 0
    assert count('assert "no_such.name (is) here:" in x["ratio of blocks"]') == 0
    assert count('assert "it is (not) here:" in x and limit(x, "sides_sqnr >= 40 dB")') == 1


def test_few_assertions_outside_the_tests_of_wording_check_sentences() -> None:
    counts = {
        path.relative_to(TESTS).as_posix(): count(path.read_text(encoding="utf-8"))
        for path in sorted(TESTS.rglob("test_*.py"))
        if not any(path.relative_to(TESTS).match(pattern) for pattern in (*WORDING, *FOREIGN))
    }
    most = sorted(counts.items(), key=lambda entry: -entry[1])[:10]
    assert sum(counts.values()) <= LIMIT, most
