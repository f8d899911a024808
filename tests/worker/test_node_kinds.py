"""Nodes on small integers: which describe shapes, and which the model is after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.worker.assignment import AssignedNode, Assignment
from pytest_ortbench.worker.model_graph import read_graph
from pytest_ortbench.worker.placement import read_profile

from .graphs import serialised, value
from .sessions import CPU, cpu_session

pytestmark = pytest.mark.live

FLOAT, INT64, INT32, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.BOOL,
)
OPENVINO = "OpenVINOExecutionProvider"
X = value("x", FLOAT, ["N", 4])
FEEDS: dict[str, object] = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
node = helper.make_node


def counted(
    model: bytes, folder: Path, feeds: dict[str, object] | None = None, *, optimise: bool = True
) -> Placement:
    """Placement of a real run on the CPU."""
    session = cpu_session(model, profile_prefix=str(folder / "p"), optimise=optimise)
    session.run(None, FEEDS if feeds is None else feeds)
    return read_profile(Path(session.end_profiling()), CPU, model=model, session=session)


def of_label(name: str, *, shape: bool = True) -> list[onnx.NodeProto]:
    """The largest entry of each row, doubled, and the shape of the input."""
    label = [
        node("ArgMax", ["x"], ["a"], axis=1, keepdims=0, name=f"{name}arg"),
        node("Add", ["a", "a"], ["b"], name=f"{name}add"),
    ]
    return [*label, node("Shape", ["x"], ["s"], name=f"{name}shape")] if shape else label


@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize("name", ["", "/net/"])
def test_what_computes_an_output_computes(name: str, optimise: bool, tmp_path: Path) -> None:
    """ArgMax reads floats; Add and Mul do not, and only Mul gives an output."""
    nodes = [
        *of_label(name, shape=False),
        node("Mul", ["b", "b"], ["y"], name=f"{name and 'mul'}"),
    ]
    model = serialised(nodes, [X], [value("y", INT64, ["N"])])
    placement = counted(model, tmp_path, optimise=optimise)
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, {CPU: 1})


@pytest.mark.parametrize(
    ("op", "attributes", "kind"),
    [
        ("Cast", {"to": INT32}, INT32),
        ("Cast", {"to": BOOL}, BOOL),
        ("NonZero", {}, None),
        ("Neg", {}, INT64),
        ("Identity", {}, INT64),
    ],
)
def test_the_last_node_computes_whatever_it_is(
    op: str, attributes: dict[str, int], kind: int | None, tmp_path: Path
) -> None:
    nodes = [*of_label("", shape=False), node(op, ["b"], ["y"], **attributes)]
    out = value("y", INT64, [1, "M"]) if kind is None else value("y", kind, ["N"])
    placement = counted(serialised(nodes, [X], [out]), tmp_path)
    # Through Identity, which the optimiser takes out, it is Add. NonZero gives a matrix.
    small = {} if op == "Identity" else {CPU: 1}
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, small)


def test_each_of_two_outputs_counts_and_what_lies_between_does_not(tmp_path: Path) -> None:
    nodes = [
        *of_label(""),
        node("Mul", ["b", "b"], ["y"]),
        node("Cast", ["b"], ["z"], to=INT32),
        node("ReduceProd", ["s"], ["size"], keepdims=0),
    ]
    outputs = [value("y", INT64, ["N"]), value("z", INT32, ["N"]), value("size", INT64, [])]
    placement = counted(serialised(nodes, [X], outputs), tmp_path)
    assert (placement.executed, placement.shape_only) == ({CPU: 4}, {CPU: 2})


def test_shape_nodes_of_a_model_with_float_outputs_stay_shape_nodes(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Add", ["s", "s"], ["t"]),
        node("Sub", ["t", "s"], ["u"]),
        node("Sin", ["x"], ["v"]),
        node("Reshape", ["v", "u"], ["y"]),
    ]
    placement = counted(serialised(nodes, [X], [value("y", FLOAT, None)]), tmp_path)
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, {CPU: 3})


def test_a_shape_that_is_an_output_was_computed(tmp_path: Path) -> None:
    nodes = [node("Sin", ["x"], ["y"]), node("Shape", ["x"], ["s"])]
    model = serialised(nodes, [X], [value("y", FLOAT, ["N", 4]), value("s", INT64, [2])])
    assert counted(model, tmp_path).executed == {CPU: 2}


@pytest.mark.parametrize("taken", [True, False])
def test_branches_compute_for_their_if(taken: bool, tmp_path: Path) -> None:
    def branch(op: str) -> onnx.GraphProto:
        nodes = [node("Neg", ["b"], ["n"]), node(op, ["n", "b"], ["o"])]
        return helper.make_graph(nodes, op, [], [value("o", INT64, ["N"])])

    choice = node("If", ["c"], ["y"], then_branch=branch("Sub"), else_branch=branch("Mul"))
    model = serialised(
        [*of_label("", shape=False), choice],
        [X, value("c", BOOL, [])],
        [value("y", INT64, ["N"])],
    )
    placement = counted(model, tmp_path, {**FEEDS, "c": np.array(taken)})
    # Add and Neg only prepare what Sub or Mul gives.
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, {CPU: 2})


def test_a_body_computes_for_its_loop(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["on"]),
            node("Neg", ["v"], ["n"]),
            node("Add", ["n", "v0"], ["w"], name="step"),
        ],
        "body",
        [value("i", INT64, []), value("go", BOOL, []), value("v", INT64, ["N"])],
        [value("on", BOOL, []), value("w", INT64, ["N"])],
    )
    nodes = [
        node("ArgMax", ["x"], ["v0"], axis=1, keepdims=0),
        node("Loop", ["trips", "", "v0"], ["y"], body=body),
    ]
    weights: dict[str, NDArray[np.generic]] = {"trips": np.array(3, np.int64)}
    model = serialised(nodes, [X], [value("y", INT64, ["N"])], weights)
    placement = counted(model, tmp_path)
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, {CPU: 2})


def test_an_operator_of_another_domain_computes_in_the_middle_too(tmp_path: Path) -> None:
    encode = node(
        "LabelEncoder", ["b"], ["e"], domain="ai.onnx.ml",
        keys_int64s=[0, 3, 6], values_int64s=[5, 6, 7],
    )  # fmt: skip
    nodes = [
        *of_label("", shape=False), encode,
        node("Add", ["e", "e"], ["f"]),
        node("Cast", ["f"], ["g"], to=FLOAT),
    ]  # fmt: skip
    placement = counted(serialised(nodes, [X], [value("g", FLOAT, ["N"])]), tmp_path)
    # ArgMax, LabelEncoder and the Cast to float.
    assert (placement.executed, placement.shape_only) == ({CPU: 3}, {CPU: 2})


@pytest.mark.parametrize("name", ["", "inner"])
def test_a_function_computes_with_the_nodes_of_its_body(name: str, tmp_path: Path) -> None:
    body = [node("Neg", ["i"], ["n"]), node("Mul", ["n", "i"], ["o"], name=name)]
    imports = [helper.make_opsetid("", 13)]
    function = helper.make_function("custom", "Square", ["i"], ["o"], body, imports)
    graph = helper.make_graph(
        [*of_label("", shape=False), node("Square", ["b"], ["y"], domain="custom")],
        "g", [X], [value("y", INT64, ["N"])],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[*imports, helper.make_opsetid("custom", 1)], functions=[function],
        ir_version=8,
    )  # fmt: skip
    placement = counted(model.SerializeToString(), tmp_path)
    assert (placement.executed, placement.shape_only) == ({CPU: 2}, {CPU: 2})


def test_without_the_graph_the_types_of_outputs_tell(tmp_path: Path) -> None:
    """A file in ONNX Runtime's own format: any node that gives what an output is may compute it."""
    model = serialised(of_label(""), [X], [value("b", INT64, ["N"])])
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    onnxruntime.InferenceSession(model, options, providers=[CPU])
    placement = counted((tmp_path / "m.ort").read_bytes(), tmp_path)
    assert placement.executed[CPU] >= 2
    assert read_graph(str(tmp_path / "m.ort")) is None


