"""Half precision to float32."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.recipe import Converted
from tests.worker.graphs import serialised, value, weights

from .conversions import DYNAMIC, FLOAT, FP32, HALF, made, outputs, sqnr_db, stored

pytestmark = pytest.mark.live


class TestWiden:
    def source(self) -> bytes:
        return serialised(
            [
                helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
                helper.make_node("Relu", ["h"], ["y"], name="relu"),
            ],
            [value("x", HALF, ["N", 16])],
            [value("y", HALF, ["N", 16])],
            {"w": weights(16, 16, dtype="float16")},
        )

    def test_weights_that_stand_among_the_inputs_are_widened_as_weights(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        """As every file of IR version 3 lists them."""
        model = onnx.load_from_string(self.source())
        model.ir_version = 3
        model.graph.input.append(value("w", HALF, [16, 16]))
        make(model.SerializeToString(), FP32)
        graph = made(tmp_path).graph
        assert {v.name: v.type.tensor_type.elem_type for v in graph.input} == {"x": HALF}
        assert {weight.name: weight.data_type for weight in graph.initializer} == {"w": FLOAT}
        result = make(model.SerializeToString(), DYNAMIC)
        assert result.facts["weights"].startswith("99.6 %")
        x = np.random.default_rng(5).standard_normal((2, 16)).astype(np.float16)
        expected = np.maximum(
            x.astype(np.float32) @ weights(16, 16, dtype="float16").astype(np.float32), 0
        )
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert found.dtype == np.float16
        assert sqnr_db(expected, found) > 25

    @pytest.mark.parametrize(("keep", "kind"), [(True, HALF), (False, FLOAT)])
    def test_float16_becomes_float32_with_the_same_values(
        self, make: Callable[..., Converted], tmp_path: Path, keep: bool, kind: int
    ) -> None:
        result = make(self.source(), replace(FP32, keep_io_types=keep))
        model = made(tmp_path)
        tensor = stored(model)["w"]
        assert np.array_equal(
            numpy_helper.to_array(tensor), weights(16, 16, dtype="float16").astype(np.float32)
        )
        assert [
            v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)
        ] == [
            kind,
            kind,
        ]
        assert result.facts["weights"].split()[::3] == ["100.0", "256", "fp32"]

    def test_eight_bits_of_a_float16_file_go_through_float32(
        self, make: Callable[..., Converted]
    ) -> None:
        result = make(self.source(), DYNAMIC)
        assert re.findall(r"fp\d+", result.notes[0]) == ["fp16", "fp32"]
        assert result.facts["weights"].startswith("99.6 %")
