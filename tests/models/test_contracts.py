"""Contracts of operators are kept by what is drawn: no index twice, ranges, sizes that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.models.findings import ConsumerFinding, combine, unshift
from tests.models.graphs import (
    FLOAT,
    INT32,
    INT64,
    constant,
    hint_of,
    model,
    node,
    read,
    run,
    value,
    weight,
)

pytestmark = pytest.mark.live

UINT8 = TensorProto.UINT8


def one_node(
    op: str,
    inputs: list[onnx.ValueInfoProto],
    *,
    weights: list[onnx.TensorProto] | None = None,
    order: list[str] | None = None,
    opset: int = 18,
    output: onnx.ValueInfoProto | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    names = order or [info.name for info in inputs]
    return model(
        [node(op, names, ["y"], **attributes)],
        inputs,
        [output or helper.make_empty_tensor_value_info("y")],
        weights or [],
        opsets={"": opset},
        ir_version=10 if opset >= 20 else 8,
    )


def points(indices: np.ndarray) -> set[tuple[int, ...]]:
    flat = indices.reshape(-1, indices.shape[-1])
    return {tuple(int(number) for number in point) for point in flat}


# -- no place twice --------------------------------------------------------------------------------


def scattered(element: int, *, reduction: str = "none", rows: int = 300) -> onnx.ModelProto:
    nodes = [
        node("Cast", ["coords"], ["c"], to=INT64),
        node("ScatterND", ["canvas", "c", "f"], ["y"], reduction=reduction),
    ]
    inputs = [value("coords", [rows, 2], element), value("f", [rows, 4])]
    return model(nodes, inputs, [value("y", None)], [weight("canvas", 20, 17, 4)], opsets={"": 18})


def test_points_of_a_scatter_are_all_different(tmp_path: Path) -> None:
    feeds, _ = run(read(scattered(INT32), tmp_path))
    coords = feeds["coords"]
    assert coords.dtype == np.int32
    assert len(points(coords)) == 300
    assert coords[:, 0].max() <= 19
    assert coords[:, 1].max() <= 16
    assert len(set(coords[:, 0].tolist())) == 20  # all over the canvas


def test_points_come_again_only_where_the_box_is_too_small(tmp_path: Path) -> None:
    feeds, _ = run(read(scattered(INT64, rows=400), tmp_path))
    assert len(points(feeds["coords"])) == 20 * 17


def test_a_scatter_that_adds_up_may_meet_a_place_twice(tmp_path: Path) -> None:
    found = read(scattered(INT64, reduction="add"), tmp_path)
    assert hint_of(found, "coords").kind == "integers"
    feeds, _ = run(found)
    assert feeds["coords"].max() <= 16  # of each axis the smallest


def test_points_into_a_canvas_follow_the_size_of_its_symbol(tmp_path: Path) -> None:
    proto = one_node(
        "ScatterND",
        [value("data", ["N", 3]), value("i", [6, 2], INT64), value("u", [6])],
    )
    feeds, _ = run(read(proto, tmp_path), batch=None, dims={"N": 2})
    assert len(points(feeds["i"])) == 6
    assert feeds["i"][:, 0].max() == 1


@pytest.mark.parametrize(("shape", "axis"), [([4, 6], 0), ([4, 6], 1), ([4, 6], -1), ([9], 0)])
def test_scattered_elements_are_different_along_their_axis(
    shape: list[int], axis: int, tmp_path: Path
) -> None:
    data = [12] * len(shape)
    proto = one_node(
        "ScatterElements",
        [value("data", data), value("i", shape, INT64), value("u", shape)],
        axis=axis,
    )
    feeds, _ = run(read(proto, tmp_path))
    lines = np.moveaxis(feeds["i"], axis, -1).reshape(-1, shape[axis])
    for line in lines:
        assert len(set(line.tolist())) == shape[axis]
    assert feeds["i"].min() >= 0
    assert feeds["i"].max() <= 11


# -- indices within what they index ----------------------------------------------------------------


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("further", [[], [7, 6]])
def test_labels_are_classes(op: str, further: list[int], tmp_path: Path) -> None:
    proto = one_node(
        op,
        [value("x", [3, 5, *further]), value("labels", [3, *further], INT64)],
        reduction="none",
    )
    found = read(proto, tmp_path)
    hint = hint_of(found, "labels")
    assert (hint.kind, hint.low, hint.high) == ("integers", 0, 4)
    run(found, batch=None)


def test_updates_of_a_cache_end_inside(tmp_path: Path) -> None:
    inputs = [
        value("cache", [2, 8, 10, 4]),
        value("update", [2, 8, 3, 4]),
        value("at", [2], INT64),
    ]
    found = read(one_node("TensorScatter", inputs, opset=24), tmp_path)
    assert (hint_of(found, "at").low, hint_of(found, "at").high) == (0, 7)
    run(found, batch=None)


def test_all_keys_of_an_attention_are_valid(tmp_path: Path) -> None:
    inputs = [
        *(value(name, [2, 4, 6, 8]) for name in "qkv"),
        value("lengths", [2], INT64),
    ]
    proto = one_node("Attention", inputs, order=["q", "k", "v", "", "", "", "lengths"], opset=24)
    feeds, _ = run(read(proto, tmp_path), batch=None)
    assert feeds["lengths"].tolist() == [6, 6]


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_axes_of_running_sums_exist(op: str, tmp_path: Path) -> None:
    inputs = [value("x", [5]), value("axis", [], INT64)]
    feeds, _ = run(read(one_node(op, inputs, opset=26 if op == "CumProd" else 14), tmp_path))
    assert feeds["axis"] == 0


def test_depth_of_a_one_hot_holds_every_index(tmp_path: Path) -> None:
    inputs = [value("i", [7], INT64), value("depth", [], INT64), value("values", [2])]
    feeds, (output,) = run(read(one_node("OneHot", inputs), tmp_path))
    assert feeds["depth"] == 10
    assert output.shape == (7, 10)
    assert feeds["i"].max() <= 9


# -- sizes that fit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "image", "attributes"),
    [
        ([1, 5, 5], [5, 5], {}),
        ([1, 5, 15], [5, 5], {"pads": [0, 1, 0, 1]}),
        ([1, 9, 4], [5, 5], {"strides": [2, 2]}),
        ([1, 4, 5], [6, 6], {"dilations": [1, 5]}),
        ([1, 10, 12], [3, 4, 5], {}),
    ],
)
def test_columns_are_folded_into_the_declared_image(
    columns: list[int], image: list[int], attributes: dict[str, list[int]], tmp_path: Path
) -> None:
    rank = len(image)
    proto = one_node(
        "Col2Im",
        [value("x", columns), value("image", [rank], INT64), value("block", [rank], INT64)],
        output=value("y", [1, 2 if rank == 3 else 1, *image]),
        **attributes,
    )
    feeds, (output,) = run(read(proto, tmp_path))
    assert feeds["image"].tolist() == image
    assert output.shape[2:] == tuple(image)


def test_an_operator_that_takes_one_size_alone_is_not_overruled_by_a_name(tmp_path: Path) -> None:
    """A Col2Im unfolds what was declared, though its input is called as the size of a picture."""
    proto = one_node(
        "Col2Im",
        [value("x", [1, 5, 5]), value("image_shape", [2], INT64), value("block", [2], INT64)],
        output=value("y", [1, 1, 5, 5]),
    )
    feeds, (output,) = run(read(proto, tmp_path))
    assert feeds["image_shape"].tolist() == [5, 5]
    assert output.shape == (1, 1, 5, 5)


def test_columns_of_an_open_image_become_one_line(tmp_path: Path) -> None:
    inputs = [value("x", ["N", 12, 7]), value("i", [2], INT64), value("b", [2], INT64)]
    feeds, (output,) = run(read(one_node("Col2Im", inputs), tmp_path))
    assert feeds["b"].tolist() == [1, 1]
    assert output.shape == (1, 12, 1, 7)


@pytest.mark.parametrize(("theta", "length"), [([2, 2, 3], 4), ([3, 3, 4], 5)])
def test_a_grid_has_as_many_images_as_transforms(
    theta: list[int], length: int, tmp_path: Path
) -> None:
    inputs = [value("theta", theta), value("size", [length], INT64)]
    feeds, (output,) = run(read(one_node("AffineGrid", inputs, opset=20), tmp_path))
    assert feeds["size"][0] == theta[0]
    assert output.shape[0] == theta[0]


def test_what_is_unpooled_has_the_size_that_was_pooled(tmp_path: Path) -> None:
    inputs = [
        value("x", [1, 2, 3, 3]),
        value("i", [1, 2, 3, 3], INT64),
        value("size", [4], INT64),
    ]
    proto = one_node("MaxUnpool", inputs, kernel_shape=[2, 2], strides=[2, 2])
    feeds, (output,) = run(read(proto, tmp_path))
    assert feeds["size"].tolist() == [1, 2, 6, 6]
    assert output.shape == (1, 2, 6, 6)


@pytest.mark.parametrize(("split", "sizes"), [([], [3, 3]), ([2], [3, 3]), ([3], [2, 2, 2])])
def test_parts_of_a_sequence_fill_the_axis(
    split: list[int], sizes: list[int], tmp_path: Path
) -> None:
    inputs = [value("x", [6, 2]), value("split", split, INT64)]
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    output = helper.make_value_info("y", helper.make_sequence_type_proto(tensor))
    _, (parts,) = run(read(one_node("SplitToSequence", inputs, output=output), tmp_path))
    assert [len(part) for part in parts] == sizes


@pytest.mark.parametrize("axes", [[2, 3], [-1], None])
def test_resize_gets_a_size_for_each_axis_that_it_names(
    axes: list[int] | None, tmp_path: Path
) -> None:
    count = 4 if axes is None else len(axes)
    proto = one_node(
        "Resize",
        [value("x", [1, 2, 4, 6]), value("sizes", [count], INT64)],
        order=["x", "", "", "sizes"],
        **({} if axes is None else {"axes": axes}),
    )
    feeds, (output,) = run(read(proto, tmp_path))
    assert output.shape == (1, 2, 8 if axes != [-1] else 4, 12)
    assert feeds["sizes"].size == count


def test_padded_axes_get_two_amounts_each(tmp_path: Path) -> None:
    inputs = [value("x", [3, 4]), value("pads", [2], INT64), value("axes", [1], INT64)]
    proto = one_node("Pad", inputs, order=["x", "pads", "", "axes"])
    feeds, (output,) = run(read(proto, tmp_path))
    assert feeds["axes"].tolist() == [0]
    assert output.shape == (3, 4)


def test_tensors_of_a_sequence_need_no_declared_rank(tmp_path: Path) -> None:
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    sequence = helper.make_sequence_type_proto(tensor)
    proto = model(
        [node("Identity", ["x"], ["y"])],
        [helper.make_value_info("x", sequence)],
        [helper.make_value_info("y", sequence)],
    )
    _, (output,) = run(read(proto, tmp_path))
    assert [part.shape for part in output] == [(16,), (16,)]


# -- ranges ----------------------------------------------------------------------------------------


def test_probabilities_of_a_cross_entropy_lie_within_both_logarithms(tmp_path: Path) -> None:
    """Log(p) and Log(1 - p)."""
    proto = model(
        [
            node("Log", ["p"], ["a"]),
            node("Sub", ["one", "p"], ["q"]),
            node("Log", ["q"], ["b"]),
            node("Add", ["a", "b"], ["y"]),
        ],
        [value("p", ["N", 8])],
        [value("y", None)],
        [constant("one", 1.0, "float32")],
    )
    found = read(proto, tmp_path)
    hint = hint_of(found, "p")
    assert (hint.kind, hint.low, round(hint.high, 9)) == ("uniform", 0.05, 0.95)
    _, (output,) = run(found, batch=4)
    assert np.isfinite(output).all()


@pytest.mark.parametrize("exponent", [None, 0.5, -1.0, 2.0])
def test_powers_are_finite(exponent: float | None, tmp_path: Path) -> None:
    inputs = [value("x", ["N", 64])]
    weights = [] if exponent is None else [constant("e", exponent, "float32")]
    if exponent is None:
        inputs.append(value("e", ["N", 64]))
    proto = one_node("Pow", inputs, weights=weights, order=["x", "e"])
    found = read(proto, tmp_path)
    assert hint_of(found, "x").kind == ("normal" if exponent == 2.0 else "uniform")
    _, (output,) = run(found, batch=4)
    assert np.isfinite(output).all()


def test_limits_of_a_clip_are_in_order(tmp_path: Path) -> None:
    inputs = [value("x", ["N", 64]), value("low", []), value("high", [])]
    feeds, (output,) = run(read(one_node("Clip", inputs), tmp_path))
    assert feeds["low"] < feeds["high"]
    assert output.min() < output.max()


def test_scales_of_integer_products_are_above_zero(tmp_path: Path) -> None:
    inputs = [
        *(value("a", [2, 4], UINT8), value("a_scale", []), value("a_zero", [], UINT8)),
        *(value("b", [4, 3], UINT8), value("b_scale", []), value("b_zero", [], UINT8)),
        *(value("y_scale", []), value("y_zero", [], UINT8)),
    ]
    feeds, _ = run(read(one_node("QLinearMatMul", inputs), tmp_path))
    assert min(feeds[name] for name in ("a_scale", "b_scale", "y_scale")) > 0


def local_operator(
    name: str, index: int, shape: list[int], element: int = FLOAT
) -> onnx.ModelProto:
    """A function of the model that is named like an operator that no standard domain has."""
    others = [f"x{number}" for number in range(index)]
    body = [node("Identity", [[*others, "b"][-1]], ["y"])]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", name, [*others, "b"], ["y"], body, opsets)
    proto = model(
        [node(name, [*others, "b"], ["y"], domain="own")],
        [*(value(other, [2]) for other in others), value("b", shape, element)],
        [value("y", None, element)],
        opsets={"": 17, "own": 1},
    )
    proto.functions.append(function)
    return proto


def test_what_is_factorised_is_positive_definite(tmp_path: Path) -> None:
    feeds, _ = run(read(local_operator("Cholesky", 0, [3, 5, 5]), tmp_path))
    matrices = feeds["b"]
    assert np.array_equal(matrices, matrices.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(matrices).min() > 0


@pytest.mark.parametrize("element", [FLOAT, INT64])
def test_boundaries_ascend(element: int, tmp_path: Path) -> None:
    feeds, _ = run(read(local_operator("Bucketize", 1, [9], element), tmp_path))
    assert (np.diff(feeds["b"]) >= 0).all()
    assert feeds["b"][0] < feeds["b"][-1]


# -- what several consumers say --------------------------------------------------------------------


def test_a_permutation_lies_within_every_bound() -> None:
    scatter = ConsumerFinding(kind="permutation", high=99, arrangement=("0",), why="scatter")
    table = ConsumerFinding(high=9, why="table")
    assert combine([scatter, table]) == ValueHint(
        kind="permutation", low=0, high=9, choices=("0",), why="scatter"
    )


def test_ranges_that_share_nothing_leave_the_first() -> None:
    low = ConsumerFinding(kind="uniform", low=0.0, high=1.0, why="a")
    high = ConsumerFinding(kind="uniform", low=2.0, high=3.0, why="b")
    assert combine([low, high]) == ValueHint(kind="uniform", low=0.0, high=1.0, why="a")


def test_a_range_is_shifted_with_what_is_read() -> None:
    range_ = ConsumerFinding(kind="uniform", low=0.5, high=1.0, why="a")
    assert unshift(range_, -2.0, 1.0) == ConsumerFinding(
        kind="uniform", low=0.0, high=0.25, why="a"
    )
