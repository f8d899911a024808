"""Pictures and sounds: which values an input holds, by what the graph does with it first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.models.graph import read_model
from tests.models.graphs import FLOAT, constant, model, node, value, weight

Step = tuple[str, Any]
#: Height and width of pictures whose sides are open.
_OPEN = ("h", "w")


def _chain(
    steps: Sequence[Step],
    window: Sequence[int],
    shape: Sequence[int | str],
    *,
    name: str = "x",
    kind: int = FLOAT,
) -> onnx.ModelProto:
    """A convolution behind operators with a constant each; text is an attribute's stand-in."""
    nodes, weights, last = [], [weight("filter", *window)], name
    for number, (op, operand) in enumerate(steps):
        inputs, attributes = [last], {}
        if isinstance(operand, dict):
            attributes = operand
        elif op == "BatchNormalization":
            for place, numbers in enumerate(((1, 1, 1), (0, 0, 0), *operand)):
                weights.append(constant(f"c{number}_{place}", numbers, "float32"))
                inputs.append(f"c{number}_{place}")
        elif operand is not None:
            dtype = "int64" if op in ("Unsqueeze", "Reshape", "Pad") else "float32"
            weights.append(constant(f"c{number}", operand, dtype))
            inputs.append(f"c{number}")
        last = f"v{number}"
        nodes.append(node(op, inputs, [last], **attributes))
    nodes.append(node("Conv", [last, "filter"], ["y"]))
    return model(nodes, [value(name, shape, kind)], [value("y", None)], weights)


def _hint(proto: onnx.ModelProto, folder: Path) -> ValueHint:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    hint = read_model(path, name="m", source="file").inputs[0].hint
    assert hint is not None
    return hint


def _values(proto: onnx.ModelProto, folder: Path) -> tuple[str, float, float]:
    hint = _hint(proto, folder)
    return hint.kind, hint.low, hint.high


def _per_channel(*numbers: float) -> list[list[list[list[float]]]]:
    return [[[[number]] for number in numbers]]


_TO_FRONT = ("Transpose", {"perm": [0, 3, 1, 2]})


@pytest.mark.parametrize(
    ("steps", "high"),
    [
        ([("Div", 255.0)], 255),
        ([("Mul", 1 / 255)], 255),
        ([("Sub", 127.5), ("Div", 127.5)], 255),
        ([("Mul", 1 / 255), ("Sub", _per_channel(0.485, 0.456, 0.406))], 255),
        ([("Sub", _per_channel(123.7, 116.3, 103.5))], 255),
        ([("Add", -127.0), ("Mul", 0.0078)], 255),
        ([("BatchNormalization", ((120, 118, 110), (3600, 3500, 3400)))], 255),
        ([("BatchNormalization", ((0.48, 0.46, 0.41), (0.05, 0.05, 0.05)))], 1),
        ([("Sub", _per_channel(0.485, 0.456, 0.406)), ("Div", 0.226)], 1),
        ([("Mul", 2.0), ("Sub", 1.0)], 1),
        ([("Mul", 255.0), ("Sub", 127.5)], 1),
    ],
)
def test_the_first_arithmetic_says_how_pixels_are_written(
    steps: list[Step], high: float, tmp_path: Path
) -> None:
    found = _hint(_chain(steps, (8, 3, 3, 3), (1, 3, *_OPEN)), tmp_path)
    assert (found.kind, found.low, found.high) == ("uniform", 0, high)
    assert steps[0][0] in found.why
    # Also where channels come last, and are moved first.
    flat = [(op, 0.5 if isinstance(operand, list) else operand) for op, operand in steps]
    last = _chain([_TO_FRONT, *flat], (8, 3, 3, 3), (1, *_OPEN, 3))
    assert _hint(last, tmp_path).kind == "uniform"


