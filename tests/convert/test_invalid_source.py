"""A file that is no valid model is told as that, whatever was to be made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.convert.make import make_variant
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.recipe import Recipe
from pytest_ortbench.schema.model_questions import Convert
from pytest_ortbench.worker.state import WorkerState
from tests.worker.graphs import serialised, value, weights

from .conversions import DYNAMIC, FLOAT, FP16, conversion_of, resized

pytestmark = pytest.mark.live

X, Y = value("x", FLOAT, ["N", 8]), value("y", FLOAT, ["N", 8])
PRODUCT = helper.make_node("MatMul", ["r", "w"], ["y"], name="mm")


def same_name() -> bytes:
    """Two nodes of one name."""
    return serialised(
        [
            helper.make_node("Relu", ["x"], ["s"], name="cut"),
            helper.make_node("Relu", ["s"], ["r"], name="cut"),
            PRODUCT,
        ],
        [X],
        [Y],
        {"w": weights(8, 8)},
    )


def two_types() -> bytes:
    """A sum of a float and an integer."""
    node = helper.make_node("Add", ["x", "i"], ["r"], name="mixed")
    return serialised([node, PRODUCT], [X], [Y], {"w": weights(8, 8), "i": np.ones(8, np.int64)})


def unknown_attribute() -> bytes:
    """A Relu with a slope."""
    node = helper.make_node("Relu", ["x"], ["r"], name="act", slope=3)
    return serialised([node, PRODUCT], [X], [Y], {"w": weights(8, 8)})


def wrong_output() -> bytes:
    """An output that is declared with another type."""
    node = helper.make_node("Relu", ["x"], ["r"], name="act")
    output = value("y", TensorProto.INT64, ["N", 8])
    return serialised([node, PRODUCT], [X], [output], {"w": weights(8, 8)})


def phases_and_error(folder: Path, source: bytes, recipe: Recipe) -> tuple[list[str], Exception]:
    path, out = folder / "m.onnx", folder / "out"
    path.write_bytes(source)
    out.mkdir()
    phases: list[str] = []
    question = Convert(conversion=conversion_of(path, recipe), folder=str(out))
    with pytest.raises(Exception) as caught:
        make_variant(question, WorkerState(phases.append))
    return phases, caught.value


@pytest.mark.parametrize("source", [same_name, two_types, unknown_attribute, wrong_output])
@pytest.mark.parametrize("recipe", [FP16, DYNAMIC], ids=lambda recipe: recipe.base)
def test_what_onnx_runtime_says_of_the_source_is_told_in_the_phase_of_its_session(
    tmp_path: Path, source: object, recipe: Recipe
) -> None:
    assert callable(source)
    phases, error = phases_and_error(tmp_path, source(), recipe)
    assert phases[-1] == "session"
    assert not isinstance(error, WorkerError)
    assert "Load model from " in str(error)


def test_a_valid_source_leaves_the_conversion_to_blame(tmp_path: Path) -> None:
    phases, error = phases_and_error(tmp_path, resized(), DYNAMIC)
    assert phases[-1] == "convert"
    assert isinstance(error, WorkerError)
    assert error.failure.phase == "convert"
