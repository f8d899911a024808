"""The badge says what the answer says."""

from __future__ import annotations

import json

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.badge import render_badge
from tests import results_factory as factory
from tests.report import sample_runs


def test_the_fastest_variant_with_its_interval() -> None:
    run = sample_runs.ten_cases()
    badge = json.loads(render_badge(run, "mobilenet_v2"))
    assert badge["schemaVersion"] == 1
    assert badge["label"] == "mobilenet_v2"
    assert badge["color"] == "blue"
    label, _, number = badge["message"].partition(" ")
    assert label == "int8-static/cpu/b1"
    assert f"{label}, p50 {number}, " in answer_lines(run)[1]


def test_nothing_to_rank() -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case())])
    badge = json.loads(render_badge(run, "mobilenet_v2"))
    assert (badge["message"], badge["color"]) == ("not ranked", "lightgrey")


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(UsageError, match="'mobilenet_v3' is not a model of this run"):
        render_badge(sample_runs.one_case(), "mobilenet_v3")
