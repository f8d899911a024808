"""From what a worker or its log says to a failure that a person can act on.

Pure functions over text. The worker hands over raw facts, and the native log is the host's, so
both meet here; nothing else decides what kind of failure something is.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path, PurePath

from pytest_ortbench.core.errors import in_quotes, says
from pytest_ortbench.core.lfs_pointer import PULL, is_pointer
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.launch.diagnose_conversions import (
    does_not_load,
    too_new_for,
    unknown_to,
)
from pytest_ortbench.launch.diagnose_import import not_imported
from pytest_ortbench.launch.diagnose_providers import (
    RULES,
    graph_refused,
    how_to_install,
    left_device,
    provider_kernel,
)
from pytest_ortbench.launch.diagnose_system import refused_by_system
from pytest_ortbench.launch.evidence import (
    Evidence,
    Rule,
    failure_of,
    newer_runtime,
    runtime_of_refusal,
    step_for_types,
    where,
)
from pytest_ortbench.launch.missing_library import implied_by, missing_library
from pytest_ortbench.launch.native_text import (
    abridged,
    error_code,
    on_one_line,
    readable,
    said_by,
)
from pytest_ortbench.launch.steps import less_memory

__all__ = [
    "Evidence",
    "diagnose",
    "graph_refused",
    "implied_by",
    "left_device",
    "missing_library",
    "out_of_memory",
]

_RUNTIME = "ONNX Runtime"


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
    if not error_code(refusal.text):
        return failure_of(evidence, "error", f"{refusal.error}: {text}", _whose_fault(evidence))
    return does_not_load(evidence, text) or failure_of(
        evidence, "error", said_by(_RUNTIME, _LOADING.sub("", text)), _whose_fault(evidence)
    )


def _whose_fault(evidence: Evidence) -> str:
    """Return how to find out whether a provider or the model file is at fault."""
    provider, case = evidence.provider, evidence.case
    if evidence.refusal.phase not in ("session", "first") or provider is None:
        return ""
    if provider.name != CPU:
        return (
            f"To see whether {provider.name} or the model is at fault, measure the model with "
            "--ort-providers=cpu"
        )
    return _checking(case.model.path) if case is not None else ""


def _checking(path: str) -> str:
    """Return how to have a model file checked."""
    check = f"import onnx; onnx.checker.check_model({path!r}, full_check=True)"
    return f"To see what is wrong with the file, run: python -c {shlex.quote(check)}"


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


def _memory(evidence: Evidence) -> Failure | None:
    refusal = evidence.refusal
    if refusal.error != "MemoryError" and not out_of_memory(refusal.text):
        return None
    text = readable(refusal.text)
    return failure_of(
        evidence,
        "out_of_memory",
        f"memory ran out. {says('The process', text, 500)}" if text else "memory ran out",
        less_memory(evidence.case, refusal.phase),
    )


#: What numpy says of an array with too many axes, by version.
_AXES = re.compile(
    r"dimensions must be within \[0, (\d+)\]"
    r"|maximum supported dimension for an ndarray is (?:currently )?(\d+)"
)


def _axes(evidence: Evidence) -> Failure | None:
    match = _AXES.search(evidence.refusal.text)
    if evidence.refusal.error != "ValueError" or match is None:
        return None
    most = int(match[1] or match[2])
    outputs = evidence.case.model.outputs if evidence.case is not None else ()
    large = [info for info in outputs if len(info.shape or ()) > most]
    what = (
        f"the output {large[0].name!r} has {len(large[0].shape or ())} axes"
        if large
        else f"an output has more than {most} axes"
    )
    return failure_of(
        evidence,
        "unsupported",
        f"{what}, but an array of numpy has at most {most} axes",
        f"Export the model with at most {most} axes in each output",
    )


def _options(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    if evidence.refusal.error == "OptionIgnored" or re.search(
        r"Unknown provider option|Invalid \w+ EP option|Unknown option|unrecognized option"
        r"|Invalid.*provider option",
        text,
    ):
        return failure_of(
            evidence, "error", readable(text), "Correct --ort-provider-option, or leave it out"
        )
    hint = _OF_OPTIONS.get(evidence.refusal.error, "")
    return failure_of(evidence, "unsupported", readable(text), hint) if hint else None


#: What a case asks for that its session does not have, and what to ask for in its place.
_OF_OPTIONS = {
    "LevelMissing": "Write another level in --ort-graph-opt",
    "NotBindable": "Use --ort-io=end-to-end",
}


#: Operators that ONNX Runtime brings itself; no library adds any to it.
_OWN_DOMAIN = "com.microsoft"


def _custom_ops(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    if evidence.refusal.error == "CustomOpsAbsent":
        return _absent_custom_ops(evidence, text)
    if evidence.refusal.error == "CustomOpsRefused":
        named = [path for path in evidence.custom_ops if path in text] or evidence.custom_ops
        if "RegisterCustomOps" in text:
            return failure_of(
                evidence,
                "error",
                f"{' or '.join(named)} is not a library of custom operators, since it does not "
                "have the function RegisterCustomOps",
                'If you build this library, declare the function extern "C". If you meant another '
                "file, correct --ort-custom-ops",
            )
        if "No such file" in text or "cannot find" in text.lower():
            return _missing_custom_ops(evidence)
        pointer = next((path for path in named if is_pointer(Path(path))), "")
        if pointer:
            return failure_of(evidence, "error", f"{pointer} is a Git LFS pointer", PULL)
        return failure_of(
            evidence,
            "error",
            f"{' or '.join(named)} can't be loaded. {said_by(_RUNTIME, text)}",
            "Build this library again, for the system and the ONNX Runtime that are used here. If "
            "you meant another one, correct --ort-custom-ops",
        )
    match = re.search(r"Fatal error: ([\w.]+):(\w+)\(-?\d+\) is not a registered function/op", text)
    if match is None:
        return None
    domain, operator = match.groups()
    hint = f"Name the library that defines {operator}, e.g. --ort-custom-ops=libops.so"
    if domain == _OWN_DOMAIN:
        hint = (
            f"{newer_runtime(evidence)}. If the newest one lacks this operator, too, export the "
            f"model without {operator}"
        )
    if domain == "ai.onnx.contrib":
        hint = (
            "Run: pip install onnxruntime-extensions. Then run: python -c 'import "
            "onnxruntime_extensions as e; print(e.get_library_path())'. Add "
            "--ort-custom-ops=LIBRARY with the path that it prints in place of LIBRARY"
        )
    return unknown_to(evidence, domain=domain, operator=operator) or failure_of(
        evidence,
        "unsupported",
        f"ONNX Runtime does not know the operator {operator} of domain {domain}"
        + (f", also with {', '.join(evidence.custom_ops)}" if evidence.custom_ops else ""),
        hint,
    )


def _absent_custom_ops(evidence: Evidence, path: str) -> Failure:
    """Return the failure of a file of custom operators that does not exist."""
    message = f"the file {path} of --ort-custom-ops does not exist any more"
    hint = "Restore the file, and run again"
    runtime = runtime_of_refusal(evidence)
    if not runtime.shares_files:
        message = f"the file {path} is neither on this machine nor in the runtime {runtime.label!r}"
        hint = (
            "Correct --ort-custom-ops, or put the file at this path on this machine. It is then "
            "sent to the runtime"
        )
    return failure_of(evidence, "error", message, hint)


def _missing_custom_ops(evidence: Evidence) -> Failure:
    """A library of custom operators that is not there, or needs one that is not there."""
    text, named = evidence.refusal.text, evidence.custom_ops
    needed = missing_library(text)
    own = [path for path in named if PurePath(path).name == PurePath(needed).name]
    if own or (not needed and len(named) == 1):
        return _absent_custom_ops(evidence, (own or named)[0])
    if not needed:
        return failure_of(
            evidence, "error", said_by(_RUNTIME, text), "Correct the path in --ort-custom-ops"
        )
    whose = [path for path in named if path in text] or named
    return failure_of(
        evidence,
        "error",
        f"{' or '.join(whose)} needs the library {needed}, which is not installed "
        f"{where(evidence)}",
        how_to_install(needed, evidence),
    )


def _versions(evidence: Evidence) -> Failure | None:
    text, version = evidence.refusal.text, evidence.refusal.version
    runtime = f"ONNX Runtime {version}" if version else "this runtime"
    match = re.search(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)", text)
    if match:
        wanted, supported = match.groups()
        made = too_new_for(evidence, domain=None, wanted=int(wanted), supported=int(supported))
        return made or failure_of(
            evidence,
            "unsupported",
            f"the model has IR version {wanted}, but {runtime} supports up to {supported}",
            f"{newer_runtime(evidence)}. To keep {runtime}, make the model again for it, with "
            f"model.ir_version = {supported} and an operator set that it supports",
        )
    match = re.search(
        r"Opset (\d+) is under development.*?support for domain (\S+) is till opset (\d+)",
        text,
        re.DOTALL,
    )
    if match:
        wanted, domain, supported = match.groups()
        made = too_new_for(evidence, domain=domain, wanted=int(wanted), supported=int(supported))
        return made or failure_of(
            evidence,
            "unsupported",
            f"the model has operator set {wanted} of {domain}, but {runtime} supports up to "
            f"{supported}",
            f"{newer_runtime(evidence)}. To keep {runtime}, export the model again with operator "
            f"set {supported} or lower",
        )
    return None


def _operators(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    match = re.search(
        r"Could not find an implementation for (\w+)\((\d+)\)( node with name '.*')?", text
    )
    if match:
        operator, opset = match.group(1), match.group(2)
        return failure_of(
            evidence,
            "unsupported",
            f"{_tried(evidence)} no implementation of {operator} (operator set {opset}) for the "
            f"types of its inputs{_put_in(evidence, operator)}. {said_by(_RUNTIME, text)}",
            step_for_types(evidence, operator),
        )
    match = re.search(r"No Op registered for (\w+) with domain_version of (\d+)", text)
    if match:
        operator, opset = match.groups()
        return unknown_to(evidence, domain="", operator=operator) or failure_of(
            evidence,
            "unsupported",
            f"the operator {operator} does not exist in operator set {opset}, which the model "
            "names",
            f"If {operator} is a custom operator, name the library that defines it, e.g. "
            "--ort-custom-ops=libops.so. If it is an operator of ONNX, export the model again with "
            f"a newer operator set, which has {operator}",
        )
    if error_code(text) == "NOT_IMPLEMENTED":
        return failure_of(evidence, "unsupported", said_by(_RUNTIME, text), _whose_fault(evidence))
    return None


def _put_in(evidence: Evidence, operator: str) -> str:
    """Say that an operator is none of the model's, if it is known not to be."""
    ops = evidence.case.model.op_types if evidence.case is not None else {}
    if not ops or operator in ops:
        return ""
    return " (ONNX Runtime puts it in the place of another operator of the model)"


