"""Which other precision is worth trying for a model: none that is known to gain nothing."""

from __future__ import annotations

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.precision import precision_of
from pytest_ortbench.core.provider_kinds import OPENVINO

_CONVOLUTIONS = ("Conv", "ConvTranspose")
_PRODUCTS = ("MatMul", "Gemm")


def precision_to_try(case: Case) -> str:
    """Return a precision that may be faster than the fp32 of a file; empty where none may be.

    On CPUs half precision is computed in float32. In eight bits convolutions whose ranges are found
    in every call are slower than in fp32; ranges that are found in advance need real inputs, since
    those of drawn ones cost the answers.

    Args:
        case: Any case of the model.
    """
    if not case.provider.is_execution_provider or precision_of(case.model) != "fp32":
        return ""
    if not _is_on_cpus(case.provider):
        return "fp16"
    nodes = case.model.op_types
    convolutions = sum(nodes.get(name, 0) for name in _CONVOLUTIONS)
    products = sum(nodes.get(name, 0) for name in _PRODUCTS)
    if convolutions > products:
        return "" if case.draws_inputs else "int8-static"
    return "int8-dynamic" if products else ""


def _is_on_cpus(provider: Provider) -> bool:
    """Whether CPUs alone compute: OpenVINO does on them, too, where no device is named."""
    return all(
        link.works_on_cpus
        or (link.name == OPENVINO and not link.options.get("device_type", link.device))
        for link in provider.links
    )
