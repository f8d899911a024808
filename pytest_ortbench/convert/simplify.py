"""A graph with less in it: constants folded, dead branches gone, patterns fused, by onnxslim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import Draft, count_types, graphs_within, save_model

if TYPE_CHECKING:
    import onnx


def simplify(source: Path, target: Path) -> Draft:
    """Simplify a model.

    Args:
        source: The model; nothing is written beside it.
        target: Where the result goes.

    Raises:
        ImportError: if onnxslim is not installed.
        Exception: what it raises.
    """
    import importlib.metadata

    import onnx
    import onnxslim

    model = onnx.load(str(source))
    before, weights = count_nodes(model), count_types(model)
    slim = onnxslim.slim(model)
    save_model(slim, target)
    after = count_nodes(slim)
    version = importlib.metadata.version("onnxslim")
    notes = () if after < before else ("onnxslim found nothing to simplify",)
    return Draft(
        before=weights,
        facts={"simplified_by": f"onnxslim {version}", "nodes": f"{before} → {after}"},
        notes=notes,
    )


def count_nodes(model: onnx.ModelProto) -> int:
    """Number of nodes in the main graph and all graphs inside it."""
    return sum(len(graph.node) for graph in graphs_within(model.graph))
