"""Providers that are not what they say: the field cases P1 to P13, on the real distributions.

P9 and P10 need hardware or a failure that can't be had here, so their native side is a stand-in.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.cli.doctor import report
from pytest_ortbench.cli.survey import survey
from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.run import Skip
from pytest_ortbench.launch.diagnose import Evidence, diagnose
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.planning.provider_options import check_options
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.runtimes.installed import installed
from pytest_ortbench.schema.protocol import Refusal
from tests.providers import cases
from tests.providers.cases import Measured
from tests.providers.conftest import GGML, GPU, OPENVINO
from tests.providers.raw_environments import RawEnvironment, raw_environment
from tests.refused import refused

Distribution = Callable[[str], Runtime]

needs_network = pytest.mark.needs("network")
#: What the GPU wheel says on a machine without one can't be seen on a machine with one.
no_gpu = pytest.mark.skipif(
    Path("/proc/driver/nvidia").exists(), reason="this machine has an NVIDIA GPU"
)


def failure_of(result: CaseResult) -> Failure:
    """The failure of a result without any number."""
    assert result.failure is not None
    assert result.measurements == ()
    assert result.status == result.failure.kind
    return result.failure


# -- P1 -------------------------------------------------------------------------------------------


@needs_network
@no_gpu
@pytest.mark.parametrize(
    ("alias", "library"), [("cuda", "libcublasLt.so.13"), ("tensorrt", "libcublas.so.13")]
)
def test_p1_the_gpu_wheel_without_a_gpu_names_the_missing_library(
    distribution: Distribution, measure: Measured, tmp_path: Path, alias: str, library: str
) -> None:
    failure = failure_of(measure(cases.mlp(tmp_path / "m.onnx"), alias, distribution(GPU)))
    assert failure.kind == "unavailable"
    name = parse_provider(alias).name
    assert failure.message.startswith(f"{name} needs {library} (CUDA 13)")
    assert failure.hint.startswith("CUDA 13 ")
    assert "onnxruntime-gpu[cuda,cudnn]" in failure.hint
    assert library in failure.log_tail


@needs_network
@no_gpu
def test_p1_named_it_fails_and_under_all_it_is_a_note(
    distribution: Distribution, tmp_path: Path
) -> None:
    cases.mlp(tmp_path / "m.onnx")
    runtime = distribution(GPU)
    (tmp_path / "ortbench.toml").write_text(
        f'[runtimes.gpu]\npython = "{runtime.command[0]}"\n', encoding="utf-8"
    )

    def run(providers: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "m.onnx", "-q", "-p", "no:cacheprovider"]
        command += ["-k", "latency", f"--ort-providers={providers}", "--ort-runtimes=gpu"]
        command += ["--ort-time=0.05", "--ort-workers=1", "--ort-no-results"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )

    named = run("cpu,cuda")
    assert named.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed" in named.stdout
    assert "CUDAExecutionProvider needs libcublasLt.so.13 (CUDA 13)" in named.stdout
    under_all = run("all")
    assert under_all.returncode == pytest.ExitCode.OK
    assert "1 passed" in under_all.stdout
    for alias, library in (("cuda", "libcublasLt.so.13"), ("tensorrt", "libcublas.so.13")):
        assert (
            f"ortbench: left out {alias} in gpu: {parse_provider(alias).name} needs {library}"
            in under_all.stdout
        )


# -- P2, P3, P4 -----------------------------------------------------------------------------------


def candidates(launcher: ProcessLauncher) -> Candidates:
    return Candidates(launcher, ProbeMemory(None))


def test_p2_azure_is_not_in_the_matrix(launcher: ProcessLauncher, here: Runtime) -> None:
    providers, skips = candidates(launcher).providers(here, ("all",))
    assert [provider.alias for provider in providers] == ["cpu"]
    assert [skip.what for skip in skips] == ["azure"]
    assert "no node" in skips[0].reason


def test_p3_a_misspelt_provider_is_told_before_anything_runs() -> None:
    with refused(UsageError, hint="'CPUExecutionProvider'"):
        parse_provider("CpuExecutionProvider")


def test_p3_an_unknown_option_never_passes(
    measure: Measured, here: Runtime, tmp_path: Path
) -> None:
    with refused(UsageError, "cpu ", "foo"):
        measure(cases.mlp(tmp_path / "m.onnx"), "cpu", here, options={"foo": "1"})
    for alias in ("openvino", "qnn", "ggml", "cuda", "coreml", "dml"):
        with refused(UsageError, f"{alias} ", "'foo'"):
            check_options(alias, {"foo": "1"})


def test_p4_a_provider_that_another_distribution_has(
    measure: Measured, here: Runtime, tmp_path: Path
) -> None:
    failure = failure_of(measure(cases.mlp(tmp_path / "m.onnx"), "openvino", here))
    assert failure.kind == "unavailable"
    assert failure.message.startswith("OpenVINOExecutionProvider ")
    assert "onnxruntime-openvino" in failure.hint


# -- P5 -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def overwritten() -> RawEnvironment:
    """Openvino's distribution, and the plain one installed over it."""
    return raw_environment("overwritten", ["onnxruntime-openvino==1.24.1"], ["onnxruntime==1.32.0"])


