"""A baseline that makes no sense: known before anything is measured, and it costs no result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.schema.document import encode_run
from tests.mutations.bases import everything

from .conftest import QUICK, told

ModelFile = Callable[..., Path]


def _first_samples(document: dict[str, Any]) -> dict[str, Any]:
    samples: dict[str, Any] = document["cases"][0]["measurements"][0]["samples"]
    return samples


def _changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))
    return path


def _percent(document: dict[str, Any]) -> None:
    for statistic in _first_samples(document)["order_statistics"]:
        statistic["percent"] = 37.5


@pytest.fixture
def baseline(pytester: pytest.Pytester, model_file: ModelFile, drawn_numbers: None) -> Path:
    """A document of a run of ``mlp.onnx``."""
    model_file()
    result = pytester.runpytest(
        *QUICK, "mlp.onnx", "-k", "latency", "--ort-no-results", "--ort-json=base.json"
    )
    result.assert_outcomes(passed=1, deselected=5)
    return pytester.path / "base.json"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (_percent, "order_statistics[0].percent is 37.5"),
        (lambda document: _first_samples(document).update(sum_ns=-1), "sum_ns is -1"),
        (lambda document: _first_samples(document).update(count=-5), "count is -5"),
        (lambda document: _first_samples(document).update(count=2**63 - 1), "count is 92233"),
        (lambda document: _first_samples(document).update(durations_ns=[]), "durations_ns is an"),
        (lambda document: document["cases"][0].update(status="fine"), "status is 'fine'"),
        (lambda document: document["cases"][0].update(measurements=[]), "measurements is an empty"),
    ],
    ids=["percent", "negative-sum", "negative-count", "huge-count", "empty", "status", "nothing"],
)
def test_it_is_refused_before_anything_is_measured(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    change: Callable[[dict[str, Any]], None],
    place: str,
) -> None:
    model_file()
    path = pytester.path / "base.json"
    path.write_bytes(encode_run(everything()))
    _changed(path, change)
    result = pytester.runpytest(*QUICK, "mlp.onnx", "-k", "latency", "--ort-baseline=base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    assert ("base.json" in text, "$.cases[0]." in text) == (True, True)
    assert place in text
    assert "Traceback" not in text + result.stdout.str()
    assert not (pytester.path / "results").exists()


def test_an_older_run_that_makes_no_sense_is_left_out_of_a_folder_of_them(
    pytester: pytest.Pytester, baseline: Path
) -> None:
    for name, started in (("old", "2026-01-01T00:00:00Z"), ("new", "2026-01-02T00:00:00Z")):
        folder = pytester.path / "runs" / name
        folder.mkdir(parents=True)
        document = json.loads(baseline.read_bytes())
        document.update(run_id=name, started_at=started)
        if name == "old":
            _first_samples(document).update(sum_ns=-1)
        else:
            document["cases"][0]["case"]["batch"] = 2
        (folder / "run.json").write_text(json.dumps(document))
    result = pytester.runpytest(*QUICK, "mlp.onnx", "-k", "latency", "--ort-baseline=runs/")
    assert "INTERNALERROR" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*left out *old*sum_ns is -1*"])


def test_a_comparison_that_fails_costs_no_document(
    pytester: pytest.Pytester, baseline: Path
) -> None:
    pytester.makeconftest(
        """
        from pytest_ortbench.plugin.judging import Judging

        def broken(self):
            raise ZeroDivisionError("division by zero")

        Judging.settle = broken
        """
    )
    result = pytester.runpytest_subprocess(
        *QUICK, "mlp.onnx", "-k", "latency", f"--ort-baseline={baseline.name}"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any(text.startswith("ZeroDivisionError: ") for text in told(result, "gate"))
    [document] = (pytester.path / "results").glob("*/run.json")
    run = json.loads(document.read_bytes())
    assert [case["status"] for case in run["cases"]] == ["measured"]
    assert run["finished_at"]
