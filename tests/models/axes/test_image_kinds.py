"""What an image is looked at for, by the graph that reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx
import pytest

from pytest_ortbench.core.model import IMAGE_KINDS
from pytest_ortbench.models.axes.tracking import walked
from pytest_ortbench.models.inspection import declared_inputs
from pytest_ortbench.planning.default_sizes import OF_IMAGE_KINDS, Place, default_size
from tests.models.graphs import FLOAT, INT64, constant, model, node, value, weight

_HALF = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
_PICTURE = ("N", 3, "H", "W")


def _graph(
    nodes: list[onnx.NodeProto],
    *weights: onnx.TensorProto,
    shape: tuple[Any, ...] = _PICTURE,
    outputs: tuple[str, ...] = ("y",),
) -> Any:
    declared = [value(name, None, FLOAT) for name in outputs]
    filters = [] if any(one.name == "w" for one in weights) else [weight("w", 8, 3, 3, 3)]
    return model(nodes, [value("x", list(shape))], declared, [*filters, *weights])


def _halved(result: str = "c", **changed: Any) -> onnx.NodeProto:
    return node("Conv", ["x", "w"], [result], **{**_HALF, **changed})


_CLASSES = (
    node("GlobalAveragePool", ["c"], ["g"]),
    node("Flatten", ["g"], ["y"]),
)
_COLUMNS = (
    node("ReduceMean", ["c"], ["m"], axes=[2], keepdims=0),
    node("Transpose", ["m"], ["y"], perm=[0, 2, 1]),
)
_UP = node("ConvTranspose", ["c", "up"], ["t"], strides=[2, 2])

KINDS = {
    "text detector": (_graph([_halved(), _UP, node("Sigmoid", ["t"], ["y"])],
                             weight("up", 8, 1, 2, 2)), "page"),
    "depth of pixels, resized": (
        _graph([_halved(), node("Conv", ["c", "one"], ["t"]),
                node("Resize", ["t", "", "twice"], ["y"])],
               weight("one", 1, 8, 1, 1), constant("twice", [1, 1, 2, 2], "float32")), "page"),
    "classes of pixels": (_graph([_halved(), node("ConvTranspose", ["c", "up"], ["y"],
                                                  strides=[2, 2])],
                                 weight("up", 8, 21, 2, 2)), "map"),
    "several maps of one channel": (
        _graph([_halved(), _UP, node("Sigmoid", ["t"], ["y"]), node("Tanh", ["t"], ["z"])],
               weight("up", 8, 1, 2, 2), outputs=("y", "z")), "map"),
    "all places in one axis": (_graph([_halved(), node("Reshape", ["c", "flat"], ["y"])],
                                      constant("flat", [0, 8, -1])), "boxes"),
    "maps of several scales": (
        _graph([_halved("a", strides=[8, 8]), _halved("b", strides=[16, 16]),
                node("Relu", ["a"], ["y"]), node("Relu", ["b"], ["z"])], outputs=("y", "z")),
        "boxes"),
    "line of a fixed height": (
        _graph([_halved(), *_COLUMNS], shape=("N", 3, 32, "W")), "line"),
    "line by its steps": (_graph([_halved(strides=[2, 1]), *_COLUMNS]), "line"),
    "direction of a line": (_graph([_halved(strides=[2, 1]), *_CLASSES]), "turned line"),
    "classes": (_graph([_halved(), *_CLASSES]), ""),
    "a filter": (_graph([_halved("y", strides=[1, 1])]), ""),
    "one coarse map": (_graph([node("Conv", ["x", "w"], ["y"], strides=[32, 32])]), ""),
    "larger image": (
        _graph([node("Resize", ["x", "", "four"], ["y"])],
               constant("four", [1, 1, 4, 4], "float32")), ""),
    "patches of a transformer": (
        _graph([node("Conv", ["x", "p"], ["c"], strides=[8, 8]),
                node("Reshape", ["c", "flat"], ["y"])],
               weight("p", 8, 3, 8, 8), constant("flat", [0, 8, -1])), ""),
    "fixed sides": (_graph([_halved(), _UP, node("Sigmoid", ["t"], ["y"])],
                           weight("up", 8, 1, 2, 2), shape=("N", 3, 64, 64)), ""),
    "fixed sides, all places in one axis": (
        _graph([_halved("a", strides=[8, 8]), _halved("b", strides=[16, 16]),
                _halved("d", strides=[32, 32]),
                *(node("Reshape", [name, "flat"], [f"{name}f"]) for name in "abd"),
                node("Concat", ["af", "bf", "df"], ["y"], axis=2)],
               constant("flat", [0, 8, -1]), shape=("N", 3, 416, 640)), "boxes"),
    "fixed sides, three boxes a place": (
        _graph([_halved("a", strides=[8, 8]), _halved("b", strides=[16, 16]),
                _halved("d", strides=[32, 32]),
                *(node("Reshape", [name, "flat"], [f"{name}f"]) for name in "abd"),
                node("Concat", ["af", "bf", "df"], ["c"], axis=3),
                node("Transpose", ["c"], ["t"], perm=[0, 1, 3, 2]),
                node("Reshape", ["t", "rows"], ["y"])],
               weight("w", 24, 3, 3, 3), constant("flat", [0, 3, 8, -1]),
               constant("rows", [0, -1, 8]), shape=(1, 3, 416, 416)), "boxes"),
    "fixed sides, maps of several scales": (
        _graph([_halved("a", strides=[8, 8]), _halved("b", strides=[16, 16]),
                node("Relu", ["a"], ["y"]), node("Relu", ["b"], ["z"])],
               shape=(1, 3, 320, 320), outputs=("y", "z")), "boxes"),
    "fixed sides, classes": (_graph([_halved(), *_CLASSES], shape=(1, 3, 640, 640)), ""),
    "fixed sides, a map": (_graph([_halved(strides=[8, 8]), node("Relu", ["c"], ["y"])],
                                  shape=(1, 3, 512, 512)), ""),
    "channels that weights fix": (
        _graph([_halved(), node("Relu", ["c"], ["y"])], shape=("N", "C", "H", "W")), "map"),
    "no image": (
        _graph([_halved(), node("Relu", ["c"], ["y"])], weight("w", 8, 5, 3, 3),
               shape=("N", "C", "H", "W")), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_graph_shows_what_an_image_is_for(name: str) -> None:
    proto, kind = KINDS[name]
    roles = walked(proto, declared_inputs(proto.graph)).roles()["x"]
    sides = {role.axis: role.image for role in roles if role.image}
    assert set(sides.values()) == ({kind} if kind else set())
    assert not sides.keys() - {2, 3}
    assert all(bool(role.image_why) == bool(role.image) for role in roles)


def test_a_declared_size_counts_where_the_graph_can_not_be_followed() -> None:
    proto, _ = KINDS["fixed sides, classes"]
    unknown = onnx.ModelProto.FromString(proto.SerializeToString())
    unknown.graph.node.append(onnx.helper.make_node("Own", ["y"], ["z"], domain="com.acme"))
    del unknown.graph.output[:]
    unknown.graph.output.append(value("z", [1, 84, 8400]))
    roles = walked(unknown, declared_inputs(unknown.graph)).roles()["x"]
    assert {role.image for role in roles if role.axis in (2, 3)} == {"boxes"}


def test_channels_may_be_last() -> None:
    nodes = [
        node("Transpose", ["x"], ["f"], perm=[0, 3, 1, 2]),
        node("Conv", ["f", "one"], ["c"], strides=[2, 2]),
        node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
    ]
    proto = _graph(nodes, weight("one", 1, 3, 1, 1), shape=("N", "H", "W", 3))
    roles = walked(proto, declared_inputs(proto.graph)).roles()["x"]
    assert {role.axis for role in roles if role.image == "page"} == {1, 2}


def test_whole_numbers_are_no_image() -> None:
    nodes = [node("Cast", ["x"], ["f"], to=1), node("Conv", ["f", "one"], ["y"])]
    declared = [value("x", ["N", 3, "H", "W"], INT64)]
    proto = model(nodes, declared, [value("y", None, FLOAT)], [weight("one", 1, 3, 1, 1)])
    assert not any(role.image for role in walked(proto, declared_inputs(proto.graph)).roles()["x"])


def test_every_kind_has_sizes() -> None:
    assert OF_IMAGE_KINDS.keys() == IMAGE_KINDS.keys()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("text detector", {"H": 736, "W": 736}),
        ("classes of pixels", {"H": 512, "W": 512}),
        ("all places in one axis", {"H": 640, "W": 640}),
        ("line by its steps", {"H": 48, "W": 320}),
        ("line of a fixed height", {"W": 320}),
        ("direction of a line", {"H": 48, "W": 192}),
        ("classes", {"H": 224, "W": 224}),
    ],
)
def test_default_sizes_are_those_of_the_kind(name: str, sizes: dict[str, int]) -> None:
    proto, _ = KINDS[name]
    (info,) = declared_inputs(proto.graph)
    shape = tuple(info.shape or ())
    roles = walked(proto, [info]).roles()["x"]
    known = replace(info, roles=roles)
    for symbol, size in sizes.items():
        place = Place(info=known, shape=shape, axis=shape.index(symbol))
        assert default_size(symbol, [place])[0] == size
