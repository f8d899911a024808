"""What one pytest run says is the same in the terminal, on the page, in the job summary, for a
collector of metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.report.page_reader import read_page

from .conftest import QUICK


def test_the_answer_is_one_and_the_same_everywhere(
    pytester: pytest.Pytester, model_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model_file()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    result = pytester.runpytest(
        "mlp.onnx",
        "--ort-no-results",
        "--ort-batch-sizes=1,4",
        "--ort-json=run.json",
        "--ort-html=report.html",
        "-k=latency",
        *QUICK,
    )
    assert result.ret == 0
    lines = result.stdout.lines
    last = next(number for number, line in enumerate(lines) if line.startswith("run: "))
    answer = [line for line in lines[:last] if line.startswith("mlp: ")]
    assert answer
    assert lines[last - len(answer) : last] == answer

    title, block, *_ = (pytester.path / "summary.md").read_text(encoding="utf-8").split("\n\n")
    assert title.splitlines()[1].startswith("## ")
    written = [line.removeprefix("- ").replace("\\", "") for line in block.splitlines()]
    assert [unescape(line) for line in written] == answer
    page = read_page((pytester.path / "report.html").read_text(encoding="utf-8"))
    assert page.answers == answer


def test_metrics_for_a_collector_are_those_of_the_document(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    model_file()
    (pytester.path / "m").mkdir()
    (pytester.path / "m/ort.prom").symlink_to("kept.prom")
    result = pytester.runpytest(
        "mlp.onnx", "--ort-no-results", "--ort-json=run.json", "--ort-prometheus=m/ort.prom",
        "-k=latency", *QUICK,
    )  # fmt: skip
    assert result.ret == 0
    assert "metrics: m/ort.prom" in result.outlines
    assert {path.name: path.is_symlink() for path in (pytester.path / "m").iterdir()} == {
        "kept.prom": False, "ort.prom": True,
    }  # fmt: skip
    (case,) = json.loads((pytester.path / "run.json").read_text())["cases"]
    families = {
        family.name: family.samples
        for family in text_string_to_metric_families((pytester.path / "m/ort.prom").read_text())
    }
    (size,) = families["ortbench_model_size_bytes"]
    assert size.value == case["case"]["variant"]["size_bytes"]
    assert size.labels["case"] == "mlp/native/cpu/b1"
    (p50,) = families["ortbench_latency_p50_seconds"]
    (worker,) = case["measurements"]
    assert worker["samples"]["min_ns"] <= p50.value * 1e9 <= worker["samples"]["max_ns"]
