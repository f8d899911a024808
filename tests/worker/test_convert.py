"""Conversions: what comes out is what its name says, or there is a reason why not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.precision import precision_of
from pytest_ortbench.core.recipe import Conversion, Converted, Recipe
from pytest_ortbench.plan.feeds import resolve_inputs
from pytest_ortbench.worker.convert import graph, half, integer, memory, pieces
from pytest_ortbench.worker.convert.make import convert
from pytest_ortbench.zoo.graph import read_model

from .graphs import serialised, value, weights

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16

FP16 = Recipe(name="fp16", base="fp16")
BF16 = Recipe(name="bf16", base="bf16")
FP32 = Recipe(name="fp32", base="fp32")
DYNAMIC = Recipe(name="int8-dynamic", base="int8-dynamic", weight_type="uint8")
STATIC = Recipe(
    name="int8-static",
    base="int8-static",
    weight_type="int8",
    activation_type="uint8",
    calibration_samples=16,
)


@pytest.fixture(autouse=True)
def _tools_stay_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a worker the process is given up after the conversion; this one goes on.
    monkeypatch.setattr(memory, "_cap", lambda _: None)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Converted]:
    """Convert a serialised model or a file; the result lies in ``tmp_path / "out"``."""

    def run(source: bytes | Path, recipe: Recipe, **changed: object) -> Converted:
        path = source if isinstance(source, Path) else tmp_path / "in" / "m.onnx"
        if isinstance(source, bytes):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(source)
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        for left in out.iterdir():
            left.unlink()
        return convert(replace(conversion_of(path, recipe), **changed), out, lambda _: None)

    return run


def conversion_of(path: Path, recipe: Recipe) -> Conversion:
    model = read_model(path, name="m", source="file")
    return Conversion(
        recipe=recipe,
        source=model.path,
        digest=model.digest,
        size_bytes=model.size_bytes,
        own_precision=precision_of(model),
        inputs=resolve_inputs(model, batch=1, dims={}),
    )


def refusal(make: Callable[..., Converted], source: bytes | Path, recipe: Recipe) -> Failure:
    with pytest.raises(WorkerError) as caught:
        make(source, recipe)
    assert caught.value.failure.phase == "convert"
    return caught.value.failure


def made(tmp_path: Path) -> onnx.ModelProto:
    return onnx.load(str(tmp_path / "out" / "model.onnx"))


def stored(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def outputs(path: Path, feeds: dict[str, object], *, optimise: bool = True) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def sqnr_db(expected: np.ndarray, found: np.ndarray) -> float:
    noise = np.sum((expected.astype("float64") - found) ** 2)
    return float(10 * np.log10(np.sum(expected.astype("float64") ** 2) / noise))


def mlp(depth: int = 2, width: int = 48) -> bytes:
    """``depth`` matrix products with a Relu between them."""
    nodes, name = [], "x"
    for layer in range(depth):
        nodes.append(
            helper.make_node("MatMul", [name, f"w{layer}"], [f"h{layer}"], name=f"mm{layer}")
        )
        name = f"h{layer}"
        if layer + 1 < depth:
            nodes.append(helper.make_node("Relu", [name], [f"r{layer}"], name=f"relu{layer}"))
            name = f"r{layer}"
    return serialised(
        nodes,
        [value("x", FLOAT, ["N", width])],
        [value(name, FLOAT, ["N", width])],
        {f"w{n}": weights(width, width, seed=n, scale=width**-0.5) for n in range(depth)},
    )


def convolutions(*, opset: int = 13, normalised: bool = False) -> bytes:
    """Two convolutions; with ``normalised``, a BatchNormalization that is fused into the first."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], name="conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["n0" if normalised else "c0"], ["r0"], name="relu0"),
        helper.make_node("Conv", ["r0", "w1"], ["y"], name="conv1", pads=[1, 1, 1, 1]),
    ]
    tensors = {"w0": weights(8, 4, 3, 3, scale=0.2), "w1": weights(8, 8, 3, 3, seed=1, scale=0.1)}
    if normalised:
        parts = ["scale", "bias", "mean", "var"]
        nodes.insert(
            1, helper.make_node("BatchNormalization", ["c0", *parts], ["n0"], name="norm0")
        )
        tensors |= {part: np.ones(8, np.float32) for part in parts}
    return serialised(
        nodes,
        [value("x", FLOAT, ["N", 4, 12, 12])],
        [value("y", FLOAT, ["N", 8, 12, 12])],
        tensors,
        opset=opset,
    )