@pytest.mark.parametrize(
    ("shape", "window", "steps", "name", "expected"),
    [
        ((1, 3, *_OPEN), (8, 3, 3, 3), [], "x", ("uniform", -1, 1)),
        ((1, 3, 224, 224), (8, 3, 16, 16), [], "pixel_values", ("uniform", -1, 1)),
        (("n", 224, 224, 3), (8, 3, 3, 3), [_TO_FRONT], "input_1", ("uniform", -1, 1)),
        ((1, 1, *_OPEN), (8, 1, 3, 3), [], "image", ("uniform", 0, 1)),
        # A spectrum, a state of another network, and what is too small for a picture.
        ((1, 1, *_OPEN), (8, 1, 3, 3), [], "x", ("normal", 0, 1)),
        ((1, 3, "frames", 160), (8, 3, 3, 3), [], "x", ("normal", 0, 1)),
        ((1, 3, *_OPEN), (8, 3, 3, 3), [], "mel_features", ("normal", 0, 1)),
        ((1, 4, 64, 64), (8, 4, 3, 3), [], "sample", ("normal", 0, 1)),
        ((1, 64, *_OPEN), (8, 64, 3, 3), [], "image_embeddings", ("normal", 0, 1)),
        ((1, 3, 4, 4), (8, 3, 3, 3), [], "x", ("normal", 0, 1)),
        # A long window on one channel reads a sound.
        ((1, 1, "n"), (8, 1, 10), [], "x", ("uniform", -0.5, 0.5)),
        ((1, "n"), (8, 1, 400), [("Unsqueeze", [1])], "input_values", ("uniform", -0.5, 0.5)),
        ((1, 1, "n"), (8, 1, 400), [("Mul", 32768.0)], "x", ("uniform", -0.5, 0.5)),
        ((1, 1, "n"), (8, 1, 400), [("Div", 32768.0)], "x", ("uniform", -16384, 16384)),
        # Written for two sides, of which one stands idle.
        ((1, "n"), (8, 1, 1, 64), [("Unsqueeze", [1, 2])], "x", ("uniform", -0.5, 0.5)),
        ((1, 2, "n"), (8, 2, 3), [], "waveform", ("uniform", -0.5, 0.5)),
        # Short windows, or many channels.
        ((1, 1, "n"), (8, 1, 3), [], "x", ("normal", 0, 1)),
        ((1, 80, "n"), (8, 80, 9), [], "x", ("normal", 0, 1)),
        ((1, 80, "n"), (8, 80, 9), [], "audio_features", ("normal", 0, 1)),
    ],
)
def test_only_what_is_shown_to_be_a_picture_or_a_sound_holds_its_values(
    shape: tuple[int | str, ...],
    window: tuple[int, ...],
    steps: list[Step],
    name: str,
    expected: tuple[str, float, float],
    tmp_path: Path,
) -> None:
    assert _values(_chain(steps, window, shape, name=name), tmp_path) == expected


def test_a_detector_takes_pixels_from_0_to_1(tmp_path: Path) -> None:
    proto = _chain([], (8, 3, 3, 3), ("n", 3, *_OPEN))
    proto.graph.node.append(node("Reshape", ["y", "rows"], ["boxes"]))
    proto.graph.initializer.append(constant("rows", [0, 8, -1]))
    del proto.graph.output[:]
    proto.graph.output.append(value("boxes", None))
    assert _values(proto, tmp_path) == ("uniform", 0, 1)


def _filtered(
    filters: float, bias: float | None = None, variance: float | None = None
) -> onnx.ModelProto:
    """A picture under filters of one weight each, with a bias or a normalisation behind them."""
    shape = (8, 3, 3, 3)
    weights = [constant("filter", np.full(shape, filters), "float32")]
    nodes = [node("Conv", ["x", "filter"], ["c"])]
    if bias is not None:
        weights.append(constant("bias", [bias] * 8, "float32"))
        nodes[0].input.append("bias")
    if variance is not None:
        for name, number in (("scale", 1), ("shift", 0), ("mean", 0), ("variance", variance)):
            weights.append(constant(name, [number] * 8, "float32"))
        names = ["c", "scale", "shift", "mean", "variance"]
        nodes.append(node("BatchNormalization", names, ["y"]))
    nodes[-1].output[:] = ["y"]
    return model(nodes, [value("x", (1, 3, *_OPEN))], [value("y", None)], weights)


