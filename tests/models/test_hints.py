"""Values that the graph accepts, found by following each input to what reads it; run for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.worker.inputs import make_feeds
from tests.models.graphs import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    STRING,
    UINT8,
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


def bounds(found: Model, name: str) -> tuple[str, float, float]:
    hint = hint_of(found, name)
    return hint.kind, hint.low, hint.high


def gather(ids: onnx.ValueInfoProto, *, rows: int = 10) -> onnx.ModelProto:
    name = ids.name
    return model(
        [node("Gather", ["table", name], ["y"])],
        [ids],
        [value("y", None)],
        [weight("table", rows, 4)],
    )


# -- indices ---------------------------------------------------------------------------------------


def test_ids_stay_within_the_table(tmp_path: Path) -> None:
    found = read(gather(value("ids", ["B", "S"], INT64)), tmp_path)
    assert bounds(found, "ids") == ("integers", 0, 9)
    assert "Gather(table, " in hint_of(found, "ids").why
    feeds, (output,) = run(found, batch=2)
    assert feeds["ids"].shape == (2, 128)
    assert feeds["ids"].min() >= 0
    assert feeds["ids"].max() <= 9
    assert len(np.unique(feeds["ids"])) > 5
    assert output.shape == (2, 128, 4)


def test_name_does_not_beat_the_axis(tmp_path: Path) -> None:
    found = read(gather(value("beam_idx", ["B"], INT32), rows=3), tmp_path)
    assert bounds(found, "beam_idx") == ("integers", 0, 2)


def test_beam_idx_into_a_cache_is_bounded_by_the_batch(tmp_path: Path) -> None:
    proto = model(
        [node("Gather", ["past", "beam_idx"], ["y"])],
        [value("past", ["B", 2, "P", 4]), value("beam_idx", ["B"], INT32)],
        [value("y", None)],
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "beam_idx").high_dim == "B - 1"
    feeds, _ = run(found, batch=3)
    assert feeds["beam_idx"].max() <= 2


@pytest.mark.parametrize(
    "name", ["past_key_values.0.key", "past_key_self_0", "past_value_cross_1", "kv_cache.3"]
)
def test_a_cache_holds_what_normalised_layers_make(tmp_path: Path, name: str) -> None:
    """No larger input is drawn to see what a precision does: attention would choose one token."""
    proto = model(
        [node("Relu", [name], ["y"])], [value(name, ["B", 2, "P", 4])], [value("y", None)]
    )
    found = read(proto, tmp_path)
    assert bounds(found, name) == ("uniform", -2, 2)
    specs = resolve_inputs(found, batch=2, dims={"P": 8})
    values = make_feeds(specs, seed=0, magnitude=10.0)[name]
    assert 1.5 < np.abs(values).max() <= 2
    whole = model([node("Abs", [name], ["y"])], [value(name, ["B", 4], INT64)], [value("y", None)])
    assert hint_of(read(whole, tmp_path), name).kind == "integers"


@pytest.mark.parametrize("axis", [1, -1])
def test_gather_along_another_axis(tmp_path: Path, axis: int) -> None:
    proto = model(
        [node("Gather", ["table", "i"], ["y"], axis=axis)],
        [value("i", [3], INT64)],
        [value("y", None)],
        [weight("table", 10, 4)],
    )
    assert bounds(read(proto, tmp_path), "i") == ("integers", 0, 3)


def test_narrowest_of_two_tables(tmp_path: Path) -> None:
    proto = model(
        [node("Gather", ["a", "i"], ["y"]), node("Gather", ["b", "i"], ["z"])],
        [value("i", ["N"], INT64)],
        [value("y", None), value("z", None)],
        [weight("a", 50, 2), weight("b", 7, 2)],
    )
    assert bounds(read(proto, tmp_path), "i") == ("integers", 0, 6)


def test_through_operators_that_keep_values(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["x"], ["a"], to=INT64),
        node("Reshape", ["a", "shape"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[1, 0]),
        node("Unsqueeze", ["c", "zero"], ["d"]),
        node("Concat", ["d", "d"], ["e"], axis=0),
        node("Slice", ["e", "zero", "one"], ["f"]),
        node("Gather", ["table", "f"], ["y"]),
    ]
    weights = [
        constant("shape", [2, 3]),
        constant("zero", [0]),
        constant("one", [1]),
        weight("table", 11, 2),
    ]
    proto = model(nodes, [value("x", [6])], [value("y", None)], weights)
    found = read(proto, tmp_path)
    assert bounds(found, "x") == ("integers", 0, 10)
    feeds, _ = run(found)
    assert feeds["x"].dtype == np.float32


def test_constant_offset_shifts_the_bound(tmp_path: Path) -> None:
    """Position tables with two rows in front, as some language models have them."""
    proto = model(
        [node("Add", ["p", "two"], ["q"]), node("Gather", ["table", "q"], ["y"])],
        [value("p", ["N"], INT64)],
        [value("y", None)],
        [constant("two", 2), weight("table", 10, 2)],
    )
    assert bounds(read(proto, tmp_path), "p") == ("integers", 0, 7)


def test_scale_and_reversal_shift_the_bound(tmp_path: Path) -> None:
    proto = model(
        [
            node("Mul", ["p", "three"], ["q"]),
            node("Sub", ["nine", "q"], ["r"]),
            node("Gather", ["table", "r"], ["y"]),
        ],
        [value("p", ["N"], INT64)],
        [value("y", None)],
        [constant("three", 3), constant("nine", 9), weight("table", 10, 2)],
    )
    assert bounds(read(proto, tmp_path), "p") == ("integers", 0, 3)


def test_into_branches_and_loops(tmp_path: Path) -> None:
    def branch(name: str, rows: str) -> onnx.GraphProto:
        nodes = [node("Gather", [rows, "i"], [name])]
        return helper.make_graph(nodes, name, [], [value(name, None)])

    branches = {"then_branch": branch("a", "big"), "else_branch": branch("b", "small")}
    proto = model(
        [node("If", ["c"], ["y"], **branches)],
        [value("c", [], BOOL), value("i", ["N"], INT64)],
        [value("y", None)],
        [weight("big", 20, 2), weight("small", 5, 2)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 4)
    assert hint_of(found, "c").choices == ("1",)
    run(found)


def test_into_a_loop_body(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Gather", ["table", "carried"], ["row"]),
            node("Identity", ["carried"], ["carried_on"]),
        ],
        "body",
        [value("turn", [], INT64), value("go", [], BOOL), value("carried", ["N"], INT64)],
        [value("go_on", [], BOOL), value("carried_on", ["N"], INT64), value("row", None)],
    )
    proto = model(
        [node("Loop", ["m", "go_in", "i"], ["last", "rows"], body=body)],
        [value("m", [], INT64), value("go_in", [], BOOL), value("i", ["N"], INT64)],
        [value("last", None, INT64), value("rows", None)],
        [weight("table", 6, 2)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 5)
    assert hint_of(found, "m").choices == ("4",)
    _, (_, rows) = run(found)
    assert rows.shape[0] == 4


def test_into_a_function_of_the_model(tmp_path: Path) -> None:
    function = helper.make_function(
        "my.ops",
        "Embed",
        ["ids", "rows"],
        ["out"],
        [node("Gather", ["rows", "ids"], ["out"])],
        [helper.make_opsetid("", 17)],
    )
    proto = model(
        [node("Embed", ["i", "table"], ["e"], domain="my.ops"), node("Gather", ["e", "j"], ["y"])],
        [value("i", [4], INT64), value("j", ["N"], INT64)],
        [value("y", None)],
        [weight("table", 8, 2)],
        opsets={"": 17, "my.ops": 1},
    )
    proto.functions.append(function)
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 7)
    assert found.nodes == 3


def test_index_into_a_computed_tensor(tmp_path: Path) -> None:
    """The size of the data comes from shape inference."""
    proto = model(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Transpose", ["h"], ["t"], perm=[1, 0]),
            node("Gather", ["t", "i"], ["y"]),
        ],
        [value("x", ["B", 8]), value("i", ["K"], INT64)],
        [value("y", None)],
        [weight("w", 8, 5)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 4)
    run(found)


def test_gather_elements_and_scatter(tmp_path: Path) -> None:
    proto = model(
        [
            node("GatherElements", ["x", "i"], ["y"], axis=1),
            node("ScatterElements", ["x", "j", "u"], ["z"], axis=1),
        ],
        [
            value("x", [2, 6]),
            value("i", [2, 3], INT64),
            value("j", [2, 1], INT64),
            value("u", [2, 1]),
        ],
        [value("y", None), value("z", None)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 5)
    assert bounds(found, "j") == ("permutation", 0, 5)
    assert hint_of(found, "u").kind == "normal"
    run(found)


def test_gather_nd_takes_the_smallest_axis(tmp_path: Path) -> None:
    proto = model(
        [node("GatherND", ["x", "i"], ["y"])],
        [value("x", [9, 4, 2]), value("i", ["N", 2], INT64)],
        [value("y", None)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 3)
    run(found)


def test_index_into_something_of_unknown_size_is_zero(tmp_path: Path) -> None:
    proto = model(
        [node("Mystery", ["x"], ["h"], domain="my.ops"), node("Gather", ["h", "i"], ["y"])],
        [value("x", ["N", 4]), value("i", ["K"], INT64)],
        [value("y", None)],
        opsets={"": 17, "my.ops": 1},
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 0)
    assert "unknown size" in hint_of(found, "i").why


def test_flat_positions(tmp_path: Path) -> None:
    proto = model(
        [node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        [value("x", ["N", 1, 3, 3]), value("i", ["N", 1, 3, 3], INT64)],
        [value("y", None)],
    )
    feeds, (output,) = run(read(proto, tmp_path), batch=2)
    assert 9 < feeds["i"].max() <= 17
    assert output.shape == (2, 1, 6, 6)


def test_one_hot_depth(tmp_path: Path) -> None:
    proto = model(
        [node("OneHot", ["i", "depth", "onoff"], ["y"])],
        [value("i", ["N"], INT64)],
        [value("y", None)],
        [constant("depth", [6]), constant("onoff", [0.0, 1.0], "float32")],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "i") == ("integers", 0, 5)


def test_embed_layer_normalisation(tmp_path: Path) -> None:
    proto = model(
        [
            node(
                "EmbedLayerNormalization",
                ["input_ids", "segment_ids", "words", "positions", "segments", "g", "b"],
                ["y", "mask_index"],
                domain="com.microsoft",
            )
        ],
        [value("input_ids", ["B", "S"], INT32), value("segment_ids", ["B", "S"], INT32)],
        [value("y", None), value("mask_index", None, INT32)],
        [
            weight("words", 30, 8),
            weight("positions", 200, 8),
            weight("segments", 2, 8),
            weight("g", 8),
            weight("b", 8),
        ],
        opsets={"": 17, "com.microsoft": 1},
    )
    found = read(proto, tmp_path)
    assert bounds(found, "input_ids") == ("integers", 0, 29)
    assert hint_of(found, "segment_ids").kind == "zeros"
    run(found)


# -- counts and shapes -----------------------------------------------------------------------------


def test_lstm_lengths_and_batch(tmp_path: Path) -> None:
    proto = model(
        [node("LSTM", ["x", "w", "r", "", "sequence_lens"], ["y"], hidden_size=4)],
        [value("x", ["S", "B", 3]), value("sequence_lens", ["B"], INT32)],
        [value("y", None)],
        [weight("w", 1, 16, 3), weight("r", 1, 16, 4)],
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "sequence_lens").choices == ("S",)
    feeds, (output,) = run(found, batch=2, dims={"S": 7})
    assert feeds["sequence_lens"].tolist() == [7, 7]
    assert output.shape == (7, 1, 2, 4)


def test_lstm_without_names_finds_batch_and_sizes(tmp_path: Path) -> None:
    proto = model(
        [node("LSTM", ["x", "w", "r", "", "lens", "h"], ["y"], hidden_size=4)],
        [
            value("x", [None, None, None]),
            value("lens", [None], INT32),
            value("h", [None, None, None]),
        ],
        [value("y", None)],
        [weight("w", 1, 16, 3), weight("r", 1, 16, 4)],
    )
    found = read(proto, tmp_path)
    assert found.implied_dims == {"x_dim_2": 3, "h_dim_0": 1, "h_dim_2": 4}
    feeds, _ = run(found, batch=2)
    assert feeds["x"].shape == (128, 2, 3)
    assert feeds["h"].shape == (1, 2, 4)
    assert feeds["lens"].tolist() == [128, 128]


@pytest.mark.parametrize(("size", "k"), [(3, "3"), (100, "5"), ("K", "min(5, K)")])
def test_top_k(tmp_path: Path, size: int | str, k: str) -> None:
    proto = model(
        [node("TopK", ["x", "k"], ["v", "i"])],
        [value("x", [2, size]), value("k", [1], INT64)],
        [value("v", None), value("i", None, INT64)],
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "k").choices == (k,)
    _, (values, _) = run(found)
    assert values.shape == (2, min(5, size) if isinstance(size, int) else 5)


def test_constant_of_shape_allocates_little(tmp_path: Path) -> None:
    proto = model(
        [node("ConstantOfShape", ["shape"], ["y"])],
        [value("shape", ["rank"], INT64)],
        [value("y", None)],
    )
    found = read(proto, tmp_path)
    feeds, (output,) = run(found)
    assert feeds["shape"].tolist() == [4, 4]
    assert output.shape == (4, 4)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_reshape_to_a_fed_shape(tmp_path: Path, rank: int) -> None:
    proto = model(
        [node("Reshape", ["x", "shape"], ["y"])],
        [value("x", ["N", 6]), value("shape", [rank], INT64)],
        [value("y", None)],
    )
    found = read(proto, tmp_path)
    _, (output,) = run(found, batch=2)
    assert output.ndim == rank
    assert output.size == 12


def test_declared_result_gives_the_fed_shape(tmp_path: Path) -> None:
    proto = model(
        [node("Reshape", ["x", "shape"], ["y"])],
        [value("x", [2, 6]), value("shape", [3], INT64)],
        [value("y", [3, 2, 2])],
    )
    assert hint_of(read(proto, tmp_path), "shape").choices == ("3", "2", "2")


@pytest.mark.parametrize(
    ("op", "extra", "shape"),
    [
        ("Expand", [value("e", [3], INT64)], (2, 2, 6)),
        ("Tile", [value("e", [None], INT64)], (2, 6)),
        ("Pad", [value("e", [None], INT64)], (2, 6)),
        ("Squeeze", [value("e", [None], INT64)], None),
        ("Unsqueeze", [value("e", [2], INT64)], (1, 1, 2, 6)),
        ("ReduceSum", [value("e", [1], INT64)], (2, 1)),
        ("CumSum", [value("e", [], INT64)], (2, 6)),
    ],
)
def test_other_shape_inputs(
    tmp_path: Path, op: str, extra: list[onnx.ValueInfoProto], shape: tuple[int, ...] | None
) -> None:
    data = value("x", [1, 6] if op == "Squeeze" else [2, 6])
    proto = model([node(op, ["x", "e"], ["y"])], [data, *extra], [value("y", None)])
    _, (output,) = run(read(proto, tmp_path))
    assert output.shape == (shape or (6,))


def test_slice_with_fed_bounds(tmp_path: Path) -> None:
    lists = [value(name, [None], INT64) for name in ("starts", "ends", "axes", "steps")]
    proto = model(
        [node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])],
        [value("x", [2, 6]), *lists],
        [value("y", None)],
    )
    _, (output,) = run(read(proto, tmp_path))
    assert output.shape == (2, 6)


@pytest.mark.parametrize(("total", "parts"), [(6, [3, 3]), (7, [4, 3]), ("K", [64, 64])])
def test_split_sizes_add_up(tmp_path: Path, total: int | str, parts: list[int]) -> None:
    proto = model(
        [node("Split", ["x", "sizes"], ["a", "b"], axis=1)],
        [value("x", [2, total]), value("sizes", [2], INT64)],
        [value("a", None), value("b", None)],
    )
    feeds, outputs = run(read(proto, tmp_path), dims={"K": 128} if total == "K" else {})
    assert feeds["sizes"].tolist() == parts
    assert [output.shape[1] for output in outputs] == parts


@pytest.mark.parametrize(("op_input", "kind"), [("scales", FLOAT), ("sizes", INT64)])
def test_resize_doubles_an_image(tmp_path: Path, op_input: str, kind: int) -> None:
    names = ["x", "", "scales"] if op_input == "scales" else ["x", "", "", "sizes"]
    proto = model(
        [node("Resize", names, ["y"], mode="nearest")],
        [value("x", ["N", 3, 8, 8]), value(op_input, [4], kind)],
        [value("y", None)],
    )
    _, (output,) = run(read(proto, tmp_path), batch=2)
    assert output.shape == (2, 3, 16, 16)


def test_range_is_short(tmp_path: Path) -> None:
    proto = model(
        [node("Range", ["start", "limit", "step"], ["y"])],
        [value(name, [], INT64) for name in ("start", "limit", "step")],
        [value("y", None, INT64)],
    )
    _, (output,) = run(read(proto, tmp_path))
    assert output.tolist() == list(range(16))


def test_range_counts_no_further_than_its_table(tmp_path: Path) -> None:
    proto = model(
        [
            node("Range", ["zero", "limit", "one"], ["r"]),
            node("Add", ["r", "one"], ["s"]),
            node("Gather", ["table", "s"], ["y"]),
        ],
        [value("limit", [], INT64)],
        [value("y", None)],
        [constant("zero", 0), constant("one", 1), weight("table", 8, 2)],
    )
    _, (output,) = run(read(proto, tmp_path))
    assert output.shape == (7, 2)


def test_integer_divisor_is_never_zero(tmp_path: Path) -> None:
    proto = model(
        [node("Div", ["x", "d"], ["y"]), node("Mod", ["x", "d"], ["z"])],
        [value("x", ["N", 100], INT64), value("d", ["N", 100], INT64)],
        [value("y", None, INT64), value("z", None, INT64)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "d") == ("integers", 1, 9)
    feeds, _ = run(found)
    assert feeds["d"].min() >= 1


def test_float_divisor_is_drawn_as_usual(tmp_path: Path) -> None:
    proto = model(
        [node("Div", ["x", "d"], ["y"])],
        [value("x", ["N", 4]), value("d", ["N", 4])],
        [value("y", None)],
    )
    assert hint_of(read(proto, tmp_path), "d").kind == "normal"


@pytest.mark.parametrize("op", ["Log", "Sqrt", "Reciprocal", "Acos", "Asin", "Atanh", "Acosh"])
def test_outputs_are_finite(tmp_path: Path, op: str) -> None:
    proto = model([node(op, ["x"], ["y"])], [value("x", ["N", 500])], [value("y", None)])
    _, (output,) = run(read(proto, tmp_path))
    assert np.isfinite(output).all()
    assert output.std() > 0


# -- categories, truth values, types ---------------------------------------------------------------


def test_label_encoder_keys(tmp_path: Path) -> None:
    encoder = node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_strings=["cat", "dog"],
        values_int64s=[1, 2],
        default_int64=-1,
    )
    proto = model(
        [encoder],
        [value("x", ["N", 1], STRING)],
        [value("y", ["N", 1], INT64)],
        opsets={"": 17, "ai.onnx.ml": 2},
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "x").kind == "choice"
    assert hint_of(found, "x").choices == ("cat", "dog")
    feeds, (output,) = run(found, batch=20)
    assert set(feeds["x"].reshape(-1)) == {"cat", "dog"}
    assert set(output.reshape(-1)) == {1, 2}


def test_label_encoder_of_operator_set_1(tmp_path: Path) -> None:
    encoder = node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=["cat", "dog"]
    )
    opsets = {"": 13, "ai.onnx.ml": 1}
    texts = model([encoder], [value("x", ["N"], STRING)], [value("y", None, INT64)], opsets=opsets)
    numbers = model(
        [encoder], [value("x", ["N"], INT64)], [value("y", None, STRING)], opsets=opsets
    )
    assert hint_of(read(texts, tmp_path), "x").choices == ("cat", "dog")
    assert hint_of(read(numbers, tmp_path), "x").choices == ("0", "1")


def test_label_encoder_with_a_tensor_of_keys(tmp_path: Path) -> None:
    encoder = node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_tensor=helper.make_tensor("k", TensorProto.STRING, [2], [b"cat", b"dog"]),
        values_tensor=helper.make_tensor("v", TensorProto.INT64, [2], [1, 2]),
        default_tensor=helper.make_tensor("d", TensorProto.INT64, [1], [-1]),
    )
    proto = model(
        [encoder],
        [value("x", ["N"], STRING)],
        [value("y", None, INT64)],
        opsets={"": 17, "ai.onnx.ml": 4},
    )
    assert hint_of(read(proto, tmp_path), "x").choices == ("cat", "dog")


@pytest.mark.parametrize(("kind", "keys"), [(STRING, ("a", "b")), (INT64, ("3", "4"))])
def test_category_mapper(tmp_path: Path, kind: int, keys: tuple[str, ...]) -> None:
    mapper = node(
        "CategoryMapper",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        cats_strings=["a", "b"],
        cats_int64s=[3, 4],
    )
    result = INT64 if kind == STRING else STRING
    proto = model(
        [mapper],
        [value("x", ["N"], kind)],
        [value("y", None, result)],
        opsets={"": 17, "ai.onnx.ml": 2},
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "x").choices == keys
    run(found)


def test_text_for_a_normaliser_and_text_that_is_a_number(tmp_path: Path) -> None:
    proto = model(
        [
            node("StringNormalizer", ["s"], ["y"], case_change_action="UPPER", locale="C"),
            node("Cast", ["n"], ["z"], to=FLOAT),
        ],
        [value("s", ["N"], STRING), value("n", ["N"], STRING)],
        [value("y", None, STRING), value("z", None)],
    )
    found = read(proto, tmp_path)
    feeds, (upper, numbers) = run(found)
    assert upper.tolist() == [text.upper() for text in feeds["s"]]
    assert np.isfinite(numbers).all()


def test_truth_values_into_where(tmp_path: Path) -> None:
    proto = model(
        [node("Where", ["mask", "a", "b"], ["y"])],
        [
            value("mask", ["N", 64], BOOL),
            value("a", ["N", 64], TensorProto.FLOAT16),
            value("b", ["N", 64], TensorProto.FLOAT16),
        ],
        [value("y", None, TensorProto.FLOAT16)],
    )
    feeds, _ = run(read(proto, tmp_path))
    assert feeds["mask"].dtype == np.bool_
    assert set(feeds["mask"].reshape(-1).tolist()) == {True, False}
    assert feeds["a"].dtype == np.float16


def test_double_is_fed_as_double(tmp_path: Path) -> None:
    kind = TensorProto.DOUBLE
    proto = model(
        [node("Exp", ["x"], ["y"])], [value("x", ["N", 4], kind)], [value("y", None, kind)]
    )
    feeds, _ = run(read(proto, tmp_path))
    assert feeds["x"].dtype == np.float64


def test_bytes_take_their_whole_range(tmp_path: Path) -> None:
    proto = model(
        [node("Cast", ["x"], ["y"], to=FLOAT)],
        [value("x", ["N", 32, 32, 3], UINT8)],
        [value("y", None)],
    )
    found = read(proto, tmp_path)
    assert bounds(found, "x") == ("integers", 0, 255)


def test_unbounded_integers_are_small_and_say_so(tmp_path: Path) -> None:
    proto = model(
        [node("Cast", ["x"], ["y"], to=FLOAT)], [value("x", ["N", 4], INT64)], [value("y", None)]
    )
    hint = hint_of(read(proto, tmp_path), "x")
    assert (hint.kind, hint.low, hint.high) == ("integers", 0, 9)
    assert "no consumer bounds it" in hint.why


def test_text_compared_with_a_constant_is_sometimes_equal(tmp_path: Path) -> None:
    proto = model(
        [node("Equal", ["x", "c"], ["y"])],
        [value("x", ["N"], STRING)],
        [value("y", None, BOOL)],
        [helper.make_tensor("c", STRING, [], [b"yes"])],
        opsets={"": 19},
    )
    _, (output,) = run(read(proto, tmp_path), batch=20)
    assert set(output.tolist()) == {True, False}


def test_regions_of_interest(tmp_path: Path) -> None:
    proto = model(
        [node("RoiAlign", ["x", "rois", "which"], ["y"], output_height=2, output_width=2)],
        [value("x", ["N", 3, 16, 16]), value("rois", ["R", 4]), value("which", ["R"], INT64)],
        [value("y", None)],
        opsets={"": 16},
    )
    feeds, (output,) = run(read(proto, tmp_path), batch=2, dims={"R": 5})
    assert feeds["which"].max() <= 1
    assert output.shape == (5, 3, 2, 2)


def test_switch_takes_the_value_it_is_compared_with(tmp_path: Path) -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, ["x"], [name])], name, [], [value(name, None)])

    branches = {"then_branch": branch("a", "Relu"), "else_branch": branch("b", "Neg")}
    proto = model(
        [node("Equal", ["rate", "c"], ["is"]), node("If", ["is"], ["y"], **branches)],
        [value("x", ["N", 4]), value("rate", [], INT64)],
        [value("y", None)],
        [constant("c", 16000)],
    )
    found = read(proto, tmp_path)
    assert hint_of(found, "rate").choices == ("16000",)
    feeds, _ = run(found)
    assert feeds["rate"].shape == ()


# -- names -----------------------------------------------------------------------------------------


def identity_of(*inputs: onnx.ValueInfoProto) -> onnx.ModelProto:
    nodes = [node("Identity", [info.name], [f"{info.name}_out"]) for info in inputs]
    outputs = [value(f"{info.name}_out", None, info.type.tensor_type.elem_type) for info in inputs]
    return model(nodes, inputs, outputs)


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("attention_mask", INT64, "ones"),
        ("attention_mask", FLOAT, "ones"),
        ("encoder_attention_mask", INT64, "ones"),
        ("input_mask", INT32, "ones"),
        ("pixel_mask", INT64, "ones"),
        ("key_padding_mask", BOOL, "zeros"),
        ("token_type_ids", INT64, "zeros"),
        ("segment_ids", INT32, "zeros"),
        ("position_ids", INT64, "arange"),
        ("cache_position", INT64, "arange"),
        ("pixel_values", FLOAT, "normal"),
        ("mask_input", FLOAT, "normal"),
        ("unmasked", INT64, "integers"),
    ],
)
def test_well_known_names(tmp_path: Path, name: str, kind: int, expected: str) -> None:
    found = read(identity_of(value(name, ["B", "S"], kind)), tmp_path)
    assert hint_of(found, name).kind == expected


def test_positions_keep_to_their_table(tmp_path: Path) -> None:
    found = read(gather(value("position_ids", ["B", "S"], INT64), rows=512), tmp_path)
    assert bounds(found, "position_ids") == ("arange", 0, 511)
    feeds, _ = run(found, dims={"S": 6})
    assert feeds["position_ids"].tolist() == [[0, 1, 2, 3, 4, 5]]


def test_lengths_are_the_whole_length(tmp_path: Path) -> None:
    audio, lengths = value("audio_signal", ["B", 80, "T"]), value("length", ["B"], INT64)
    found = read(identity_of(audio, lengths), tmp_path)
    feeds, _ = run(found, batch=2, dims={"T": 50})
    assert feeds["length"].tolist() == [50, 50]


def test_sampling_rate_and_cache_switch(tmp_path: Path) -> None:
    proto = identity_of(value("sr", [], INT64), value("use_cache_branch", [1], BOOL))
    feeds, _ = run(read(proto, tmp_path))
    assert feeds["sr"] == 16000
    assert feeds["use_cache_branch"].tolist() == [True]


# -- sizes that the graph implies ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "shape", "weights", "implied"),
    [
        ([node("MatMul", ["x", "w"], ["y"])], ["N", "K"], [weight("w", 12, 3)], {"K": 12}),
        ([node("Gemm", ["x", "w"], ["y"], transB=1)], ["N", "K"], [weight("w", 3, 9)], {"K": 9}),
        (
            [node("Conv", ["x", "w"], ["y"], group=2)],
            ["N", "C", "H", "W"],
            [weight("w", 4, 3, 3, 3)],
            {"C": 6},
        ),
        ([node("Add", ["x", "w"], ["y"])], ["N", "S", "K"], [weight("w", 7)], {"K": 7}),
        (
            [
                node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
                node("Conv", ["t", "w"], ["y"]),
            ],
            ["N", "H", "W", "C"],
            [weight("w", 4, 5, 3, 3)],
            {"C": 5},
        ),
    ],
)
def test_weights_fix_sizes(
    tmp_path: Path,
    nodes: list[onnx.NodeProto],
    shape: list[str],
    weights: list[onnx.TensorProto],
    implied: dict[str, int],
) -> None:
    proto = model(nodes, [value("x", shape)], [value("y", None)], weights)
    found = read(proto, tmp_path)
    assert found.implied_dims == implied
    run(found, batch=2)


def test_support_vectors_fix_the_number_of_features(tmp_path: Path) -> None:
    machine = node(
        "SVMRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_supports=2,
        support_vectors=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        coefficients=[1.0, -1.0],
        rho=[0.1],
        kernel_type="LINEAR",
        kernel_params=[1.0, 0.0, 3.0],
        post_transform="NONE",
    )
    proto = model(
        [machine], [value("x", [None, None])], [value("y", None)], opsets={"": 17, "ai.onnx.ml": 1}
    )
    feeds, _ = run(read(proto, tmp_path), batch=4)
    assert feeds["x"].shape == (4, 3)


def test_trees_fix_the_number_of_features(tmp_path: Path) -> None:
    tree = node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[11, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.0, -1.0],
    )
    proto = model(
        [tree], [value("x", [None, None])], [value("y", None)], opsets={"": 17, "ai.onnx.ml": 1}
    )
    found = read(proto, tmp_path)
    assert found.implied_dims == {"x_dim_1": 12}
    assert hint_of(found, "x").kind == "normal"
    _, (output,) = run(found, batch=50)
    assert set(output.reshape(-1).tolist()) == {1.0, -1.0}


def test_model_that_crashes_shape_inference_is_read_all_the_same(tmp_path: Path) -> None:
    """Seen: a segmentation fault where a LabelEncoder reads something of unknown type."""
    encoder = node(
        "LabelEncoder",
        ["h"],
        ["l"],
        domain="ai.onnx.ml",
        keys_strings=["cat", "dog"],
        values_int64s=[1, 2],
    )
    proto = model(
        [
            node("Mystery", ["x"], ["h"], domain="my.ops"),
            encoder,
            node("Transpose", ["t"], ["u"]),
            node("Gather", ["u", "i"], ["y"]),
        ],
        [value("x", ["N"]), value("t", [3, 5]), value("i", ["K"], INT64)],
        [value("l", None, INT64), value("y", None)],
        opsets={"": 17, "ai.onnx.ml": 2, "my.ops": 1},
    )
    found = read(proto, tmp_path)
    assert [info.name for info in found.inputs] == ["x", "t", "i"]
    assert hint_of(found, "i").kind == "integers"
    assert hint_of(found, "i").high in (0, 4)
