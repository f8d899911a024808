"""What model files have to do, against counts made by hand and by the field."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.model import Model
from pytest_ortbench.models.arithmetic import count_file, count_proto
from pytest_ortbench.models.builders.generative import LLM_LONG, LlmSizes
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.generation.folders import TINY, model_bytes
from tests.models.graphs import BOOL, FLOAT, INT64, UINT8, constant, model, node, value, weight

pytestmark = pytest.mark.live


def works(found):
    return {each.name: each for each in found.nodes}


def test_a_convolution_with_groups_strides_and_dilations():
    """32 -> 64 channels in 4 groups, 3·3 dilated by 2 (so 5·5 wide), stride 2, 20 -> 8."""
    proto = model(
        [node("Conv", ["x", "w"], ["y"], name="c", group=4, strides=[2, 2], dilations=[2, 2])],
        [value("x", ["N", 32, "H", "W"])],
        [value("y", None)],
        [weight("w", 64, 8, 3, 3)],
    )
    found = count_proto(proto, {"x": (3, 32, 20, 20)})
    conv = works(found)["c"]
    assert conv.macs == found.macs == 3 * 64 * 8 * 8 * 8 * 9
    assert conv.weight_bytes == found.weight_bytes == 4 * 64 * 8 * 9
    assert conv.activation_bytes == found.activation_bytes == 4 * (3 * 32 * 400 + 3 * 64 * 64)
    assert conv.parameters == found.parameters == 4608
    assert found.complete
    assert not found.uncounted


def test_a_transposed_convolution():
    """Stride 2 makes 4 -> 8; each of 1·16·4·4 inputs meets 8 filters of 2·2."""
    proto = model(
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])],
        [value("x", ["N", 16, 4, 4])],
        [value("y", None)],
        [weight("w", 16, 8, 2, 2)],
    )
    assert count_proto(proto, {"x": (1, 16, 4, 4)}).macs == 16 * 16 * 8 * 4


def test_gemm_and_batched_matmul():
    proto = model(
        [
            node("Gemm", ["x", "w", "b"], ["h"], transB=1, name="gemm"),
            node("Reshape", ["h", "shape"], ["r"], name="view"),
            node("MatMul", ["r", "v"], ["y"], name="matmul"),
        ],
        [value("x", ["N", 8])],
        [value("y", None)],
        [weight("w", 12, 8), weight("b", 12), constant("shape", [-1, 3, 4]), weight("v", 4, 5)],
    )
    found = works(count_proto(proto, {"x": (6, 8)}))
    assert {name: each.macs for name, each in found.items()} == {
        "gemm": 6 * 8 * 12,
        "view": 0,
        "matmul": 6 * 3 * 4 * 5,
    }
    assert found["view"].activation_bytes == 0
    assert found["matmul"].activation_bytes == 4 * (6 * 12 + 6 * 15)


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3)])
def test_recurrent_cells(op, gates):
    """7 steps of 2 sequences; in both directions 10 inputs and 6 states meet every gate."""
    proto = model(
        [node(op, ["x", "w", "r"], ["y"], hidden_size=6, direction="bidirectional")],
        [value("x", ["T", "N", 10])],
        [value("y", None)],
        [weight("w", 2, gates * 6, 10), weight("r", 2, gates * 6, 6)],
    )
    assert count_proto(proto, {"x": (7, 2, 10)}).macs == 7 * 2 * 2 * gates * 6 * 16


def test_attention_written_out():
    """Scores and values: 2 batches of 4 heads, 9 tokens, 16 wide."""
    proto = model(
        [
            node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
            node("MatMul", ["q", "kt"], ["s"], name="scores"),
            node("Softmax", ["s"], ["p"], axis=-1),
            node("MatMul", ["p", "v"], ["y"], name="values"),
        ],
        [value(name, ["N", 4, "L", 16]) for name in "qkv"],
        [value("y", None)],
    )
    found = works(count_proto(proto, dict.fromkeys("qkv", (2, 4, 9, 16))))
    assert found["scores"].macs == found["values"].macs == 8 * 9 * 9 * 16


def test_einsum_is_read():
    proto = model(
        [node("Einsum", ["q", "k"], ["s"], equation="bhqd,bhkd->bhqk")],
        [value("q", ["N", 4, "L", 16]), value("k", ["N", 4, "L", 16])],
        [value("s", None)],
    )
    assert count_proto(proto, {"q": (2, 4, 9, 16), "k": (2, 4, 5, 16)}).macs == 8 * 9 * 5 * 16


def quantised(form: str, domain: str = "") -> onnx.ModelProto:
    """A convolution 3 -> 8 of 3·3 over 10·10, in integers."""
    weights = [
        helper.make_tensor("w", UINT8, [8, 3, 3, 3], bytes(216), raw=True),
        *(constant(name, 0.1, "float32") for name in ("sx", "sw", "sy")),
        *(constant(name, 0, "uint8") for name in ("zx", "zw", "zy")),
    ]
    x, y = value("x", ["N", 3, 10, 10], UINT8), value("y", None, UINT8)
    operands = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    if form == "QLinearConv":
        return model([node("QLinearConv", operands, ["y"], name="conv")], [x], [y], weights)
    nodes = [
        node("DequantizeLinear", ["x", "sx", "zx"], ["xf"], name="dx", domain=domain),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wf"], name="dw", domain=domain),
        node("Conv", ["xf", "wf"], ["yf"], name="conv"),
        node("QuantizeLinear", ["yf", "sy", "zy"], ["y"], name="q", domain=domain),
    ]
    return model(nodes, [x], [y], weights, opsets={"": 17, "com.microsoft": 1})


@pytest.mark.parametrize(
    ("form", "domain"), [("QLinearConv", ""), ("QDQ", ""), ("QDQ", "com.microsoft")]
)
def test_integers_count_as_their_float_kin_in_their_own_bytes(form, domain):
    found = count_proto(quantised(form, domain), {"x": (2, 3, 10, 10)})
    conv = works(found)["conv"]
    assert conv.macs == found.macs == 2 * 8 * 64 * 27
    assert conv.activation_bytes == 2 * 3 * 100 + 2 * 8 * 64
    assert 216 <= conv.weight_bytes <= 216 + 6 * 4
    assert found.complete


def test_integer_matmul():
    proto = model(
        [node("MatMulInteger", ["x", "w"], ["y"])],
        [value("x", ["N", 32], UINT8)],
        [value("y", None, TensorProto.INT32)],
        [helper.make_tensor("w", UINT8, [32, 8], bytes(256), raw=True)],
    )
    found = count_proto(proto, {"x": (4, 32)})
    assert (found.macs, found.weight_bytes, found.activation_bytes) == (1024, 256, 128 + 128)


def test_classical_operators_are_uncounted():
    proto = model(
        [node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])],
        [value("x", ["N", 4])],
        [value("s", ["N", 4])],
        opsets={"": 17, "ai.onnx.ml": 3},
    )
    found = count_proto(proto, {"x": (2, 4)})
    assert found.uncounted == {"ai.onnx.ml::Scaler": 1}
    assert found.macs is None
    assert "rule" in found.nodes[0].reason


def test_an_operator_of_nobody_hides_no_work_behind_it():
    """Behind it shapes are lost, unless the file itself states them."""
    nodes = [
        node("Strange", ["x"], ["a"], domain="a.b"),
        node("MatMul", ["a", "w"], ["b"], name="told"),
        node("Strange", ["b"], ["c"], domain="a.b"),
        node("MatMul", ["c", "v"], ["y"], name="lost"),
    ]
    proto = model(
        nodes,
        [value("x", ["N", 4])],
        [value("y", None)],
        [weight("w", 4, 8), weight("v", 8, 2)],
        opsets={"": 17, "a.b": 1},
    )
    proto.graph.value_info.append(value("a", ["N", 4]))
    proto.graph.value_info.append(value("b", ["N", 8]))
    found = count_proto(proto, {"x": (3, 4)})
    assert works(found)["told"].macs == 3 * 4 * 8
    assert works(found)["lost"].macs is None
    assert works(found)["lost"].activation_bytes is None
    assert found.uncounted == {"MatMul": 1, "a.b::Strange": 2}
    assert (found.macs, found.complete) == (96, False)


def test_operators_that_onnx_does_not_know_do_not_hide_what_follows():
    """Packed weights 16 -> 32, a fused activation, a skip connection, and 32 -> 8 behind them."""
    contrib = "com.microsoft"
    nodes = [
        node("MatMulNBits", ["x", "q", "s"], ["a"], name="packed", domain=contrib, K=16, N=32),
        node("BiasGelu", ["a", "b"], ["g"], domain=contrib),
        node("SkipLayerNormalization", ["g", "a", "b"], ["n"], domain=contrib),
        node("DynamicQuantizeMatMul", ["n", "w", "ws"], ["d"], name="dynamic", domain=contrib),
        node("MatMul", ["d", "v"], ["y"], name="plain"),
    ]
    weights = [
        helper.make_tensor("q", UINT8, [32, 1, 8], bytes(256), raw=True),
        weight("s", 32),
        weight("b", 32),
        helper.make_tensor("w", UINT8, [32, 8], bytes(256), raw=True),
        constant("ws", 0.1, "float32"),
        weight("v", 8, 4),
    ]
    proto = model(
        nodes,
        [value("x", ["N", "L", 16])],
        [value("y", None)],
        weights,
        opsets={"": 17, contrib: 1},
    )
    found = count_proto(proto, {"x": (2, 3, 16)})
    by_name = works(found)
    assert found.complete
    assert by_name["packed"].op == "com.microsoft::MatMulNBits"
    assert by_name["packed"].macs == 6 * 16 * 32
    assert by_name["packed"].weight_bytes == 256 + 4 * 32  # as it is stored
    assert by_name["dynamic"].macs == 6 * 32 * 8
    assert by_name["plain"].macs == 6 * 8 * 4


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("new", "past"), [(40, 0), (1, 39)])
@pytest.mark.parametrize("sizes", [TINY, LLM_LONG], ids=["rotary", "longrope"])
def test_language_models_are_counted_whole(
    sizes: LlmSizes, new: int, past: int, packed: bool
) -> None:
    """What ONNX Runtime's own operators make has a shape, so nothing behind them is left out."""
    inputs = {"input_ids": (1, new), "attention_mask": (1, new + past)}
    for layer in range(sizes.layers):
        for kind in ("key", "value"):
            inputs[f"past_key_values.{layer}.{kind}"] = (1, sizes.key_heads, past, 64)
    proto = onnx.load_from_string(model_bytes(sizes, packed=packed))
    found = count_proto(proto, inputs)
    heads, width = sizes.heads + 2 * sizes.key_heads, sizes.width
    layer_macs = width * 64 * heads + width * width + 3 * width * sizes.inner
    products = sizes.layers * layer_macs + width * sizes.vocabulary
    attention = sizes.layers * 2 * width * (new + past)
    assert found.macs == new * (products + attention)
    assert set(found.uncounted) == ({"If"} if sizes.original else set())


