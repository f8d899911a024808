"""A package that only some runs need is missed before anything is measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core import extras
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.recipe import Recipe
from pytest_ortbench.passes.load.planning.asked import refuse_unwritten_tokens
from pytest_ortbench.plugin.missing_extras import missing_extras, refuse_without_prometheus
from tests.refused import refused
from tests.results_factory import make_case


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)


def test_a_file_for_prometheus_asks_for_its_extra() -> None:
    with refused(UsageError, "prometheus_client", hint="pytest-ortbench[prometheus]"):
        refuse_without_prometheus(value="metrics.prom", place="--ort-prometheus")
    refuse_without_prometheus(value=None, place="--ort-prometheus")


def test_a_load_asks_for_the_generator_where_it_would_run_here() -> None:
    options: Any = SimpleNamespace(load=("peak:p99:20ms",), place_of=lambda _: "--ort-load")
    with refused(UsageError, "mlperf_loadgen", hint="pytest-ortbench[load]"):
        refuse_unwritten_tokens(options, [make_case()])
    # Another interpreter may have it, which is asked when it starts.
    refuse_unwritten_tokens(options, [make_case(runtime="onnxruntime-1.30")])
    options.load = ()
    refuse_unwritten_tokens(options, [make_case()])


@pytest.mark.parametrize(
    ("recipe", "extra"),
    [
        (Recipe(name="int4", base="int4"), "pytest-ortbench[int4]"),
        (Recipe(name="slim", base="fp16", simplify=True), "pytest-ortbench[simplify]"),
        (Recipe(name="fp16", base="fp16"), ""),
    ],
)
def test_a_precision_that_can_not_be_made_here_is_told(recipe: Recipe, extra: str) -> None:
    planned: Any = SimpleNamespace(conversion=SimpleNamespace(recipe=recipe), refusal=None)
    notes = missing_extras([planned, planned])
    assert len(notes) == bool(extra)
    assert all(extra in note for note in notes)
