"""A decoder in two files, as exporters write it: one for the first step, one for all later ones."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.speech import HEADS, KINDS
from pytest_ortbench.models.builders.transformer import HEAD_SIZE
from pytest_ortbench.models.builders.translation import translation_decoder, translation_encoder
from tests.generation.folders import TINY, model_bytes

FIRST, LATER, ENCODER = "decoder_model.onnx", "decoder_with_past_model.onnx", "encoder_model.onnx"


def split_decoder(
    folder: Path, *, one_token: bool = False, suffix: str = "", name: str = "tiny"
) -> Path:
    """Write a decoder in two files, and return that of the later steps.

    Args:
        folder: Made if it is missing.
        one_token: Whether a later step takes one token, and declares so.
        suffix: Of the names of both, as ``_quantized``.
        name: Chooses the weights.
    """
    return _write(folder, onnx.load_from_string(model_bytes(TINY, name=name)), one_token, suffix)


def split_translation(folder: Path, *, one_token: bool = True) -> Path:
    """Write a decoder of translation in two files, and return that of the later steps.

    The first step makes keys and values of what the encoder said; later ones take them.

    Args:
        folder: Made if it is missing.
        one_token: Whether a later step takes one token, and declares so.
    """
    writer = GraphWriter("translation", version=1)
    translation_decoder(writer)
    later = _write(folder, onnx.load_from_string(writer.serialise()), one_token, suffix="")
    reader = GraphWriter("translation", version=1)
    translation_encoder(reader)
    (folder / ENCODER).write_bytes(reader.serialise())
    return later


def _write(folder: Path, whole: onnx.ModelProto, one_token: bool, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = [name.replace(".onnx", f"{suffix}.onnx") for name in (FIRST, LATER)]
    first, later = onnx.ModelProto(), onnx.ModelProto()
    first.CopyFrom(whole)
    later.CopyFrom(whole)
    _begin_empty(first.graph)
    _hear_keys(first.graph, later.graph)
    if one_token:
        ids = next(value for value in later.graph.input if value.name == "input_ids")
        ids.type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(first, folder / names[0])
    onnx.save(later, folder / names[1])
    return folder / names[1]


def _begin_empty(graph: onnx.GraphProto) -> None:
    """Make the cache that a graph takes an empty one of its own."""
    nodes = [helper.make_node("Shape", ["input_ids"], ["empty_batch"], end=1)]
    for value in [value for value in graph.input if value.name.startswith("past")]:
        heads, size = (value.type.tensor_type.shape.dim[axis].dim_value for axis in (1, 3))
        rest = f"{value.name}_sizes"
        nodes += [
            helper.make_node("Constant", [], [f"{rest}_own"], value_ints=[heads, 0, size]),
            helper.make_node("Concat", ["empty_batch", f"{rest}_own"], [rest], axis=0),
            helper.make_node("ConstantOfShape", [rest], [value.name]),
        ]
        graph.input.remove(value)
    own = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *own])


def _hear_keys(first: onnx.GraphProto, later: onnx.GraphProto) -> None:
    """Hand keys and values of what an encoder said from the first step to the later ones."""
    heard = [node for node in later.node if "cross" in node.name and "Attention" in node.op_type]
    shape = ["batch_size", HEADS, "encoder_sequence_length", HEAD_SIZE]
    for layer, node in enumerate(heard):
        for place, kind in enumerate(KINDS, start=1):
            made, name = node.input[place], f"past_key_values.{layer}.encoder.{kind}"
            given = f"present.{layer}.encoder.{kind}"
            first.node.extend(
                [
                    helper.make_node(
                        "Constant", [], [f"{given}_sizes"], value_ints=[0, 0, HEADS, HEAD_SIZE]
                    ),
                    helper.make_node("Reshape", [made, f"{given}_sizes"], [f"{given}_split"]),
                    helper.make_node("Transpose", [f"{given}_split"], [given], perm=[0, 2, 1, 3]),
                ]
            )
            first.output.append(helper.make_tensor_value_info(given, TensorProto.FLOAT, shape))
            later.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            node.input[place] = name
    if heard:
        _drop_unused(later)
        states = [value for value in later.input if value.name == "encoder_hidden_states"]
        for value in states:
            later.input.remove(value)


def _drop_unused(graph: onnx.GraphProto) -> None:
    wanted = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    weights = [weight for weight in graph.initializer if weight.name in wanted]
    del graph.initializer[:]
    graph.initializer.extend(weights)