def test_packed_weights_count_as_what_they_hold() -> None:
    """17 by 5 weights of 4 bits in blocks of 16: the second block of each column is padded."""
    proto = model(
        [node("MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft", K=17, N=5)],
        [value("x", ["N", 17])],
        [value("y", None)],
        [constant("q", [[[0] * 8] * 2] * 5, "uint8"), weight("s", 10)],
    )
    found = count_proto(proto, {"x": (3, 17)})
    assert found.parameters == found.nodes[0].parameters == 17 * 5 + 10
    assert found.macs == 3 * 17 * 5


def test_packed_weights_as_small_as_sizes_are_no_sizes():
    proto = model(
        [
            node("MatMulNBits", ["x", "q", "s"], ["a"], domain="com.microsoft", K=16, N=4),
            node("Shape", ["a"], ["n"]),
            node("Strange", ["n"], ["y"], domain="a.b"),
        ],
        [value("x", ["N", 16])],
        [value("y", None)],
        [helper.make_tensor("q", UINT8, [4, 1, 8], bytes(32), raw=True), weight("s", 4)],
        opsets={"": 17, "com.microsoft": 1, "a.b": 1},
    )
    assert count_proto(proto, {"x": (3, 16)}).macs == 3 * 16 * 4


def test_sizes_that_the_file_states_do_not_outlive_other_inputs():
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["N", 4])],
        [value("y", [1, 8])],
        [weight("w", 4, 8)],
    )
    assert count_proto(proto, {"x": (5, 4)}).macs == 5 * 32


