"""From what a worker or its log says to a failure that a person can act on.

Pure functions over text. The worker hands over raw facts, and the native log is the host's, so
both meet here; nothing else decides what kind of failure something is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import BY_NAME, supplied_by
from pytest_ortbench.launch.missing_library import implied_by, missing_library
from pytest_ortbench.launch.native_text import error_code, error_lines, readable
from pytest_ortbench.schema.protocol import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known about one refusal.

    Attributes:
        refusal: What the worker said.
        log: The native log.
        provider: The asked provider, if there was one.
        custom_ops: Custom operator libraries of the case.
    """

    refusal: Refusal
    log: str = ""
    provider: Provider | None = None
    custom_ops: tuple[str, ...] = ()


def diagnose(evidence: Evidence) -> Failure:
    """Say what went wrong; the first rule that recognises it decides."""
    refusal = evidence.refusal
    if refusal.failure is not None:
        return replace(refusal.failure, phase=refusal.phase)
    for rule in _RULES:
        failure = rule(evidence)
        if failure is not None:
            return failure
    text = readable(refusal.text) or "no message"
    native = error_code(refusal.text)
    return _failure(evidence, "error", text if native else f"{refusal.error}: {text}")


def out_of_memory(text: str) -> str:
    """Return the words in ``text`` that say memory ran out, empty if none do."""
    match = _MEMORY.search(text)
    return match.group(0) if match else ""


_MEMORY = re.compile(
    r"std::bad_alloc|\bbad allocation\b|\bMemoryError\b|Failed to allocate memory[^\n]*"
    r"|[Uu]nable to allocate [\d.]+ \w+ for an array[^\n]*"
    r"|CUDA out of memory|CUDA failure 2: out of memory|cudaErrorMemoryAllocation"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY"
    r"|E_OUTOFMEMORY|[Oo]ut ?[Oo]f ?[Mm]emory"
    r"|Available memory of \d+ is smaller than requested bytes of \d+"
)

Rule = Callable[[Evidence], "Failure | None"]

_CPU = "CPUExecutionProvider"


def _memory(evidence: Evidence) -> Failure | None:
    refusal = evidence.refusal
    if refusal.error != "MemoryError" and not out_of_memory(refusal.text):
        return None
    return _failure(
        evidence,
        "out_of_memory",
        readable(refusal.text) or "memory ran out",
        "Use a smaller batch or shape, or a machine with more memory",
    )


def _import(evidence: Evidence) -> Failure | None:
    refusal = evidence.refusal
    if refusal.phase != "import":
        return None
    text = readable(refusal.text)
    if refusal.error == "ModuleNotFoundError" and "onnxruntime" in refusal.text:
        return _failure(
            evidence,
            "unavailable",
            "ONNX Runtime is not installed in this interpreter",
            "pip install pytest-ortbench[cpu], or the extra of your provider",
        )
    if refusal.error == "BrokenRuntime":
        return _failure(
            evidence,
            "unavailable",
            f"{text}: another distribution of ONNX Runtime was installed over it or removed",
            "Uninstall every distribution of onnxruntime and install one again",
        )
    if refusal.error == "NumpyMismatch":
        return _failure(
            evidence,
            "unavailable",
            text,
            "Install numpy<2 beside it, or ONNX Runtime 1.19 or newer, the first built for numpy 2",
        )
    if re.search(r"numpy|_ARRAY_API|multiarray", refusal.text + evidence.log):
        numpy = f"numpy {refusal.numpy}" if refusal.numpy else "the installed numpy"
        return _failure(
            evidence,
            "unavailable",
            f"ONNX Runtime can't be imported with {numpy}: {text}",
            "Install a numpy that this ONNX Runtime was built for (numpy<2 before 1.19)",
        )
    return _failure(evidence, "unavailable", f"ONNX Runtime can't be imported: {text}", "")


