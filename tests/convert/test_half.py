"""Half precision: weights are rounded, what can't be held is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert.graph import graphs_within
from pytest_ortbench.core.recipe import Converted
from tests.worker.graphs import serialised, value, weights

from .conversions import (
    BF16,
    FLOAT,
    FP16,
    HALF,
    branching,
    convolutions,
    extremes,
    made,
    mlp,
    outputs,
    refusal,
    resized,
    stored,
)

pytestmark = pytest.mark.live


class TestHalf:
    def test_every_weight_is_float16_and_the_file_half_as_large(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        result = make(mlp(), FP16)
        model = made(tmp_path)
        assert {tensor.data_type for tensor in model.graph.initializer} == {HALF}
        assert result.facts["weights"].split()[::3] == ["100.0", "4608", "fp16"]
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
        assert [re.findall(r"'(\w+)'.* (\S+)\).* (\S+)$", note)[0] for note in result.notes] == [
            ("eps", "1e-12", "5.96e-08"),
            ("big", "1e+06", "65504"),
        ]
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
        assert result.facts["weights"].split()[::3] == ["50.0", "4608", "fp16"]

    def test_an_unknown_node_is_refused_with_the_nearest_name(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, mlp(), replace(FP16, nodes_to_exclude=("mm_1",)))
        assert (failure.kind, "'mm1'" in failure.hint) == ("unsupported", True)

    def test_bfloat16_weights_are_rounded_from_float32(
        self, make: Callable[..., Converted], tmp_path: Path
    ) -> None:
        import ml_dtypes

        result = make(mlp(), BF16)
        tensor = stored(made(tmp_path))["w0"]
        assert tensor.data_type == TensorProto.BFLOAT16
        expected = weights(48, 48, scale=48**-0.5).astype(ml_dtypes.bfloat16)
        assert tensor.raw_data == expected.tobytes()
        assert result.unchecked  # the CPU has no kernel for it

    def test_an_operator_set_without_bfloat16_is_the_reason(
        self, make: Callable[..., Converted]
    ) -> None:
        failure = refusal(make, convolutions(opset=13), BF16)
        assert failure.kind == "unsupported"
        assert ("bfloat16" in failure.message, " 13" in failure.message) == (True, True)
        assert (" 22 " in failure.hint, "--ort-precisions" in failure.hint) == (True, True)


def namesakes(*, nested: bool = False) -> bytes:
    """Branches that call different constants, and what they make, the same.

    ``x + 2`` where the sum of ``x`` is positive, else ``x * -3``; with ``nested`` the constants are
    read by an If inside the branch, for positive ``x[0]``, and ``x`` itself is given otherwise.
    """
    branches = []
    for op, number in (("Add", 2), ("Mul", -3)):
        constant = numpy_helper.from_array(np.full(4, number, np.float32), "k")
        nodes = [helper.make_node("Constant", [], ["c0"], name=f"const_{op}", value=constant)]
        compute = helper.make_node(op, ["x", "c0"], ["o"], name=op)
        if nested:
            inner = [
                helper.make_graph([node], f"inner_{side}", [], [value("o", FLOAT, [4])])
                for side, node in (
                    ("then", compute),
                    ("else", helper.make_node("Identity", ["x"], ["o"], name=f"same_{op}")),
                )
            ]
            compute = helper.make_node(
                "If",
                ["first"],
                ["made"],
                name=f"if_{op}",
                then_branch=inner[0],
                else_branch=inner[1],
            )
        result = "made" if nested else "o"
        branches.append(
            helper.make_graph([*nodes, compute], "branch", [], [value(result, FLOAT, [4])])
        )
    return serialised(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"], name="gt"),
            helper.make_node("Gather", ["x", "start"], ["x0"], name="x0"),
            helper.make_node("Greater", ["x0", "zero"], ["first"], name="gt0"),
            helper.make_node(
                "If",
                ["positive"],
                ["y"],
                name="if",
                then_branch=branches[0],
                else_branch=branches[1],
            ),
        ],
        [value("x", FLOAT, [4])],
        [value("y", FLOAT, [4])],
        {"zero": np.array(0, np.float32), "start": np.array(0, np.int64)},
    )


@pytest.mark.parametrize(
    ("nested", "x", "expected"),
    [
        (False, [1, 2, 3, 4], [3, 4, 5, 6]),
        (False, [1, -2, -3, -4], [-3, 6, 9, 12]),
        (True, [1, 2, 3, 4], [3, 4, 5, 6]),
        (True, [1, -2, -3, -4], [-3, 6, 9, 12]),
        (True, [-1, 2, 3, 4], [-1, 2, 3, 4]),
    ],
)
def test_branches_keep_their_own_weights_of_the_same_name(
    make: Callable[..., Converted],
    tmp_path: Path,
    nested: bool,
    x: list[float],
    expected: list[float],
) -> None:
    make(namesakes(nested=nested), FP16)
    (found,) = outputs(tmp_path / "out" / "model.onnx", {"x": np.array(x, np.float32)})
    assert found.tolist() == expected
    held = [
        numpy_helper.to_array(tensor).tolist()
        for inner in graphs_within(made(tmp_path).graph)
        for tensor in inner.initializer
        if tensor.data_type == HALF and list(tensor.dims) == [4]
    ]
    assert sorted(held) == [[-3] * 4, [2] * 4]


def test_branches_keep_their_own_weights_in_bfloat16_too(
    make: Callable[..., Converted], tmp_path: Path
) -> None:
    import ml_dtypes

    model = onnx.load_from_string(branching())
    model.opset_import[0].version = 16  # where an If takes bfloat16
    for branch in model.graph.node[2].attribute:
        side = branch.g.initializer[0].name
        branch.g.initializer[0].name = branch.g.node[0].input[1] = "w"
        branch.g.doc_string = side
    make(model.SerializeToString(), BF16)
    (choice,) = (node for node in made(tmp_path).graph.node if node.op_type == "If")
    assert len(choice.attribute) == 2
    for branch in choice.attribute:
        seed = int(branch.g.doc_string[1:])
        (tensor,) = (t for t in branch.g.initializer if list(t.dims) == [24, 24])
        assert tensor.raw_data == weights(24, 24, seed=seed).astype(ml_dtypes.bfloat16).tobytes()


def test_names_that_mean_one_thing_stay_and_others_are_never_taken() -> None:
    from pytest_ortbench.convert.half import tell_apart

    model = onnx.load_from_string(branching())
    before = model.SerializeToString()
    tell_apart(model)
    assert model.SerializeToString() == before
    branches = [attribute.g for attribute in model.graph.node[2].attribute]
    for branch in branches:
        branch.name = "b"
        branch.initializer[0].name = branch.node[0].input[1] = "w"
    tell_apart(model)
    assert [branch.initializer[0].name for branch in branches] == ["w/b", "w/b/2"]
    assert [branch.node[0].input[1] for branch in branches] == ["w/b", "w/b/2"]
