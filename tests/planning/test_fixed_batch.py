"""A batch that the model fixes: measured under its own size, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.matrix import Plan, Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination
from tests.models.graphs import INT64, constant, model, node, read, relu, run, value, weight
from tests.refused import refused

CURRENT = Target(runtime=Runtime(), providers=(Provider(alias="cpu", name="CPUExecutionProvider"),))


def _dense(tmp_path: Path, *, rows: int) -> Model:
    proto = model(
        [node("Gemm", ["x", "w"], ["y"])],
        [value("x", [rows, 10])],
        [value("y", [rows, 3])],
        [weight("w", 10, 3)],
    )
    return read(proto, tmp_path)


def _recurrent(tmp_path: Path, *, batch: int) -> Model:
    proto = model(
        [node("GRU", ["x", "w", "r"], ["y"], hidden_size=4)],
        [value("x", [16, batch, 3])],
        [value("y", None)],
        [weight("w", 1, 12, 3), weight("r", 1, 12, 4)],
    )
    return read(proto, tmp_path)


def test_rows_of_a_dense_layer_are_a_batch(tmp_path: Path) -> None:
    found = _dense(tmp_path, rows=32)
    with pytest.raises(RefusedCombination) as caught:
        resolve_inputs(found, batch=1, dims={})
    failure = caught.value.failure
    assert failure.kind == "unsupported"
    for part in ("batch size 1 ", "axis 0 of 'x'", "fixed to 32"):
        assert part in failure.message
    assert "--ort-batch-sizes=32" in failure.hint
    (spec,) = resolve_inputs(found, batch=32, dims={})
    assert spec.shape == (32, 10)


def test_second_axis_of_a_recurrent_layer_is_a_batch(tmp_path: Path) -> None:
    with refused(RefusedCombination, "axis 1 of 'x'", "fixed to 8"):
        resolve_inputs(_recurrent(tmp_path, batch=8), batch=1, dims={})
    (spec,) = resolve_inputs(_recurrent(tmp_path, batch=8), batch=8, dims={})
    assert spec.shape == (16, 8, 3)


def test_a_fixed_batch_of_one_is_what_is_asked(tmp_path: Path) -> None:
    (dense,) = resolve_inputs(_dense(tmp_path, rows=1), batch=1, dims={})
    (recurrent,) = resolve_inputs(_recurrent(tmp_path, batch=1), batch=1, dims={})
    assert (dense.shape, recurrent.shape) == ((1, 10), (16, 1, 3))


def test_rows_that_no_consumer_reads_as_a_batch_stay_allowed(tmp_path: Path) -> None:
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", [32, 10])],
        [value("y", None)],
        [weight("w", 10, 3)],
    )
    (spec,) = resolve_inputs(read(proto, tmp_path), batch=1, dims={})
    assert spec.shape == (32, 10)


# -- nobody asks -----------------------------------------------------------------------------------


def _convolved(tmp_path: Path, batch: int, *more: tuple[str, list[int | str]]) -> Model:
    """A convolution over images, and further inputs whose sum comes out beside it."""
    proto = model(
        [
            node("Conv", ["x", "w"], ["y"]),
            *(node("Relu", [name], [f"{name}_out"]) for name, _ in more),
        ],
        [value("x", [batch, 3, 8, 8]), *(value(name, shape) for name, shape in more)],
        [value("y", None), *(value(f"{name}_out", None) for name, _ in more)],
        [weight("w", 4, 3, 1, 1)],
    )
    return read(proto, tmp_path)


def _plan(found: Model, **axes: Any) -> Plan:
    return build_plan(PlanRequest(models=(), **axes), [found], [CURRENT])


def _only_case(found: Model, **axes: object) -> Case:
    (planned,) = _plan(found, **axes).entries
    assert planned.refusal is None
    return planned.case


def test_a_batch_that_a_consumer_reads_stands_in_the_id_and_counts(tmp_path: Path) -> None:
    case = _only_case(_convolved(tmp_path, 4))
    assert (case.case_id, case.batch) == ("m/native/cpu/b4", 4)
    assert [spec.shape for spec in case.inputs] == [(4, 3, 8, 8)]


@pytest.mark.parametrize(
    "make", [lambda folder: _dense(folder, rows=32), lambda folder: _recurrent(folder, batch=32)]
)
def test_rows_and_sequences_are_measured_as_they_are(make: object, tmp_path: Path) -> None:
    assert callable(make)
    assert _only_case(make(tmp_path)).batch == 32


@pytest.mark.parametrize(
    "proto",
    [
        relu([4, 3, 8, 8]),
        relu([7]),
        relu([]),
        model(
            [node("MatMul", ["q", "k"], ["y"])],
            [value("q", [2, 4, 16, 8]), value("k", [2, 4, 8, 16])],
            [value("y", None)],
        ),
        model(
            [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])],
            [value("a", [2, 5]), value("b", [4, 5])],
            [value("c", None), value("d", None)],
        ),
        # Two that a consumer reads as the batch, and that differ: neither counts the items.
        model(
            [node("Conv", ["a", "w"], ["c"]), node("Conv", ["b", "w"], ["d"])],
            [value("a", [2, 3, 8, 8]), value("b", [4, 3, 8, 8])],
            [value("c", None), value("d", None)],
            [weight("w", 4, 3, 1, 1)],
        ),
    ],
)
def test_what_nothing_reads_as_a_batch_is_one_item(proto: ModelProto, tmp_path: Path) -> None:
    found = read(proto, tmp_path)
    case = _only_case(found)
    assert (case.case_id, case.batch) == ("m/native/cpu/b1", 1)
    assert [spec.shape for spec in case.inputs] == [info.shape for info in found.inputs]


def test_where_first_sizes_differ_one_inference_is_one_item(tmp_path: Path) -> None:
    """But who asks for the one that a consumer reads is right."""
    found = _convolved(tmp_path, 4, ("anchors", [100, 2]), ("offsets", [100, 2]))
    assert _only_case(found).case_id == "m/native/cpu/b1"
    assert _only_case(found, batch_sizes=(4,)).case_id == "m/native/cpu/b4"


def test_an_output_without_the_batch_leaves_one_item(tmp_path: Path) -> None:
    found = _convolved(tmp_path, 4, ("bias", [100]))
    assert _only_case(found).batch == 1
    assert _only_case(found, batch_sizes=(4,)).batch == 4


def _with_summed(tmp_path: Path, *more: tuple[str, list[int | str]]) -> Model:
    """A convolution over four images, to which the sum of each further input is added."""
    nodes = [node("Conv", ["x", "w"], ["y0"])]
    for index, (name, _) in enumerate(more):
        nodes.append(node("ReduceSum", [name], [f"{name}_sum"], keepdims=0))
        nodes.append(node("Add", [f"y{index}", f"{name}_sum"], [f"y{index + 1}"]))
    proto = model(
        nodes,
        [value("x", [4, 3, 8, 8]), *(value(name, shape) for name, shape in more)],
        [value(f"y{len(more)}", None)],
        [weight("w", 4, 3, 1, 1)],
    )
    return read(proto, tmp_path)


def test_what_the_graph_sums_up_has_no_say(tmp_path: Path) -> None:
    found = _with_summed(tmp_path, ("scale", []), ("bias", [100]), ("anchors", [100, 2]))
    assert _only_case(found).batch == 4


def test_an_open_batch_beside_a_fixed_one_is_as_large(tmp_path: Path) -> None:
    proto = model(
        [
            node("Conv", ["x", "w"], ["c"]),
            node("ReduceSum", ["ids", "one"], ["s"], keepdims=0),
            node("Unsqueeze", ["s", "axes"], ["u"]),
            node("Add", ["c", "u"], ["y"]),
        ],
        [value("x", [4, 3, 8, 8]), value("ids", ["batch", 5])],
        [value("y", None)],
        [weight("w", 4, 3, 1, 1), constant("one", [1]), constant("axes", [1, 2, 3])],
    )
    found = read(proto, tmp_path)
    case = _only_case(found)
    assert [spec.shape for spec in case.inputs] == [(4, 3, 8, 8), (4, 5)]
    assert case.case_id == "m/native/cpu/b4"
    assert ModelAxes(found).batch_of(None, {"batch": 2}) == 2


def test_other_sizes_are_set_as_ever(tmp_path: Path) -> None:
    case = _only_case(_with_summed(tmp_path, ("tokens", [4, "seq"])), dims={"seq": (9,)})
    assert case.case_id == "m/native/cpu/b4/seq:9"
    assert [spec.shape for spec in case.inputs] == [(4, 3, 8, 8), (4, 9)]


@pytest.mark.parametrize(
    ("sizes", "refused"), [((4,), [False]), ((1,), [True]), ((1, 4), [True, False])]
)
def test_only_who_asks_for_another_batch_is_refused(
    sizes: tuple[int, ...], refused: list[bool], tmp_path: Path
) -> None:
    plan = _plan(_convolved(tmp_path, 4), batch_sizes=sizes)
    assert [planned.case.batch for planned in plan.entries] == list(sizes)
    assert [planned.refusal is not None for planned in plan.entries] == refused


def test_a_batch_that_is_asked_for_counts_whoever_reads_it(tmp_path: Path) -> None:
    """The user knows what the first axis is."""
    found = read(relu([4, 3, 8, 8]), tmp_path)
    assert _only_case(found, batch_sizes=(4,)).case_id == "m/native/cpu/b4"
    assert _plan(found, batch_sizes=(1,)).entries[0].refusal is not None


def test_an_open_batch_is_one_as_ever(tmp_path: Path) -> None:
    assert _only_case(read(relu(["N", 4]), tmp_path)).case_id == "m/native/cpu/b1"


# -- inputs that hold nothing ----------------------------------------------------------------------


@pytest.mark.live
def test_an_empty_input_that_says_all_axes_is_fed(tmp_path: Path) -> None:
    proto = model(
        [node("ReduceSum", ["x", "axes"], ["y"])],
        [value("x", [6, 5]), value("axes", [0], INT64)],
        [value("y", [1, 1])],
        opsets={"": 18},
    )
    feeds, (output,) = run(read(proto, tmp_path))
    assert feeds["axes"].shape == (0,)
    assert output.shape == (1, 1)


@pytest.mark.live
def test_an_empty_input_that_lends_its_type_is_fed(tmp_path: Path) -> None:
    proto = model(
        [node("CastLike", ["x", "like"], ["y"])],
        [value("x", [6, 5]), value("like", [0, 3], INT64)],
        [value("y", [6, 5], INT64)],
        opsets={"": 19},
    )
    _, (output,) = run(read(proto, tmp_path))
    assert (output.dtype.name, output.shape) == ("int64", (6, 5))


@pytest.mark.live
def test_an_empty_only_input_that_is_summed_up_gives_something(tmp_path: Path) -> None:
    proto = model(
        [node("ReduceSum", ["x"], ["y"], keepdims=0)], [value("x", [0, 5])], [value("y", [])]
    )
    feeds, (output,) = run(read(proto, tmp_path))
    assert (feeds["x"].shape, output.shape) == ((0, 5), ())


@pytest.mark.parametrize("shape", [[0], [0, 5], [2, 0]])
def test_outputs_that_are_declared_empty_are_not_timed(shape: list[int], tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])
    with pytest.raises(RefusedCombination) as caught:
        resolve_inputs(read(proto, tmp_path), batch=None, dims={})
    assert caught.value.failure.kind == "unsupported"


@pytest.mark.live
def test_what_a_file_holds_is_fed_though_it_is_empty(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [0, 5])], [value("y", [0, 5])])
    np.savez(tmp_path / "in.npz", x=np.zeros((0, 5), np.float32))
    _, (output,) = run(read(proto, tmp_path), batch=None, inputs_path=tmp_path / "in.npz")
    assert output.shape == (0, 5)
