"""The operator profile of a real network, against ONNX Runtime's raw profile of a bare session."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import pytest

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.models.arithmetic import count_file
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.worker.inputs import make_feeds

pytestmark = [pytest.mark.live, pytest.mark.needs("network")]


@dataclass(frozen=True)
class Profiled:
    """A case, its profile, and the trace behind that."""

    case: Case
    profile: OperatorProfile
    trace: Path


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    """rapidocr's detector on pages of the catalogue."""
    trace = tmp_path_factory.mktemp("trace") / "trace.json"
    with closing(ProcessLauncher()) as launcher:
        planner = Planner(launcher, Path.cwd(), runtimes=[Runtime()], notify=lambda _: None)
        request = PlanRequest(
            models=("zoo:rapidocr-det",),
            providers=("cpu",),
            precisions=("native",),
            batch_sizes=(1,),
        )
        [planned] = planner.plan(request).entries
        assert planned.refusal is None
        return Profiled(planned.case, profile_case(planned.case, launcher, trace), trace)


def raw_times(path: Path) -> tuple[Counter[str], float]:
    """Microseconds of each operator type and of the whole, over runs that nobody disturbed."""
    runs: list[tuple[int, Counter[str]]] = []
    times: Counter[str] = Counter()
    for event in json.loads(path.read_text(encoding="utf-8")):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            times[event["args"]["op_name"]] += event["dur"]
        elif event["name"] == "model_run":
            runs.append((event["dur"], times))
            times = Counter()
    later = sorted(runs[1:], key=lambda run: run[0])
    half = later[: len(later) // 2 + len(later) % 2]
    faster = [run for run in half if run[0] <= 1.1 * later[0][0]]
    total: Counter[str] = Counter()
    for _, one in faster:
        total.update(one)
    return total, sum(took for took, _ in faster)


def bare_events(case: Case, folder: Path, threads: int = 0, **entries: str) -> list[dict[str, Any]]:
    """What a session that nothing of ours has touched profiles of its nodes, on the same page."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "bare")
    for name, value in entries.items():
        options.add_session_config_entry(f"session.{name}", value)
    session = ort.InferenceSession(case.variant.path, options, providers=["CPUExecutionProvider"])
    session.run(None, make_feeds(case.inputs, seed=0))
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return [event for event in events if event["name"].endswith("_kernel_time")]


def test_operators_and_their_nodes_are_those_of_a_bare_session(
    detector: Profiled, tmp_path: Path
) -> None:
    profile = detector.profile
    events = bare_events(detector.case, tmp_path, profile.threads)
    assert {each.op: each.nodes for each in profile.operators} == Counter(
        event["args"]["op_name"] for event in events
    )
    # Most of the time by far, whoever else computes here.
    assert profile.operators[0].op == "Conv"


def test_the_shares_are_those_of_its_own_raw_profile(detector: Profiled) -> None:
    profile = detector.profile
    assert profile.reason == ""
    added = sum(each.time_ns for each in profile.operators)
    assert added + profile.between_ns == profile.run_ns
    times, whole = raw_times(detector.trace)
    assert {each.op: profile.share(each.time_ns) for each in profile.operators} == {
        op: pytest.approx(us / whole, rel=0.01, abs=1e-6) for op, us in times.items()
    }


#: Floats in a register of AVX-512, which ONNX Runtime pads the channels of a convolution to.
WIDTH = 16


def has_wide_registers() -> bool:
    return "avx512f" in fingerprint().stable["cpu_flags"].split()


def padded(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of weights as executed; inputs of fewer channels than a register stay."""
    out, into, *kernel = weights
    up = [-(-channels // WIDTH) * WIDTH for channels in (out, into)]
    return (up[0], into if into < WIDTH else up[1], *kernel)


@pytest.mark.skipif(not has_wide_registers(), reason="needs a CPU with AVX-512")
def test_convolutions_are_executed_with_channels_padded_to_the_registers(
    detector: Profiled, tmp_path: Path
) -> None:
    """This is why a profile counts more work than the file has."""
    executed = Counter(
        tuple(event["args"]["input_type_shape"][1]["float"])
        for event in bare_events(detector.case, tmp_path, disable_prepacking="1")
        if event["args"]["op_name"] == "Conv"
    )
    graph = onnx.load(detector.case.variant.path).graph
    shapes = {weights.name: tuple(weights.dims) for weights in graph.initializer}
    of_file = Counter(shapes[node.input[1]] for node in graph.node if node.op_type == "Conv")
    assert executed != of_file
    assert executed == Counter(map(padded, of_file.elements()))


def test_nothing_of_it_is_uncounted_and_the_file_agrees(
    detector: Profiled,
) -> None:
    """A little more is executed than the file has, for channels are padded (see above)."""
    profile = detector.profile
    assert profile.work_source == "nodes"
    assert all(each.macs is not None for each in profile.operators)
    sizes = {spec.name: spec.shape for spec in detector.case.inputs}
    work = count_file(Path(detector.case.variant.path), sizes)
    assert work.complete
    assert work.macs is not None
    assert profile.macs is not None
    padding = 1.15 if has_wide_registers() else 1.1
    assert 1.0 <= profile.macs / work.macs < padding
    assert profile.peak is not None
    assert profile.peak.reason == ""
    assert profile.cpu_ns is not None
    assert profile.unspun_ns is not None or profile.threads == 1