@pytest.mark.parametrize(
    ("proto", "high"),
    [
        (_filtered(0.01, bias=1.0), 255),
        (_filtered(0.01, bias=0.0), 1),  # weights before any training
        (_filtered(0.01), 1),
        (_filtered(0.2, bias=3.0), 1),
        (_filtered(0.1, variance=(27 * 0.1 * 60) ** 2), 255),
        (_filtered(0.1, variance=(27 * 0.1) ** 2), 1),
        (_filtered(0.0, variance=1.0), 1),
    ],
)
def test_filters_that_see_nothing_in_small_pixels_read_bytes(
    proto: onnx.ModelProto, high: float, tmp_path: Path
) -> None:
    assert _values(proto, tmp_path) == ("uniform", 0 if high == 255 else -1, high)


def test_filters_behind_what_moves_pixels_say_it_too(tmp_path: Path) -> None:
    proto = _filtered(0.01, bias=1.0)
    first = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Identity", ["t"], ["i"])]
    filters = proto.graph.node[0]
    filters.input[0] = "i"
    moved = [*first, filters]
    weights = list(proto.graph.initializer)
    last = model(moved, [value("x", (1, *_OPEN, 3))], [value("y", None)], weights)
    assert _values(last, tmp_path) == ("uniform", 0, 255)


def test_a_file_says_more_of_pixels_than_weights(tmp_path: Path) -> None:
    config = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    assert _values(_filtered(0.01, bias=1.0), tmp_path) == ("uniform", -1, 1)


def test_bytes_stay_bytes(tmp_path: Path) -> None:
    steps = [("Cast", {"to": FLOAT}), ("Div", 255.0)]
    proto = _chain(steps, (8, 3, 3, 3), (1, 3, *_OPEN), kind=TensorProto.UINT8)
    assert _values(proto, tmp_path) == ("integers", 0, 255)


@pytest.mark.parametrize(
    ("config", "low", "high"),
    [
        ({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}, -1, 1),
        ({"image_mean": [0.485, 0.4], "image_std": [0.25, 0.2]}, -2, 3),
        ({"image_mean": [0.5], "image_std": [0.5], "do_normalize": False}, 0, 1),
        ({"image_mean": [0], "image_std": [1], "do_rescale": False}, 0, 255),
        ({"image_mean": [0.5], "image_std": [0]}, -1, 1),
        ({"image_mean": "0.5", "image_std": [1]}, -1, 1),
        ({}, -1, 1),
    ],
)
def test_a_processor_beside_the_model_says_it(
    config: dict[str, object], low: float, high: float, tmp_path: Path
) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    found = _values(_chain([], (8, 3, 3, 3), (1, 3, *_OPEN)), tmp_path)
    assert found == ("uniform", low, high)


def test_a_sound_of_whole_numbers_has_16_bits(tmp_path: Path) -> None:
    steps = [("Cast", {"to": FLOAT}), ("Div", 32768.0)]
    proto = _chain(steps, (8, 1, 400), (1, 1, "n"), kind=TensorProto.INT16)
    assert _values(proto, tmp_path) == ("integers", -16384, 16384)


def test_a_sound_is_followed_into_branches_and_out_of_them(tmp_path: Path) -> None:
    inner = [
        onnx.helper.make_graph([node(op, ["x"], [op])], op, [], [value(op, None)])
        for op in ("Identity", "Cast")
    ]
    inner[1].node[0].attribute.append(onnx.helper.make_attribute("to", FLOAT))
    choice = node("If", ["long"], ["v"], then_branch=inner[0], else_branch=inner[1])
    proto = _chain([], (8, 1, 400), (1, 1, "n"))
    proto.graph.node[0].input[0] = "v"
    proto.graph.node.insert(0, choice)
    proto.graph.input.append(value("long", (), TensorProto.BOOL))
    assert _values(proto, tmp_path) == ("uniform", -0.5, 0.5)


def test_the_state_of_a_recurrent_layer_is_bounded(tmp_path: Path) -> None:
    inputs = [value("state", (1, 1, 4)), value("x", ("t", 1, 3))]
    layer = node("GRU", ["x", "w", "r", "", "", "state"], ["y"], hidden_size=4)
    weights = [weight("w", 1, 12, 3), weight("r", 1, 12, 4)]
    proto = model([layer], inputs, [value("y", None)], weights)
    assert _values(proto, tmp_path) == ("uniform", -1, 1)