def _tried(evidence: Evidence) -> str:
    """Say which providers a session has, with their verb."""
    provider = evidence.provider
    if provider is None:
        return "ONNX Runtime has"
    if provider.name == CPU:
        return f"{CPU} has"
    return f"{' and '.join(link.name for link in provider.links)} and {CPU} have"


#: What ONNX Runtime says of a graph that breaks a rule of ONNX, behind the file's path.
_LOADING = re.compile(r"^Load model from .*? failed: ?")
_INVALID = re.compile(
    r"(?:This is an i|I)nvalid model\. (?:Error: )?"
    r"|(?=Type Error: |.*\[(?:Shape|Type)InferenceError\])"
)
_IN_NODE = re.compile(r'In Node, \("(.*?)", (\w+), ".*?", -?\d+\) : .* , Error:? (.*)')


def _invalid(evidence: Evidence) -> Failure | None:
    """A file that is no valid model; of another provider than the CPU the graph may be its own."""
    provider = evidence.provider
    if evidence.refusal.phase != "session" or (provider is not None and provider.name != CPU):
        return None
    text = _LOADING.sub("", on_one_line(evidence.refusal.text)).strip()
    match = _INVALID.match(text)
    if match is None:
        return None
    text = text[match.end() :]
    node = _IN_NODE.match(text)
    if node is not None:
        text = f"node {node[1]!r} ({node[2]}): {node[3]}"
    text = abridged(text)
    return does_not_load(evidence, text) or failure_of(
        evidence,
        "error",
        f"ONNX Runtime calls the model invalid: {in_quotes(text.rstrip('.'))}",
        "Correct this where the model is made, and export it again",
    )


