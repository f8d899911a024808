"""Where there can be no operator profile: it is a session of ONNX Runtime that notes every node."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider


def why_no_profile(provider: Provider) -> str:
    """Say why nothing can be profiled on a provider; empty where it can be tried.

    Args:
        provider: Any provider, engine or framework.
    """
    if provider.is_execution_provider:
        return ""
    return (
        f"{provider.name} is no session of ONNX Runtime, whose profiler notes the nodes: use the "
        f"profiler of the {provider.role} itself"
    )
