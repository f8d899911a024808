"""What runs of pytest inside a test's process share, or do without.

Each would ask the interpreter what it has, measure the canary for a second, and draw figures for
another, which few tests are about. Runs in a process of their own do all of it, unless their
project has ``CONFTEST``.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

#: What differs from test to test and says nothing of the interpreter.
_OF_A_TEST = ("HOME", "PYTEST_CURRENT_TEST", "USERPROFILE")

#: For the project of a pytest in a process of its own that is about no numbers.
CONFTEST = """
import pytest
from tests import inner_runs
inner_runs.draw_empty_figures(pytest.MonkeyPatch())
inner_runs.take_a_canary_for_measured(pytest.MonkeyPatch())
"""

_answers: dict[tuple[str, ...], object] = {}


def draw_empty_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw one empty figure instead of those of a run, and none of a comparison."""
    from matplotlib.figure import Figure

    figures = [("latency", Figure())]
    monkeypatch.setattr("pytest_ortbench.report.html.page.figures", lambda *_, **__: figures)
    monkeypatch.setattr("pytest_ortbench.report.figures.figures", lambda *_, **__: figures)
    monkeypatch.setattr("pytest_ortbench.fleet.report.figures.comparison_figures", lambda _: [])


def take_a_canary_for_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the canary have durations without a worker."""
    from pytest_ortbench.core.run import Canary

    def measured(_: object) -> Canary:
        return Canary(model="builtin:canary@0123456789ab", durations_ns=(2_000_000,) * 10)

    monkeypatch.setattr("pytest_ortbench.execution.canary.measure_canary", measured)
    monkeypatch.setattr("pytest_ortbench.plugin.stored_baseline.measure_canary", measured)


def ask_interpreters_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what an interpreter has for later runs in the same environment."""
    from pytest_ortbench.launch.launcher import ProcessLauncher

    ask = ProcessLauncher._look

    def look(launcher: ProcessLauncher, runtime: Any, question: Any) -> Any:
        environment = {name: os.environ[name] for name in os.environ if name not in _OF_A_TEST}
        key = (repr(runtime), repr(question), repr(sorted(environment.items())))
        if key not in _answers:
            _answers[key] = ask(launcher, runtime, question)
        return _answers[key]

    monkeypatch.setattr(ProcessLauncher, "_look", look)
