"""What a device computed for each node, where a profile has its events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.passes.profile.worker.operators import operator_totals
from pytest_ortbench.worker.assignment import AssignedNode, Assignment
from pytest_ortbench.worker.device_events import DeviceEvent, device_event, put_under_nodes
from pytest_ortbench.worker.placement import read_profile
from pytest_ortbench.worker.profile_events import read_events

WEBGPU, CPU = "WebGpuExecutionProvider", "CPUExecutionProvider"
#: Of three runs on SwiftShader: two products, Softmax without a name, and Hardmax on the CPU.
COPIES = Path(__file__).parent / "profiles" / "webgpu-1.27.0-copies.json"


def node(name: str, op: str, *, us: int = 5, run: int = 0) -> Any:
    return SimpleNamespace(
        name=name, op=op, provider=WEBGPU, duration_us=us, run=run, device_us=None
    )


def ran(name: str, op: str, us: int) -> DeviceEvent:
    return DeviceEvent(node=name, op=op, duration_us=us)


def test_a_real_profile_tells_what_the_device_took() -> None:
    profile = read_events(COPIES)
    assert profile.tells_device
    last = {event.name: event.own_us for event in profile.events if event.run == 2}
    assert last == {
        "/up/MatMul": 226,
        "Softmax_1": 3657,
        "/down/MatMul": 261,
        # 4191 µs on the host, of which it waited for the three before it.
        "Memcpy_token_0": 47,
        "/hard": 7,
        "Memcpy": 18,
        "/gate & more": 15,
    }


def test_operators_have_the_times_of_the_device() -> None:
    profile = read_events(COPIES)
    totals = operator_totals(profile, plain_ns=[], provider=WEBGPU, threads=1, cpus=1)
    assert (totals.device_times, totals.asynchronous) == (True, False)
    times = {operator.op: operator.time_ns for operator in totals.operators}
    assert times["Softmax"] == 3_657_000  # of the faster run
    assert times["MemcpyToHost"] == 47_000
    assert sum(times.values()) + totals.between_ns == totals.run_ns


def test_without_the_device_times_are_those_of_starting() -> None:
    profile = replace(read_events(COPIES), tells_device=False)
    totals = operator_totals(profile, plain_ns=[], provider=WEBGPU, threads=1, cpus=1)
    assert (totals.device_times, totals.asynchronous) == (False, True)


def test_the_share_of_the_provider_is_that_of_the_device() -> None:
    placement = read_profile(COPIES, WEBGPU)
    assert placement.copies == 2
    assert placement.executed == {CPU: 1, WEBGPU: 4}
    assert placement.ops_elsewhere == {"Hardmax": 1}
    runs = (383 + 13405 + 354 + 92 + 35 + 17, 226 + 3657 + 261 + 47 + 18 + 15)
    assert placement.time_ns == {CPU: 11_500, WEBGPU: sum(runs) * 500}


def test_an_interface_that_names_no_node_of_the_provider_is_no_witness() -> None:
    assignment = Assignment(nodes=(AssignedNode(provider=CPU, op="Hardmax"),))
    placement = read_profile(COPIES, WEBGPU, assignment=assignment)
    assert (placement.nodes_on_provider, placement.nodes_total) == (None, None)
    assert placement.witness.startswith("no witness: ")
    on_cpu = read_profile(COPIES, CPU, assignment=assignment)
    assert (on_cpu.nodes_on_provider, on_cpu.nodes_total) == (1, 1)


def test_several_programs_of_a_node_add_up() -> None:
    nodes = [node("a", "MatMul"), node("b", "Reshape"), node("c", "Relu")]
    assert put_under_nodes(
        [ran("a", "MatMul", 3), ran("a", "MatMul", 4), ran("", "Relu", 2)], nodes
    )
    assert [recorded.device_us for recorded in nodes] == [7, None, 2]


def test_a_copy_waits_for_what_its_run_has_recorded() -> None:
    copies = [node("m", "MemcpyToHost", us=50, run=run) for run in (0, 1)]
    nodes = [node("a", "Relu", run=0), copies[0], node("b", "Relu", run=0), copies[1]]
    assert put_under_nodes([ran("a", "Relu", 30), ran("b", "Relu", 9)], nodes)
    assert [copy.device_us for copy in copies] == [20, 50]


@pytest.mark.parametrize(
    "events",
    [
        [ran("a", "Gemm", 3)],
        [ran("b", "Relu", 1), ran("a", "MatMul", 1)],
        [ran("a", "MatMul", 1), ran("z", "Relu", 1)],
        [],
    ],
    ids=["another operator", "another order", "another node", "none"],
)
def test_events_that_do_not_fit_change_nothing(events: list[DeviceEvent]) -> None:
    nodes = [node("a", "MatMul"), node("b", "Relu")]
    assert not put_under_nodes(events, nodes)
    assert [recorded.device_us for recorded in nodes] == [None, None]


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("/up/MatMul&MatMul&MatMulNaive", ran("/up/MatMul", "MatMul", 3)),
        ("&Softmax&Softmax", ran("", "Softmax", 3)),
        ("a & b&Mul&Mul", ran("a & b", "Mul", 3)),
        ("cudaLaunchKernel", None),
        ("memcpy&1", None),
    ],
)
def test_names_of_events(name: str, event: DeviceEvent | None) -> None:
    assert device_event(name, 3) == event
