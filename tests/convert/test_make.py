"""Conversions: what comes out is what its name says, or there is a reason why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert import graph, half, integer
from pytest_ortbench.core.recipe import Converted, Recipe
from pytest_ortbench.models.graph import read_model
from tests.worker.graphs import serialised, value, weights

from .conversions import DYNAMIC, FLOAT, FP16, HALF, STATIC, mlp, outputs, refusal, resized, sqnr_db

pytestmark = pytest.mark.live


class TestNothingToChange:
    @pytest.mark.parametrize("recipe", [DYNAMIC, STATIC], ids=lambda recipe: recipe.base)
    def test_a_graph_without_weights_can_t_be_quantised(
        self, make: Callable[..., Converted], recipe: Recipe
    ) -> None:
        failure = refusal(make, resized(), recipe)
        assert failure.kind == "unsupported"
        assert "changes nothing" in failure.message

    def test_a_file_that_hardly_changes_is_not_called_by_the_new_name(
        self, make: Callable[..., Converted]
    ) -> None:
        source = serialised(
            [
                helper.make_node("Gather", ["table", "i"], ["e"], name="gather"),
                helper.make_node("MatMul", ["e", "w"], ["y"], name="mm"),
            ],
            [value("i", TensorProto.INT64, ["N"])],
            [value("y", FLOAT, ["N", 4])],
            {"table": weights(1000, 8), "w": weights(8, 4)},
        )
        failure = refusal(make, source, replace(DYNAMIC, op_types=("MatMul",)))
        assert "0.39 % " in failure.message

    def test_outputs_that_are_not_finite_are_refused(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = integer.quantise_to_eight_bits

        def poisoned(source: Path, target: Path, *rest: object) -> graph.Draft:
            draft = original(source, target, *rest)  # type: ignore[arg-type]
            model = onnx.load(str(target))
            for tensor in model.graph.initializer:
                if tensor.name.endswith("w0_scale"):
                    tensor.CopyFrom(numpy_helper.from_array(np.float32("inf"), tensor.name))
            onnx.save(model, str(target))
            return draft

        monkeypatch.setattr(integer, "quantise_to_eight_bits", poisoned)
        failure = refusal(make, mlp(), DYNAMIC)
        assert failure.kind == "unsupported"
        assert "NaN" in failure.message


@pytest.mark.parametrize("recipe", [FP16, DYNAMIC, STATIC], ids=lambda recipe: recipe.base)
def test_a_source_that_does_not_load_is_blamed_as_it_is_alone(
    make: Callable[..., Converted], recipe: Recipe
) -> None:
    nodes = [helper.make_node("Relu", ["x"], [name], name="cut") for name in ("r", "s")]
    nodes.append(helper.make_node("Add", ["r", "s"], ["a"], name="add"))
    nodes.append(helper.make_node("MatMul", ["a", "w"], ["y"], name="mm"))
    inputs, found = [value("x", FLOAT, ["N", 8])], [value("y", FLOAT, ["N", 8])]
    source = serialised(nodes, inputs, found, {"w": weights(8, 8)})
    with pytest.raises(Exception, match=r"two nodes with same node name .cut.") as alone:
        onnxruntime.InferenceSession(source)
    with pytest.raises(type(alone.value), match=r"two nodes with same node name .cut."):
        make(source, recipe)


class TestFiles:
    def external(self, folder: Path) -> Path:
        folder.mkdir()
        path = folder / "m.onnx"
        (folder / "weights").mkdir()
        onnx.save(
            onnx.load_from_string(mlp()),
            str(path),
            save_as_external_data=True,
            location="weights/data.bin",
            size_threshold=0,
        )
        return path

    @pytest.mark.parametrize("recipe", [FP16, DYNAMIC, STATIC], ids=lambda recipe: recipe.base)
    def test_external_data_is_read_and_nothing_is_written_beside_the_model(
        self, make: Callable[..., Converted], tmp_path: Path, recipe: Recipe
    ) -> None:
        path = self.external(tmp_path / "source")
        before = sorted(item for item in path.parent.rglob("*"))
        make(path, recipe)
        assert sorted(item for item in path.parent.rglob("*")) == before
        x = np.random.default_rng(5).standard_normal((2, 48)).astype(np.float32)
        (expected,) = outputs(path, {"x": x})
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert sqnr_db(expected, found) > 15

    @pytest.mark.parametrize("recipe", [FP16, DYNAMIC], ids=lambda recipe: recipe.base)
    def test_a_large_model_is_written_with_external_data(
        self,
        make: Callable[..., Converted],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        recipe: Recipe,
    ) -> None:
        for module in (graph, integer):
            monkeypatch.setattr(module, "INLINE_LIMIT", 1000)
        result = make(mlp(), recipe)
        assert result.external_files == ("model.onnx.data",)
        read = read_model(tmp_path / "out" / "model.onnx", name="m", source="file")
        assert (read.digest, read.size_bytes) == (result.digest, result.size_bytes)

    def test_a_model_that_is_large_once_it_is_widened_is_quantised_as_a_large_one(
        self,
        make: Callable[..., Converted],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Half precision below the limit, float32 above it."""
        half_precision = serialised(
            [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
            [value("x", HALF, ["N", 48])],
            [value("y", HALF, ["N", 48])],
            {"w": weights(48, 48, scale=48**-0.5, dtype="float16")},
        )
        assert 2 * 48 * 48 < len(half_precision) < 7000 < 4 * 48 * 48
        for module in (graph, integer):
            monkeypatch.setattr(module, "INLINE_LIMIT", 7000)
        result = make(half_precision, DYNAMIC)
        assert result.external_files == ("model.onnx.data",)
        x = np.random.default_rng(5).standard_normal((2, 48)).astype(np.float16)
        (expected,) = outputs(tmp_path / "in" / "m.onnx", {"x": x})
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert sqnr_db(expected, found) > 30

    def test_digest_and_size_are_those_that_the_model_reader_finds(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(mlp(), DYNAMIC)
        read = read_model(tmp_path / "out" / "model.onnx", name="m", source="file")
        assert (read.digest, read.size_bytes) == (result.digest, result.size_bytes)

    def test_no_scratch_folder_is_left(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        make(mlp(), STATIC)
        assert [item.name for item in (tmp_path / "out").iterdir()] == ["model.onnx"]


def test_a_file_that_does_not_load_is_refused_without_the_path_of_the_draft(
    make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = half.to_half

    def broken(source: Path, target: Path, recipe: Recipe) -> graph.Draft:
        draft = original(source, target, recipe)
        model = onnx.load(str(target))
        model.graph.node[0].input[0] = "nowhere"
        onnx.save(model, str(target))
        return draft

    monkeypatch.setattr(half, "to_half", broken)
    failure = refusal(make, mlp(), FP16)
    assert " fp16 " in failure.message
    assert "nowhere" in failure.message
    assert "Load model from" not in failure.message
    assert "/out/" not in failure.message


def test_an_input_that_the_source_lacks_is_named(
    make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = half.to_half

    def wider(source: Path, target: Path, recipe: Recipe) -> graph.Draft:
        draft = original(source, target, recipe)
        model = onnx.load(str(target))
        model.graph.input.append(value("more", FLOAT, ["N"]))
        onnx.save(model, str(target))
        return draft

    monkeypatch.setattr(half, "to_half", wider)
    failure = refusal(make, mlp(), FP16)
    assert ("ValueError: " in failure.message, "'more'" in failure.message) == (True, True)
