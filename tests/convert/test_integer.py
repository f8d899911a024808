"""Eight bits, dynamic and static."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert import graph, integer
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.recipe import Conversion, Converted, Recipe
from tests.worker.graphs import serialised, value, weights

from .conversions import (
    DYNAMIC,
    FLOAT,
    FP16,
    STATIC,
    branching,
    conversion_of,
    convolutions,
    made,
    mlp,
    outputs,
    refusal,
    sqnr_db,
    stored,
)

pytestmark = pytest.mark.live


class TestInteger:
    @pytest.mark.parametrize(
        ("kind", "element"), [("uint8", TensorProto.UINT8), ("int8", TensorProto.INT8)]
    )
    def test_dynamic_weights_have_the_type_that_was_asked_for(
        self, make: Callable[..., Converted], tmp_path: Path, kind: str, element: int
    ) -> None:
        make(convolutions(), replace(DYNAMIC, weight_type=kind))
        model = made(tmp_path)
        tensors = [t for t in model.graph.initializer if len(t.dims) == 4]
        assert [tensor.data_type for tensor in tensors] == [element, element]
        assert [n.op_type for n in model.graph.node].count("ConvInteger") == 2

    def test_per_channel_means_one_scale_an_output_channel(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        make(mlp(), replace(DYNAMIC, per_channel=True))
        scales = [t for name, t in stored(made(tmp_path)).items() if name.endswith("_scale")]
        assert {tuple(t.dims) for t in scales} == {(48,)}

    def test_static_is_near_the_float_model_on_inputs_that_it_was_not_calibrated_on(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(convolutions(), STATIC)
        ops = [node.op_type for node in made(tmp_path).graph.node]
        assert {"QuantizeLinear", "DequantizeLinear"} <= set(ops)
        assert result.facts["calibrated_on"].startswith("16 random ")
        assert result.facts["nodes_in_float"] == "0"
        x = np.random.default_rng(5).standard_normal((2, 4, 12, 12)).astype(np.float32)
        (expected,) = outputs(tmp_path / "in" / "m.onnx", {"x": x})
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert 20 < sqnr_db(expected, found) < 60

    @pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
    def test_each_calibration_method_keeps_ranges_within_what_was_seen(
        self, make: Callable[..., Converted], tmp_path: Path, method: str
    ) -> None:
        make(mlp(), replace(STATIC, calibration=method, percentile=99.0))
        tensors = stored(made(tmp_path))
        (scale,) = (numpy_helper.to_array(t) for n, t in tensors.items() if n == "x_scale")
        drawn = _calibration_values(tmp_path / "in" / "m.onnx")
        full = (drawn.max() - drawn.min()) / 255
        if method == "minmax":
            assert float(scale) == pytest.approx(full, rel=1e-5)
        else:
            assert 0.3 * full < float(scale) < full * 1.001

    def test_an_excluded_node_stays_in_float_even_when_it_is_fused(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(convolutions(normalised=True), replace(DYNAMIC, nodes_to_exclude=("norm0",)))
        ops = [node.op_type for node in made(tmp_path).graph.node]
        assert (ops.count("Conv"), ops.count("ConvInteger")) == (1, 1)
        assert "BatchNormalization" not in ops
        assert result.facts["nodes_in_float"] == "1 (1 Conv)"

    def test_only_the_operator_types_of_the_recipe_are_quantised(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, mlp(), replace(DYNAMIC, op_types=("Conv",)))
        assert ("(Conv)" in failure.message, failure.message[-8:]) == (True, "2 MatMul")

    @pytest.mark.parametrize(
        ("recipe", "says"),
        [
            (
                replace(FP16, block_list=("Matmul",)),
                "block_list of the precision 'fp16' contains 'Matmul', which is not an operator "
                "type. Did you mean 'MatMul'?",
            ),
            (
                replace(DYNAMIC, op_types=("Blah",)),
                "op_types of the precision 'int8-dynamic' contains 'Blah', which is not an "
                "operator type. Choose one of: ",
            ),
            (
                replace(DYNAMIC, op_types=("Linear",)),
                "op_types of the precision 'int8-dynamic' contains 'Linear', which is not an "
                "operator type. Choose one of: ",
            ),
            (
                Recipe(name="int4", base="int4", nodes_to_exclude=("mm9",)),
                "nodes_to_exclude names the node 'mm9', but the model has no such node. Did you "
                "mean",
            ),
        ],
        ids=["block_list", "op_types", "op_types of PyTorch", "nodes_to_exclude"],
    )
    def test_a_name_that_means_nothing_is_the_recipe_s_fault(
        self, make: Callable[..., Converted], recipe: Recipe, says: str
    ) -> None:
        failure = refusal(make, mlp(), recipe)
        assert f"{failure.message}. {failure.hint}".startswith(says)

    def test_an_operator_that_only_other_models_have_may_be_named(
        self, make: Callable[..., Converted]
    ) -> None:
        made = make(mlp(), replace(FP16, block_list=("Softmax", "FastGelu")))
        assert made.facts["weights"].startswith("100.0 %")

    def test_weights_in_branches_are_quantised(self, make: Callable[..., Converted]) -> None:
        result = make(branching(), DYNAMIC)
        assert float(result.facts["weights"].split(" %")[0]) > 99

    def test_more_weights_after_folding_than_before_are_explained(
        self, make: Callable[..., Converted]
    ) -> None:
        """One stored weight, of which two nodes make one each that is read."""
        source = serialised(
            [
                helper.make_node("Concat", ["w", "w"], ["wide"], name="c", axis=1),
                helper.make_node("MatMul", ["x", "wide"], ["h"], name="mm"),
                helper.make_node("MatMul", ["x", "w"], ["g"], name="mm2"),
                helper.make_node("Concat", ["h", "g"], ["y"], name="c2", axis=1),
            ],
            [value("x", FLOAT, ["N", 24])],
            [value("y", FLOAT, ["N", 72])],
            {"w": weights(24, 24)},
        )
        assert make(source, DYNAMIC).notes == (
            "ONNX Runtime folded constants before quantising: 576 float values in the file became "
            "1728 weights",
        )

    def test_the_static_quantiser_does_not_go_into_branches(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, branching(), STATIC)
        assert ("branches" in failure.message, failure.message[-8:]) == (True, "2 MatMul")

    @pytest.mark.parametrize("version", ["1.20.1", "1.21.0"])
    def test_a_large_model_is_optimised_whatever_the_tool_does_with_its_weights(
        self,
        make: Callable[..., Converted],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        version: str,
    ) -> None:
        """Before 1.21 its optimised graph points at a file that is not where it looks for it."""
        source = tmp_path / "source" / "m.onnx"
        source.parent.mkdir()
        onnx.save(
            onnx.load_from_string(convolutions(normalised=True)),
            str(source),
            save_as_external_data=True,
            location="m.data",
            size_threshold=0,
        )
        for module in (graph, integer):
            monkeypatch.setattr(module, "INLINE_LIMIT", 1000)
        monkeypatch.setattr(onnxruntime, "__version__", version)
        result = make(source, STATIC)
        assert result.notes == ()
        # The normalisation went into the convolution, which can be quantised then.
        assert result.facts["nodes_in_float"] == "0"
        x = np.random.default_rng(5).standard_normal((2, 4, 12, 12)).astype(np.float32)
        (expected,) = outputs(source, {"x": x})
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert 20 < sqnr_db(expected, found) < 60

    def test_four_bits_are_for_products_only(self, make: Callable[..., Converted]) -> None:
        failure = refusal(make, convolutions(), Recipe(name="int4", base="int4"))
        assert (failure.message.split()[0], failure.message[-6:]) == ("int4", "2 Conv")

    def test_a_weight_behind_a_cast_is_quantised_after_folding(
        self, make: Callable[..., Converted]
    ) -> None:
        source = serialised(
            [
                helper.make_node("Cast", ["w"], ["wf"], name="cast", to=FLOAT),
                helper.make_node("MatMul", ["x", "wf"], ["y"], name="mm"),
            ],
            [value("x", FLOAT, ["N", 16])],
            [value("y", FLOAT, ["N", 16])],
            {"w": weights(16, 16, dtype="float16")},
        )
        assert make(source, STATIC).facts["nodes_in_float"] == "0"

    def test_what_a_builder_declares_wrongly_of_its_constants_does_no_harm(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        """onnxruntime-genai's builder declares stored vectors of one number as single numbers."""
        source = onnx.load_from_string(
            serialised(
                [
                    helper.make_node("Mul", ["x", "scale"], ["h"], name="scaled"),
                    helper.make_node("MatMul", ["h", "w"], ["y"], name="mm"),
                ],
                [value("x", FLOAT, ["N", 16])],
                [value("y", FLOAT, ["N", 16])],
                {"w": weights(16, 16), "scale": np.array([3], dtype=np.float32)},
            )
        )
        source.graph.value_info.append(value("scale", FLOAT, []))
        result = make(source.SerializeToString(), DYNAMIC)
        assert result.facts["nodes_in_float"] == "0"
        x = np.random.default_rng(5).standard_normal((4, 16)).astype(np.float32)
        (expected,) = outputs(source.SerializeToString(), {"x": x})
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert sqnr_db(expected, found) > 20

    def test_an_empty_tensor_beside_the_weights_does_no_harm(
        self, make: Callable[..., Converted]
    ) -> None:
        source = serialised(
            [
                helper.make_node("Concat", ["x", "e"], ["c"], name="cat", axis=1),
                helper.make_node("MatMul", ["c", "w"], ["y"], name="mm"),
            ],
            [value("x", FLOAT, [1, 16])],
            [value("y", FLOAT, [1, 16])],
            {"e": np.zeros((1, 0), np.float32), "w": weights(16, 16)},
        )
        for recipe in (DYNAMIC, STATIC):
            assert float(make(source, recipe).facts["weights"].split(" %")[0]) > 97

    def test_an_error_of_the_quantiser_is_unsupported_with_class_and_first_line(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import onnxruntime.quantization

        def broken(*args: object, **settings: object) -> None:
            raise KeyError("no type for w\nsecond line")

        monkeypatch.setattr(onnxruntime.quantization, "quantize_dynamic", broken)
        failure = refusal(make, mlp(), DYNAMIC)
        assert failure.kind == "unsupported"
        assert failure.message.startswith("int8-dynamic ")
        assert "KeyError: " in failure.message

    def test_the_node_of_an_error_is_named(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import onnxruntime.quantization

        def broken(*args: object, **settings: object) -> None:
            raise ValueError("can't quantise node 'mm0' of type MatMul")

        monkeypatch.setattr(onnxruntime.quantization, "quantize_dynamic", broken)
        assert "node 'mm0'. " in refusal(make, mlp(), DYNAMIC).message

    def test_no_calibration_data_is_unsupported(self, make: Callable[..., Converted]) -> None:
        failure = refusal(make, mlp(), replace(STATIC, calibration_data="/data/none"))
        assert failure.kind == "unsupported"
        assert "/data/none" in failure.message

    def test_stored_sets_calibrate(self, make: Callable[..., Converted], tmp_path: Path) -> None:
        sets: list[tuple[InputSpec, ...]] = []
        for number in range(3):
            path = tmp_path / f"set{number}.npz"
            np.savez(path, x=np.full((1, 48), number - 1, np.float32))
            spec = InputSpec(
                name="x",
                type="tensor(float)",
                shape=(1, 48),
                hint=ValueHint(kind="normal"),
                path=str(path),
                member="x",
            )
            sets.append((spec,))
        result = make(mlp(), STATIC, calibration=tuple(sets))
        assert result.facts["calibrated_on"].startswith("3 stored ")
        one = make(mlp(), STATIC, calibration=(sets[0],))
        assert one.facts["calibrated_on"].startswith("1 stored ")
        make(mlp(), STATIC, calibration=tuple(sets))
        scale = numpy_helper.to_array(stored(made(tmp_path))["x_scale"])
        assert float(scale) == pytest.approx(2 / 255, rel=1e-5)


@pytest.mark.parametrize(
    ("width", "asked", "sets"), [(8, 0, 64), (48, 0, 32), (1000, 0, 16), (48, 5, 5)]
)
def test_small_inputs_take_more_calibration_sets(
    tmp_path: Path, width: int, asked: int, sets: int
) -> None:
    from pytest_ortbench.convert.calibration import InputSets

    spec = InputSpec(
        name="x", type="tensor(float)", shape=(1, width), hint=ValueHint(kind="normal")
    )
    conversion = Conversion(
        recipe=replace(STATIC, calibration_samples=asked),
        source="",
        digest="",
        size_bytes=1,
        own_precision="fp32",
        inputs=(spec,),
    )
    assert len(InputSets(conversion)) == sets


def _calibration_values(path: Path) -> np.ndarray:
    """The input values that the drawn sets of the calibration hold."""
    from pytest_ortbench.convert.calibration import InputSets

    reader = InputSets(conversion_of(path, STATIC))
    sets = []
    while (feeds := reader.get_next()) is not None:
        sets.append(np.asarray(feeds["x"]))
    assert len(sets) == 16
    return np.concatenate(sets)
