"""What a runtime lacks for a variant that was made, and that its source does not ask for."""

from __future__ import annotations

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.precision import BASE
from pytest_ortbench.launch.evidence import Evidence, failure_of, newer_runtime


def too_new_for(
    evidence: Evidence, *, domain: str | None, wanted: int, supported: int
) -> Failure | None:
    """Return the failure of a variant that asks for a newer version than its source.

    Args:
        evidence: Of a session that was refused.
        domain: Domain of the operator set that is too new; ``None`` for the IR version.
        wanted: The version that the variant asks for.
        supported: The newest that the runtime reads.
    """
    model = _source(evidence)
    if model is None:
        return None
    own = model.ir_version if domain is None else model.opsets.get(domain)
    if wanted <= (own or 0):
        return None
    held = f"IR version {wanted}" if domain is None else f"operator set {wanted} of {domain}"
    return _refused(evidence, f"has {held}, but {_runtime(evidence)} supports up to {supported}")


def unknown_to(evidence: Evidence, *, domain: str, operator: str) -> Failure | None:
    """Return the failure of a variant with an operator that its source does not have.

    Args:
        evidence: Of a session that was refused.
        domain: Domain of the operator, empty for the default one.
        operator: An operator that the runtime does not know.
    """
    model = _source(evidence)
    name = f"{domain}::{operator}" if domain else operator
    if model is None or name in model.op_types:
        return None
    return _refused(evidence, f"has the operator {name}, which {_runtime(evidence)} does not know")


def does_not_load(evidence: Evidence, text: str) -> Failure | None:
    """Return the failure of a variant that no session could be made of, for whatever reason.

    Args:
        evidence: Of a session that was refused.
        text: What ONNX Runtime says of it.
    """
    if evidence.refusal.phase != "session" or _source(evidence) is None:
        return None
    return _refused(evidence, f"does not load in {_runtime(evidence)}: {text}")


def _source(evidence: Evidence) -> Model | None:
    """The model that a variant was made of; ``None`` for a file of the user's."""
    case = evidence.case
    return case.model if case is not None and BASE in case.variant.recipe else None


def _runtime(evidence: Evidence) -> str:
    version = evidence.refusal.version
    return f"ONNX Runtime {version}" if version else "this runtime"


def _refused(evidence: Evidence, text: str) -> Failure:
    assert evidence.case is not None
    variant = evidence.case.variant
    tools = variant.recipe.get("tools", "")
    by = f", made with {tools}," if tools else ""
    return failure_of(
        evidence,
        "unsupported",
        f"the {variant.precision} variant{by} {text}",
        f"{newer_runtime(evidence)}. To do without this file, which a converter made of your "
        f"model, leave {variant.precision} out of --ort-precisions",
    )
