"""WebGPU for real, on a device in software: SwiftShader, which Debian's chromium brings.

What a device with a memory of its own does is seen here where no GPU is: runs that return before
their work is done, copies between devices, programs that are compiled at first use.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, InputSpec, Runtime
from pytest_ortbench.core.outcome import Accuracy, CaseResult
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.gate.measuring.answers import Exchange
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import measure_launch
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.launch.software_vulkan import software_vulkan
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.passes.startup.facts import FurtherShape, StartTrial
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.runtimes.resolve import current
from tests.providers.cases import QUICK, Port, drawn, mlp, save
from tests.providers.conftest import WEBGPU
from tests.worker.stand_in import ROOT, compiled

pytestmark = [pytest.mark.live, pytest.mark.needs("network", "vulkan", "cc")]

ON_WEBGPU, ON_CPU = "WebGpuExecutionProvider", "CPUExecutionProvider"


def partial(path: Path) -> Path:
    """MatMul and Relu on any batch, and between them Hardmax, which WebGPU lacks."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="up"),
        helper.make_node("Hardmax", ["h"], ["m"], name="hard"),
        helper.make_node("Mul", ["m", "h"], ["g"], name="gate"),
        helper.make_node("Relu", ["g"], ["y"], name="relu"),
    ]
    ports: tuple[list[Port], list[Port]] = (
        [("x", TensorProto.FLOAT, ["N", 16])],
        [("y", TensorProto.FLOAT, ["N", 8])],
    )
    return save(path, nodes, *ports, {"w": drawn(16, 8)})


