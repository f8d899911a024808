"""Where the time goes: added up from profiles that are written down, and from real ones."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.passes.profile.numbers.bottlenecks import copy_shares, hints
from pytest_ortbench.passes.profile.report import profile_lines
from pytest_ortbench.passes.profile.worker import operators as operator_profile
from pytest_ortbench.passes.profile.worker.node_work import work_of_nodes
from pytest_ortbench.passes.profile.worker.operators import (
    PlainRuns,
    kind_of_operator,
    operator_totals,
    plain_runs,
    profile_operators,
    profiled_runs,
    runs_for,
)
from pytest_ortbench.worker.profile_events import Profile, read_events
from tests.results_factory import make_case
from tests.worker import graphs
from tests.worker.sessions import CPU, cpu_session


def write(path: Path, runs: list[dict[str, int]]) -> Path:
    """A profile: for each run the durations of its nodes, and ``run`` for the whole."""
    events: list[dict[str, object]] = []
    at = 0
    for durations in runs:
        begun = at
        for name, us in durations.items():
            if name == "run":
                continue
            op = name.split("_")[0]
            events.append(
                {
                    "cat": "Node", "name": f"{name}_kernel_time", "ts": at, "dur": us, "tid": 1,
                    "args": {
                        "op_name": op, "provider": CPU, "node_index": name,
                        "input_type_shape": [{"float": [2, 3]}],
                        "output_type_shape": [{"float": [2, 5]}],
                    },
                }
            )  # fmt: skip
            at += us
        at = begun + durations["run"]
        events.append({"cat": "Session", "name": "model_run", "ts": begun, "dur": durations["run"]})
    path.write_text("[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]")
    return path


def test_operators_and_the_time_between_add_up_to_the_run(tmp_path: Path) -> None:
    first = {"MatMul_1": 9000, "Relu_1": 9000, "run": 30000}
    plain = {"MatMul_1": 100, "MatMul_2": 60, "Cast_1": 10, "Transpose_1": 20, "run": 200}
    late = {name: 3 * us for name, us in plain.items()}
    profile = read_events(write(tmp_path / "p.json", [first, plain, late, plain, late]))
    found = operator_totals(profile, plain_ns=[170_000] * 3, provider=CPU, threads=2, cpus=2)
    assert found.runs == 2
    assert (found.run_ns, found.plain_ns) == (200_000, 170_000)
    assert [(each.op, each.time_ns, each.nodes, each.kind) for each in found.operators] == [
        ("MatMul", 160_000, 2, "compute"),
        ("Transpose", 20_000, 1, "move"),
        ("Cast", 10_000, 1, "cast"),
    ]
    assert found.between_ns == 10_000
    assert found.node_count == 4
    assert (found.nodes[0].name, found.nodes[0].time_ns) == ("MatMul_1", 100_000)
    assert found.nodes[0].shapes == "float [2,3] -> float [2,5]"
    assert not found.asynchronous


def test_runs_that_somebody_stopped_do_not_count(tmp_path: Path) -> None:
    """Of the faster half, 200, 210 and 230 µs, the last is more than a tenth behind the first."""
    durations = [900, 200, 210, 230, 400, 500]
    runs = [{"MatMul_1": us - 50, "run": us} for us in durations]
    profile = read_events(write(tmp_path / "p.json", runs))
    found = operator_totals(profile, plain_ns=[], provider=CPU, threads=1, cpus=1)
    assert (found.runs, found.run_ns) == (2, 205_000)
    assert found.operators[0].time_ns == 155_000


def test_one_run_is_better_than_none(tmp_path: Path) -> None:
    profile = read_events(write(tmp_path / "p.json", [{"Add_1": 7, "run": 10}]))
    found = operator_totals(
        profile, plain_ns=[], provider="CUDAExecutionProvider", threads=1, cpus=1
    )
    assert (found.runs, found.run_ns, found.plain_ns, found.between_ns) == (1, 10_000, 0, 3_000)
    assert found.asynchronous


def test_a_compiled_subgraph_is_no_operator() -> None:
    path = Path(__file__).parents[2] / "worker" / "profiles" / "openvino-1.24.1-labels.json"
    found = operator_totals(
        read_events(path), plain_ns=[], provider="OpenVINOExecutionProvider", threads=1, cpus=1
    )
    kinds = {each.provider: each.kind for each in found.operators}
    assert kinds["OpenVINOExecutionProvider"] == "subgraph"
    assert kinds[CPU] == "compute"


def test_bodies_stand_for_their_loop() -> None:
    path = Path(__file__).parents[2] / "worker" / "profiles" / "cpu-1.32.0-loop.json"
    profile = read_events(path)
    found = operator_totals(profile, plain_ns=[], provider=CPU, threads=1, cpus=1)
    loops = [each for each in found.operators if each.op == "Loop"]
    assert loops
    assert all(each.time_ns == 0 for each in loops)
    assert found.between_ns >= 0


def test_copies_to_and_from_a_device_are_told_apart() -> None:
    """Written by hand in the shape of CUDA's: a node that it does not take, between two copies.

    A run of 1000 µs: 250 to the device, 150 to the host, 300 on the CPU, 100 on the device.
    """
    path = Path(__file__).parents[2] / "worker" / "profiles" / "made-by-hand-cuda-copies.json"
    events = read_events(path)
    work = work_of_nodes(event for event in events.events if event.run == 0)
    found = operator_totals(
        events,
        plain_ns=[],
        provider="CUDAExecutionProvider",
        threads=2,
        cpus=2,
        work=work,
    )
    assert (found.runs, found.run_ns, found.asynchronous) == (2, 1_000_000, True)
    assert [(each.op, each.provider, each.time_ns, each.kind) for each in found.operators] == [
        ("GridSample", CPU, 300_000, "compute"),
        ("MemcpyFromHost", "CUDAExecutionProvider", 250_000, "copy"),
        ("MemcpyToHost", "CUDAExecutionProvider", 150_000, "copy"),
        ("MatMul", "CUDAExecutionProvider", 60_000, "compute"),
        ("Conv", "CUDAExecutionProvider", 40_000, "compute"),
    ]
    assert copy_shares(found) == (0.25, 0.15)
    assert found.macs == 8 * 32 * 32 * 27 + 8192 * 10
    copies = [each for each in found.operators if each.kind == "copy"]
    assert {each.moved_bytes for each in copies} == {2 * 4 * 8 * 32 * 32}
    transfer, *_, starting = hints(found)
    assert transfer.startswith(
        "limited by transfers: 40% in 2 copies between devices (25% to the device, 15% to the host)"
    )
    assert starting.startswith("the provider's kernels continue after their nodes")


@pytest.mark.parametrize(
    ("op", "kind"),
    [("MemcpyToHost", "copy"), ("Cast", "cast"), ("Concat", "move"), ("Conv", "compute")],
)
def test_kinds(op: str, kind: str) -> None:
    assert kind_of_operator(op) == kind


@pytest.mark.parametrize(
    ("plain_ns", "events", "runs"),
    [
        (1e5, 50, 101),
        (1e8, 50, 20),
        (1e10, 50, 6),
        (1e5, 20_000, 10),
        (0.0, 0, 101),
        # The profiler holds a million events.
        (1e9, 300_000, 3),
        (1e9, 600_000, 1),
        (1e9, 999_000, 1),
    ],
)
def test_two_seconds_of_runs_and_no_endless_trace(plain_ns: float, events: int, runs: int) -> None:
    assert runs_for(plain_ns, events) == runs


@pytest.mark.live
def test_a_real_run_has_the_times_of_the_raw_profile(tmp_path: Path) -> None:
    from pytest_ortbench.models.builders import build

    path = build("bert_tiny", tmp_path)
    session = cpu_session(path.read_bytes(), profile_prefix=str(tmp_path / "p"))
    feeds = {
        given.name: np.ones([2 if isinstance(n, str) else n for n in given.shape], np.int64)
        for given in session.get_inputs()
    }
    kept = tmp_path / "kept" / "trace.json"
    profile = profiled_runs(session, lambda: session.run(None, feeds), runs=4, keep=kept)
    found = operator_totals(profile, plain_ns=[], provider=CPU, threads=1, cpus=1)
    assert found.share(sum(each.time_ns for each in found.operators) + found.between_ns) == 1.0
    raw: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    whole: dict[int, int] = {}
    for event in json.loads(kept.read_text()):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            raw[len(whole)][event["args"]["op_name"]] += event["dur"]
        elif event["name"] == "model_run":
            whole[len(whole)] = event["dur"]
    fastest, second, _ = sorted((1, 2, 3), key=lambda run: whole[run])
    counted = [run for run in (fastest, second) if whole[run] <= 1.1 * whole[fastest]]
    sums: dict[str, int] = defaultdict(int)
    for run in counted:
        for op, us in raw[run].items():
            sums[op] += us
    assert {each.op: each.time_ns for each in found.operators} == {
        op: pytest.approx(1000 * us / len(counted), abs=1) for op, us in sums.items()
    }
    times = [each.time_ns for each in found.operators]
    assert times == sorted(times, reverse=True)


def test_times_without_the_profiler_leave_out_the_first() -> None:
    calls: list[int] = []
    found = plain_runs(lambda: calls.append(1))
    assert len(calls) == 101
    assert len(found.durations_ns) == 68
    assert found.cpu_ns >= 0


@pytest.mark.live
def test_a_profiler_that_broke_off_gives_no_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the counted run is profiled, and its trace is kept for who wants to look at it."""
    model = tmp_path / "m.onnx"
    model.write_bytes(graphs.mlp())
    read: list[Path] = []

    def cut(path: Path) -> Profile:
        read.append(path)
        return replace(read_events(path), cut_after=1_000_000)

    monkeypatch.setattr(operator_profile, "read_events", cut)
    case = make_case()
    case = replace(case, variant=replace(case.variant, path=str(model)))
    feeds: dict[str, object] = {"x": np.ones((4, 32), np.float32)}
    plain = PlainRuns(durations_ns=[1000], cpu_ns=1000)
    kept = tmp_path / "trace.json"
    found = profile_operators(case, feeds, plain, threads=1, cpus=1, keep=kept)
    assert found.cut_after == 1_000_000
    assert "stopped after 1,000,000 events" in found.reason
    assert (found.operators, found.nodes, found.run_ns, found.macs) == ((), (), 0, None)
    assert (len(read), found.trace) == (1, str(kept))
    assert kept.is_file()
    assert profile_lines("m/native/cpu/b1", found)[-1].startswith(f"  trace: {kept}")
