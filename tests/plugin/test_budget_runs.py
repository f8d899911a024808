"""Runs of pytest within a budget, with drawn numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import told

ModelFile = Callable[..., Path]

ARGUMENTS = ("-p", "no:cacheprovider", "--ort-providers=cpu", "--ort-json=run.json")

MADE = """
def test_made(ortbench):
    assert ortbench.measure("mlp.onnx").latency().p50 > 0
"""


def shares(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    return [
        case["budget"] for case in json.loads((pytester.path / "run.json").read_text())["cases"]
    ]


@pytest.mark.usefixtures("drawn_numbers")
def test_the_plan_is_told_beforehand_and_the_document_says_what_each_case_had(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(MADE)
    result = pytester.runpytest(".", "mlp.onnx", "--ort-budget=40s", "--ort-no-results", *ARGUMENTS)
    assert result.ret == 0
    first, *_ = told(result, "budget")
    assert first.startswith("40 s ")
    assert [line for line in result.outlines if line.startswith("budget: ")]
    made = shares(pytester)
    assert len(made) == 2
    assert all(share["given_s"] > 0 for share in made)


@pytest.mark.usefixtures("drawn_numbers")
def test_without_a_budget_nothing_is_told_of_one(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-no-results", *ARGUMENTS)
    assert told(result, "budget") == []
    assert shares(pytester) == [None]