@pytest.fixture(scope="module")
def gutted() -> RawEnvironment:
    """The same, and the plain one removed again: its files went, those of both among them."""
    return raw_environment(
        "gutted",
        ["onnxruntime-openvino==1.24.1"],
        ["onnxruntime==1.32.0"],
        remove=["onnxruntime"],
    )


@needs_network
def test_p5_two_distributions_are_both_named_with_the_repair(
    overwritten: RawEnvironment, launcher: ProcessLauncher
) -> None:
    found = installed([str(overwritten.packages)])
    text = "\n".join(found.problems())
    assert text.count("onnxruntime-openvino==1.24.1") >= 2
    assert ("onnxruntime==1.32.0" in text, "replaced" in text) == (True, True)
    assert "uninstall -y onnxruntime onnxruntime-openvino" in found.repair()[0]
    seen = survey(launcher, overwritten.runtime)
    assert seen.info is not None
    assert set(seen.info.distributions) == {"onnxruntime", "onnxruntime-openvino"}
    lines = "\n".join(report(found, seen, {}, (), 100))
    assert "onnxruntime-openvino" in lines
    assert "repair" in lines


@needs_network
def test_p5_what_is_left_after_removing_one(
    gutted: RawEnvironment, launcher: ProcessLauncher
) -> None:
    found = installed([str(gutted.packages)])
    text = "\n".join(found.problems())
    assert "onnxruntime-openvino==1.24.1" in text
    assert found.repair()[-1].split()[-2:] == ["install", "onnxruntime-openvino==1.24.1"]
    seen = survey(launcher, gutted.runtime)
    assert seen.info is None
    assert seen.failure is not None
    assert seen.failure.kind == "unavailable"
    assert "InferenceSession" in seen.failure.message
    lines = report(found, seen, {}, (), 100)
    assert any(line.split()[:2] == ["measure", "nothing"] for line in lines)


@needs_network
def test_p5_a_case_there_fails_in_one_line(
    gutted: RawEnvironment, measure: Measured, tmp_path: Path
) -> None:
    failure = failure_of(measure(cases.mlp(tmp_path / "m.onnx"), "cpu", gutted.runtime))
    assert failure.kind == "unavailable"
    assert (
        "another distribution of ONNX Runtime was installed over it, or removed" in failure.message
    )
    assert "Uninstall " in failure.hint


# -- P6, P7, P8 -----------------------------------------------------------------------------------


@needs_network
@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        ("openvino:GPU", {}, "Device GPU is not available"),
        ("openvino:NPU", {}, "Device NPU is not available"),
        ("openvino:HETERO:GPU,CPU", {}, "Device GPU is not available"),
        ("openvino:CPU", {"precision": "FP16"}, "CPU only supports FP32, ACCURACY"),
    ],
)
def test_p6_openvino_on_a_device_that_is_not_here_gives_no_number(
    distribution: Distribution,
    measure: Measured,
    tmp_path: Path,
    spec: str,
    options: dict[str, str],
    reason: str,
) -> None:
    path = cases.mlp(tmp_path / "m.onnx")
    failure = failure_of(measure(path, spec, distribution(OPENVINO), options=options))
    assert failure.kind == "unavailable"
    assert "the session runs on CPUExecutionProvider, not on Open" in failure.message
    assert reason in failure.message


