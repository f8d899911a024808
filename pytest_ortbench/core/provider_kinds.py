"""Every execution provider that we have an alias for, and what supplies it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """What we know of one execution provider before anything is asked of a runtime.

    Attributes:
        alias: Short name.
        name: ONNX Runtime's name.
        distributions: Packages on PyPI that have it, the most likely first; empty where there are
            none.
        source: Where it comes from if not from such a package, or what else it needs.
        device: How ``alias:DEVICE`` is turned into options, a kind that ``planning.devices``
            knows; empty if the provider takes no device.
        in_all: Whether ``all`` means it too.
        in_turn: Whether ONNX Runtime lets one caller at a time run a session of it.
        elsewhere: Who has it where no package on PyPI does, as a sentence; empty where one does.
        spellings: Other words that people write for it, in lower case.
        is_provider: Whether it is a provider, and no hardware that one of another name works on.
        is_suggested: Whether a misspelt word may stand for it.
        known_sizes_only: Whether it takes only nodes whose sizes are known before they run.
        which: Which of its packages to take, as sentences; empty where that makes no difference.
    """

    alias: str
    name: str
    distributions: tuple[str, ...] = ()
    source: str = ""
    device: str = ""
    in_all: bool = True
    in_turn: bool = False
    elsewhere: str = ""
    spellings: tuple[str, ...] = ()
    is_provider: bool = True
    is_suggested: bool = True
    known_sizes_only: bool = False
    which: str = ""


#: The provider that every runtime has.
CPU = "CPUExecutionProvider"

#: OpenVINO, which computes on what its device says.
OPENVINO = "OpenVINOExecutionProvider"

#: Providers that compute on the CPUs of the machine, whatever their options say.
ON_CPUS = (CPU, "XnnpackExecutionProvider", "DnnlExecutionProvider")

#: The provider that computes through WebGPU: on Vulkan, Metal or Direct3D.
WEBGPU = "WebGpuExecutionProvider"

#: Providers that work on NVIDIA's GPUs, with CUDA's libraries.
NVIDIA = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")

_BUILD = "builds of ONNX Runtime from source have it"
_ANDROID = "on Android the package onnxruntime-android (Maven: com.microsoft.onnxruntime) has it"

_KINDS: tuple[ProviderKind, ...] = (
    ProviderKind(alias="cpu", name=CPU, distributions=("onnxruntime",)),
    ProviderKind(
        alias="cuda",
        name="CUDAExecutionProvider",
        distributions=("onnxruntime-gpu",),
        source="an NVIDIA GPU with its driver, CUDA and cuDNN",
        device="nvidia",
    ),
    ProviderKind(
        alias="tensorrt",
        name="TensorrtExecutionProvider",
        distributions=("onnxruntime-gpu",),
        source="an NVIDIA GPU with its driver, CUDA and TensorRT",
        device="nvidia",
    ),
    ProviderKind(
        alias="nvtensorrtrtx",
        name="NvTensorRTRTXExecutionProvider",
        distributions=("onnxruntime-ep-nv-tensorrt-rtx",),
        source="an NVIDIA RTX GPU with its driver",
        device="nvidia",
    ),
    ProviderKind(
        alias="openvino",
        name=OPENVINO,
        distributions=("onnxruntime-openvino", "onnxruntime-ep-openvino"),
        device="openvino",
        which="onnxruntime-openvino replaces onnxruntime, so it needs an environment of its own, "
        "which --ort-runtimes makes. onnxruntime-ep-openvino is a plug-in beside onnxruntime, for "
        "Intel's devices",
    ),
    ProviderKind(
        alias="dml",
        name="DmlExecutionProvider",
        distributions=("onnxruntime-directml",),
        source="Windows with a DirectX 12 device",
        device="dml",
        spellings=("directml",),
        in_turn=True,  # by its documentation
    ),
    ProviderKind(
        alias="coreml",
        name="CoreMLExecutionProvider",
        distributions=("onnxruntime",),
        source="macOS",
        device="coreml",
        known_sizes_only=True,  # by ONNX Runtime's documentation
    ),
    ProviderKind(
        alias="qnn",
        name="QNNExecutionProvider",
        distributions=("onnxruntime-qnn",),
        source="a Qualcomm processor, or its simulator on x86 Linux",
        device="qnn",
        known_sizes_only=True,  # *seen* with 2.7
    ),
    ProviderKind(
        alias="webgpu",
        name=WEBGPU,
        distributions=("onnxruntime-webgpu", "onnxruntime-ep-webgpu"),
        source="a GPU with a driver for Vulkan, Metal or Direct3D 12 (on Linux one in software, "
        "too: 'ortbench doctor' tells how)",
        device="hardware",
        in_turn=True,  # *seen* with 1.27
    ),
    ProviderKind(
        alias="migraphx",
        name="MIGraphXExecutionProvider",
        distributions=("onnxruntime-migraphx",),
        source="an AMD GPU with ROCm and MIGraphX",
        device="index",
    ),
    ProviderKind(
        alias="rocm",
        name="ROCMExecutionProvider",
        distributions=("onnxruntime-rocm",),
        source="an AMD GPU with ROCm",
        device="index",
    ),
    ProviderKind(
        alias="cann",
        name="CANNExecutionProvider",
        distributions=("onnxruntime-cann",),
        source="a Huawei Ascend device with CANN",
        device="index",
    ),
    ProviderKind(
        alias="vitisai",
        name="VitisAIExecutionProvider",
        elsewhere="AMD's Ryzen AI software and Vitis AI images have it",
        spellings=("vitis-ai", "ryzenai"),
    ),
    ProviderKind(
        alias="xnnpack",
        name="XnnpackExecutionProvider",
        elsewhere=f"{_ANDROID}, on iOS the pod onnxruntime-c, and elsewhere {_BUILD}",
    ),
    ProviderKind(
        alias="acl",
        name="ACLExecutionProvider",
        elsewhere=f"on Linux for Arm, with Arm's Compute Library, {_BUILD}",
    ),
    ProviderKind(
        alias="armnn",
        name="ArmNNExecutionProvider",
        elsewhere=f"on Linux for Arm, with Arm NN, older {_BUILD}",
        spellings=("arm-nn",),
    ),
    ProviderKind(
        alias="dnnl",
        name="DnnlExecutionProvider",
        elsewhere=f"with oneDNN, {_BUILD}",
        spellings=("onednn", "mkldnn"),
    ),
    ProviderKind(
        alias="nnapi",
        name="NnapiExecutionProvider",
        elsewhere=_ANDROID,
        is_suggested=False,
    ),
    ProviderKind(
        alias="rknpu",
        name="RknpuExecutionProvider",
        elsewhere=f"on Linux of Rockchip's boards, with the RKNPU DDK, older {_BUILD}",
        is_suggested=False,
    ),
    ProviderKind(
        alias="vsinpu",
        name="VSINPUExecutionProvider",
        elsewhere=f"on Linux of boards with VeriSilicon's NPU, with TIM-VX, {_BUILD}",
        is_suggested=False,
    ),
    ProviderKind(
        alias="snpe",
        name="SNPEExecutionProvider",
        elsewhere=f"on Windows and Android of Qualcomm's processors {_BUILD}; qnn is newer",
        is_suggested=False,
    ),
    ProviderKind(
        alias="webnn",
        name="WebNNExecutionProvider",
        elsewhere="in browsers the package onnxruntime-web of npm has it",
        is_suggested=False,
    ),
    # Hardware that ONNX Runtime reaches through a provider of another name, or not at all.
    ProviderKind(
        alias="ane",
        name="Apple Neural Engine",
        is_provider=False,
        is_suggested=False,
        elsewhere="on macOS onnxruntime reaches it through Core ML: --ort-providers=coreml:npu",
    ),
    ProviderKind(
        alias="tpu",
        name="TPU",
        is_provider=False,
        is_suggested=False,
        elsewhere="on machines with a TPU the engine jax runs on it: --ort-providers=jax:tpu",
    ),
    ProviderKind(
        alias="fpga",
        name="FPGA",
        is_provider=False,
        is_suggested=False,
        elsewhere="for AMD's FPGAs images of Vitis AI have the provider vitisai: "
        "--ort-providers=vitisai",
    ),
    # *Seen*: listed first by the plain CPU wheel on Linux, and takes no node of any graph.
    ProviderKind(
        alias="azure", name="AzureExecutionProvider", distributions=("onnxruntime",), in_all=False
    ),
    ProviderKind(alias="ggml", name="ggml", distributions=("onnxruntime-ggml",), device="ggml"),
    ProviderKind(alias="nxrt", name="cpu_ep", distributions=("nxrt-ep-cpu",)),
    ProviderKind(
        alias="mlx",
        name="MLXExecutionProvider",
        distributions=("onnxruntime-ep-mlx",),
        source="macOS on Apple silicon",
        device="hardware",
    ),
)

#: Everything known, by alias.
KINDS: dict[str, ProviderKind] = {kind.alias: kind for kind in _KINDS}
#: The same by full name.
BY_NAME: dict[str, ProviderKind] = {kind.name: kind for kind in _KINDS}
#: The same by what people write in small letters or capitals: other spellings, and aliases of what
#: no package has, since such words are names of hardware or of its makers.
_BY_SPELLING: dict[str, ProviderKind] = {
    word: kind
    for kind in _KINDS
    for word in (*kind.spellings, *([] if kind.distributions else [kind.alias]))
}

#: Hardware that several providers work on, and how each is written.
SHARED_HARDWARE: dict[str, str] = {
    "gpu": "cuda or tensorrt (NVIDIA), migraphx (AMD), openvino:GPU (Intel), coreml:gpu (Apple), "
    "dml (Windows), webgpu (any)",
    "npu": "openvino:NPU (Intel), vitisai (AMD), qnn:htp (Qualcomm), coreml:npu (Apple), dml:npu "
    "(Windows)",
}


def known_kind(word: str) -> ProviderKind | None:
    """Return the provider that a word means: an alias, a full name or another spelling."""
    return KINDS.get(word) or BY_NAME.get(word) or _BY_SPELLING.get(word.lower())


def supplied_by(alias: str) -> str:
    """Say in words how to have a provider: ``--ort-runtimes=onnxruntime-openvino``.

    Args:
        alias: A key of :data:`KINDS`; for any other one the answer is empty.
    """
    kind = KINDS.get(alias)
    if kind is None:
        return ""
    if not kind.distributions:
        what = "no package on PyPI contains" if kind.is_provider else "no provider is called"
        return f"{what} {kind.name}; {kind.elsewhere}"
    first, *others = kind.distributions
    more = f" (or {', '.join(others)})" if others else ""
    needs = f". {kind.which}" if kind.which else ""
    needs += f". The provider needs {kind.source}" if kind.source else ""
    return (
        f"{kind.name} is in the package {first}{more}. Add --ort-runtimes={first} to install the "
        f"package in an environment of its own and measure there{needs}"
    )
