"""Devices that are gone: recognised in what drivers and runtimes say."""

from __future__ import annotations

import pytest

from pytest_ortbench.launch.diagnose import Evidence, diagnose
from pytest_ortbench.launch.lost_device import lost_device
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.protocol import Refusal

#: *Seen* with onnxruntime-webgpu 1.27, where a driver refused to go on.
_DOWNLOAD = (
    "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/providers/webgpu/"
    "buffer_manager.cc:553 onnxruntime::webgpu::BufferManager::Download(WGPUBuffer, void*, size_t) "
    "const::<lambda(wgpu::MapAsyncStatus, wgpu::StringView)> status == wgpu::MapAsyncStatus::"
    "Success was false. Failed to download data from buffer: [Device] is lost."
)


@pytest.mark.parametrize(
    ("alias", "text", "words"),
    [
        ("webgpu", _DOWNLOAD, "[Device] is lost"),
        ("webgpu", "WebGPU device lost (1): VK_ERROR_DEVICE_LOST", "WebGPU device lost"),
        ("dml", "Exception(1) 887A0005 The GPU device instance has been suspended.", "887A0005"),
        (
            "cuda",
            "CUDA failure 214: uncorrectable ECC error encountered ; GPU=0",
            "uncorrectable ECC error encountered",
        ),
    ],
)
def test_a_device_that_is_gone_is_unavailable(alias: str, text: str, words: str) -> None:
    assert getattr(lost_device(text), "words", "") == words
    refusal = Refusal(phase="measure", error="Fail", text=text)
    failure = diagnose(Evidence(refusal=refusal, provider=parse_provider(alias)))
    assert (failure.kind, failure.phase) == ("unavailable", "measure")
    assert words in failure.message
    assert failure.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CUDA failure 719: unspecified launch failure ; GPU=0",
        "the session lost its inputs",
        "Failed to download data from buffer: [Device] is busy",
    ],
)
def test_other_trouble_is_not_a_lost_device(text: str) -> None:
    assert lost_device(text) is None


def test_a_device_that_another_program_holds_is_not_lost() -> None:
    words = "device(s) is/are busy or unavailable"
    text = f"CUDA failure 46: all CUDA-capable {words} ; GPU=0"
    refusal = Refusal(phase="session", error="Fail", text=text)
    failure = diagnose(Evidence(refusal=refusal, provider=parse_provider("cuda")))
    assert failure.kind == "unavailable"
    assert words in failure.message
    assert "lost" not in failure.message
    assert "'nvidia-smi'" in failure.hint
