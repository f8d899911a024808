"""Chains of providers for real: what takes which nodes, in which order.

TensorRT and CUDA are stand-ins; Azure's provider, which the wheel of Linux has, takes no node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import onnxruntime
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.core.placement import placement_ratio
from tests.providers.cases import Measured, Port, drawn, mlp, save
from tests.providers.conftest import OPENVINO

TENSORRT, CUDA, CPU = "TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"
ON_OPENVINO = "OpenVINOExecutionProvider"

pytestmark = pytest.mark.live


def parted(path: Path) -> Path:
    """MatMul, Hardmax, Mul and Sigmoid: one node for the CPU alone."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="up"),
        helper.make_node("Hardmax", ["h"], ["m"], name="hard"),
        helper.make_node("Mul", ["m", "h"], ["g"], name="gate"),
        helper.make_node("Sigmoid", ["g"], ["y"], name="squash"),
    ]
    ports: tuple[list[Port], list[Port]] = (
        [("x", TensorProto.FLOAT, ["N", 16])],
        [("y", TensorProto.FLOAT, ["N", 8])],
    )
    return save(path, nodes, *ports, {"w": drawn(16, 8)})


def placed(result: CaseResult) -> Placement:
    """The placement of a case that was measured."""
    assert (result.failure, result.status) == (None, "measured")
    assert result.placement is not None
    assert result.placement.reason == ""
    return result.placement


def flagged(result: CaseResult) -> list[str]:
    """Flags that placement decides."""
    names = [flag.name for flag in flags_of(result)]
    return [name for name in ("PARTIAL", "IDLE-LINK", "UNJUDGED") if name in names]


@pytest.mark.parametrize(
    ("spec", "executed", "by_link", "flags"),
    [
        (
            "tensorrt~cuda~cpu",
            {TENSORRT: 1, CUDA: 2, CPU: 1},
            [("tensorrt", 1, "", "", None), ("cuda", 2, "", "", None), ("cpu", 1, "", "", None)],
            [],
        ),
        (
            # The first takes what the second could.
            "cuda~tensorrt~cpu",
            {CUDA: 3, CPU: 1},
            [
                ("cuda", 3, "", "", None),
                ("tensorrt", 0, "taken", "tensorrt~cuda~cpu", 1),
                ("cpu", 1, "", "", None),
            ],
            ["IDLE-LINK"],
        ),
        (
            # Nobody wrote the CPU, which runs a node all the same.
            "tensorrt~cuda:0",
            {TENSORRT: 1, CUDA: 2, CPU: 1},
            [("tensorrt", 1, "", "", None), ("cuda:0", 2, "", "", None)],
            ["PARTIAL"],
        ),
    ],
)
def test_tensorrt_and_cuda_on_stand_ins(
    measure: Measured,
    tmp_path: Path,
    on_stand_ins: Callable[..., Runtime],
    spec: str,
    executed: Mapping[str, int],
    by_link: list[tuple[str, int, str, str, int | None]],
    flags: list[str],
) -> None:
    result = measure(parted(tmp_path / "parted.onnx"), spec, on_stand_ins())
    placement = placed(result)
    assert result.case.provider.label == spec
    assert placement.executed == executed
    assert [
        (link.label, placement.executed.get(link.provider, 0), link.idle, link.order, link.executed)
        for link in placement.links
    ] == by_link
    assert placement_ratio(placement) == (0.75 if "PARTIAL" in flags else 1.0)
    assert placement.witness == "agrees"
    assert [link.nodes for link in placement.links] == [count for _, count, *_ in by_link]
    assert flagged(result) == flags


def test_a_link_without_a_session_is_the_one_that_is_named(
    measure: Measured, tmp_path: Path, on_stand_ins: Callable[..., Runtime]
) -> None:
    runtime = on_stand_ins(STAND_IN_BROKEN=CUDA)
    result = measure(mlp(tmp_path / "m.onnx"), "tensorrt~cuda~cpu", runtime)
    assert (result.status, result.measurements) == ("unavailable", ())


def test_a_link_that_the_runtime_lacks(measure: Measured, tmp_path: Path, here: Runtime) -> None:
    result = measure(mlp(tmp_path / "m.onnx"), "cpu~openvino", here)
    assert (result.status, result.measurements) == ("unavailable", ())
    assert result.failure is not None
    assert ON_OPENVINO in result.failure.message
    # The next step is that of the link, not of the chain's first.
    assert "onnxruntime-openvino" in result.failure.hint


@pytest.mark.skipif(
    "AzureExecutionProvider" not in onnxruntime.get_available_providers(),
    reason="needs a second provider that is compiled in",
)
@pytest.mark.parametrize(
    ("spec", "status", "idle"),
    [
        ("cpu~azure", "measured", ["", "none"]),
        # Nothing but the CPU ran: that is no number of the chain's.
        ("azure~cpu", "fallback", ["", ""]),
    ],
)
def test_a_link_that_takes_no_node_anywhere(
    measure: Measured, tmp_path: Path, here: Runtime, spec: str, status: str, idle: list[str]
) -> None:
    result = measure(mlp(tmp_path / "m.onnx"), spec, here)
    assert result.status == status
    assert result.placement is not None
    assert result.placement.executed == {CPU: 2}
    assert [link.idle for link in result.placement.links] == idle
    assert bool(result.measurements) is (status == "measured")


@pytest.mark.heavy
@pytest.mark.needs("network")
@pytest.mark.parametrize(
    ("spec", "executed", "idle"),
    [
        # OpenVINO takes the graph in partitions, each one event.
        ("openvino~cpu", {ON_OPENVINO}, ["", ""]),
        ("cpu~openvino", {CPU}, ["", "taken"]),
    ],
)
def test_openvino_and_the_cpu_in_both_orders(
    measure: Measured,
    made_runtime: Callable[[str], Runtime],
    tmp_path: Path,
    spec: str,
    executed: set[str],
    idle: list[str],
) -> None:
    result = measure(mlp(tmp_path / "m.onnx"), spec, made_runtime(OPENVINO))
    placement = placed(result)
    assert set(placement.executed) == executed
    assert [link.idle for link in placement.links] == idle
    taken = placement.links[1]
    if idle[1] == "taken":
        assert (taken.order, taken.executed) == ("openvino~cpu", 1)
