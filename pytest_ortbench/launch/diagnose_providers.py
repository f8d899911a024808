"""What providers, plug-ins and the libraries below them say when they can't run: as failures."""

from __future__ import annotations

import re

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.device_variables import MANIFEST_VARIABLES
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import BY_NAME, CPU, supplied_by
from pytest_ortbench.launch.evidence import Evidence, Rule, failure_of, runtime_of_refusal, where
from pytest_ortbench.launch.lost_device import lost_device
from pytest_ortbench.launch.missing_library import implied_by, missing_library
from pytest_ortbench.launch.native_text import error_lines, readable, said_by
from pytest_ortbench.schema.protocol import Refusal


def at_fault(provider: Provider | None, refusal: Refusal) -> Provider | None:
    """Return the link of a chain that a refusal is about, the first where nothing tells.

    Args:
        provider: What was asked for; none has no link.
        refusal: What the worker said.
    """
    if provider is None or not provider.then:
        return provider
    links = provider.links
    told = [link for link in links if link.name == refusal.provider]
    told += [link for link in links if not refusal.provider and link.name in refusal.text]
    return told[0] if told else links[0]


def device_lost(evidence: Evidence) -> Failure | None:
    """A device that is gone, in whichever phase that shows."""
    name = evidence.provider.name if evidence.provider else "the provider"
    lost = lost_device(evidence.refusal.text, f"the device of {name}")
    if lost is None:
        return None
    return failure_of(evidence, "unavailable", f"{lost.what}: '{lost.words}'", lost.hint)


