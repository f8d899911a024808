"""What providers say of themselves, their devices and their libraries, as native messages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose import Evidence, diagnose, graph_refused, left_device
from pytest_ortbench.launch.diagnose_providers import problem_of_plugin
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.protocol import Refusal

#: As ONNX Runtime 1.27 to 1.32 said it.
_WEBGPU = (
    "/onnxruntime_src/onnxruntime/core/providers/webgpu/webgpu_context.cc:65 onnxruntime::webgpu::"
    "WebGpuContext::Initialize(const onnxruntime::webgpu::WebGpuContextConfig&)::<lambda()>::"
    "<lambda(wgpu::RequestAdapterStatus, wgpu::Adapter, wgpu::StringView, wgpu::Adapter*)> status "
    "== wgpu::RequestAdapterStatus::Success was false. Failed to get a WebGPU adapter: No "
    "supported adapters"
)
_BACKEND = (
    "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/session/plugin_ep/"
    "ep_plugin_provider_interfaces.cc:393 virtual std::unique_ptr<onnxruntime::IExecutionProvider> "
    "onnxruntime::PluginExecutionProviderFactory::CreateProvider(const OrtSessionOptions&, const "
    "OrtLogger&) [ONNXRuntimeError] : 1 : FAIL : Could not determine default backend path for "
    "device"
)
_CAPABILITY = (
    "2026-11-27 22:39:30.335945783 [E:onnxruntime:, ep_plugin_provider_interfaces.cc:677 "
    "GetCapability] OrtEp::GetCapability() for QNNExecutionProvider failed with error: "
    "[ONNXRuntimeError] : 11 : EP_FAIL : QNN SetupBackend failed "
)
_CONVOLUTION = (
    "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Non-zero status code returned while running "
    "ggml_1_0 node. Name:'ggml_ggml_1_0_0' Status Message: model: Conv(): unsupported: Conv(): "
    "only 1-D convolutions (strides [1], pads [1, 1, 1, 1])"
)


@pytest.mark.parametrize(
    ("alias", "text", "message", "hint"),
    [
        (
            "webgpu",
            _WEBGPU,
            "Failed to get a WebGPU adapter: No supported adapters",
            "The provider needs a GPU with a driver for Vulkan",
        ),
        (
            "qnn",
            _BACKEND,
            "Could not determine default backend path for device",
            "Name the backend: qnn:htp",
        ),
        (
            "cuda",
            "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version",
            "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version",
            "Update the NVIDIA driver",
        ),
        (
            "cuda",
            "CUDA failure 100: no CUDA-capable device is detected ; GPU=-1",
            "CUDA failure 100: no CUDA-capable device is detected ; GPU=-1",
            "No NVIDIA GPU is visible",
        ),
        (
            "cuda",
            "CUDA failure 101: invalid device ordinal ; GPU=7",
            "CUDA failure 101: invalid device ordinal ; GPU=7",
            "No GPU has this number",
        ),
    ],
)
def test_trouble_with_a_device_is_unavailable(
    alias: str, text: str, message: str, hint: str
) -> None:
    refusal = Refusal(phase="session", error="RuntimeError", text=text)
    failure = diagnose(Evidence(refusal=refusal, provider=parse_provider(alias)))
    assert failure.kind == "unavailable"
    assert failure.message == message
    assert failure.hint.startswith(hint)


_NO_LOADER = (
    "Warning: Couldn't load Vulkan: libvulkan.so.1: cannot open shared object file: No such file "
    "or directory\n    at operator() (/build/Release/_deps/dawn-src/src/dawn/native/vulkan/"
    "BackendVk.cpp:363)\n"
)
_NO_DRIVER = (
    "Warning: vkCreateInstance: Found no drivers!\nWarning: vkCreateInstance failed with "
    "VK_ERROR_INCOMPATIBLE_DRIVER\n"
)
_NO_MANIFEST = "Warning: loader_get_json: Failed to open JSON file /nowhere.json\n" + _NO_DRIVER


def without_adapter(log: str) -> Failure:
    refusal = Refusal(phase="session", error="RuntimeError", text=_WEBGPU)
    return diagnose(Evidence(refusal=refusal, log=log, provider=parse_provider("webgpu")))


def test_webgpu_without_the_loader_of_drivers_names_its_package() -> None:
    failure = without_adapter(_NO_LOADER)
    assert failure.kind == "unavailable"
    assert "libvulkan.so.1" in failure.message
    assert "apt-get install libvulkan1" in failure.hint


def test_webgpu_names_the_manifest_that_is_not_there() -> None:
    failure = without_adapter(_NO_MANIFEST)
    assert failure.kind == "unavailable"
    assert "/nowhere.json" in failure.message
    assert "VK_ICD_FILENAMES" in failure.hint


def test_webgpu_without_a_driver_leads_to_the_device_in_software() -> None:
    failure = without_adapter(_NO_DRIVER)
    assert failure.message == "Failed to get a WebGPU adapter: No supported adapters"
    assert "ortbench doctor" in failure.hint


def test_a_device_without_half_precision_does_not_support_the_model() -> None:
    text = (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running MatMul node. "
        "Name:'' Status Message: shader_helper.cc:401 GenerateSourceCode Program MatMul requires "
        "f16 but the device does not support it."
    )
    refusal = Refusal(phase="first", error="Fail", text=text)
    failure = diagnose(Evidence(refusal=refusal, provider=parse_provider("webgpu")))
    assert (failure.kind, failure.phase) == ("unsupported", "first")
    assert "requires f16" in failure.message
    assert "fp32" in failure.hint


def test_a_plug_in_without_a_device_says_what_it_needs() -> None:
    text = "libonnxruntime_providers_webgpu.so has no device here for WebGpuExecutionProvider"
    refusal = Refusal(phase="session", error="PluginMissing", text=text)
    webgpu = diagnose(Evidence(refusal=refusal, provider=parse_provider("webgpu")))
    assert (webgpu.kind, webgpu.message) == ("unavailable", text)
    assert " GPU" in webgpu.hint
    openvino = diagnose(Evidence(refusal=refusal, provider=parse_provider("openvino")))
    assert "Intel" in openvino.hint


def test_a_plug_in_that_lacks_a_library_names_it() -> None:
    text = (
        "Failed to load library libep.so with error: libvulkan.so.1: cannot open shared object "
        "file: No such file or directory"
    )
    refusal = Refusal(phase="session", error="PluginMissing", text=text)
    failure = diagnose(Evidence(refusal=refusal, provider=parse_provider("webgpu")))
    assert failure.kind == "unavailable"
    assert failure.message.startswith("WebGpuExecutionProvider needs libvulkan.so.1")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "NvTensorRTRTXExecutionProvider",
            "[ONNXRuntimeError] : 1 : FAIL : Failed to load library /site/libonnxruntime_providers_"
            "nv_tensorrt_rtx.so with error: libcuda.so.1: cannot open shared object file: No such "
            "file or directory",
            "needs libcuda.so.1 (the NVIDIA driver)",
        ),
        ("WebGpuExecutionProvider", "x.so has no device here for it", "onnxruntime-webgpu"),
        ("onnxruntime_broken", "RuntimeError: no such driver", "RuntimeError: no such driver"),
    ],
)
def test_why_a_plug_in_offers_no_device(name: str, text: str, words: str) -> None:
    assert words in problem_of_plugin(name, text)


def test_a_provider_whose_reason_stands_in_the_log() -> None:
    refusal = Refusal(
        phase="session",
        error="RuntimeError",
        text="/root/ort/python/onnxruntime_pybind_state.cc:1189 f() create CANN ExecutionProvider "
        "fail",
    )
    cann = parse_provider("cann")
    bare = diagnose(Evidence(refusal=refusal, provider=cann))
    assert (bare.kind, bare.message) == ("unavailable", "create CANN ExecutionProvider fail")
    assert "CANN" in bare.hint
    log = "libascendcl.so: cannot open shared object file: No such file or directory"
    told = diagnose(Evidence(refusal=refusal, log=log, provider=cann))
    assert (told.kind, "libascendcl.so" in told.message) == ("unavailable", True)


QNN = parse_provider("qnn")


def test_why_a_plug_in_took_no_node_stands_in_the_log() -> None:
    log = _CAPABILITY + "Unable to load backend, error:  libQnnCpu.so: cannot open shared "
    log += "object file"
    failure = graph_refused(f"first line\n{log}: No such file\nmore", QNN)
    assert failure is not None
    assert failure.kind == "unavailable"
    assert failure.message.startswith("QNNExecutionProvider needs libQnnCpu.so")
    log = _CAPABILITY + "Failed to initialize backend (backend). Error: CANNOT_INITIALIZE"
    failure = graph_refused(log, QNN)
    assert failure is not None
    assert failure.message.startswith("QNNExecutionProvider ")
    assert failure.message.endswith("Error: CANNOT_INITIALIZE")


def test_a_log_that_tells_nothing_of_it() -> None:
    assert graph_refused("[W:onnxruntime:, x.cc:1 F] something else", QNN) is None
    assert graph_refused(_CAPABILITY + "no", Provider(alias="ggml", name="ggml")) is None


def test_a_node_that_was_claimed_and_then_refused_is_unsupported() -> None:
    refusal = Refusal(phase="first", error="InvalidGraph", text=_CONVOLUTION)
    ggml = Provider(alias="ggml", name="ggml")
    failure = diagnose(Evidence(refusal=refusal, provider=ggml))
    assert failure.kind == "unsupported"
    assert failure.message.startswith(
        "ggml says of the node 'ggml_ggml_1_0_0' (ggml_1_0): 'model: Conv()"
    )
    assert "only 1-D convolutions" in failure.message


@pytest.mark.live
def test_a_plug_in_that_ends_the_process_hides_no_other_provider(tmp_path: Path) -> None:
    package = tmp_path / "onnxruntime_ep_deadly"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os\n\ndef get_ep_name():\n    os.abort()\n\n"
        "def get_library_path():\n    return ''\n",
        encoding="utf-8",
    )
    runtime = Runtime(
        label="deadly", command=(sys.executable,), environment={"PYTHONPATH": str(tmp_path)}
    )
    launcher = ProcessLauncher()
    info = launcher.inspect(runtime)
    launcher.close()
    assert "CPUExecutionProvider" in info.available_providers
    assert list(info.plugin_problems) == ["plug-ins"]
    assert "SIGABRT" in info.plugin_problems["plug-ins"]


#: As OpenVINO's provider writes it, without a space between its two sentences.
_LEFT = (
    "\x1b[0;93m2025-01-01 10:00:00.1 [W:onnxruntime:Default, basic_backend.cc:1 BasicBackend] "
    "Model compilation failed at OV NPU.Falling back to OV CPU for execution\x1b[m\n"
)


@pytest.mark.parametrize(
    ("spec", "device"), [("openvino:NPU", "NPU"), ("openvino:AUTO:NPU,CPU", "AUTO:NPU,CPU")]
)
def test_openvino_that_left_the_npu_is_a_fallback(spec: str, device: str) -> None:
    failure = left_device(f"before\n{_LEFT}after", parse_provider(spec))
    assert failure is not None
    assert (failure.kind, failure.phase) == ("fallback", "session")
    assert f" {device} " in failure.message


def test_openvino_that_says_nothing_of_it_stays() -> None:
    log = _LEFT.replace("Falling back to OV CPU for execution", "")
    assert left_device(log, parse_provider("openvino:NPU")) is None
