"""A detector whose weights nobody trained: it compares each place of a frame with three shapes.

``python detector.py`` writes ``shapes.onnx``. Each shape is a kernel of a convolution, less its
mean; the largest answer in its neighbourhood is a shape, and its kernel is the class.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from shapes import CLASSES, HEIGHT, SIZES, WIDTH, mask_of

#: The convolution sees every second pixel.
STEP = 2
#: Pixels of a kernel, and of the neighbourhood in which one shape is.
KERNEL, AROUND = 21, 17
#: Boxes of a frame at most.
MOST = 8


def kernels() -> np.ndarray:
    """Return one kernel a class, of length 1 and mean 0: how a shape looks on a dark ground."""
    y, x = (np.mgrid[:KERNEL, :KERNEL] - KERNEL // 2) * STEP
    shapes = np.stack([mask_of(kind, x, y, *SIZES[name]) for kind, name in enumerate(CLASSES)])
    centred = shapes - shapes.mean(axis=(1, 2), keepdims=True)
    return (centred / np.linalg.norm(centred, axis=(1, 2), keepdims=True))[:, None]


def build() -> onnx.ModelProto:
    """Return the graph: bytes ``[n, 240, 320, 3]`` to ``[n, 8, 6]``, box, score and class."""
    rows, columns = HEIGHT // STEP, WIDTH // STEP
    weights = kernels()
    # What a white shape on black answers.
    largest = np.abs(weights).sum(axis=(1, 2, 3)).max() / 2
    sizes = np.array([SIZES[name] for name in CLASSES], np.float32)
    constants = {
        "weights": (weights / largest / 255).astype(np.float32),
        "plane": np.array([0, 1, HEIGHT, WIDTH]),
        "flat": np.array([0, rows * columns]),
        "most": np.array([MOST]),
        "columns": np.array(columns),
        "step": np.float32(STEP),
        "middle": np.float32(STEP / 2),
        "widths": sizes[:, 0] / 2,
        "heights": sizes[:, 1] / 2,
        "zero": np.float32(0),
        "one": np.float32(1),
        "right edge": np.float32(WIDTH),
        "low edge": np.float32(HEIGHT),
        "last": np.array([2]),
    }
    pad = KERNEL // 2
    nodes = [
        helper.make_node("Cast", ["frame"], ["values"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["values"], ["grey"], axes=[3], keepdims=0),
        helper.make_node("Reshape", ["grey", "plane"], ["image"]),
        helper.make_node(
            "AveragePool", ["image"], ["small"], kernel_shape=[STEP] * 2, strides=[STEP] * 2
        ),
        helper.make_node("Conv", ["small", "weights"], ["answers"], pads=[pad] * 4),
        helper.make_node("ReduceMax", ["answers"], ["best"], axes=[1], keepdims=1),
        helper.make_node("ArgMax", ["answers"], ["kinds"], axis=1, keepdims=1),
        helper.make_node(
            "MaxPool", ["best"], ["around"], kernel_shape=[AROUND] * 2, pads=[AROUND // 2] * 4
        ),
        helper.make_node("Equal", ["best", "around"], ["is peak"]),
        helper.make_node("Where", ["is peak", "best", "zero"], ["peaks"]),
        helper.make_node("Reshape", ["peaks", "flat"], ["all peaks"]),
        helper.make_node("Reshape", ["kinds", "flat"], ["all kinds"]),
        helper.make_node("TopK", ["all peaks", "most"], ["found", "places"], axis=1),
        helper.make_node("Clip", ["found", "zero", "one"], ["scores"]),
        helper.make_node("GatherElements", ["all kinds", "places"], ["kind"], axis=1),
        helper.make_node("Cast", ["kind"], ["class"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["places", "columns"], ["row"]),
        helper.make_node("Mod", ["places", "columns"], ["column"]),
    ]
    for axis, place, size in (("x", "column", "widths"), ("y", "row", "heights")):
        edge = "right edge" if axis == "x" else "low edge"
        nodes += [
            helper.make_node("Cast", [place], [f"{axis} steps"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{axis} steps", "step"], [f"{axis} corner"]),
            helper.make_node("Add", [f"{axis} corner", "middle"], [f"{axis} centre"]),
            helper.make_node("Gather", [size, "kind"], [f"{axis} half"]),
            helper.make_node("Sub", [f"{axis} centre", f"{axis} half"], [f"{axis} from"]),
            helper.make_node("Add", [f"{axis} centre", f"{axis} half"], [f"{axis} to"]),
            helper.make_node("Clip", [f"{axis} from", "zero", edge], [f"{axis} first"]),
            helper.make_node("Clip", [f"{axis} to", "zero", edge], [f"{axis} last"]),
        ]
    parts = ["x first", "y first", "x last", "y last", "scores", "class"]
    nodes += [helper.make_node("Unsqueeze", [name, "last"], [f"{name} of each"]) for name in parts]
    nodes.append(
        helper.make_node("Concat", [f"{name} of each" for name in parts], ["boxes"], axis=2)
    )
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("frame", TensorProto.UINT8, ["n", HEIGHT, WIDTH, 3])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", MOST, 6])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    # What --ort-dataset=coco: compares with the categories of its file.
    helper.set_model_props(model, {"names": str(dict(enumerate(CLASSES)))})
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    onnx.save(build(), "shapes.onnx")
    print(f"shapes.onnx: {Path('shapes.onnx').stat().st_size} bytes")