def _files(evidence: Evidence) -> Failure | None:
    text = evidence.refusal.text
    code = error_code(text)
    said = said_by(_RUNTIME, text)
    if code == "NO_SUCHFILE" or "No graph was found" in text or code == "INVALID_PROTOBUF":
        return failure_of(evidence, "error", said, "Check that the file is an ONNX model")
    linked = re.search(r'escapes model directory\. External data path: "([^"]+)" resolved', text)
    if linked and not linked[1].startswith("/") and ".." not in linked[1].split("/"):
        return failure_of(
            evidence,
            "error",
            said,
            f"{linked[1]} is a link to a file outside the model's folder, and ONNX Runtime does "
            "not follow such links. Replace the link by the file",
        )
    if "External data path" in text or "external data" in text.lower():
        return failure_of(
            evidence,
            "error",
            said,
            "Put the external data into the model's folder or a folder in it",
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
    return failure_of(
        evidence,
        "unsupported",
        f"the model refuses these inputs: {_refused(on_one_line(refusal.text))} (fed {fed}; "
        f"declared {declared})",
        _step_for_inputs(evidence),
    )


def _step_for_inputs(evidence: Evidence) -> str:
    """Return the step that makes inputs fit the model that refused them."""
    files = {spec.path for spec in evidence.case.inputs if spec.path} if evidence.case else set()
    if files:
        return f"Correct the arrays in {', '.join(sorted(files))}"
    if evidence.case is not None and evidence.case.dims:
        given = ",".join(f"{name}:{size}" for name, size in evidence.case.dims.items())
        return f"Write sizes that fit in place of --ort-dims={given}, or leave this option out"
    options = _options_of_sizes(evidence)
    sizes = f"Set sizes that fit, e.g. with {' or '.join(options)}. " if options else ""
    return f"{sizes}To feed your own data, add e.g. --ort-inputs=data.npz"


#: What ONNX Runtime says of one axis, and of the number of axes.
_OF_AXIS = re.compile(
    r"Got invalid dimensions for input: (\S+) for the following indices "
    r"index: (\d+) Got: (\d+) Expected: (\d+)"
)
_OF_RANK = re.compile(r"Invalid rank for input: (\S+) Got: (\d+) Expected: (\d+)")


def _refused(text: str) -> str:
    """Say what a model refuses."""
    axis, rank = _OF_AXIS.match(text), _OF_RANK.match(text)
    if axis is not None:
        return (
            f"axis {axis[2]} of the input {axis[1]!r} has size {axis[3]}, but must have {axis[4]}"
        )
    if rank is not None:
        return f"the input {rank[1]!r} must have {rank[3]} axes, but has {rank[2]}"
    return said_by(_RUNTIME, text)


def _options_of_sizes(evidence: Evidence) -> list[str]:
    """Return the options that set the sizes which the case's model leaves open: to other ones."""
    if evidence.case is None:
        return ["--ort-batch-sizes", "--ort-dims"]
    shapes = [info.shape for info in evidence.case.model.inputs if info.shape]
    batches = {shape[0] for shape in shapes if isinstance(shape[0], str)}
    others = {size for shape in shapes for size in shape[1:] if isinstance(size, str)} - batches
    named = sorted(size for size in others if size.isidentifier())
    fed = {each.symbol: each.size for spec in evidence.case.inputs for each in spec.resolved}
    return [
        *([f"--ort-batch-sizes={1 if evidence.case.batch > 1 else 2}"] if batches else []),
        *(f"--ort-dims={size}:{2 * fed.get(size, 0) or 16}" for size in named[:1]),
    ]


_ABOUT_SHAPES = re.compile(
    r"[Ss]hape|[Dd]imension|[Rr]ank\b|\b[Aa]xis|[Bb]roadcast|out of (data )?bounds|[Rr]eshape"
    r"|mismatch|[Ii]nteger overflow"
)

_RULES: tuple[Rule, ...] = (
    _memory,
    _axes,
    refused_by_system,
    not_imported,
    *RULES,
    _options,
    _custom_ops,
    _versions,
    _operators,
    provider_kernel,
    _invalid,
    _files,
    _shape,
)
