"""Changed models through inspection, planning, measuring and conversion; see ``model_trial``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import onnx
import pytest

from tests.mutations.model_bases import model_bases
from tests.mutations.model_mutator import mutant_of
from tests.mutations.model_trial import RESULTS, Record, records, table_of

#: What may become of a model or of its conversion.
_OUTCOMES = {"measured", "unsupported", "unavailable", "error", "out_of_memory", "crash", "timeout"}

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each model has a fork")


def _assert_typed(found: Sequence[Record]) -> None:
    assert [(record["seed"], record["faults"]) for record in found if record["faults"]] == []
    outcomes = [outcome for record in found for outcome in record["outcomes"].values()]
    ended = [outcome for outcome in outcomes if outcome["status"] in ("crash", "timeout")]
    assert len(outcomes) >= 2 * len(found) - len(ended)
    assert {outcome["status"] for outcome in outcomes} <= _OUTCOMES


@needs_fork
@pytest.mark.live
def test_what_becomes_of_forty_changed_models_has_a_type() -> None:
    found = list(records(range(40)))
    _assert_typed(found)
    assert len({outcome["status"] for r in found for outcome in r["outcomes"].values()}) >= 3


@needs_fork
@pytest.mark.heavy
def test_what_becomes_of_two_thousand_changed_models_has_a_type() -> None:
    _assert_typed(list(records(range(2000))))


def test_the_record_of_two_thousand_has_no_fault() -> None:
    table: dict[str, Any] = json.loads((RESULTS / "table.json").read_text(encoding="utf-8"))
    assert (table["models"], table["faults"]) == (2000, [])
    counts = [count for forms in table["outcomes"].values() for count in forms.values()]
    assert {status for count in counts for status in count} <= _OUTCOMES
    assert set(table["outcomes"]) == set(model_bases())


def test_a_seed_gives_one_changed_model() -> None:
    assert mutant_of(7) == mutant_of(7)
    assert len({str(mutant_of(seed).files) for seed in range(200)}) > 190


def test_outcomes_are_counted_by_base_and_form() -> None:
    measured, broken = ({"status": status, "reason": ""} for status in ("measured", "error"))
    first = {
        "seed": 1,
        "base": "mlp",
        "outcomes": {"native": measured, "fp16": broken},
        "faults": [],
    }
    second = {"seed": 2, "base": "mlp", "outcomes": {"native": measured}, "faults": ["no reason"]}
    table = table_of([first, second])
    assert table["outcomes"] == {"mlp": {"as it is": {"measured": 2}, "converted": {"error": 1}}}
    assert table["faults"] == [{"seed": 2, "faults": ["no reason"]}]


@pytest.mark.parametrize("name", model_bases())
def test_every_base_is_a_model(name: str) -> None:
    data, external = model_bases()[name]
    model = onnx.load_model_from_string(data)
    assert bool(external) == (name == "external")
    assert model.graph.node
