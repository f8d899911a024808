"""Runs of pytest within a budget, with drawn numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.execution.budget import LEAST_WORKERS, MOST_WORKERS, STANDARD
from pytest_ortbench.plugin.taken import existing_bench
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


class _Parts:
    """Notes how many workers each case of a run may have at most."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        bench = existing_bench(session.config)
        assert bench is not None
        assert bench.budget is not None
        parts = [part for part in bench.budget.parts if part.name == STANDARD]
        self.most = {part.key[0]: part.most_workers for part in parts}


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ((), LEAST_WORKERS),
        (("--ort-limits=latency_p90 <= 1 s",), MOST_WORKERS),
        (("--ort-baseline=latest",), MOST_WORKERS),
    ],
    ids=["gate", "limit", "stored run"],
)
def test_a_case_whose_gate_alone_decides_has_no_more_workers_than_usual(
    options: tuple[str, ...], most: int, pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("new.onnx")
    grown = model_file("old.onnx", batch=1)
    assert grown.read_bytes() != (pytester.path / "new.onnx").read_bytes()
    parts = _Parts()
    arguments = ("new.onnx", "--ort-against=model:old.onnx", "--ort-budget=90s", *options)
    pytester.runpytest_inprocess(*arguments, "--collect-only", *ARGUMENTS, plugins=[parts])
    assert parts.most == {"new/native/cpu/b1": most}
