"""Journals and baselines that somebody else wrote: nothing that they say is started."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_ortbench.store.documents import load
from tests.canaries import CANARY, deeds, full_of_canaries

from .conftest import QUICK, told

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _everything(case: dict[str, Any]) -> None:
    """Put something of others wherever a case names what is started, loaded or written."""
    case["runtime"].update(
        command=["/bin/sh", "-c", "touch STARTED; exec cat"],
        environment={"PYTHONPATH": "theirs"},
        plugins={"X": "theirs.so"},
    )
    case["session"].update(custom_ops=["theirs.so"])
    case["provider"].update(library="theirs.so")
    case["sampling"].update(load_logs="theirs")
    case["stages"] = "theirs.py"


def _plant(pytester: pytest.Pytester, change: Callable[[dict[str, Any]], object]) -> None:
    """Make the journal of an interrupted run of what was measured, with the change in its case."""
    (document,) = pytester.path.glob("results/*/run.json")
    run = json.loads(document.read_text())
    cases = run.pop("cases")
    for result in cases:
        change(result["case"])
    lines = [{**run, "cases": [], "finished_at": None, "canary": None}, *cases]
    journal = document.with_name("journal.jsonl")
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document.unlink()


def test_a_journal_of_others_starts_nothing(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    model_file()
    (pytester.path / "theirs").mkdir()
    payload = "import pathlib; pathlib.Path('STARTED').touch()\n"
    (pytester.path / "theirs" / "sitecustomize.py").write_text(payload)
    (pytester.path / "theirs.py").write_text(payload)
    (pytester.path / "theirs.so").write_text("no library")
    arguments = ("mlp.onnx", "-k", "latency", *QUICK)
    assert pytester.runpytest(*arguments).ret == 0
    _plant(pytester, _everything)
    result = pytester.runpytest(*arguments, "--ort-resume", "--ort-profile")
    result.assert_outcomes(passed=1)
    assert told(result, "resumed")[0].startswith("none of 1 ")
    (document,) = pytester.path.glob("results/*/run.json")
    (measured,) = load(document).cases
    assert measured.profile is not None
    assert measured.profile.reason == ""
    assert "theirs" not in repr(measured.case)
    assert not (pytester.path / "STARTED").exists()
    assert [entry.name for entry in (pytester.path / "theirs").iterdir()] == ["sitecustomize.py"]


def test_a_journal_of_the_same_case_is_taken_and_the_pass_runs_the_planned_one(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    """Where a file lies does not decide, so the result is taken, and the planned path stands."""
    model_file()
    arguments = ("mlp.onnx", "-k", "latency", *QUICK)
    assert pytester.runpytest(*arguments).ret == 0

    def move(case: dict[str, Any]) -> None:
        case["model"]["path"] = case["variant"]["path"] = "/theirs/mlp.onnx"

    _plant(pytester, move)
    result = pytester.runpytest(*arguments, "--ort-resume", "--ort-profile")
    result.assert_outcomes(passed=1)
    assert told(result, "resumed")[0].startswith("1 of 1 ")
    (document,) = pytester.path.glob("results/*/run.json")
    (measured,) = load(document).cases
    assert measured.profile is not None
    assert measured.profile.reason == ""
    assert measured.case.variant.path == str(pytester.path / "mlp.onnx")


def test_a_baseline_of_others_is_compared_and_nothing_else(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    model_file()
    # Without pytest-benchmark, whose warning about its unused fixture is an error in this process.
    arguments = ("mlp.onnx", "-k", "latency", "-p", "no:benchmark", *QUICK)
    assert pytester.runpytest_inprocess(*arguments).ret == 0
    (document,) = pytester.path.glob("results/*/run.json")
    named = {"model", "variant", "provider", "runtime"}
    theirs = full_of_canaries(
        json.loads(document.read_text()),
        # What its id is made of stays, so that the case has a counterpart.
        keep=lambda place: len(place) == 5 and place[3] in named and place[4] != "path",
    )
    theirs["cases"][0]["case"].update(dims={}, knobs={})
    theirs["cases"][0]["case"]["provider"]["then"] = []
    assert CANARY in json.dumps(theirs["cases"][0]["case"]["session"])
    (pytester.path / "theirs.json").write_text(json.dumps(theirs))
    with deeds() as found:
        result = pytester.runpytest_inprocess(*arguments, "--ort-baseline=theirs.json")
    assert found == []
    assert any(line.split()[:2] == ["gate", "mlp/native/cpu/b1"] for line in result.outlines)
