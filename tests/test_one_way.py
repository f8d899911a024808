"""Data flows one way: a case is summarised where it enters, and its numbers are handed on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest_ortbench

PACKAGE = Path(pytest_ortbench.__file__).parent

#: Modules that may summarise, and why: each does so where nobody has the numbers yet.
WHERE_RESULTS_ENTER = {
    "session.py": "the run that is measured: once a result",
    "report/entries.py": "a stored run, for all that is shown of it",
    "report/badge.py": "one case of a stored run",
    "analysis/history.py": "many stored runs, of which only the median is kept",
    "fleet/numbers/facts.py": "many stored runs, of which few numbers are kept",
    "gate/numbers/metrics.py": "a stored run that is a side of a gate",
    "gate/measuring/gate.py": "the launches of a side of a gate",
    "passes/load/run.py": "what is measured so far",
    "passes/endurance/run/enduring.py": "what is measured so far",
    "passes/load/selfcheck.py": "a case that a self-check measured, of which its load is asked",
    "selfcheck/checks/graphs.py": "two cases that a self-check measured, with a graph and without",
    "execution/turns.py": "a case that was measured, of which a budget asks whether it is ranked",
}


def summarising(text: str) -> bool:
    """Whether a module calls ``summarise``, or hands the function itself on."""
    return any(
        isinstance(node, ast.Name) and node.id == "summarise" for node in ast.walk(ast.parse(text))
    )


def test_cases_are_summarised_where_they_enter_and_nowhere_else() -> None:
    modules = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if summarising(path.read_text(encoding="utf-8"))
    }
    assert modules == WHERE_RESULTS_ENTER.keys()


def test_a_module_that_hands_the_function_on_is_found() -> None:
    assert summarising("numbers = map(summarise, run.cases)")
    assert not summarising("def f(summary): return summary.quantities")
