"""Default sizes of counts that belong together: nodes and edges, a prompt beside a diffusion step.

Each of them alone would be independent, and a graph with four thousand edges between sixty atoms is
one that nobody has. Sizes that somebody set decide the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_ortbench.core.model import Model, TensorInfo

_COUNT = r"(num_?|n_?|number_of_|total_|max_)?"
_NODES = re.compile(rf"{_COUNT}(nodes?|vertices|atoms?)\Z")
_ATOMS = re.compile(rf"{_COUNT}atoms?\Z")
_EDGES = re.compile(rf"{_COUNT}(edges?|bonds?)\Z")
_RESIDUES = re.compile(rf"{_COUNT}(residues?|amino_acids)\Z")
_GRAPHS = re.compile(rf"{_COUNT}(graphs?|graph_slots|molecules?|mols?)\Z")
#: An input that says for each node which graph it is of.
_GRAPH_OF_NODE = re.compile(
    r"batch(_?(idx|index|ids?|vec(tor)?))?\Z|(node_)?graph_?(ids?|idx|index)\Z"
)
#: An input that says where nodes are, or how far apart.
_PLACES = re.compile(r"(^|_)(pos|positions?|coords?|coordinates|xyz|edge_(dist|length|vec)\w*)\Z")

#: A drug-like molecule has some 30 atoms without its hydrogens, and a bond more than atoms, both
#: ways.
SMALL_GRAPH = 30
SMALL_GRAPH_EDGES = 64
#: Of a graph that is looked at node by node.
NODES = 1024
EDGES_A_NODE = 4
#: A part of a protein: residues, their atoms without hydrogens, neighbours within some angstroms.
RESIDUES = 64
ATOMS_A_RESIDUE = 8
NEIGHBOURS = 16

_STEP = re.compile(r"timesteps?\Z")
_PROMPT = re.compile(r"(encoder_hidden_states|(text|prompt)_embed(s|ding|dings)?)\Z")
#: Tokens that CLIP cuts every prompt to.
PROMPT = 77
_CLICKS = re.compile(r"(point|input)_(coords|points)\Z")
_CLICK_LABELS = re.compile(r"(point|input)_labels\Z")
#: One click and the point that stands for "no box".
CLICKS = 2
_DESCRIPTORS = re.compile(r"desc(riptors?)?_?\d*\Z")
#: Key points that are matched between two pictures.
KEYPOINTS = 512

_Shape = tuple[int | str, ...]


def graph_counts(
    model: Model, symbols: Sequence[str], known: Mapping[str, int]
) -> Iterator[tuple[str, int, str]]:
    """Yield the counts of a graph that nobody set, each with its size and what it is.

    Args:
        model: The model.
        symbols: Its symbols.
        known: Sizes that are set already.
    """
    nodes = _first(_NODES, symbols)
    if nodes is None:
        return
    residues, edges = _first(_RESIDUES, symbols), _first(_EDGES, symbols)
    atoms = bool(_ATOMS.match(nodes.lower()))
    small = residues is None and (atoms or _of_graphs(model, nodes, symbols))
    size, what = NODES, "nodes"
    if residues is not None:
        rows = known.get(residues, RESIDUES)
        yield residues, rows, "residues of a part of a protein"
        size, what = ATOMS_A_RESIDUE * rows, f"{ATOMS_A_RESIDUE} atoms a residue"
    elif small:
        graphs = _first(_GRAPHS, symbols)
        rows = 1 if graphs is None else known.get(graphs, 1)
        size = SMALL_GRAPH * rows
        what = "atoms of a molecule" if atoms else "nodes of a small graph with one answer"
    count = known.get(nodes, size)
    yield nodes, count, what
    if edges is None:
        return
    if atoms and any(_PLACES.search(info.name.lower()) for info in model.inputs):
        yield edges, NEIGHBOURS * count, f"{NEIGHBOURS} neighbours an atom"
    elif small:
        ratio = SMALL_GRAPH_EDGES / SMALL_GRAPH
        yield edges, max(round(ratio * count), 1), "edges of a molecule, both ways"
    else:
        yield edges, EDGES_A_NODE * count, "edges, four a node"


def _first(pattern: re.Pattern[str], symbols: Sequence[str]) -> str | None:
    return next((name for name in symbols if pattern.match(name.lower())), None)


def _of_graphs(model: Model, nodes: str, symbols: Sequence[str]) -> bool:
    """Whether a model answers for whole graphs: it knows their number, or that of each node."""
    outputs = [size for info in model.outputs for size in info.shape or ()]
    if _first(_GRAPHS, [*symbols, *(size for size in outputs if isinstance(size, str))]):
        return True
    return any(_says_graph(info, nodes) for info in model.inputs)


def _says_graph(info: TensorInfo, nodes: str) -> bool:
    return info.shape == (nodes,) and bool(_GRAPH_OF_NODE.match(info.name.lower()))


def companion_sizes(
    model: Model, shapes: Sequence[_Shape | None]
) -> Iterator[tuple[str, int, str]]:
    """Yield sizes that an input has because of another one, each with what it is.

    Args:
        model: The model.
        shapes: The shapes of its inputs, with a name for every unset axis.
    """
    known = {
        info.name.lower(): shape
        for info, shape in zip(model.inputs, shapes, strict=True)
        if shape is not None
    }
    if any(map(_STEP.match, known)):
        for shape in _matching(_PROMPT, known, rank=3):
            yield from _named(shape[1], PROMPT, "tokens of a prompt, as CLIP cuts it")
    if any(map(_CLICK_LABELS.match, known)):
        for name, shape in known.items():
            if _CLICKS.match(name) or _CLICK_LABELS.match(name):
                counts = shape[:-1] if _CLICKS.match(name) else shape
                for size in counts[:-1]:
                    yield from _named(size, 1, "one object at a time")
                yield from (_named(counts[-1], CLICKS, "a click") if counts else ())
    for shape in _matching(_DESCRIPTORS, known, rank=3):
        yield from _named(shape[1], KEYPOINTS, "key points of a picture")


def _matching(name: re.Pattern[str], known: dict[str, _Shape], *, rank: int) -> Iterator[_Shape]:
    return (shape for key, shape in known.items() if name.match(key) and len(shape) == rank)


def _named(size: int | str, count: int, what: str) -> Iterator[tuple[str, int, str]]:
    if isinstance(size, str):
        yield size, count, what
