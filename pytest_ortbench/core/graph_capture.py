"""Providers that record the graph they ran once and replay it from then on.

What they recorded holds addresses: a replay reads the inputs and writes the outputs of the run that
was recorded, whatever it is given, and ``InferenceSession.run`` returns nothing then.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.case import Provider

#: Switches that make a provider do so: its case carries a label.
GRAPH_CAPTURE = frozenset(
    {
        "enable_cuda_graph",
        "trt_cuda_graph_enable",
        "nv_cuda_graph_enable",
        "enable_hip_graph",
        "enableGraphCapture",
    }
)


def captures_graph(provider: Provider) -> bool:
    """Whether a switch is on that makes the provider replay a recorded graph."""
    return bool(capture_option(provider))


def capture_option(provider: Provider) -> str:
    """Return the switch that is on, as ``--ort-provider-option`` takes it; empty where none is."""
    switches = (
        f"{link.alias}.{key}={value}"
        for link in provider.links
        for key, value in link.options.items()
        if _plain(key) in GRAPH_CAPTURE and value.lower() in ("1", "true")
    )
    return next(switches, "")


def without_capture(provider: Provider) -> Provider:
    """Return the provider without these switches, on any of its links."""
    return provider.of_links(_switched_off)


def _switched_off(provider: Provider) -> Provider:
    options = {
        key: value for key, value in provider.options.items() if _plain(key) not in GRAPH_CAPTURE
    }
    return provider if options == provider.options else replace(provider, options=options)


def _plain(key: str) -> str:
    """A key without the ``ep.webgpuexecutionprovider.`` that may stand before it."""
    return key.rpartition(".")[2]
