"""Two networks that differ in the channels of one layer: a regression as people make them."""

from __future__ import annotations

import itertools
from pathlib import Path

#: Output channels of the last convolution: 64 and, for 7.1 % more multiply-accumulates, 80.
CHANNELS = (64, 80)

_SIZE = 28


def write_widened(folder: Path) -> tuple[Path, Path]:
    """Write both networks.

    Five 3 × 3 convolutions on 28 × 28: 32 → 64 → 64 → 64 → 64 channels, then the last one. With
    64 and with 80 channels there they have 101.2 and 108.4 million multiply-accumulates.

    Args:
        folder: Where to; it is made.

    Returns:
        The narrow and the wide one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    narrow, wide = (folder / f"convnet_{channels}.onnx" for channels in CHANNELS)
    for path, channels in ((narrow, CHANNELS[0]), (wide, CHANNELS[1])):
        _write(path, (32, 64, 64, 64, channels))
    return narrow, wide


def _write(path: Path, channels: tuple[int, ...]) -> None:
    import numpy as np
    import onnx  # a heavy import, only where the self-test needs it
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    nodes, weights, name = [], [], "image"
    for index, (before, after) in enumerate(itertools.pairwise(channels)):
        scale = (2 / (9 * before)) ** 0.5
        weight = draw.normal(0, scale, (after, before, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        nodes.append(
            helper.make_node("Conv", [name, f"w{index}"], [f"c{index}"], pads=[1, 1, 1, 1])
        )
        nodes.append(helper.make_node("Relu", [f"c{index}"], [f"r{index}"]))
        name = f"r{index}"
    nodes.append(helper.make_node("GlobalAveragePool", [name], ["features"]))
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, channels[0], _SIZE, _SIZE])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, channels[-1], 1, 1])],
        weights,
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), str(path))
