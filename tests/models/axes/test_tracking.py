"""What a graph says about the axes of its inputs, operator by operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from pytest_ortbench.core.model import AxisRole, Model, TensorInfo
from pytest_ortbench.models.axes.tracking import walked
from pytest_ortbench.models.axes.values import AxisPart, reshaped
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.models.inspection import declared_inputs
from pytest_ortbench.planning.batch_axis import find_batch
from tests.models.graphs import FLOAT, INT64, constant, model, node, read, value, weight


def axis_inputs(proto: onnx.ModelProto) -> list[TensorInfo]:
    """Return the inputs of a model with the roles of their axes."""
    inputs = declared_inputs(proto.graph)
    roles = walked(proto, inputs).roles()
    return [replace(info, roles=roles.get(info.name, ())) for info in inputs]


def role_of(proto: onnx.ModelProto, name: str = "x", axis: int = 0) -> AxisRole:
    """Return what the graph says about one axis of an input."""
    roles = walked(proto, declared_inputs(proto.graph)).roles()[name]
    return next(role for role in roles if role.axis == axis)


def _graph(nodes: list[onnx.NodeProto], shape: list[Any], *weights: onnx.TensorProto) -> Any:
    kind = INT64 if nodes[-1].op_type == "ArgMax" else FLOAT
    return model(nodes, [value("x", shape)], [value("y", None, kind)], weights)


#: Graphs over ``x`` whose first axis is a batch.
APART = {
    "product": _graph([node("MatMul", ["x", "w"], ["y"])], ["N", 4], weight("w", 4, 3)),
    "layer": _graph([node("Gemm", ["x", "w"], ["y"], transB=1)], ["N", 4], weight("w", 3, 4)),
    "images": _graph(
        [
            node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            node("GlobalAveragePool", ["c"], ["g"]),
            node("Flatten", ["g"], ["y"]),
        ],
        ["N", 3, "H", "W"],
        weight("w", 4, 3, 3, 3),
    ),
    "heads": _graph(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "i0"], ["n"], axis=0),
            node("Gather", ["s", "i1"], ["t"], axis=0),
            node("Unsqueeze", ["n", "zero"], ["nu"]),
            node("Unsqueeze", ["t", "zero"], ["tu"]),
            node("Concat", ["nu", "tu", "split"], ["to"], axis=0),
            node("Reshape", ["x", "to"], ["r"]),
            node("Transpose", ["r"], ["q"], perm=[0, 2, 1, 3]),
            node("Transpose", ["r"], ["k"], perm=[0, 2, 3, 1]),
            node("MatMul", ["q", "k"], ["a"]),
            node("Softmax", ["a"], ["p"], axis=-1),
            node("MatMul", ["p", "q"], ["m"]),
            node("Transpose", ["m"], ["b"], perm=[0, 2, 1, 3]),
            node("Reshape", ["b", "back"], ["y"]),
        ],
        ["N", "T", 8],
        *(constant("i0", 0), constant("i1", 1), constant("zero", [0])),
        *(constant("split", [2, 4]), constant("back", [0, 0, 8])),
    ),
    "joined and apart again": _graph(
        [
            node("Reshape", ["x", "flat"], ["f"]),
            node("MatMul", ["f", "w"], ["m"]),
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "zero", "two"], ["lead"]),
            node("Concat", ["lead", "minus"], ["to"], axis=0),
            node("Reshape", ["m", "to"], ["y"]),
        ],
        ["N", "T", 4],
        *(constant("flat", [-1, 4]), weight("w", 4, 3), constant("zero", [0])),
        *(constant("two", [2]), constant("minus", [-1])),
    ),
    "a class token in front": _graph(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "i"], ["n"], axis=0),
            node("Concat", ["n", "rest"], ["to"], axis=0),
            node("Expand", ["token", "to"], ["t"]),
            node("Concat", ["t", "x"], ["y"], axis=1),
        ],
        ["N", 6, 4],
        *(constant("i", [0]), constant("rest", [1, 4]), weight("token", 1, 1, 4)),
    ),
    "norm": _graph([node("LayerNormalization", ["x", "w"], ["y"])], ["N", "T", 4], weight("w", 4)),
    "largest": _graph([node("ArgMax", ["x"], ["y"], axis=1)], ["N", 5]),
}

#: Graphs over ``x`` that mix along its first axis, and the operator that does.
MIXED = {
    "sum over rows": (_graph([node("ReduceMean", ["x"], ["y"], axes=[0])], ["N", 4]), "ReduceMean"),
    "sum over all": (_graph([node("ReduceSum", ["x"], ["y"])], ["N", 4]), "ReduceSum"),
    "share of rows": (_graph([node("Softmax", ["x"], ["y"], axis=0)], ["N", 4]), "Softmax"),
    "rows by rows": (
        _graph([node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["y"])], ["N", 4]),
        "MatMul",
    ),
    "attention over rows": (
        _graph(
            [
                node("Transpose", ["x"], ["t"]),
                node("MatMul", ["x", "t"], ["a"]),
                node("Softmax", ["a"], ["p"], axis=-1),
                node("MatMul", ["p", "x"], ["y"]),
            ],
            ["N", 4],
        ),
        "MatMul",
    ),
    "neighbours": (
        _graph([node("Gather", ["x", "i"], ["y"], axis=0)], ["N", 4], constant("i", [1, 0])),
        "Gather",
    ),
    "the first of them": (
        _graph(
            [node("Slice", ["x", "z", "o", "z"], ["y"])],
            ["N", 4],
            *(constant("z", [0]), constant("o", [1])),
        ),
        "Slice",
    ),
    "running sum": (
        _graph([node("CumSum", ["x", "z"], ["y"])], ["N", 4], constant("z", 0)),
        "CumSum",
    ),
    "largest of all": (_graph([node("ArgMax", ["x"], ["y"], axis=0)], ["N", 4]), "ArgMax"),
    "as the steps of a recurrence": (
        _graph(
            [
                node("Unsqueeze", ["x", "one"], ["u"]),
                node("GRU", ["u", "w", "r"], ["y"], hidden_size=4),
            ],
            ["N", 3],
            *(constant("one", [1]), weight("w", 1, 12, 3), weight("r", 1, 12, 4)),
        ),
        "GRU",
    ),
    "some are left": (
        _graph(
            [
                node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0),
                node("Greater", ["m", "least"], ["c"]),
                node("Compress", ["x", "c"], ["y"], axis=0),
            ],
            ["N", 4],
            constant("least", 9, "float32"),
        ),
        "Compress",
    ),
    "put into a grid": (
        _graph(
            [
                node("ArgMax", ["x"], ["i"], axis=1, keepdims=1),
                node("ScatterND", ["grid", "i", "x"], ["y"]),
            ],
            ["N", 4],
            weight("grid", 4, 4),
        ),
        "ScatterND",
    ),
    "boxes against boxes": (
        _graph(
            [
                node("Unsqueeze", ["x", "front"], ["boxes"]),
                node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0),
                node("Unsqueeze", ["m", "both"], ["scores"]),
                node("NonMaxSuppression", ["boxes", "scores", "most"], ["i"]),
                node("Cast", ["i"], ["y"], to=FLOAT),
            ],
            ["N", 4],
            *(constant("front", [0]), constant("both", [0, 1]), constant("most", [9])),
        ),
        "NonMaxSuppression",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_what_treats_rows_apart_has_a_batch(name: str) -> None:
    assert role_of(APART[name]).role == "batch"


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_rows_has_none(name: str) -> None:
    proto, operator = MIXED[name]
    role = role_of(proto)
    assert role.role == "mixed"
    assert role.why.startswith(operator)


def _ran(found: Model, rows: np.ndarray) -> np.ndarray:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(found.path, options, providers=["CPUExecutionProvider"])
    output: np.ndarray = session.run(["y"], {"x": rows})[0]
    return output


def comes_out_as_alone(proto: onnx.ModelProto, folder: Path, *, runs_alone: bool = True) -> bool:
    """Whether of a batch of three the first row comes out as alone, and in every order."""
    found = read(proto, folder)
    sizes = {"T": 5, "H": 8, "W": 8, "N": 3}
    shape = [
        size if isinstance(size, int) else sizes[str(size)] for size in found.inputs[0].shape or ()
    ]
    rows = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    together, alone = _ran(found, rows), None
    if runs_alone:
        alone = _ran(found, rows[:1])
    return bool(
        alone is not None
        and together.ndim > 0
        and together.shape[0] == 3
        and alone.shape == (1, *together.shape[1:])
        and np.allclose(together[:1], alone, rtol=1e-4, atol=1e-5)
        and np.allclose(_ran(found, rows[::-1].copy())[::-1], together, rtol=1e-4, atol=1e-5)
    )


@pytest.mark.live
@pytest.mark.parametrize("name", [*APART, *MIXED])
def test_what_is_said_is_what_runs_show(name: str, tmp_path: Path) -> None:
    """Of a batch the first comes out as alone; of what is mixed it does not."""
    proto = APART[name] if name in APART else MIXED[name][0]
    runs_alone = name not in MIXED or MIXED[name][1] != "Gather"
    same = comes_out_as_alone(proto, tmp_path, runs_alone=runs_alone)
    assert same == (role_of(proto).role == "batch")


def test_sides_of_a_matrix_are_no_batch() -> None:
    assert role_of(_graph([node("Det", ["x"], ["y"])], ["n", "n"])).role == "mixed"
    assert role_of(_graph([node("Det", ["x"], ["y"])], ["b", "n", "n"])).role == "batch"


def test_regions_of_an_image_are_no_batch() -> None:
    proto = model(
        [node("RoiAlign", ["maps", "rois", "of"], ["y"], output_height=7, output_width=7)],
        [value("maps", [1, 8, 50, 50]), value("rois", ["R", 4]), value("of", ["R"], INT64)],
        [value("y", None)],
    )
    assert role_of(proto, "rois").role == "mixed"
    assert find_batch(axis_inputs(proto), [(1, 8, 50, 50), ("R", 4), ("R",)]).symbols == ()


def test_rows_that_are_put_into_rows_of_as_many_say_little() -> None:
    proto = model(
        [node("ScatterND", ["x", "i", "u"], ["y"])],
        [value("x", ["N", 4]), value("i", ["N", 1], INT64), value("u", ["N", 4])],
        [value("y", None)],
    )
    assert role_of(proto, "u").role != "mixed"


def test_reversed_rows_stay_apart() -> None:
    proto = model(
        [node("ReverseSequence", ["x", "l"], ["y"], batch_axis=1, time_axis=0)],
        [value("x", ["T", "N", 4]), value("l", ["N"], INT64)],
        [value("y", None)],
    )
    assert role_of(proto, axis=0).role == "mixed"
    assert role_of(proto, axis=1).role == "batch"


def test_a_length_called_n_behind_a_fixed_batch_is_none() -> None:
    """The sum of whole numbers is no evidence, nor is the letter."""
    proto = model(
        [node("ReduceSum", ["tokens"], ["s"]), node("Cast", ["s"], ["y"], to=FLOAT)],
        [value("tokens", [1, "n"], INT64)],
        [value("y", None)],
    )
    assert find_batch(axis_inputs(proto), [(1, "n")]).symbols == ()


def test_an_output_without_the_axis_is_said() -> None:
    proto = model(
        [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])],
        [value("a", ["A", 5]), value("b", ["B", 5])],
        [value("c", None), value("d", None)],
    )
    assert [role_of(proto, name).role for name in "ab"] == ["partial", "partial"]
    assert role_of(proto, "a").why == "output 'd' does not have this axis"


def test_an_unknown_operator_is_no_evidence() -> None:
    proto = model(
        [node("Mystery", ["x"], ["m"], domain="my.ops"), node("Relu", ["m"], ["y"])],
        [value("x", ["N", 5])],
        [value("y", None)],
        opsets={"": 17, "my.ops": 1},
    )
    assert role_of(proto).role == "unknown"


def test_a_length_taken_over_all_rows_is_no_evidence() -> None:
    """A mask is as wide as the longest row, which says nothing about the values."""
    proto = model(
        [
            node("ReduceMax", ["lengths"], ["longest"], keepdims=1),
            node("Cast", ["longest"], ["f"], to=1),
            node("Add", ["x", "f"], ["y"]),
        ],
        [value("x", ["N", 4]), value("lengths", ["N"], INT64)],
        [value("y", None)],
    )
    assert role_of(proto).role == "batch"


def test_what_is_added_has_one_size() -> None:
    proto = model(
        [node("Add", ["a", "b"], ["y"])],
        [value("a", ["A", "S"]), value("b", ["B", "T"])],
        [value("y", None)],
    )
    assert [(role_of(proto, "b", axis).tied_to) for axis in (0, 1)] == ["A", "S"]
    assert role_of(proto, "b").role == "batch"


def test_both_branches_of_a_condition_have_a_say() -> None:
    def branch(operator: str, **attributes: int) -> onnx.GraphProto:
        nodes = [node(operator, ["x"], ["out"], **attributes)]
        return onnx.helper.make_graph(nodes, operator, [], [value("out", None)])

    for second, role in (
        (branch("Sigmoid"), "batch"),
        (branch("Softmax", axis=0), "mixed"),
    ):
        nodes = [node("If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=second)]
        proto = model(
            nodes,
            [value("x", ["N", 4]), value("c", [], onnx.TensorProto.BOOL)],
            [value("y", None)],
        )
        assert role_of(proto).role == role


def test_a_spectrum_says_how_long_a_sound_is_at_least() -> None:
    proto = model(
        [node("STFT", ["x", "hop", "", "frame"], ["y"], onesided=1)],
        [value("x", ["B", "L", 1])],
        [value("y", None)],
        [constant("hop", 160), constant("frame", 400)],
    )
    role = role_of(proto, axis=1)
    assert (role.least, role.samples, role.limit_why) == (400, True, "STFT 'y'")


@pytest.mark.parametrize(
    ("padding", "pads", "least"),
    [((0, 64), (0, 0), 192), ((96, 96), (0, 0), 64), ((), (8, 8), 240)],
)
def test_windows_over_a_padded_sound_say_which_sizes_fill_them(
    padding: tuple[int, ...], pads: tuple[int, int], least: int
) -> None:
    """Exporters compute what is padded, axis by axis from the last one."""
    window = node("Conv", ["u", "w"], ["y"], strides=[128], pads=list(pads))
    nodes = [node("Unsqueeze", ["p", "one"], ["u"]), window]
    weights = [weight("w", 8, 1, 256), constant("one", [1])]
    if padding:
        nodes = [
            node("Concat", ["last", "others"], ["all"], axis=0),
            node("Reshape", ["all", "pairs"], ["square"]),
            node("Slice", ["square", "end", "start", "zero", "back"], ["turned"]),
            node("Transpose", ["turned"], ["sides"], perm=[1, 0]),
            node("Reshape", ["sides", "back"], ["pads"]),
            node("Pad", ["x", "pads"], ["p"]),
            *nodes,
        ]
        weights += [
            *(constant("last", padding), constant("others", [0, 0]), constant("pairs", [-1, 2])),
            *(constant("end", [-1]), constant("start", [-(2**63)]), constant("zero", [0])),
            constant("back", [-1]),
        ]
    else:
        nodes[0].input[0] = "x"
    role = role_of(model(nodes, [value("x", ["B", "T"])], [value("y", None)], weights), axis=1)
    assert (role.samples, role.least, role.hop) == (True, least, 128)


def test_a_table_says_how_long_a_text_is_at_most() -> None:
    proto = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "i"], ["n"], axis=0),
            node("Slice", ["table", "zero", "n", "zero"], ["p"]),
            node("Add", ["x", "p"], ["y"]),
        ],
        [value("x", ["N", "T", 4])],
        [value("y", None)],
        [constant("i", [1]), constant("zero", [0]), weight("table", 77, 4)],
    )
    assert role_of(proto, axis=1).most == 77


def test_factors_are_followed_through_a_reshape() -> None:
    batch, steps = AxisPart(1009, 0), AxisPart(1013, 1)
    axes = ((batch,), (steps,), (AxisPart(8),))
    assert reshaped(axes, [-1, 8]) == ((batch, steps), (AxisPart(8),))
    assert reshaped(((batch, steps), (AxisPart(8),)), [1009, 1013, 2, 4]) == (
        *((batch,), (steps,)),
        *((AxisPart(2),), (AxisPart(4),)),
    )
    assert reshaped(axes, [1009, 8 * 1013]) == ((batch,), (steps, AxisPart(8)))
    assert reshaped(axes, [7, -1]) is None


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ([node("MatMul", ["a", "k"], ["m"]), node("Relu", ["m"], ["b"])], "batch"),
        ([node("MatMul", ["a", "k"], ["m"]), node("Softmax", ["m"], ["b"], axis=0)], "mixed"),
    ],
)
def test_functions_of_the_model_are_looked_into(
    tmp_path: Path, body: list[onnx.NodeProto], role: str
) -> None:
    opsets = [onnx.helper.make_opsetid("", 17)]
    function = onnx.helper.make_function("own", "F", ["a", "k"], ["b"], body, opsets)
    call = onnx.helper.make_node("F", ["x", "w"], ["y"], domain="own")
    graph = onnx.helper.make_graph(
        [call], "g", [value("x", ["N", 4])], [value("y", ["N", 3])], [weight("w", 4, 3)]
    )
    opsets.append(onnx.helper.make_opsetid("own", 1))
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function])
    path = tmp_path / "m.onnx"
    onnx.save(proto, str(path))
    (info,) = read_model(path, name="m", source="file").inputs
    told = info.role_of(0)
    assert told is not None
    assert told.role == role
