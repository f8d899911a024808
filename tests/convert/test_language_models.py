"""Precisions of a language model that onnxruntime-genai could run: what is made still generates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_ortbench.convert.half import to_half
from pytest_ortbench.core.recipe import Converted, Recipe
from pytest_ortbench.models.builders.generative import LLM_LONG, LlmSizes
from tests.generation.decoding import continued, difference, session
from tests.generation.folders import TINY, model_bytes

from .conversions import BF16, DYNAMIC, FP16, sqnr_db

pytestmark = pytest.mark.live

FOUR_BITS = Recipe(name="int4", base="int4")


@pytest.mark.parametrize(
    ("recipe", "sizes", "least_db", "agreeing", "step"),
    [
        (DYNAMIC, TINY, 30, 0.95, 0.03),  # its ranges are those of what is read at a time
        (DYNAMIC, LLM_LONG, 30, 0.95, 0.03),
        (FP16, TINY, 55, 0.98, 1e-3),
        (FP16, LLM_LONG, 55, 0.98, 1e-3),  # with tables in branches that no node reads
        (FOUR_BITS, TINY, 18, 0.85, 1e-5),
        (FOUR_BITS, LLM_LONG, 18, 0.85, 1e-5),
    ],
    ids=lambda value: value.name if isinstance(value, Recipe) else None,
)
def test_precisions_generate(
    make: Callable[..., Converted],
    tmp_path: Path,
    recipe: Recipe,
    sizes: LlmSizes,
    least_db: float,
    agreeing: float,
    step: float,
) -> None:
    """All products are quantised, the answers are near, and token by token they are the same."""
    content = model_bytes(sizes)
    result = make(content, recipe)
    assert result.facts["nodes_in_float"] == "0"
    ids = np.random.default_rng(0).integers(0, sizes.vocabulary, (1, 64))
    expected = continued(session(content), ids, [64])["logits"]
    model = session((tmp_path / "out" / "model.onnx").read_bytes())
    whole = continued(model, ids, [64])["logits"]
    assert sqnr_db(expected, whole) > least_db
    assert (expected.argmax(axis=2) == whole.argmax(axis=2)).mean() > agreeing
    parts = continued(model, ids, [58, 1, 1, 1, 1, 1, 1])["logits"]
    assert difference(parts, whole).max() < step


def test_bfloat16_goes_through_operators_without_a_domain(tmp_path: Path) -> None:
    """The CPU has no products in it, but the graph is whole: all weights, and no cast between."""
    source, target = tmp_path / "m.onnx", tmp_path / "half.onnx"
    source.write_bytes(model_bytes(TINY))
    to_half(source, target, BF16)
    graph = onnx.load(str(target)).graph
    kinds = {t.name: t.data_type for t in graph.initializer if t.name.endswith("weight")}
    assert set(kinds.values()) == {onnx.TensorProto.BFLOAT16}
    assert "layer0/norm1/weight" in kinds
    ends = {value.name for value in (*graph.input, *graph.output)}
    halves = (onnx.TensorProto.FLOAT, onnx.TensorProto.BFLOAT16)
    casts = [
        node for node in graph.node if node.op_type == "Cast" and node.attribute[0].i in halves
    ]
    assert len(casts) == 2 * 2 * TINY.layers + 1
    assert all(ends.intersection((*node.input, *node.output)) for node in casts)
