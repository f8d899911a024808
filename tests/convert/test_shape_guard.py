"""A graph that ends onnx's shape inference costs the types, not the conversion."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from pytest_ortbench.convert import shape_guard
from pytest_ortbench.convert.shape_guard import CRASHED, guarded
from pytest_ortbench.core.recipe import Converted
from tests.worker.graphs import serialised, value, weights

from .conversions import DYNAMIC, FLOAT, FP16, made, refusal

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform != "linux", reason="a process is copied on Linux alone"),
]

Make = Callable[..., Converted]


def crashing() -> bytes:
    """Labels of what an operator of another domain gives, whose type inference does not know."""
    plain = serialised(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
            helper.make_node("Gelu", ["m"], ["g"], name="act", domain="com.microsoft"),
            helper.make_node("Floor", ["g"], ["f"], name="floor"),
            helper.make_node(
                "LabelEncoder",
                ["f"],
                ["y"],
                name="labels",
                domain="ai.onnx.ml",
                keys_floats=[0.0, 1.0, 2.0],
                values_floats=[0.5, 1.5, 2.5],
                default_float=9.0,
            ),
        ],
        [value("x", FLOAT, ["N", 24])],
        [value("y", FLOAT, ["N", 24])],
        {"w": weights(24, 24)},
    )
    found = onnx.load_model_from_string(plain)
    found.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return bytes(found.SerializeToString())


def sound() -> bytes:
    """A value between two nodes, whose type inference tells."""
    return serialised(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Abs", ["r"], ["y"])],
        [value("x", FLOAT, ["N", 24])],
        [value("y", FLOAT, ["N", 24])],
        {},
    )


def test_a_copied_process_that_waits_for_a_lock_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    held, copied_from, infer = threading.Lock(), os.getpid(), onnx.shape_inference.infer_shapes
    held.acquire()

    def waits_in_a_copy(model: onnx.ModelProto) -> onnx.ModelProto:
        if os.getpid() != copied_from:
            held.acquire()
        return infer(model)

    monkeypatch.setattr(shape_guard, "STANDS_STILL_S", 0.3)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", waits_in_a_copy)
    with guarded() as notes:
        typed = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(sound()))
    assert [info.name for info in typed.graph.value_info] == ["r"]
    assert notes == []


def test_inference_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "typed.onnx"
    source.write_bytes(crashing())
    own = onnx.shape_inference.infer_shapes
    with guarded() as notes:
        model = onnx.load(source)
        assert onnx.shape_inference.infer_shapes(model) == model
        assert onnx.shape_inference.infer_shapes(source.read_bytes()) == model
        onnx.shape_inference.infer_shapes_path(str(source), str(target))
        assert notes == [CRASHED]
    assert target.read_bytes() == source.read_bytes()
    assert onnx.shape_inference.infer_shapes is own


def test_inference_that_ends_well_is_used() -> None:
    with guarded() as notes:
        typed = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(sound()))
    assert [info.name for info in typed.graph.value_info] == ["r"]
    assert notes == []


def test_such_a_model_is_converted(make: Make, tmp_path: Path) -> None:
    converted = make(crashing(), DYNAMIC)
    assert CRASHED in converted.notes
    assert not converted.unchecked
    session = ort.InferenceSession(made(tmp_path).SerializeToString())
    (answer,) = session.run(None, {"x": np.zeros((1, 24), np.float32)})
    assert answer.tolist() == [[0.5] * 24]


def test_a_variant_that_needs_the_types_is_refused_for_that(make: Make) -> None:
    failure = refusal(make, crashing(), FP16)
    assert (failure.kind, CRASHED in failure.message) == ("unsupported", True)


def test_what_the_source_refuses_too_is_not_run(make: Make) -> None:
    fixed = serialised(
        [
            helper.make_node("Reshape", ["x", "shape"], ["r"], name="cut"),
            helper.make_node("MatMul", ["r", "w"], ["y"], name="mm"),
        ],
        [value("x", FLOAT, ["N", 25])],
        [value("y", FLOAT, ["N", 24])],
        {"w": weights(24, 24), "shape": np.array([-1, 24])},
    )
    converted = make(fixed, FP16)
    assert converted.unchecked
    assert converted.notes == ()
