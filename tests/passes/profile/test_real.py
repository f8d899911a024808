"""The operator profile of a real network, against ONNX Runtime's raw profile of a bare session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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

pytestmark = [pytest.mark.live, pytest.mark.timed, pytest.mark.needs("network")]

RUNS, ATTEMPTS = 12, 4
#: A third and a fourth operator that take about the same may change places between two runs.
TIE = 0.6


@dataclass(frozen=True)
class Profiled:
    """A case, and its profile with the trace behind it; as often as asked for."""

    case: Case
    launcher: ProcessLauncher
    folder: Path

    def again(self) -> tuple[OperatorProfile, Path]:
        trace = self.folder / "trace.json"
        return profile_case(self.case, self.launcher, trace), trace


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiled]:
    """rapidocr's detector on pages of the catalogue; on small ones 5 % are between nodes."""
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
        yield Profiled(planned.case, launcher, tmp_path_factory.mktemp("trace"))


@pytest.fixture(scope="module")
def once(detector: Profiled) -> tuple[OperatorProfile, Path]:
    return detector.again()


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


def bare_times(case: Case, threads: int, folder: Path) -> Counter[str]:
    """What a session that nothing of ours has touched takes, with the same threads and page."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "bare")
    session = ort.InferenceSession(case.variant.path, options, providers=["CPUExecutionProvider"])
    feeds = make_feeds(case.inputs, seed=0)
    for _ in range(RUNS):
        session.run(None, feeds)
    return raw_times(Path(session.end_profiling()))[0]


def disagreements(profile: OperatorProfile, times: Counter[str]) -> list[str]:
    """How a profile differs from the raw times of another session, ties apart."""
    found = []
    added = sum(each.time_ns for each in profile.operators) / profile.run_ns
    if not 0.95 <= added <= 1.0:
        found.append(f"the shares add up to {added:.1%} of the run")
    third = times.most_common(3)[-1][1]
    found += [
        f"{each.op} takes {times[each.op]} µs of the bare session, its third {third}"
        for each in profile.operators[:3]
        if times[each.op] < TIE * third
    ]
    return found


def test_shares_add_up_to_the_run_and_the_top_three_are_those_of_a_bare_session(
    detector: Profiled, tmp_path: Path
) -> None:
    """Whoever else computes on this machine may stop one node of one run for as long as all
    others take together; that it happens in each of several attempts is no chance."""
    said: list[list[str]] = []
    for _ in range(ATTEMPTS):
        profile, _trace = detector.again()
        times = bare_times(detector.case, profile.threads, tmp_path)
        assert {each.op for each in profile.operators} == set(times)
        assert profile.operators[0].op == times.most_common(1)[0][0] == "Conv"
        said.append(disagreements(profile, times))
        if not said[-1]:
            return
    pytest.fail(f"in each of {ATTEMPTS} attempts: {said}")


def test_the_top_three_and_their_shares_are_those_of_its_own_raw_profile(
    once: tuple[OperatorProfile, Path],
) -> None:
    profile, trace = once
    assert profile.reason == ""
    added = sum(each.time_ns for each in profile.operators)
    assert added + profile.between_ns == profile.run_ns
    times, whole = raw_times(trace)
    top = [op for op, _ in times.most_common(3)]
    assert [each.op for each in profile.operators[:3]] == top
    for each in profile.operators[:3]:
        assert profile.share(each.time_ns) == pytest.approx(times[each.op] / whole, rel=0.01)


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
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "bare")
    options.add_session_config_entry("session.disable_prepacking", "1")
    path = detector.case.variant.path
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    session.run(None, make_feeds(detector.case.inputs, seed=0))
    executed = Counter(
        tuple(event["args"]["input_type_shape"][1]["float"])
        for event in json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        if event.get("cat") == "Node" and event["args"]["op_name"] == "Conv"
    )
    graph = onnx.load(path).graph
    shapes = {weights.name: tuple(weights.dims) for weights in graph.initializer}
    of_file = Counter(shapes[node.input[1]] for node in graph.node if node.op_type == "Conv")
    assert executed != of_file
    assert executed == Counter(map(padded, of_file.elements()))


def test_nothing_of_it_is_uncounted_and_the_file_agrees(
    detector: Profiled, once: tuple[OperatorProfile, Path]
) -> None:
    """A little more is executed than the file has, for channels are padded (see above)."""
    profile, _ = once
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
