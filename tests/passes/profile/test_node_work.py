"""What nodes of a profile have to do, from recorded shapes and from real runs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.passes.profile.worker.node_work import (
    UNPACKED,
    Work,
    element_of_products,
    total,
    work_of_nodes,
)
from pytest_ortbench.passes.profile.worker.operators import operator_totals, profiled_runs
from pytest_ortbench.worker.profile_events import NodeEvent, Tensor, read_events
from tests.worker.graphs import serialised, value, weights
from tests.worker.sessions import CPU, cpu_session


def event(op: str, inputs: list[Tensor], outputs: list[Tensor], name: str = "n") -> NodeEvent:
    return NodeEvent(
        name=name,
        op=op,
        provider=CPU,
        index=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        start_us=0,
        duration_us=1,
        run=0,
    )


def floats(*shape: int) -> Tensor:
    return Tensor(type="float", shape=shape)


def test_a_product_and_what_it_moves() -> None:
    product = event("MatMul", [floats(4, 16), floats(16, 8)], [floats(4, 8)])
    assert work_of_nodes([product]) == {
        product.key: Work(macs=512, moved_bytes=4 * (64 + 128 + 32))
    }


def test_a_node_that_runs_twice_does_twice_as_much() -> None:
    first = event("MatMul", [floats(4, 16), floats(16, 8)], [floats(4, 8)])
    second = event("MatMul", [floats(2, 16), floats(16, 8)], [floats(2, 8)])
    assert work_of_nodes([first, second])[first.key].macs == 512 + 256


def test_what_is_unknown_of_one_is_unknown_of_all() -> None:
    assert total([Work(macs=1, moved_bytes=2), Work(macs=3)]) == Work(macs=4)
    assert total([]) == Work(macs=0, moved_bytes=0)
    strange = event("Strange", [floats(4)], [floats(4)])
    assert work_of_nodes([strange])[strange.key] == Work(moved_bytes=32)
    text = event("StringConcat", [Tensor(type="string", shape=(3,))], [])
    assert work_of_nodes([text])[text.key] == Work(macs=0)
    packed = event("Conv", [floats(1, 3, 8, 8)], [floats(1, 4, 8, 8)])
    assert work_of_nodes([packed])[packed.key].macs is None
    own = event("sub_1", [floats(4)], [floats(4)], name=f"{CPU}_sub_1_0")
    assert own.partition
    assert work_of_nodes([own])[own.key] == Work()


def test_loops_count_by_their_bodies() -> None:
    loop = event("Loop", [floats(4)], [floats(4)])
    assert work_of_nodes([loop])[loop.key] == Work(macs=0, moved_bytes=0)


@pytest.mark.parametrize(
    ("events", "precision", "expected"),
    [
        ([event("MatMul", [floats(4, 16), floats(16, 8)], [floats(4, 8)])], "fp16", "float"),
        ([event("Relu", [floats(4)], [floats(4)])], "fp16", "float16"),
        (
            [event("DynamicQuantizeMatMul", [floats(4, 16), floats(16, 8)], [floats(4, 8)])],
            "int8-dynamic",
            "uint8",
        ),
        ([], "native", "float"),
        (
            [
                event("MatMul", [floats(1, 2), floats(2, 1)], [floats(1, 1)]),
                event(
                    "QLinearMatMul",
                    [Tensor(type="uint8", shape=(4, 16))],
                    [Tensor(type="uint8", shape=(4, 8))],
                    name="q",
                ),
            ],
            "native",
            "uint8",
        ),
    ],
)
def test_the_peak_is_of_what_most_products_read(events, precision, expected) -> None:
    assert element_of_products(events, work_of_nodes(events), precision) == expected


def profile_of(model: bytes, folder: Path, feeds: dict[str, object]):
    """As the worker does it: once with weights unpacked to count, then as it is."""
    session = cpu_session(model, profile_prefix=str(folder / "n"), entries=UNPACKED)
    counted = profiled_runs(session, lambda: session.run(None, feeds), runs=1).events
    session = cpu_session(model, profile_prefix=str(folder / "p"))
    profile = profiled_runs(session, lambda: session.run(None, feeds), runs=3)
    work = work_of_nodes(counted)
    return operator_totals(profile, plain_ns=[], provider=CPU, threads=1, cpus=1, work=work)


@pytest.mark.live
def test_packed_weights_are_counted_in_a_real_run(tmp_path: Path) -> None:
    """A profile with packed weights lists none of them; 3·16·32, and the bytes of 16·32 floats."""
    import numpy as np

    model = serialised(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        [value("x", TensorProto.FLOAT, ["N", 16])],
        [value("y", TensorProto.FLOAT, ["N", 32])],
        {"w": weights(16, 32)},
    )
    found = profile_of(model, tmp_path, {"x": np.ones((3, 16), dtype=np.float32)})
    [product] = found.operators
    assert (product.macs, product.moved_bytes) == (3 * 16 * 32, 4 * (48 + 512 + 96))
    assert (found.nodes[0].macs, found.nodes[0].moved_bytes) == (1536, 2624)
    assert (found.macs, found.moved_bytes, found.work_source) == (1536, 2624, "nodes")


@pytest.mark.live
def test_a_networks_nodes_do_what_its_file_says(tmp_path: Path) -> None:
    """Fused convolutions and all: as many multiply-accumulates as counted from the file."""
    import numpy as np

    from pytest_ortbench.models.arithmetic import count_file
    from pytest_ortbench.models.builders import build

    path = build("canary", tmp_path)
    [given] = onnx.load(path).graph.input
    shape = tuple(size.dim_value for size in given.type.tensor_type.shape.dim)
    feeds: dict[str, object] = {given.name: np.ones(shape, dtype=np.float32)}
    found = profile_of(path.read_bytes(), tmp_path, feeds)
    assert found.macs == count_file(path, {given.name: shape}).macs == 38_535_168


def test_a_loop_of_a_recorded_profile_is_counted() -> None:
    path = Path(__file__).parents[2] / "worker" / "profiles" / "cpu-1.32.0-loop.json"
    events = read_events(path).events
    work = work_of_nodes(events)
    assert all(work[each.key].macs is not None for each in events)