def _provider_missing(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "ProviderMissing" or evidence.provider is None:
        return None
    return _failure(
        evidence,
        "unavailable",
        readable(evidence.refusal.text),
        supplied_by(evidence.provider.alias),
    )


def _plugin_missing(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "PluginMissing" or evidence.provider is None:
        return None
    library = missing_library(evidence.refusal.text)
    if library:
        return _library_failure(evidence, library)
    return _failure(
        evidence,
        "unavailable",
        readable(evidence.refusal.text),
        _INTEL_ONLY if evidence.provider.alias == "openvino" else _supplier(evidence),
    )


#: *Seen* with onnxruntime-ep-openvino 1.8.1 on an AMD CPU, where onnxruntime-openvino runs.
_INTEL_ONLY = (
    "OpenVINO's plug-in offers Intel's devices only; the provider that is compiled into "
    "onnxruntime-openvino runs on other x86 CPUs too"
)


def _fell_back(evidence: Evidence) -> Failure | None:
    if evidence.refusal.error != "FellBack":
        return None
    library = missing_library(evidence.log)
    if library:
        return _library_failure(evidence, library)
    reasons = [line for line in error_lines(evidence.log) if "Please refer" not in line]
    reason = f": {reasons[0]}" if reasons else ", and nothing says why"
    return _failure(
        evidence, "unavailable", readable(evidence.refusal.text) + reason, _supplier(evidence)
    )


def _provider_library(evidence: Evidence) -> Failure | None:
    """A provider that raises because a library of the driver's or vendor's is missing."""
    if evidence.refusal.phase != "session" or "CustomOps" in evidence.refusal.error:
        return None
    text = evidence.refusal.text
    library = missing_library(text)
    if not library and re.search(r"Please install|make sure they're in the PATH", text):
        library = missing_library(evidence.log)
    if library:
        return _library_failure(evidence, library)
    for pattern, hint in _DEVICE_TROUBLE:
        match = re.search(pattern, text)
        if match:
            message = readable(match.group("message") if match.groupdict() else text)
            return _failure(evidence, "unavailable", message, hint or _supplier(evidence))
    return None


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
    # WebGPU says it behind a signature that is longer than the message.
    (r"(?P<message>Failed to get a WebGPU (adapter|device)[^\n]*)", ""),
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
        provider: The asked provider.
    """
    name = re.escape(provider.name)
    found = re.findall(rf"OrtEp::GetCapability\(\) for {name} failed with error: ([^\n]*)", log)
    if not found:
        return None
    text = readable(found[-1])
    evidence = Evidence(
        refusal=Refusal(phase="session", error="GetCapability", text=text), provider=provider
    )
    library = missing_library(found[-1])
    if library:
        return _library_failure(evidence, library)
    return _failure(
        evidence, "unavailable", f"{provider.name} refuses: {text}", _supplier(evidence)
    )


def _library_failure(evidence: Evidence, library: str) -> Failure:
    product = implied_by(library)
    needs = f" ({product})" if product else ""
    where = "install it and make sure that the loader finds it (LD_LIBRARY_PATH)"
    hint = f"{product or library} is missing: {where}"
    if product.startswith(("CUDA", "cuDNN")):
        hint += "; pip install onnxruntime-gpu[cuda,cudnn] brings it where the driver is there"
    name = evidence.provider.name if evidence.provider else "the provider"
    return _failure(
        evidence, "unavailable", f"{name} needs {library}{needs}, which is not here", hint
    )


def _options(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    if evidence.refusal.error == "OptionIgnored" or re.search(
        r"Unknown provider option|Invalid \w+ EP option|Unknown option|unrecognized option"
        r"|Invalid.*provider option",
        text,
    ):
        return _failure(
            evidence, "error", readable(text), "Correct --ort-provider-option, or leave it out"
        )
    if evidence.refusal.error == "EntryUnknown":
        hint = "Correct --ort-session-option, or use an ONNX Runtime that has it"
        return _failure(evidence, "error", readable(text), hint)
    if evidence.refusal.error == "LevelMissing":
        return _failure(evidence, "unsupported", readable(text), "Choose another --ort-graph-opt")
    if evidence.refusal.error == "NotBindable":
        return _failure(evidence, "unsupported", readable(text), "Use --ort-io=end-to-end")
    return None


def _custom_ops(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    if evidence.refusal.error == "CustomOpsRefused":
        libraries = ", ".join(evidence.custom_ops)
        if "undefined symbol" in text or "RegisterCustomOps" in text:
            return _failure(
                evidence,
                "error",
                f"{libraries} does not export RegisterCustomOps: {readable(text)}",
                "Pass a custom operator library to --ort-custom-ops, not another shared library",
            )
        if "No such file" in text or "cannot find" in text.lower():
            return _failure(
                evidence,
                "error",
                f"a file is missing: {readable(text)}",
                "Pass --ort-custom-ops an absolute path to a library whose own libraries are there",
            )
        return _failure(evidence, "error", readable(text), "Check the file of --ort-custom-ops")
    match = re.search(r"Fatal error: ([\w.]+):(\w+)\(-?\d+\) is not a registered function/op", text)
    if match is None:
        return None
    domain, operator = match.groups()
    hint = f"Load the library that has {domain} with --ort-custom-ops=LIBRARY"
    if domain == "ai.onnx.contrib":
        hint += " (pip install onnxruntime-extensions has it)"
    return _failure(
        evidence,
        "unsupported",
        f"operator {operator} of domain {domain} is not registered in this runtime",
        hint,
    )


def _versions(evidence: Evidence) -> Failure | None:
    text, version = evidence.refusal.text, evidence.refusal.version
    runtime = f"ONNX Runtime {version}" if version else "this runtime"
    match = re.search(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)", text)
    if match:
        wanted, supported = match.groups()
        return _failure(
            evidence,
            "unsupported",
            f"the model has IR version {wanted}, {runtime} supports up to {supported}",
            "Use a newer ONNX Runtime, or export the model again for an older one",
        )
    match = re.search(
        r"Opset (\d+) is under development.*?support for domain (\S+) is till opset (\d+)",
        text,
        re.DOTALL,
    )
    if match:
        wanted, domain, supported = match.groups()
        return _failure(
            evidence,
            "unsupported",
            f"the model has operator set {wanted} of {domain}, "
            f"{runtime} supports up to {supported}",
            "Use a newer ONNX Runtime, or export the model again for an older operator set",
        )
    return None


def _operators(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    match = re.search(
        r"Could not find an implementation for (\w+)\((\d+)\)( node with name '.*')?", text
    )
    if match:
        operator, opset = match.group(1), match.group(2)
        return _failure(
            evidence,
            "unsupported",
            f"no kernel for {operator} of operator set {opset} with these types",
            f"ONNX Runtime says: {readable(text)}",
        )
    match = re.search(r"No Op registered for (\w+) with domain_version of (\d+)", text)
    if match:
        operator, opset = match.groups()
        return _failure(
            evidence,
            "unsupported",
            f"operator {operator} is not known at operator set {opset}",
            "If it is a custom operator, load its library with --ort-custom-ops=LIBRARY",
        )
    if error_code(text) == "NOT_IMPLEMENTED":
        return _failure(evidence, "unsupported", readable(text), "")
    return None


def _provider_kernel(evidence: Evidence) -> Failure | None:
    """A provider that claimed a node and then says that it can't run it."""
    provider, refusal = evidence.provider, evidence.refusal
    if provider is None or provider.name == _CPU or refusal.phase not in ("session", "first"):
        return None
    if not re.search(r"\b[Uu]nsupported\b|\b[Nn]ot supported\b|[Nn]ot implemented", refusal.text):
        return None
    return _failure(evidence, "unsupported", f"{provider.name} says: {readable(refusal.text)}")


def _files(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    code = error_code(text)
    if code == "NO_SUCHFILE" or "No graph was found" in text or code == "INVALID_PROTOBUF":
        return _failure(evidence, "error", readable(text), "Check that the file is an ONNX model")
    if "External data path" in text or "external data" in text.lower():
        return _failure(
            evidence,
            "error",
            readable(text),
            "External data must lie in the model's folder or below it",
        )
    return None


def _shape(evidence: Evidence) -> Failure | None:
    """A shape or type that the model refuses at its first inference."""
    refusal = evidence.refusal
    if refusal.phase not in ("first", "reference"):
        return None
    code = error_code(refusal.text)
    about_inputs = code == "INVALID_ARGUMENT" or "missing from input feed" in refusal.text
    if not about_inputs and not (code and _ABOUT_SHAPES.search(refusal.text)):
        return None
    fed = "; ".join(refusal.fed) or "nothing"
    declared = "; ".join(refusal.declared) or "unknown"
    text = readable(refusal.text)
    return _failure(
        evidence,
        "unsupported",
        f"the model refuses these inputs: {text} (fed {fed}; declared {declared})",
        "Set sizes that fit with --ort-dims and --ort-batch-sizes, or feed real inputs "
        "(--ort-inputs)",
    )


_ABOUT_SHAPES = re.compile(
    r"[Ss]hape|[Dd]imension|[Rr]ank\b|\b[Aa]xis|[Bb]roadcast|out of (data )?bounds|[Rr]eshape"
    r"|mismatch|[Ii]nteger overflow"
)

_RULES: tuple[Rule, ...] = (
    _memory,
    _import,
    _provider_missing,
    _plugin_missing,
    _fell_back,
    _provider_library,
    _options,
    _custom_ops,
    _versions,
    _operators,
    _provider_kernel,
    _files,
    _shape,
)


def _supplier(evidence: Evidence) -> str:
    if evidence.provider is None:
        return ""
    kind = BY_NAME.get(evidence.provider.name)
    return f"It needs {kind.source}" if kind is not None and kind.source else ""


def _failure(evidence: Evidence, kind: str, message: str, hint: str = "") -> Failure:
    return Failure(kind=kind, phase=evidence.refusal.phase, message=message, hint=hint)