def resized() -> bytes:
    return serialised(
        [
            helper.make_node("Relu", ["x"], ["a"], name="relu"),
            helper.make_node("Resize", ["a", "", "s"], ["y"], name="resize", mode="nearest"),
        ],
        [value("x", FLOAT, [1, 3, 8, 8])],
        [value("y", FLOAT, [1, 3, 16, 16])],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    )


def extremes() -> bytes:
    """Adds an epsilon that float16 can't hold, and multiplies by what it can't hold either."""
    return serialised(
        [
            helper.make_node("Mul", ["x", "x"], ["s"], name="square"),
            helper.make_node("Add", ["s", "eps"], ["v"], name="plus"),
            helper.make_node("Sqrt", ["v"], ["d"], name="root"),
            helper.make_node("Div", ["x", "d"], ["n"], name="norm"),
            helper.make_node("Mul", ["n", "big"], ["y"], name="scale"),
        ],
        [value("x", FLOAT, ["N", 8])],
        [value("y", FLOAT, ["N", 8])],
        {"eps": np.array(1e-12, np.float32), "big": np.array(1e6, np.float32)},
    )


def branching() -> bytes:
    """One of two products, each inside a branch."""
    inner = [
        helper.make_graph(
            [helper.make_node("MatMul", ["x", f"w{side}"], [f"o{side}"], name=f"mm{side}")],
            f"branch{side}",
            [],
            [value(f"o{side}", FLOAT, ["N", 24])],
            [numpy_helper.from_array(weights(24, 24, seed=side), f"w{side}")],
        )
        for side in range(2)
    ]
    return serialised(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"], name="gt"),
            helper.make_node(
                "If", ["positive"], ["y"], name="if", then_branch=inner[0], else_branch=inner[1]
            ),
        ],
        [value("x", FLOAT, ["N", 24])],
        [value("y", FLOAT, ["N", 24])],
        {"zero": np.array(0, np.float32)},
    )


