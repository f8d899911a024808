"""A profile that broke off, or that there is none of: what a user sees of the case."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure, Placement
from pytest_ortbench.launch.launcher import ProcessWorker
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html.details import origin
from pytest_ortbench.schema.case_questions import ProfilePlacement
from pytest_ortbench.schema.question import CaseQuestion
from pytest_ortbench.store.documents import load
from tests.summarised import rows_of

from .conftest import QUICK

ModelFile = Callable[..., Path]
CPU = "CPUExecutionProvider"


def _cut(worker: ProcessWorker) -> Placement:
    return Placement(
        provider=CPU,
        executed={},
        seen={CPU: 3},
        cut_after=1_000_000,
    )


def _too_late(worker: ProcessWorker) -> Placement:
    worker.close()
    raise WorkerError(Failure(kind="timeout", phase="profile", message="not done after 3 s"))


@pytest.fixture(params=[_cut, _too_late])
def unproven(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make every profile end so; gives what is said of it."""
    ask = ProcessWorker.ask

    def ask_in_vain(worker: ProcessWorker, question: CaseQuestion[Any]) -> object:
        if isinstance(question, ProfilePlacement):
            return request.param(worker)
        return ask(worker, question)

    monkeypatch.setattr(ProcessWorker, "ask", ask_in_vain)
    return "ended after 1,000,000 events" if request.param is _cut else "not done after 3 s"


def test_no_share_is_claimed_anywhere(
    pytester: pytest.Pytester, model_file: ModelFile, unproven: str
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_it(ortbench):
            assert ortbench.placement().get("ratio") is None
            assert ortbench.placement().get("time") is None
            assert ortbench.latency().p50 > 0
        """
    )
    result = pytester.runpytest(*QUICK, "--ort-no-results", "--ort-json=run.json")
    result.assert_outcomes(passed=1)
    (case,) = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert case["status"] == "measured"
    assert case["placement"]["cut_after"] == (None if "3 s" in unproven else 1_000_000)
    run = load(pytester.path / "run.json")
    (row,) = rows_of(run)
    for column in ("placement_ratio", "time_on_provider", "nodes_on_provider", "nodes_total"):
        assert row.get(column) is None
    (entry,) = shown_run(run).entries
    assert any(unproven in fact for fact in origin(entry))


def test_who_asks_for_a_proof_gets_a_failure(
    pytester: pytest.Pytester, model_file: ModelFile, unproven: str
) -> None:
    model_file()
    strict, limit = "--ort-fallback=strict", "--ort-limits=placement >= 95 %"
    asked = limit if "3 s" in unproven else strict
    tests = "latency or placement" if asked == strict else "latency"
    result = pytester.runpytest("mlp.onnx", "-k", tests, asked, "--ort-no-results", *QUICK)
    failed = len(tests.split(" or "))
    result.assert_outcomes(failed=failed, deselected=6 - failed)
    result.stdout.fnmatch_lines(f"*{unproven}*")