def half(path: Path) -> Path:
    """MatMul in half precision."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ports: tuple[list[Port], list[Port]] = (
        [("x", TensorProto.FLOAT16, [2, 16])],
        [("y", TensorProto.FLOAT16, [2, 8])],
    )
    return save(path, nodes, *ports, {"w": drawn(16, 8).astype(np.float16)})


@dataclass
class Device:
    """The runtime with WebGPU on a device in software, and what measures there.

    Attributes:
        runtime: The interpreter, whose environment names the device's manifest.
        launcher: Starts workers.
        folder: For models and scratch files.
    """

    runtime: Runtime
    launcher: ProcessLauncher
    folder: Path

    def planned(
        self, *models: Path, io: Sequence[str] = ("end-to-end",), spec: str = "webgpu"
    ) -> list[Case]:
        """Plan cases as the plugin does."""
        planner = Planner(
            self.launcher,
            self.folder,
            runtimes=[self.runtime],
            notify=lambda _: None,
            candidates=Candidates(self.launcher, ProbeMemory(None)),
        )
        request = PlanRequest(
            models=tuple(map(str, models)),
            providers=(spec,),
            sampling=replace(QUICK, yardstick="off"),
            io=tuple(io),
        )
        return [planned.case for planned in planner.plan(request).entries]

    def measured(self, case: Case) -> CaseResult:
        """Measure a case; the reference of its accuracy is the CPU of this interpreter."""
        scratch = self.folder / "scratch"
        return measure(case, self.launcher, scratch, reference_runtime=current())


@pytest.fixture(scope="module")
def device(
    made_runtime: Callable[[str], Runtime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Device]:
    found = software_vulkan({})
    assert found is not None
    runtime = replace(made_runtime(WEBGPU), environment={"VK_ICD_FILENAMES": found.installed})
    folder = tmp_path_factory.mktemp("webgpu")
    with closing(ProcessLauncher(log_folder=folder / "logs")) as launcher:
        yield Device(runtime, launcher, folder)


@pytest.fixture(scope="module")
def cases(device: Device) -> dict[str, Case]:
    """Cases on two models, by what is special about each."""
    end_to_end, bound = device.planned(
        partial(device.folder / "partial.onnx"), io=("end-to-end", "device")
    )
    [whole] = device.planned(mlp(device.folder / "mlp.onnx"))
    [narrow] = device.planned(half(device.folder / "half.onnx"))
    chains = {
        spec: device.planned(device.folder / "partial.onnx", spec=spec)[0]
        for spec in ("webgpu~cpu", "cpu~webgpu")
    }
    return {"partial": end_to_end, "bound": bound, "whole": whole, "half": narrow, **chains}


@pytest.fixture(scope="module")
def results(device: Device, cases: dict[str, Case]) -> dict[str, CaseResult]:
    """What was measured, which many tests read."""
    callers = replace(cases["whole"], concurrency=3)
    measured = {name: device.measured(case) for name, case in cases.items()}
    return {**measured, "callers": device.measured(callers)}


def test_all_means_webgpu_too(device: Device) -> None:
    candidates = Candidates(device.launcher, ProbeMemory(None))
    providers, skips = candidates.providers(device.runtime, ("all",))
    assert [provider.label for provider in providers] == ["cpu", "webgpu"]
    assert not skips


@pytest.mark.parametrize("name", ["whole", "partial", "bound", "callers"])
def test_it_is_measured_and_accurate(results: dict[str, CaseResult], name: str) -> None:
    result = results[name]
    assert (result.failure, result.status) == (None, "measured")
    assert result.accuracy is not None
    [output] = result.accuracy.outputs
    assert output.sqnr_db is None or output.sqnr_db > 100
    assert summarise(result).quantities["latency_p50"].value is not None
    [worker] = result.measurements
    assert worker.warm_up.count >= 3
    assert worker.startup.first_inference_ns > 0
    assert (worker.startup.provider_init_ns or 0) > 0


def test_placement_counts_nodes_elsewhere_and_copies(results: dict[str, CaseResult]) -> None:
    whole, parted = results["whole"].placement, results["partial"].placement
    assert whole is not None
    assert parted is not None
    assert (whole.executed, whole.copies) == ({ON_WEBGPU: 2}, 0)
    assert whole.precision_executed == "float32"
    assert parted.executed == {ON_CPU: 1, ON_WEBGPU: 3}
    assert parted.ops_elsewhere == {"Hardmax": 1}
    assert parted.copies == 2
    # The assignment interface names none of WebGPU's nodes: no number is better than a wrong one.
    assert (parted.nodes_on_provider, parted.nodes_total) == (None, None)
    assert "PARTIAL" in [flag.name for flag in flags_of(results["partial"])]
    assert "PARTIAL" not in [flag.name for flag in flags_of(results["whole"])]


@pytest.mark.parametrize(
    ("spec", "executed", "idle"),
    [
        ("webgpu~cpu", {ON_CPU: 1, ON_WEBGPU: 3}, [("", "", None), ("", "", None)]),
        ("cpu~webgpu", {ON_CPU: 4}, [("", "", None), ("taken", "webgpu~cpu", 3)]),
    ],
)
def test_chains_with_the_cpu_in_both_orders(
    results: dict[str, CaseResult],
    spec: str,
    executed: dict[str, int],
    idle: list[tuple[str, str, int | None]],
) -> None:
    result = results[spec]
    assert (result.failure, result.status) == (None, "measured")
    assert result.placement is not None
    assert result.placement.executed == executed
    links = result.placement.links
    assert [link.label for link in links] == spec.split("~")
    assert [(link.idle, link.order, link.executed) for link in links] == idle
    # Both were asked for.
    assert result.placement.ops_elsewhere == {}
    names = [flag.name for flag in flags_of(result)]
    assert "PARTIAL" not in names
    assert ("IDLE-LINK" in names) is (spec == "cpu~webgpu")


def test_the_device_and_the_variable_that_chose_it_are_recorded(
    device: Device, results: dict[str, CaseResult]
) -> None:
    [worker] = results["whole"].measurements
    assert worker.runtime.variables == device.runtime.environment
    assert worker.runtime.software_device == "SwiftShader"
    [flag] = [flag for flag in flags_of(results["whole"]) if flag.name == "SOFTWARE"]
    assert flag.detail == "SwiftShader"


@pytest.mark.parametrize("name", ["whole", "partial", "bound"])
def test_memory_of_the_device_is_not_known(results: dict[str, CaseResult], name: str) -> None:
    [worker] = results[name].measurements
    memory = worker.memory
    assert memory.device_bytes is None
    assert ON_WEBGPU in memory.device_source
    # The device itself is in the baseline: of a program, 140 MB of this process.
    assert memory.baseline_bytes is not None
    assert memory.peak_bytes is not None
    assert 0 < memory.peak_bytes < memory.baseline_bytes / 4


def test_half_precision_is_refused_where_the_device_has_none(
    results: dict[str, CaseResult],
) -> None:
    result = results["half"]
    assert (result.status, result.measurements) == ("unsupported", ())
    assert result.failure is not None
    assert result.failure.phase == "first"
    assert "f16" in result.failure.message


def test_callers_of_one_session_run_in_turn(results: dict[str, CaseResult]) -> None:
    assert "IN-TURN" in [flag.name for flag in flags_of(results["callers"])]
    assert "IN-TURN" not in [flag.name for flag in flags_of(results["whole"])]


def test_outputs_stay_on_the_device(results: dict[str, CaseResult]) -> None:
    [worker] = results["bound"].measurements
    assert worker.options_in_force == {"io_binding": "webgpu:0"}
    # ONNX Runtime's own way to wait does nothing: what was timed is not what it takes to start.
    [host] = results["partial"].measurements
    assert host.options_in_force == {}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables for a driver in front of SwiftShader's that counts waits and loses its device."""
    found = software_vulkan({})
    assert found is not None
    folder = tmp_path_factory.mktemp("driver")
    library = compiled(Path(__file__).with_name("driver.c"), folder / "libdriver.so")
    manifest = json.loads(Path(found.installed).read_text(encoding="utf-8"))
    theirs = Path(found.installed).parent / manifest["ICD"]["library_path"]
    manifest["ICD"]["library_path"] = str(library)
    ours = folder / "driver.json"
    ours.write_text(json.dumps(manifest), encoding="utf-8")
    return {
        "VK_ICD_FILENAMES": str(ours),
        "ORTBENCH_OTHER_DRIVER": str(theirs),
        "ORTBENCH_DRIVER": str(library),
    }


