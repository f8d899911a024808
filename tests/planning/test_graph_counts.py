"""Counts of a graph that nobody set fit each other, and the kind of graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_ortbench.planning.feeds import resolve_inputs
from tests.models.graphs import FLOAT, INT64, model, node, read, value

Shapes = Mapping[str, tuple[int | str, ...]]


def _sizes(
    inputs: Shapes, output: tuple[int | str, ...], folder: Path, dims: Mapping[str, int]
) -> dict[str, int]:
    """Sizes of the symbols of a model that reads inputs one by one."""
    kinds = {name: INT64 if len(shape) == 1 else FLOAT for name, shape in inputs.items()}
    nodes = [node("Identity", [name], [f"{name}_seen"]) for name in inputs]
    nodes.append(node("Identity", [next(iter(inputs))], ["y"]))
    proto = model(
        nodes,
        [value(name, shape, kinds[name]) for name, shape in inputs.items()],
        [value("y", output, kinds[next(iter(inputs))])],
    )
    specs = resolve_inputs(read(proto, folder), batch=None, dims=dims)
    return {size.symbol: size.size for spec in specs for size in spec.resolved}


NODES: Shapes = {"x": ("num_nodes", 16), "edge_attr": ("num_edges", 4)}
ATOMS: Shapes = {"element": ("num_atoms", 9), "bond": ("num_edges", 3)}

GRAPHS: dict[str, tuple[Shapes, tuple[int | str, ...], dict[str, int], dict[str, int]]] = {
    "answers by node": (NODES, ("num_nodes", 16), {}, {"num_nodes": 1024, "num_edges": 4096}),
    "answers by graph": (NODES, ("num_graphs", 16), {}, {"num_nodes": 30, "num_edges": 64}),
    "told the graph of each node": (
        {**NODES, "batch": ("num_nodes",)}, ("N", 16), {}, {"num_nodes": 30, "num_edges": 64}),
    "several graphs": (
        {**NODES, "slots": ("num_graphs", 1)}, ("num_graphs", 16), {"num_graphs": 4},
        {"num_nodes": 120, "num_edges": 256, "num_graphs": 4}),
    "nodes that were set": (NODES, ("num_nodes", 16), {"num_nodes": 50},
                            {"num_nodes": 50, "num_edges": 200}),
    "a molecule": (ATOMS, (1, 9), {}, {"num_atoms": 30, "num_edges": 64}),
    "a molecule in space": (
        {**ATOMS, "pos": ("num_atoms", 3)}, (1, 9), {}, {"num_atoms": 30, "num_edges": 480}),
    "a protein": (
        {**ATOMS, "edge_dist": ("num_edges", 1), "kind": ("num_residues", 2)},
        ("num_residues", 9), {}, {"num_atoms": 512, "num_edges": 8192, "num_residues": 64}),
    "a protein of a set length": (
        {**ATOMS, "kind": ("num_residues", 2)}, ("num_residues", 9), {"num_residues": 10},
        {"num_atoms": 80, "num_edges": 320, "num_residues": 10}),
    "points, no graph": ({"x": ("num_points", 3)}, ("num_points", 3), {}, {"num_points": 1024}),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_counts_fit_each_other(name: str, tmp_path: Path) -> None:
    inputs, output, dims, expected = GRAPHS[name]
    assert _sizes(inputs, output, tmp_path, dims) == expected
