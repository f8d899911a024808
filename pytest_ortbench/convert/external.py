"""Weights that lie beside the model: put where the tools take them from, or into the model.

Model hubs keep files under their digests and link to them; ``onnx`` reads no links, since one in a
model that somebody else packed may lead anywhere. Whoever named the model to us has links of its
own, and where they may lead was checked when the model was read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import graphs_within

if TYPE_CHECKING:
    import onnx


def at_hand(source: Path, folder: Path) -> Path:
    """Return a model whose weights can be read by every tool.

    Args:
        source: A model.
        folder: Where model and weights are copied to if any of the weights is behind a symbolic
            link, or a file with several names; it is made then.

    Returns:
        ``source`` itself, or the copy.

    Raises:
        OSError: if files are missing, or can't be copied.
    """
    locations = _locations(source)
    if not any(_is_linked(source.parent, location) for location in locations):
        return source
    for location in locations:
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, target)
    copied = folder / source.name
    shutil.copyfile(source, copied)
    return copied


def inlined(source: Path, scratch: Path) -> Path:
    """Return a model with its weights inside; the model itself if they are there already.

    Args:
        source: A model that one file can hold.
        scratch: Folder for the other file.
    """
    import onnx

    if not _external_tensors(source):
        return source
    inline = scratch / "inline.onnx"
    onnx.save(onnx.load(str(source)), str(inline))
    return inline


def model_bytes(source: Path) -> int:
    """Bytes of a model and of the files that hold its weights."""
    files = [source, *(source.parent / location for location in _locations(source))]
    return sum(file.stat().st_size for file in files)


def _locations(source: Path) -> list[str]:
    """Files that hold weights, in order; none if one of them is not below the model's folder."""
    locations = set()
    for tensor in _external_tensors(source):
        locations |= {entry.value for entry in tensor.external_data if entry.key == "location"}
    paths = [PurePath(location) for location in locations]
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        return []  # onnx says what is wrong with it
    return sorted(locations)


def _is_linked(folder: Path, location: str) -> bool:
    path = folder / location
    return path.stat().st_nlink > 1 or path.resolve() != folder.resolve() / location


def _external_tensors(source: Path) -> list[onnx.TensorProto]:
    import onnx

    model = onnx.load(str(source), load_external_data=False)
    return [
        tensor for tensor in _tensors(model) if onnx.external_data_helper.uses_external_data(tensor)
    ]


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    nodes = [node for function in model.functions for node in function.node]
    for graph in graphs_within(model.graph):
        yield from graph.initializer
        nodes += graph.node
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