# -- profiles that are written down ----------------------------------------------------------------


def event(name: str, op: str, provider: str = CPU, index: int = 0) -> dict[str, object]:
    return {
        "cat": "Node", "tid": 1, "ts": 1, "dur": 1, "name": f"{name}_kernel_time",
        "args": {
            "op_name": op, "provider": provider, "node_index": str(index),
            "input_type_shape": [{"int64": [2]}], "output_type_shape": [{"int64": [2]}],
        },
    }  # fmt: skip


def read(
    folder: Path, model: bytes | None, events: Sequence[dict[str, object]], **more: Assignment
) -> Placement:
    end = {"cat": "Session", "tid": 1, "ts": 0, "dur": 1, "name": "model_run", "args": {}}
    file = folder / "profile.json"
    file.write_text("[" + ",\n".join(json.dumps(line) for line in [*events, end]) + "]")
    session = None if model is None else cpu_session(model)
    return read_profile(file, OPENVINO, model=model, session=session, **more)


LABELS = serialised(
    [*of_label("/a/"), node("Mul", ["b", "b"], ["y"], name="/a/mul")],
    [X],
    [value("y", INT64, ["N"])],
)


def test_a_node_whose_name_the_optimiser_changed_is_found_by_its_operator(tmp_path: Path) -> None:
    events = [event("/a/add", "Add"), event("Mul_token_17", "Mul", index=17)]
    placement = read(tmp_path, LABELS, events)
    assert (placement.executed, placement.ops_elsewhere) == ({CPU: 1}, {"Mul": 1})
    assert placement.shape_only == {CPU: 1}


def test_an_equal_operator_elsewhere_is_not_taken_for_it(tmp_path: Path) -> None:
    events = [event("other", "Mul"), event("/a/mul", "Mul", OPENVINO)]
    placement = read(tmp_path, LABELS, events)
    assert (placement.executed, placement.shape_only) == ({OPENVINO: 1}, {CPU: 1})


def test_a_compiled_subgraph_computes_the_output_that_no_other_node_shows(tmp_path: Path) -> None:
    name = f"{OPENVINO}_subgraph_0"
    events = [event(name, "subgraph", OPENVINO), event("/a/shape", "Shape")]
    placement = read(tmp_path, LABELS, events)
    assert (placement.executed, placement.shape_only) == ({OPENVINO: 1}, {CPU: 1})


def test_the_assignment_interface_names_domains_where_there_is_no_graph(tmp_path: Path) -> None:
    nodes = (
        AssignedNode(provider=CPU, op="Encode", domain="com.acme"),
        AssignedNode(provider=CPU, op="Add"),
    )
    placement = read(
        tmp_path,
        None,
        [event("e", "Encode"), event("a", "Add")],
        assignment=Assignment(nodes=nodes),
    )
    assert (placement.executed, placement.shape_only) == ({CPU: 1}, {CPU: 1})


@pytest.mark.parametrize("model", [b"", b"not a model", LABELS[:40], LABELS[:-3], "/no/such/file"])
def test_what_is_no_model_has_no_graph(model: bytes | str) -> None:
    assert read_graph(model) is None


def test_a_file_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(LABELS)
    graph = read_graph(str(path))
    assert graph is not None
    assert graph == read_graph(LABELS)
    path.write_bytes(LABELS[:-3])
    assert read_graph(str(path)) is None
