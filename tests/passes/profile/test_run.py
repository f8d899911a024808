"""The profile pass: what a document keeps of a profile, and what the model's file adds to it."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out
from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime
from pytest_ortbench.passes.profile.questions import ProfileOperators
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.schema.document import encode_run
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.models.graphs import model, node, read, value, weight
from tests.results_factory import make_case, make_result, make_run

PROVIDER = "OwnExecutionProvider"


class Profiling(FakeLauncher):
    """Its workers give the profile that a test says."""

    def __init__(self, profile: OperatorProfile) -> None:
        super().__init__(lambda case, index: 1e6)
        self.profile = profile

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        return opened.answering({ProfileOperators: lambda _: self.profile})


def compiled() -> OperatorProfile:
    """A provider that runs the whole graph as one node of its own."""
    whole = OperatorTime(op="own_1", provider=PROVIDER, time_ns=900, nodes=1)
    return OperatorProfile(runs=1, run_ns=1000, operators=(whole,), node_count=1)


def product(tmp_path: Path, *, own: bool = False) -> Case:
    """A matrix product of [3, 16] and [16, 8]; behind it an operator that nobody knows."""
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    if own:
        nodes = [
            node("MatMul", ["x", "w"], ["h"]),
            node("Strange", ["h"], ["y"], domain="a.b"),
        ]
    proto = model(
        nodes,
        [value("x", ["N", 16])],
        [value("y", ["N", 8])],
        [weight("w", 16, 8)],
        opsets={"": 17, "a.b": 1},
    )
    found = read(proto, tmp_path)
    case = make_case(model=found.name, batch=3)
    inputs = resolve_inputs(found, batch=3, dims={})
    return replace(case, inputs=inputs, variant=replace(case.variant, path=found.path))


@pytest.mark.live
def test_where_a_provider_compiled_the_graph_the_file_is_counted(tmp_path: Path) -> None:
    found = profile_case(product(tmp_path), Profiling(compiled()))
    assert (found.macs, found.work_source) == (3 * 16 * 8, "file")
    assert found.moved_bytes == 4 * (3 * 16 + 16 * 8 + 3 * 8)
    assert found.operators[0].macs is None


@pytest.mark.live
def test_what_the_file_does_not_tell_either_stays_unknown(tmp_path: Path) -> None:
    found = profile_case(product(tmp_path, own=True), Profiling(compiled()))
    assert (found.macs, found.moved_bytes, found.work_source) == (None, None, "")


@pytest.mark.parametrize(
    "profile",
    [
        OperatorProfile(reason="it can't be profiled"),
        replace(compiled(), macs=5, moved_bytes=6, work_source="nodes"),
    ],
)
def test_what_needs_no_file_is_left_as_it_is(profile: OperatorProfile) -> None:
    assert profile_case(make_case(), Profiling(profile)) == profile


def test_a_file_of_another_format_costs_the_count_only(tmp_path: Path) -> None:
    case = product(tmp_path)
    (tmp_path / "m.onnx").write_bytes(b"\x18\0\0\0ORTM")
    found = profile_case(case, Profiling(compiled()))
    assert (found.macs, found.run_ns) == (None, 1000)


def test_a_document_keeps_the_slowest_nodes_and_stays_small() -> None:
    """With 20 operator types and hundreds of nodes a third of what a case takes anyway: 10 kB."""
    shapes = "float [1,384,46,46], float [192,384,1,1], float [192] -> float [1,192,46,46]"
    nodes = tuple(
        NodeTime(
            name=f"backbone/stage{index}/block/Conv_nchwc", op="Conv", provider=PROVIDER,
            time_ns=1000 - index, shapes=shapes, macs=156_008_448, moved_bytes=4_870_000,
        )
        for index in range(50)
    )  # fmt: skip
    operators = tuple(
        OperatorTime(
            op=f"Operator{index}", provider=PROVIDER, time_ns=9000 - index, nodes=3,
            macs=156_008_448, moved_bytes=4_870_000,
        )
        for index in range(20)
    )  # fmt: skip
    profile = OperatorProfile(
        runs=20, run_ns=90_000, operators=operators, nodes=nodes, node_count=500,
        macs=1, moved_bytes=1, work_source="nodes",
    )  # fmt: skip
    bare = make_result()
    result = carry_out("profile", bare, Means(launcher=Profiling(profile)))
    assert result.profile is not None
    assert result.profile.nodes == nodes[:12]
    assert result.profile.operators == operators
    with_it, without = (len(encode_run(make_run([one]))) for one in (result, bare))
    assert with_it - without < 10_000
