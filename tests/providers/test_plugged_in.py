"""Plug-in providers of real packages: found, their devices chosen, proven to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin
from tests.providers import cases
from tests.providers.cases import Measured
from tests.providers.conftest import EXTRAS, GGML, OPENVINO, QNN

pytestmark = pytest.mark.needs("network")

Distribution = Callable[[str], Runtime]
ON_QNN = "QNNExecutionProvider"


@pytest.fixture
def inspect(launcher: ProcessLauncher, distribution: Distribution) -> Callable[[str], RuntimeInfo]:
    return lambda spec: launcher.inspect(distribution(spec))


def test_a_package_that_follows_the_convention_is_found(
    inspect: Callable[[str], RuntimeInfo],
) -> None:
    info = inspect(QNN)
    assert info.plugin_providers == (ON_QNN,)
    assert info.available_providers == ("AzureExecutionProvider", "CPUExecutionProvider")
    assert Path(info.plugin_libraries[ON_QNN]).name == "libonnxruntime_providers_qnn.so"
    # The backends whose libraries are there; QNN's default device has none on x86.
    assert info.provider_devices == {ON_QNN: ("htp", "gpu")}


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}, 23),
        ({"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}}'}, 7),
        # What it does by itself; its option of that name is ignored.
        ({}, None),
        ({"precision": "FP32"}, None),
    ],
)
def test_the_precision_inside_a_partition_is_told(
    plugged_in: Runtime,
    measure: Measured,
    tmp_path: Path,
    options: dict[str, str],
    bits: int | None,
) -> None:
    has_bfloat16 = "avx512_bf16" in fingerprint().stable["cpu_flags"]
    if bits == 7 and not has_bfloat16:
        pytest.skip("this CPU multiplies no bfloat16")
    result = measure(cases.mlp(tmp_path / "m.onnx"), "openvino", plugged_in, options=options)
    assert (result.failure, result.status) == (None, "measured")
    assert result.placement is not None
    assert result.placement.precision_executed is None
    assert result.placement.product_bits == (bits or (7 if has_bfloat16 else 23))
    lowered = [flag.name for flag in flags_of(result) if flag.name == "LOWERED"]
    assert bool(lowered) is (result.placement.product_bits == 7)


def test_a_package_with_its_own_spelling_is_found(inspect: Callable[[str], RuntimeInfo]) -> None:
    info = inspect(GGML)
    assert info.plugin_providers == ("ggml",)
    assert info.provider_devices["ggml"][0] == "cpu"


def test_a_plug_in_without_a_device_says_so_and_extensions_are_none(
    inspect: Callable[[str], RuntimeInfo],
) -> None:
    info = inspect(EXTRAS)
    assert list(info.plugin_libraries) == ["WebGpuExecutionProvider"]
    if info.plugin_providers:
        pytest.skip("this machine has a GPU for WebGPU")
    assert info.plugin_problems["WebGpuExecutionProvider"].startswith(
        "libonnxruntime_providers_webgpu.so has no device here for WebGpuExecutionProvider; ONNX "
        "Runtime finds CPU "
    )


def test_devices_of_a_provider_that_is_compiled_in(inspect: Callable[[str], RuntimeInfo]) -> None:
    assert "CPU" in inspect(OPENVINO).provider_devices["OpenVINOExecutionProvider"]


def test_all_means_every_backend_that_runs(
    launcher: ProcessLauncher, distribution: Distribution, tmp_path: Path
) -> None:
    runtime = distribution(QNN)
    memory = ProbeMemory(tmp_path / "probes")
    providers, skips = Candidates(launcher, memory).providers(runtime, ("all",))
    assert [provider.label for provider in providers] == ["cpu", "qnn:htp"]
    reasons = {skip.what: skip.reason for skip in skips}
    assert set(reasons) == {"azure", "qnn:gpu"}
    assert reasons["qnn:gpu"].startswith("QNNExecutionProvider refuses: QNN SetupBackend failed")


def test_a_quantised_model_runs_on_the_simulator_with_all_its_nodes(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    path, runtime = cases.quantised(tmp_path / "q.onnx"), distribution(QNN)
    whole = measure(path, "qnn:htp", runtime, options={"offload_graph_io_quantization": "0"})
    assert whole.status == "measured"
    assert whole.placement is not None
    assert whole.placement.executed == {ON_QNN: 1}
    assert (whole.placement.nodes_on_provider, whole.placement.nodes_total) == (22, 22)
    assert whole.measurements[0].runtime.plugin_providers == (ON_QNN,)
    # A session gives back to a plug-in whatever it was given: that is no option in force.
    assert whole.measurements[0].options_in_force == {}
    # By default QNN leaves the first and the last conversion to the CPU.
    by_default = measure(path, "qnn:htp", runtime)
    assert by_default.placement is not None
    assert by_default.placement.ops_elsewhere == {"DequantizeLinear": 1, "QuantizeLinear": 1}
    assert (by_default.placement.nodes_on_provider, by_default.placement.nodes_total) == (20, 22)


@pytest.mark.parametrize(
    ("spec", "options", "library"),
    [
        ("qnn:cpu", {}, "libQnnCpu.so"),
        ("qnn", {"backend_path": "/nowhere/libQnnHtp.so"}, "libQnnHtp.so"),
    ],
)
def test_a_wrong_backend_library_gives_no_number(
    distribution: Distribution,
    measure: Measured,
    tmp_path: Path,
    spec: str,
    options: dict[str, str],
    library: str,
) -> None:
    path = cases.quantised(tmp_path / "q.onnx")
    result = measure(path, spec, distribution(QNN), options=options)
    assert result.status == "unavailable"
    assert result.measurements == ()
    assert result.failure is not None
    assert result.failure.message == f"{ON_QNN} needs {library}, which is not installed here"


def test_qnn_without_a_backend_says_which_there_are(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    result = measure(cases.mlp(tmp_path / "m.onnx"), "qnn", distribution(QNN))
    assert result.status == "unavailable"
    assert result.failure is not None
    assert "default backend path" in result.failure.message
    assert "qnn:htp" in result.failure.hint


def test_a_device_that_a_plug_in_refuses(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    result = measure(cases.mlp(tmp_path / "m.onnx"), "ggml:gpu", distribution(GGML))
    if result.status == "measured":
        pytest.skip("this machine has a GPU for ggml")
    assert result.status == "unavailable"
    assert result.failure is not None
    assert "device=gpu requested but no gpu backend is available" in result.failure.message


def test_two_sessions_of_a_plug_in(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    path = cases.mlp(tmp_path / "m.onnx")
    result = measure(path, "ggml", distribution(GGML), sessions=2)
    assert (result.failure, result.case.callers) == (None, 2)
    assert result.placement is not None
    assert result.placement.executed == {"ggml": 1}


def test_a_library_that_the_project_has_configured(
    launcher: ProcessLauncher, distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    """The library of ggml under another path, in a runtime whose package does not have it."""
    library = launcher.inspect(distribution(GGML)).plugin_libraries["ggml"]
    runtime = distribution("onnxruntime==1.30.0")
    assert launcher.inspect(runtime).plugin_libraries == {}
    mine = ConfiguredPlugin(alias="mine", provider="ggml", library=library, options=("speed",))
    path = cases.mlp(tmp_path / "m.onnx")
    result = measure(path, "mine", runtime, plugins=(mine,), options={"speed": "11"})
    assert result.status == "measured"
    assert result.case.provider.library == library
    assert result.case.case_id == "m/native/mine/b1"
    assert result.placement is not None
    assert result.placement.executed == {"ggml": 1}


def test_custom_operators_need_their_library(
    launcher: ProcessLauncher, distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    runtime = distribution(EXTRAS)
    path = cases.lowercase(tmp_path / "lower.onnx")
    bare = measure(path, "cpu", runtime)
    assert bare.status == "unsupported"
    assert bare.failure is not None
    assert bare.failure.message == (
        "ONNX Runtime does not know the operator StringLower of domain ai.onnx.contrib"
    )
    assert "--ort-custom-ops=LIBRARY" in bare.failure.hint
    python = Path(launcher.inspect(runtime).executable)
    [library] = python.parent.parent.glob(
        "lib/python3.*/site-packages/onnxruntime_extensions/_extensions_pydll*.so"
    )
    with_library = measure(path, "cpu", runtime, custom_ops=(str(library),))
    assert with_library.status == "measured"
    assert with_library.accuracy is not None
    assert with_library.accuracy.outputs[0].agree == with_library.accuracy.outputs[0].rows


@pytest.mark.parametrize("spec", ["cpu", "openvino"])
def test_device_resident_inputs(
    distribution: Distribution, measure: Measured, tmp_path: Path, spec: str
) -> None:
    result = measure(cases.mlp(tmp_path / "m.onnx"), spec, distribution(OPENVINO), io="device")
    assert result.status == "measured"
    assert result.case.case_id == f"m/native/{spec}/b1/io:device"
    assert result.measurements[0].options_in_force["io_binding"] == "cpu:0"
    assert result.measurements[0].samples.count > 0
    assert result.accuracy is not None
    [output] = result.accuracy.outputs
    assert output.sqnr_db is None or output.sqnr_db > 100


def test_strings_can_not_be_device_resident(
    distribution: Distribution, measure: Measured, tmp_path: Path
) -> None:
    path = cases.lowercase(tmp_path / "lower.onnx")
    result = measure(path, "cpu", distribution(EXTRAS), io="device")
    assert result.status == "unsupported"