class TestHalf:
    def test_every_weight_is_float16_and_the_file_half_as_large(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(mlp(), FP16)
        model = made(tmp_path)
        assert {tensor.data_type for tensor in model.graph.initializer} == {HALF}
        assert result.facts["weights"] == "100.0 % of 4608 values in fp16"
        assert result.facts["nodes_in_float"] == "0"
        assert result.size_bytes == pytest.approx(2 * 4608, rel=0.1)
        # An application goes on feeding float32.
        assert model.graph.input[0].type.tensor_type.elem_type == FLOAT
        onnx.checker.check_model(model, full_check=True)

    def test_weights_are_rounded_as_numpy_rounds(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        make(mlp(), FP16)
        found = numpy_helper.to_array(stored(made(tmp_path))["w0"])
        assert np.array_equal(found, weights(48, 48, scale=48**-0.5).astype(np.float16))

    def test_inputs_and_outputs_can_change_too(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        make(mlp(), replace(FP16, keep_io_types=False))
        assert made(tmp_path).graph.input[0].type.tensor_type.elem_type == HALF
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": np.ones((1, 48), np.float16)})
        assert found.dtype == np.float16

    @pytest.mark.parametrize(
        ("blocked", "nodes", "left"),
        [
            (None, "2 of 2 in fp16", "0"),
            ((), "2 of 2 in fp16", "0"),
            (("Resize",), "1 of 2 in fp16", "1 (1 Resize)"),
        ],
    )
    def test_resize_is_valid_and_nodes_left_in_float_are_counted(
        self,
        make: Callable[..., Converted],
        tmp_path: Path,
        blocked: tuple[str, ...] | None,
        nodes: str,
        left: str,
    ) -> None:
        result = make(resized(), replace(FP16, block_list=blocked))
        assert (result.facts["nodes"], result.facts["nodes_in_float"]) == (nodes, left)
        x = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
        (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": x})
        assert np.array_equal(found[0, 0, ::2, ::2], x[0, 0])

    def test_clamped_values_are_noted_with_what_they_became(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(extremes(), FP16)
        assert result.notes == (
            "fp16 can't hold 'eps' (down to 1e-12): 1 value became 5.96e-08",
            "fp16 can't hold 'big' (up to 1e+06): 1 value became 65504",
        )
        tensors = stored(made(tmp_path))
        assert numpy_helper.to_array(tensors["big"]) == np.float16(65504)
        assert numpy_helper.to_array(tensors["eps"]) == np.float16(5.96e-08)

    def test_a_few_tiny_values_among_many_are_no_news(self, make: Callable[..., Converted]) -> None:
        tensor = weights(100, 100, scale=0.1)
        tensor[0, 0] = 1e-12
        source = serialised(
            [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
            [value("x", FLOAT, ["N", 100])],
            [value("y", FLOAT, ["N", 100])],
            {"w": tensor},
        )
        assert make(source, FP16).notes == ()

    def test_constants_in_nodes_are_converted_too(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        constant = numpy_helper.from_array(weights(8, 8), "k")
        source = serialised(
            [
                helper.make_node("Constant", [], ["w"], name="const", value=constant),
                helper.make_node("MatMul", ["x", "w"], ["y"], name="mm"),
            ],
            [value("x", FLOAT, ["N", 8])],
            [value("y", FLOAT, ["N", 8])],
        )
        make(source, FP16)
        assert stored(made(tmp_path))["w"].data_type == HALF

    def test_an_excluded_node_keeps_its_weight(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(mlp(), replace(FP16, nodes_to_exclude=("mm1",)))
        tensors = stored(made(tmp_path))
        assert (tensors["w0"].data_type, tensors["w1"].data_type) == (HALF, FLOAT)
        assert result.facts["weights"] == "50.0 % of 4608 values in fp16"

    def test_an_unknown_node_is_refused_with_the_nearest_name(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, mlp(), replace(FP16, nodes_to_exclude=("mm_1",)))
        assert (failure.kind, failure.hint) == ("unsupported", "Did you mean 'mm1'?")

    def test_bfloat16_weights_are_rounded_from_float32(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        import ml_dtypes

        result = make(mlp(), BF16)
        tensor = stored(made(tmp_path))["w0"]
        assert tensor.data_type == TensorProto.BFLOAT16
        expected = weights(48, 48, scale=48**-0.5).astype(ml_dtypes.bfloat16)
        assert tensor.raw_data == expected.tobytes()
        assert result.notes == (
            "not run when it was made: the CPU provider has no kernel for a node of it",
        )

    def test_an_operator_set_without_bfloat16_is_the_reason(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, convolutions(opset=13), BF16)
        assert failure.kind == "unsupported"
        assert "no operator with weights takes bfloat16 at operator set 13" in failure.message


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
        assert result.facts["weights"] == "100.0 % of 256 values in fp32"

    def test_eight_bits_of_a_float16_file_go_through_float32(
        self, make: Callable[..., Converted]
    ) -> None:
        result = make(self.source(), DYNAMIC)
        assert result.notes[0] == "made from a file in fp16, widened to fp32 first"
        assert result.facts["weights"].startswith("99.6 %")


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
        assert result.facts["calibrated_on"] == "16 drawn input sets (seed 0)"
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
        assert failure.message == (
            "int8-dynamic changes nothing: the recipe's op_types (Conv) name none of the model's "
            "operators with weights: 2 MatMul"
        )

    @pytest.mark.parametrize(
        ("recipe", "says"),
        [
            (
                replace(FP16, block_list=("Matmul",)),
                "the recipe's block_list names 'Matmul', which is no operator type. "
                "Did you mean 'MatMul'?",
            ),
            (
                replace(DYNAMIC, op_types=("Blah",)),
                "the recipe's op_types names 'Blah', which is no operator type. Known: ",
            ),
            (
                Recipe(name="int4", base="int4", nodes_to_exclude=("mm9",)),
                "the recipe excludes the node 'mm9', and the model has none. Did you mean",
            ),
        ],
        ids=["block_list", "op_types", "nodes_to_exclude"],
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
        assert failure.message == (
            "int8-static changes nothing: all its operators with weights stand in branches of If "
            "or bodies of loops, where ONNX Runtime's static quantiser does not go: 2 MatMul"
        )

    def test_four_bits_are_for_products_only(self, make: Callable[..., Converted]) -> None:
        failure = refusal(make, convolutions(), Recipe(name="int4", base="int4"))
        assert failure.message == (
            "int4 changes nothing: only a MatMul with constant weights takes them; its operators "
            "with weights: 2 Conv"
        )

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
        assert failure.message.startswith("int8-dynamic can't be made: KeyError: ")
        assert "no type for w" in failure.message

    def test_the_node_of_an_error_is_named(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import onnxruntime.quantization

        def broken(*args: object, **settings: object) -> None:
            raise ValueError("can't quantise node 'mm0' of type MatMul")

        monkeypatch.setattr(onnxruntime.quantization, "quantize_dynamic", broken)
        assert "at node 'mm0': ValueError" in refusal(make, mlp(), DYNAMIC).message

    def test_no_calibration_data_is_unsupported(self, make: Callable[..., Converted]) -> None:
        failure = refusal(make, mlp(), replace(STATIC, calibration_data="/data/none"))
        assert failure.kind == "unsupported"
        assert "no calibration data in /data/none" in failure.message

    def test_stored_sets_calibrate(self, make: Callable[..., Converted], tmp_path: Path) -> None:
        sets = []
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
        assert result.facts["calibrated_on"] == "3 stored input sets"
        scale = numpy_helper.to_array(stored(made(tmp_path))["x_scale"])
        assert float(scale) == pytest.approx(2 / 255, rel=1e-5)


@pytest.mark.parametrize(
    ("width", "asked", "sets"), [(8, 0, 64), (48, 0, 32), (1000, 0, 16), (48, 5, 5)]
)
def test_small_inputs_take_more_calibration_sets(
    tmp_path: Path, width: int, asked: int, sets: int
) -> None:
    from pytest_ortbench.worker.convert.calibration import InputSets

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
    from pytest_ortbench.worker.convert.calibration import InputSets

    reader = InputSets(conversion_of(path, STATIC))
    sets = []
    while (feeds := reader.get_next()) is not None:
        sets.append(np.asarray(feeds["x"]))
    assert len(sets) == 16
    return np.concatenate(sets)


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
        assert "0.39 % of the weights are too few" in failure.message

    def test_outputs_that_are_not_finite_are_refused(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = integer.quantise

        def poisoned(source: Path, target: Path, *rest: object) -> graph.Draft:
            draft = original(source, target, *rest)  # type: ignore[arg-type]
            model = onnx.load(str(target))
            for tensor in model.graph.initializer:
                if tensor.name.endswith("w0_scale"):
                    tensor.CopyFrom(numpy_helper.from_array(np.float32("inf"), tensor.name))
            onnx.save(model, str(target))
            return draft

        monkeypatch.setattr(integer, "quantise", poisoned)
        failure = refusal(make, mlp(), DYNAMIC)
        assert failure.kind == "unsupported"
        assert "NaN or infinite values where the source gives none" in failure.message


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


class TestMemory:
    def test_pieces_give_the_same_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from onnxruntime.quantization import quant_utils

        values = weights(1001, seed=3)
        for kind, zero in ((TensorProto.UINT8, np.uint8(7)), (TensorProto.INT8, np.int8(0))):
            whole = quant_utils.quantize_nparray(kind, values, np.float32(0.01), zero)
            monkeypatch.setattr(pieces, "_PIECE", 100)
            with pieces.bounded_memory():
                parts = quant_utils.quantize_nparray(kind, values, np.float32(0.01), zero)
            assert parts.dtype == whole.dtype
            assert np.array_equal(parts, whole)

    def test_rounding_in_pieces_gives_the_same_bits(
        self, make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = make(mlp(), FP16).digest
        monkeypatch.setattr(half, "_PIECE", 100)
        assert make(mlp(), FP16).digest == whole

    def test_a_model_that_can_t_fit_is_refused_before_anything_is_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(memory, "available", lambda: 3 * 10**9)
        conversion = replace(
            Conversion(
                recipe=DYNAMIC,
                source="/none.onnx",
                digest="",
                size_bytes=2_300_000_000,
                own_precision="fp32",
                inputs=(),
            )
        )
        with pytest.raises(WorkerError) as caught:
            memory.limit(conversion)
        assert caught.value.failure.kind == "unsupported"
        assert "takes about 9 GB of memory, and 3 GB are free" in caught.value.failure.message

    def test_memory_that_runs_out_is_said(self) -> None:
        from pytest_ortbench.worker.convert.failure import as_failure

        conversion = Conversion(
            recipe=FP16, source="", digest="", size_bytes=10**9, own_precision="fp32", inputs=()
        )
        failure = as_failure(MemoryError("Unable to allocate 1 GiB"), conversion)
        assert (failure.kind, failure.message) == (
            "out_of_memory",
            "memory ran out while making fp16 of 1.0 GB",
        )

    def test_a_missing_package_is_named_with_what_brings_it(self) -> None:
        from pytest_ortbench.worker.convert.failure import as_failure

        conversion = Conversion(
            recipe=Recipe(name="int4", base="int4"),
            source="",
            digest="",
            size_bytes=1,
            own_precision="fp32",
            inputs=(),
        )
        failure = as_failure(ModuleNotFoundError("No module", name="onnx_ir"), conversion)
        assert (failure.kind, failure.hint) == (
            "unavailable",
            "pip install 'pytest-ortbench[int4]'",
        )


def _names(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [node.name for node in nodes]


def test_nodes_are_put_behind_what_they_read() -> None:
    model = onnx.load_from_string(mlp(depth=3))
    nodes = list(model.graph.node)
    shuffled = helper.make_graph(nodes[::-1], "g", model.graph.input, model.graph.output)
    graph.sort_nodes(shuffled)
    assert _names(shuffled.node) == _names(nodes)


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
    assert failure.message.startswith("the fp16 variant does not load: ")
    assert "nowhere" in failure.message
    assert "Load model from" not in failure.message
    assert "/out/" not in failure.message