def provider_missing(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "ProviderMissing" or evidence.provider is None:
        return None
    return failure_of(
        evidence,
        "unavailable",
        readable(evidence.refusal.text),
        supplied_by(evidence.provider.alias),
    )


def plugin_missing(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "PluginMissing" or evidence.provider is None:
        return None
    library = missing_library(evidence.refusal.text)
    if library:
        return _library_failure(evidence, library)
    return failure_of(
        evidence,
        "unavailable",
        readable(evidence.refusal.text),
        _OF_PLUGINS.get(evidence.provider.alias) or _supplier(evidence),
    )


def problem_of_plugin(name: str, text: str) -> str:
    """Say why a plug-in that was found offers no device, and what it needs.

    Args:
        name: Full name of its provider, or of its package.
        text: What was raised.
    """
    alias = BY_NAME[name].alias if name in BY_NAME else name
    refusal = Refusal(phase="session", error="PluginMissing", text=text)
    failure = plugin_missing(Evidence(refusal=refusal, provider=Provider(alias=alias, name=name)))
    if failure is None:
        return text
    return failure.told


#: What plug-ins need that the compiled provider does not. *Seen* with onnxruntime-ep-openvino 1.8.1
#: on an AMD CPU, and with onnxruntime-ep-webgpu 0.4.0 on a machine without a GPU.
_OF_PLUGINS = {
    "openvino": "The plug-in of OpenVINO runs on Intel's devices only. For other x86 CPUs, use "
    "--ort-runtimes=onnxruntime-openvino",
    "webgpu": "The plug-in of WebGPU runs only on a GPU that ONNX Runtime finds. For a device in "
    "software, use --ort-runtimes=onnxruntime-webgpu; 'ortbench doctor' tells how",
}


def fell_back(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "FellBack":
        return None
    library = missing_library(evidence.log)
    if library:
        return _library_failure(evidence, library)
    reasons = [line for line in error_lines(evidence.log) if "Please refer" not in line]
    reason = f": {reasons[0]}" if reasons else ", and no reason was given"
    return failure_of(
        evidence, "unavailable", readable(evidence.refusal.text) + reason, _supplier(evidence)
    )


#: What WebGPU says where no driver gives it a device, behind a signature longer than the message.
_NO_ADAPTER = re.compile(r"(?P<message>Failed to get a WebGPU (?:adapter|device)[^\n]*)")
#: What the loader of Vulkan's drivers says of a manifest that a variable names.
_NO_MANIFEST = re.compile(r"Failed to open JSON file (?P<path>[^\n]+)")


def no_adapter(evidence: Evidence) -> Failure | None:
    """WebGPU without a device; the reason is in the native log, where Vulkan's loader writes."""
    match = _NO_ADAPTER.search(evidence.refusal.text)
    if match is None:
        return None
    library = missing_library(evidence.log)
    if library:
        return _library_failure(evidence, library)
    message, manifest = readable(match.group("message")), _NO_MANIFEST.search(evidence.log)
    if manifest is not None:
        path = manifest.group("path").strip()
        message += f"; the driver's manifest {path} does not exist"
        hint = (
            f"Correct or unset the variable {' or '.join(MANIFEST_VARIABLES)}. 'ortbench doctor' "
            "tells how"
        )
        return failure_of(evidence, "unavailable", message, hint)
    return failure_of(evidence, "unavailable", message, _supplier(evidence))


def provider_library(evidence: Evidence) -> Failure | None:
    """A provider that raises because a library of the driver's or vendor's is missing."""
    if evidence.refusal.phase != "session" or "CustomOps" in evidence.refusal.error:
        return None
    text = evidence.refusal.text
    library = missing_library(text)
    if not library and _SAYS_MORE_IN_THE_LOG.search(text):
        library = missing_library(evidence.log)
    if library:
        return _library_failure(evidence, library)
    for pattern, hint in _DEVICE_TROUBLE:
        match = re.search(pattern, text)
        if match:
            message = readable(match.group("message") if match.groupdict() else text)
            return failure_of(evidence, "unavailable", message, hint or _supplier(evidence))
    return None


#: What providers raise where the reason stands in the native log.
_SAYS_MORE_IN_THE_LOG = re.compile(
    r"Please install|make sure they're in the PATH|create CANN ExecutionProvider fail"
)

#: What providers say of the device or its driver, and the next step; empty: what it needs at all.
_DEVICE_TROUBLE = (
    (
        r"CUDA driver version is insufficient|CUDA failure 35\b",
        "Update the NVIDIA driver, or use an onnxruntime-gpu that is built for an older CUDA",
    ),
    (
        r"no CUDA-capable device|CUDA failure 100\b",
        "No NVIDIA GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES",
    ),
    (
        r"invalid device ordinal|CUDA failure 101\b",
        "No GPU has this number: see nvidia-smi and CUDA_VISIBLE_DEVICES",
    ),
    (r"CUDA failure 999\b|Please install TensorRT", ""),
    (r"(?P<message>create CANN ExecutionProvider fail)", ""),
    (
        r"Could not determine default backend path",
        "Name the backend: qnn:htp (on x86 its simulator), qnn:gpu or qnn:cpu",
    ),
    (r"Error creating execution provider|PluginExecutionProviderFactory::CreateProvider", ""),
)


def graph_refused(log: str, provider: Provider) -> Failure | None:
    """Say why a plug-in took no node, where the native log tells; ``None`` where it doesn't.

    *Seen*: QNN with a backend library that is missing makes a session, lists itself first in it,
    and leaves every node to the CPU.

    Args:
        log: The native log.
        provider: The asked provider; of a chain, one of its links takes none.
    """
    failures = (_refused_by(log, link) for link in provider.links)
    return next(filter(None, failures), None)


def _refused_by(log: str, provider: Provider) -> Failure | None:
    name = re.escape(provider.name)
    reasons = re.findall(rf"OrtEp::GetCapability\(\) for {name} failed with error: ([^\n]*)", log)
    if not reasons:
        return None
    text = readable(reasons[-1])
    evidence = Evidence(
        refusal=Refusal(phase="session", error="GetCapability", text=text), provider=provider
    )
    library = missing_library(reasons[-1])
    if library:
        return _library_failure(evidence, library)
    return failure_of(
        evidence, "unavailable", f"{provider.name} refuses: {text}", _supplier(evidence)
    )


def left_device(log: str, provider: Provider) -> Failure | None:
    """Say that OpenVINO compiled for its CPU what it could not compile for the asked device.

    It does so unless ONNX Runtime's own fallback is switched off, goes on with a warning, and its
    nodes stand in the profile as its own all the same.

    Args:
        log: The native log.
        provider: The asked provider.
    """
    if "Falling back to OV CPU" not in log:
        return None
    told = [link.options["device_type"] for link in provider.links if "device_type" in link.options]
    device = next(iter(told), provider.device) or "the requested device"
    return case_failure(
        f"OpenVINO could not compile the model for {device} and runs the model on the CPU instead",
        "To see OpenVINO's reason, add --ort-session-option=session.disable_cpu_ep_fallback=1. To "
        "measure the CPU, write --ort-providers=openvino:CPU",
        kind="fallback",
        phase="session",
    )


#: Where a system looks for libraries, by how their names end.
_SEARCHED = {".dll": "PATH", ".dylib": "DYLD_LIBRARY_PATH"}
_ON_LINUX = "LD_LIBRARY_PATH"


def _library_failure(evidence: Evidence, library: str) -> Failure:
    product = implied_by(library)
    needs = f" ({product})" if product else ""
    name = evidence.provider.name if evidence.provider else "the provider"
    return failure_of(
        evidence,
        "unavailable",
        f"{name} needs {library}{needs}, which is not installed {where(evidence)}",
        how_to_install(library, evidence, by_pip=True),
    )


def how_to_install(library: str, evidence: Evidence, *, by_pip: bool = False) -> str:
    """Return the next step where a library can't be opened.

    Args:
        library: Its file name.
        evidence: What is known of the refusal.
        by_pip: Whether ONNX Runtime looks for it, which finds what pip installs.
    """
    product = implied_by(library)
    if library.startswith("libvulkan.so"):
        return f"Install {product}, on Debian and Ubuntu with: apt-get install libvulkan1"
    path = next((name for end, name in _SEARCHED.items() if library.endswith(end)), _ON_LINUX)
    with_pip = (
        ", e.g. with: pip install 'onnxruntime-gpu[cuda,cudnn]'"
        if by_pip
        and product.startswith(("CUDA", "cuDNN"))
        and not runtime_of_refusal(evidence).requirements
        else ""
    )
    there = "" if runtime_of_refusal(evidence).shares_files else " there"
    return (
        f"Install {product or library}{there}{with_pip}. If it is installed, add the folder of "
        f"{library} to {path}"
    )


def provider_kernel(evidence: Evidence) -> Failure | None:
    """A provider that claimed a node and then says that it can't run it."""
    provider, refusal = evidence.provider, evidence.refusal
    if provider is None or provider.name == CPU or refusal.phase not in ("session", "first"):
        return None
    if _NO_HALF.search(refusal.text):
        return failure_of(
            evidence,
            "unsupported",
            said_by(provider.name, refusal.text),
            "This device can't compute in float16. Measure the model in fp32 "
            "(--ort-precisions=native with a float32 file), or use another device",
        )
    if not re.search(r"\b[Uu]nsupported\b|\b[Nn]ot supported\b|[Nn]ot implemented", refusal.text):
        return None
    return failure_of(
        evidence,
        "unsupported",
        said_by(provider.name, refusal.text),
        "Measure the model with another provider, e.g. --ort-providers=cpu",
    )


#: *Seen*: WebGPU takes the nodes of a float16 model, and its first run fails.
_NO_HALF = re.compile(r"requires f16 but the device does not support it")


def _supplier(evidence: Evidence) -> str:
    if evidence.provider is None:
        return ""
    kind = BY_NAME.get(evidence.provider.name)
    if kind is None or not kind.source:
        return supplied_by(evidence.provider.alias) if kind is not None and kind.elsewhere else ""
    return f"The provider needs {kind.source}"


#: In the order in which they are asked.
RULES: tuple[Rule, ...] = (
    device_lost,
    provider_missing,
    plugin_missing,
    fell_back,
    no_adapter,
    provider_library,
)