@needs_network
def test_p7_what_openvino_leaves_is_named(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    result = measure(cases.labels(tmp_path / "labels.onnx"), "openvino", distribution(OPENVINO))
    assert result.status == "measured"
    assert "PARTIAL" in {flag.name for flag in result.flags}
    placement = result.placement
    assert placement is not None
    assert placement.ops_elsewhere == {"LabelEncoder": 1}
    assert placement.executed == {"CPUExecutionProvider": 1, "OpenVINOExecutionProvider": 1}
    assert placement.partitions == 1
    assert (placement.nodes_on_provider, placement.nodes_total) == (3, 4)
    assert placement.witness == "agrees"
    # What happens inside a compiled partition can't be seen.
    assert placement.precision_executed is None


@needs_network
def test_p8_shape_nodes_on_the_cpu_do_not_count_against_an_accelerator(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    path = cases.shapes_around_a_convolution(tmp_path / "shapes.onnx")
    result = measure(path, "openvino", distribution(OPENVINO))
    assert result.status == "measured"
    assert "PARTIAL" not in {flag.name for flag in result.flags}
    assert result.placement is not None
    assert result.placement.ops_elsewhere == {}
    assert result.placement.executed == {"OpenVINOExecutionProvider": 1}


# -- P9, P10: stand-ins for the native side -------------------------------------------------------

_LOAD_ERROR = (
    "[E:onnxruntime:Default, provider_bridge_ort.cc:2195 TryGetProviderInfo_CUDA] "
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with "
    "error: {library}: cannot open shared object file: No such file or directory"
)


@pytest.mark.parametrize(
    ("library", "product"),
    [
        ("libcudnn.so.9", "cuDNN 9"),
        ("libcudnn_graph.so.9", "cuDNN 9"),
        ("libcublasLt.so.11", "CUDA 11"),
        ("libcudart.so.12", "CUDA 12"),
        ("libcufft.so.11", "CUDA 12"),
        ("libnvinfer.so.10", "TensorRT 10"),
    ],
)
def test_p9_a_library_implies_a_product_and_its_major(library: str, product: str) -> None:
    cuda = Provider(alias="cuda", name="CUDAExecutionProvider")
    refusal = Refusal(
        phase="session",
        error="FellBack",
        text="the session runs on CPUExecutionProvider, not on CUDAExecutionProvider",
        session_providers=("CPUExecutionProvider",),
    )
    log = _LOAD_ERROR.format(library=library)
    failure = diagnose(Evidence(refusal=refusal, log=log, provider=cuda))
    assert failure.kind == "unavailable"
    assert failure.message.startswith(f"CUDAExecutionProvider needs {library} ({product})")
    assert product in failure.hint


@pytest.mark.parametrize(
    ("library", "product"),
    [
        ("cublasLt64_12.dll", "CUDA 12"),
        ("cudnn64_9.dll", "cuDNN 9"),
        ("nvinfer_10.dll", "TensorRT"),
    ],
)
def test_p9_on_windows(library: str, product: str) -> None:
    text = (
        'LoadLibrary failed with error 126 "" when trying to load "C:\\ort\\onnxruntime_providers_'
        f'cuda.dll": Error loading "C:\\ort\\onnxruntime_providers_cuda.dll" which depends on '
        f'"{library}" which is missing. (Error 126: "The specified module could not be found.")'
    )
    refusal = Refusal(phase="session", error="FellBack", text="the session runs on the CPU")
    cuda = Provider(alias="cuda", name="CUDAExecutionProvider")
    failure = diagnose(Evidence(refusal=refusal, log=text, provider=cuda))
    assert f"needs {library} ({product}" in failure.message


#: A package ``onnxruntime`` that is the real one, except that its third run fails. With its own
#: fallback on it would go on on the next provider, as the real one does.
_FAILS_LATER = """
import importlib, pathlib, sys

sys.path.remove(str(pathlib.Path(__file__).parent.parent))
del sys.modules[__name__]
real = importlib.import_module("onnxruntime")

class FailsLater(real.InferenceSession):
    calls = 0

    def run(self, *arguments, **keywords):
        FailsLater.calls += 1
        if FailsLater.calls >= 3 and not self._enable_fallback:
            raise RuntimeError("CUDA failure 700: an illegal memory access was encountered")
        return super().run(*arguments, **keywords)

real.InferenceSession = FailsLater
"""


def test_p10_a_run_that_fails_later_is_a_failure_and_no_other_series(
    measure: Measured, tmp_path: Path
) -> None:
    stand_in = tmp_path / "path" / "onnxruntime"
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").write_text(_FAILS_LATER, encoding="utf-8")
    runtime = Runtime(
        label="failing", command=(sys.executable,), environment={"PYTHONPATH": str(stand_in.parent)}
    )
    failure = failure_of(measure(cases.mlp(tmp_path / "m.onnx"), "cpu", runtime))
    assert failure.kind == "error"
    assert "CUDA failure 700: an illegal memory access" in failure.message
    assert failure.phase == "warm-up"


# -- P11 ------------------------------------------------------------------------------------------


@needs_network
def test_p11_an_old_runtime_with_a_new_numpy_names_both(measure: Measured, tmp_path: Path) -> None:
    environment = raw_environment(
        "old-with-numpy-2", ["onnxruntime==1.17.1", "numpy==2.0.2"], newest_python=(3, 12)
    )
    failure = failure_of(measure(cases.mlp(tmp_path / "m.onnx"), "cpu", environment.runtime))
    assert failure.kind == "unavailable"
    assert failure.message.startswith("onnxruntime 1.17.1 ")
    assert "numpy 2.0.2 " in failure.message
    assert "numpy<2" in failure.hint


# -- P12, P13 -------------------------------------------------------------------------------------


@needs_network
def test_p12_a_provider_that_stands_first_and_claims_nothing(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    result = measure(cases.pooled(tmp_path / "pooled.onnx"), "ggml", distribution(GGML))
    failure = failure_of(result)
    assert failure.kind == "fallback"
    assert (" ggml;" in failure.message, "CPUExecutionProvider (2)" in failure.message) == (
        True,
        True,
    )
    assert "GlobalAveragePool" in failure.hint
    assert result.placement is not None
    assert result.placement.session_providers == ("ggml", "CPUExecutionProvider")


@needs_network
def test_p13_weights_in_half_precision_show_in_the_accuracy(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    path, runtime = cases.transformer(tmp_path / "encoder.onnx"), distribution(GGML)
    half = measure(path, "ggml", runtime)
    assert half.status == "measured"
    assert half.placement is not None
    assert half.placement.ops_elsewhere == {}
    assert half.placement.nodes_on_provider == half.placement.nodes_total
    assert "INACCURATE" in {flag.name for flag in half.flags}
    full = measure(path, "ggml", runtime, options={"weights": "f32"})
    assert "INACCURATE" not in {flag.name for flag in full.flags}


def test_a_failure_in_a_probe_is_a_skip_with_its_reason(
    launcher: ProcessLauncher, here: Runtime
) -> None:
    class Listing:
        """A runtime that lists a provider which is not there."""

        def inspect(self, runtime: Runtime) -> object:
            info = launcher.inspect(runtime)
            names = (*info.available_providers, "CUDAExecutionProvider")
            from dataclasses import replace

            return replace(info, available_providers=names)

        def probe(self, runtime: Runtime, providers: list[Provider]) -> object:
            return launcher.probe(runtime, providers)

    found = Candidates(Listing(), ProbeMemory(None))  # type: ignore[arg-type]  # two methods are enough
    providers, skips = found.providers(here, ("all",))
    assert [provider.alias for provider in providers] == ["cpu"]
    reasons = {skip.what: skip.reason for skip in skips}
    assert reasons["cuda"].startswith("CUDAExecutionProvider ")
    assert Skip(what="cuda", reason=reasons["cuda"], runtime="current") in skips


def test_a_runtime_that_can_not_be_asked_is_a_row(launcher: ProcessLauncher) -> None:
    absent = Runtime(label="absent", command=("/nowhere/python",))
    with pytest.raises(WorkerError, match="'/nowhere/python'"):
        launcher.inspect(absent)
    providers, skips = candidates(launcher).providers(absent, ("all", "openvino"))
    assert [provider.label for provider in providers] == ["cpu", "openvino"]
    assert skips[0].what == "all"
    assert "'/nowhere/python'" in skips[0].reason