def test_branches_are_not_guessed():
    branch = helper.make_graph(
        [node("MatMul", ["x", "w"], ["b"])], "branch", [], [value("b", ["N", 4])]
    )
    proto = model(
        [node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=branch)],
        [value("c", [], BOOL), value("x", ["N", 4])],
        [value("y", ["N", 4])],
        [weight("w", 4, 4)],
    )
    found = count_proto(proto, {"c": (), "x": (2, 4)})
    assert found.uncounted == {"If": 1}
    assert "values" in found.nodes[0].reason


def test_functions_are_counted_where_they_are_called():
    body = [node("MatMul", ["a", "b"], ["c"])]
    opset = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Product", ["a", "b"], ["c"], body, opset)
    proto = model(
        [
            node("Product", ["x", "w"], ["h"], domain="own"),
            node("Product", ["h", "w"], ["y"], domain="own"),
        ],
        [value("x", ["N", 4])],
        [value("y", ["N", 4])],
        [weight("w", 4, 4)],
        opsets={"": 17, "own": 1},
    )
    proto.functions.append(function)
    assert count_proto(proto, {"x": (3, 4)}).macs == 2 * 3 * 16


def test_what_follows_from_constants_alone_is_done_once():
    """A transposed weight is no work of a run, and its elements are those of the weight."""
    proto = model(
        [
            node("Transpose", ["w"], ["wt"], perm=[1, 0]),
            node("MatMul", ["x", "wt"], ["a"], name="one"),
            node("MatMul", ["a", "w"], ["y"], name="two"),
        ],
        [value("x", ["N", 4])],
        [value("y", None)],
        [weight("w", 8, 4)],
    )
    found = count_proto(proto, {"x": (2, 4)})
    assert list(works(found)) == ["one", "two"]
    assert (found.macs, found.weight_bytes, found.parameters) == (128, 128, 32)


