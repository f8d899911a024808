"""What is known of one refusal, from which a failure is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.schema.protocol import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known about one refusal.

    Attributes:
        refusal: What the worker said.
        log: The native log.
        provider: The asked provider, if there was one.
        custom_ops: Custom operator libraries of the case.
        case: The case, if the question was about one.
    """

    refusal: Refusal
    log: str = ""
    provider: Provider | None = None
    custom_ops: tuple[str, ...] = ()
    case: Case | None = None


#: Recognises one kind of trouble; ``None`` for any other.
Rule = Callable[[Evidence], "Failure | None"]


def where(evidence: Evidence) -> str:
    """Say where a case measures, as it follows ``is not installed``."""
    runtime = runtime_of_refusal(evidence)
    if runtime.shares_files:
        return "here"
    return f"where the runtime {runtime.label!r} measures"


def runtime_of_refusal(evidence: Evidence) -> Runtime:
    """Return the interpreter that a refusal comes from: that of pytest where there is no case."""
    return Runtime() if evidence.case is None else evidence.case.runtime


def newer_runtime(evidence: Evidence) -> str:
    """Return the step to a newer ONNX Runtime than that of the case."""
    runtime = runtime_of_refusal(evidence)
    if runtime.requirements:
        return "To use a newer ONNX Runtime, name a newer version in --ort-runtimes"
    there = "run" if runtime.label == "current" else f"in the Python of {runtime.label!r}, run"
    return (
        f"To use a newer ONNX Runtime, {there}: pip install --upgrade onnxruntime (or "
        "onnxruntime-gpu, if you use that)"
    )


def made_anew(runtime: Runtime) -> str:
    """Return the step that makes an environment again that was made for a runtime."""
    return (
        f"Remove the environment with 'ortbench runtimes remove {runtime.label}', and run again, "
        "which makes it anew"
    )


#: ONNX Runtime supports models of older operator sets only in part.
_LEAST_OPSET = 7


def step_for_types(evidence: Evidence, operator: str) -> str:
    """Return the step where ONNX Runtime lacks an operator, of this version or for these types."""
    opset = 0 if evidence.case is None else evidence.case.model.opsets.get("ai.onnx", 0)
    if 0 < opset < _LEAST_OPSET:
        return (
            f"The model names operator set {opset}, of which ONNX Runtime lacks operators. Export "
            f"the model again with operator set {_LEAST_OPSET} or higher"
        )
    if evidence.case is not None:
        model, precision = evidence.case.model, evidence.case.variant.precision
        fed = [info for info in model.inputs if info.type == "tensor(bfloat16)"]
        if fed or model.weight_types.get("bfloat16"):
            # No precision helps: the reference is computed with the file as it is.
            return "Export the model in float32 in place of bfloat16"
        if precision != "native":
            return f"Leave {precision} out of --ort-precisions"
        if model.weight_types.get("float16"):
            return "Try another precision, e.g. --ort-precisions=fp32"
    return f"Export the model with another type for the inputs of {operator}, e.g. float32 or int32"


def failure_of(evidence: Evidence, kind: str, message: str, hint: str = "") -> Failure:
    """Make a failure in the phase of the refusal."""
    return Failure(kind=kind, phase=evidence.refusal.phase, message=message, hint=hint)