#: Waits for the device in ten runs: of host arrays, of bound ones without any waiting, with ONNX
#: Runtime's own, and with that of the timed loop.
_WAITS = """\
import ctypes, json, os, sys
import numpy as np
import onnxruntime as ort
from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker.binding import bind
from pytest_ortbench.worker.device_wait import waiting

webgpu = Provider(alias="webgpu", name="WebGpuExecutionProvider")
session = ort.InferenceSession(sys.argv[1], providers=[webgpu.name, "CPUExecutionProvider"])
feeds = {"x": np.ones((2, 16), np.float32)}
binding = bind(session, feeds, webgpu)
run, wait = session.run_with_iobinding, waiting(binding, webgpu)
ways = {
    "host": [lambda: session.run(None, feeds)],
    "bare": [lambda: run(binding)],
    "synchronised": [lambda: run(binding), binding.synchronize_outputs],
    "ours": [lambda: run(binding), wait],
}
waits = ctypes.CDLL(os.environ["ORTBENCH_DRIVER"]).ortbench_waits
found = {}
for name, steps in ways.items():
    wait()
    before = waits()
    for _ in range(10):
        for step in steps:
            step()
    found[name] = waits() - before
print(json.dumps(found), flush=True)
os._exit(0)
"""


def test_the_timed_loop_waits_where_synchronising_does_not(
    device: Device, cases: dict[str, Case], driver: dict[str, str]
) -> None:
    ended = subprocess.run(
        [*device.runtime.command, "-c", _WAITS, cases["whole"].variant.path],
        env={**os.environ, **driver, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    waits = json.loads(ended.stdout.splitlines()[-1])
    assert (waits["bare"], waits["synchronised"]) == (0, 0)
    # Not one a run: a short one may be over before anybody waits for it.
    assert waits["host"] > 0
    assert waits["ours"] > 0


@pytest.mark.parametrize("name", ["whole", "bound"])
def test_a_lost_device_gives_no_number(
    device: Device, cases: dict[str, Case], driver: dict[str, str], name: str
) -> None:
    runtime = replace(device.runtime, environment={**driver, "ORTBENCH_LOST_AFTER": "60"})
    result = device.measured(replace(cases[name], runtime=runtime))
    assert (result.status, result.measurements) == ("unavailable", ())
    assert result.failure is not None
    assert "lost" in result.failure.message
    assert result.failure.hint


def test_a_manifest_that_is_not_there_is_named(device: Device, cases: dict[str, Case]) -> None:
    runtime = replace(device.runtime, environment={"VK_ICD_FILENAMES": "/nowhere/device.json"})
    result = device.measured(replace(cases["whole"], runtime=runtime))
    assert (result.status, result.measurements) == ("unavailable", ())
    assert result.failure is not None
    assert "/nowhere/device.json" in result.failure.message
    assert "VK_ICD_FILENAMES" in result.failure.hint


@pytest.mark.parametrize(
    ("sessions", "concurrency", "io", "way"),
    [(2, 1, "end-to-end", "--ort-processes"), (1, 2, "device", "--ort-io")],
)
def test_callers_that_would_mix_on_the_device_are_refused(
    device: Device, cases: dict[str, Case], sessions: int, concurrency: int, io: str, way: str
) -> None:
    case = replace(cases["whole"], sessions=sessions, concurrency=concurrency, io=io)
    result = device.measured(case)
    assert (result.status, result.measurements) == ("unsupported", ())
    assert result.failure is not None
    assert way in result.failure.hint


def test_the_profile_has_the_times_of_the_device(device: Device, cases: dict[str, Case]) -> None:
    profile = profile_case(cases["partial"], device.launcher)
    assert isinstance(profile, OperatorProfile)
    assert (profile.reason, profile.device_times, profile.asynchronous) == ("", True, False)
    kinds = {(operator.op, operator.provider): operator.kind for operator in profile.operators}
    assert kinds == {
        ("MatMul", ON_WEBGPU): "compute",
        ("Mul", ON_WEBGPU): "compute",
        ("Relu", ON_WEBGPU): "compute",
        ("Hardmax", ON_CPU): "compute",
        ("MemcpyToHost", ON_WEBGPU): "copy",
        ("MemcpyFromHost", ON_WEBGPU): "copy",
    }
    # Nobody wants the ceilings of a program.
    assert profile.peak is not None
    assert (profile.peak.macs_per_s, "SwiftShader" in profile.peak.reason) == (None, True)


def test_the_gate_takes_turns_with_the_cpu_of_the_same_wheel(
    device: Device, cases: dict[str, Case]
) -> None:
    contender = cases["whole"]
    pair = Pair(baseline=replace(contender, provider=parse_provider("cpu")), contender=contender)
    exchange = Exchange(pair=pair, path=device.folder / "outputs.npz")
    unknown = Accuracy(reason="the two sides are compared with each other")
    launched = measure_launch(
        pair,
        device.launcher,
        seed=1,
        index=0,
        deadline=time.monotonic() + 120,
        references=(unknown, unknown),
        exchange=exchange,
    )
    executed = {
        side: facts.placement.executed if facts.placement else None
        for side, facts in (("cpu", launched.baseline), ("webgpu", launched.contender))
    }
    assert executed == {"cpu": {ON_CPU: 2}, "webgpu": {ON_WEBGPU: 2}}
    assert len(launched.launch.baseline_min_ns) == len(launched.launch.contender_min_ns) > 0
    [output] = exchange.answers(None, None, {}).compared.outputs
    assert output.sqnr_db is None or output.sqnr_db > 100


def test_each_new_shape_has_a_first_inference(device: Device, cases: dict[str, Case]) -> None:
    case = cases["partial"]

    def sized(spec: InputSpec) -> InputSpec:
        return replace(spec, shape=(5, *spec.shape[1:]))

    shape = FurtherShape(label="b5", inputs=tuple(map(sized, case.inputs)))
    question = StartUp(case=case, shapes=(shape,))
    trial = device.launcher.ask(question, deadline=time.monotonic() + 120)
    assert isinstance(trial, StartTrial)
    assert trial.first_inference_ns > 0
    [other] = trial.shapes
    assert (other.label, other.reason) == ("b5", "")
    assert (other.first_ns or 0) > 0