def test_sizes_that_pass_through_floats_are_followed():
    """Half the width, computed as exporters do: Shape, Cast, Mul, Floor, Cast, Concat, Reshape."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["w"], axis=0),
        node("Cast", ["w"], ["wf"], to=FLOAT),
        node("Mul", ["wf", "half"], ["wh"]),
        node("Floor", ["wh"], ["wl"]),
        node("Cast", ["wl"], ["wi"], to=INT64),
        node("Concat", ["rows", "wi"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["r"]),
        node("MatMul", ["r", "v"], ["y"], name="product"),
    ]
    constants = [
        constant("one", [1]),
        constant("half", [0.5], "float32"),
        constant("rows", [-1]),
        weight("v", 6, 2),
    ]
    proto = model(nodes, [value("x", ["N", "W"])], [value("y", None)], constants)
    found = count_proto(proto, {"x": (3, 12)})
    assert works(found)["product"].macs == 6 * 6 * 2
    assert found.complete


def test_a_model_that_can_not_be_inferred_says_so(monkeypatch):
    monkeypatch.setattr("pytest_ortbench.models.shape_values.with_shapes", lambda *_, **__: None)
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
    found = count_proto(proto, {"x": (4,)})
    assert (found.macs, found.nodes) == (None, ())
    assert "shape inference" in found.reason


@pytest.mark.parametrize(
    ("name", "macs", "parameters"),
    [
        ("resnet50", 4.09e9, 25.6e6),
        ("mobilenet_v2", 0.301e9, 3.54e6),
        ("vit_b16", 17.56e9, 86.6e6),
    ],
)
def test_published_networks_at_224(name: str, macs: float, parameters: float):
    """Counts that torchvision publishes: 4.09, 0.30 and 17.56 G."""
    (found,) = resolve_models([f"builtin:{name}"], root=Path())
    assert isinstance(found, Model)
    specs = resolve_inputs(found, batch=1, dims={})
    work = count_file(Path(found.path), {spec.name: spec.shape for spec in specs})
    assert work.macs == pytest.approx(macs, rel=0.005)
    assert work.parameters == pytest.approx(parameters, rel=0.005)
    assert work.complete
    eight = resolve_inputs(found, batch=8, dims={})
    again = count_file(Path(found.path), {spec.name: spec.shape for spec in eight})
    assert again.macs == 8 * (work.macs or 0)
    assert again.weight_bytes == work.weight_bytes


def test_a_constant_that_is_read_twice_counts_once(tmp_path):
    nodes = [node("Add", ["w", "w"], ["c0"])]
    nodes += [node("Add", [f"c{i}", f"c{i}"], [f"c{i + 1}"]) for i in range(80)]
    proto = model(
        [*nodes, node("MatMul", ["x", "c80"], ["y"])],
        [value("x", [1, 4])],
        [value("y", None)],
        [weight("w", 4, 4)],
    )
    work = count_proto(proto, {"x": (1, 4)})
    assert work.nodes[-1].parameters == 16
    assert work.nodes[-1].weight_bytes == 64


def test_what_inference_makes_too_large_to_count_is_unknown():
    proto = model(
        [node("Expand", ["x", "sizes"], ["e"]), node("MatMul", ["e", "w"], ["y"])],
        [value("x", [1, 4])],
        [value("y", None)],
        [constant("sizes", [2**40, 2**40, 1, 4]), weight("w", 4, 1)],
    )
    work = count_proto(proto, {"x": (1, 4)})
    assert work.macs is None
    assert [entry.macs for entry in work.nodes] == [0, None]


def test_a_range_without_end_costs_the_shapes_only(monkeypatch):
    monkeypatch.setattr("pytest_ortbench.models.shape_inference._MOST_BYTES", 700 * 2**20)
    proto = model(
        [
            node("Range", ["from", "to", "step"], ["r"]),
            node("Cast", ["r"], ["f"], to=1),
            node("Add", ["x", "f"], ["y"]),
        ],
        [value("x", [1, 4])],
        [value("y", None)],
        [constant("from", 0), constant("to", 2**62), constant("step", 1)],
    )
    assert count_proto(proto, {"x": (1, 4)}).reason


def test_a_function_that_calls_itself_is_a_reason_and_no_error():
    proto = model(
        [node("Relu", ["x"], ["y"])], [value("x", ["N", 3])], [value("y", None)], [weight("w", 3)]
    )
    opset = [helper.make_opsetid("", 17)]
    again = helper.make_node("Relu", ["a"], ["b"])
    proto.functions.append(helper.make_function("", "Relu", ["a"], ["b"], [again], opset))
    found = count_proto(proto, {"x": (1, 3)})
    assert (found.parameters, found.nodes) == (3, ())
    assert "recursive" in found.reason
