"""The first part of a source whose value no node of the file gives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import NodeProto, helper

from pytest_ortbench.passes.export_check.facts import FirstDifference
from pytest_ortbench.passes.export_check.questions import SourcePart
from pytest_ortbench.passes.export_check.worker.first_difference import (
    first_difference_of,
    nodes_of_parts,
    paths_of,
)

PARTS = tuple(
    SourcePart(path=path, kind=kind)
    for path, kind in (("conv", "Conv2d"), ("norm", "BatchNorm2d"), ("act", "ReLU"), ("", "Net"))
)
DRAW = np.random.default_rng(0)
VALUES = {part.path: DRAW.normal(size=(2, 4)).astype("float32") for part in PARTS}


def node(op_type: str, fed: str, made: str, *scopes: str) -> NodeProto:
    entry = helper.make_node(op_type, [fed], [made], name=f"node_{made}")
    scope = entry.metadata_props.add()
    scope.key, scope.value = "pkg.torch.onnx.name_scopes", repr(["", *scopes, made])
    return entry


#: The convolution, the normalisation, and what is made of them.
CHAIN = {
    "a": node("Conv", "x", "a", "conv"),
    "b": node("BatchNormalization", "a", "b", "norm"),
    "c": node("Relu", "b", "c", "act"),
    "d": node("Add", "c", "d"),
}
RIGHT = {"a": VALUES["conv"], "b": VALUES["norm"], "c": VALUES["act"], "d": VALUES[""]}


def differing(
    given: Mapping[str, object], chain: Mapping[str, NodeProto] = CHAIN
) -> FirstDifference:
    nodes = nodes_of_parts(chain, VALUES)
    return first_difference_of(PARTS, VALUES, nodes, given, chain, near_db=120.0)


def test_paths_are_read_as_both_exporters_write_them() -> None:
    assert paths_of(node("Conv", "x", "a", "blocks", "blocks.0")) == ("", "blocks", "blocks.0")
    scripted = helper.make_node("Conv", ["x"], ["a"], name="/blocks/blocks.0/conv/Conv")
    assert paths_of(scripted) == ("", "blocks", "blocks.0", "blocks.0.conv")
    assert paths_of(helper.make_node("Conv", ["x"], ["a"], name="conv")) == ()


def test_the_first_part_that_differs_is_named_with_its_node() -> None:
    wrong = {
        name: value * (1 if name == "a" else np.float32(1.001)) for name, value in RIGHT.items()
    }
    difference = differing(wrong)
    assert (difference.module, difference.kind) == ("norm", "BatchNorm2d")
    assert (difference.node, difference.op_type) == ("node_b", "BatchNormalization")
    assert difference.sqnr_db == pytest.approx(60, abs=0.1)
    assert (difference.after, difference.is_fed_wrong) == ("conv", False)
    assert (difference.compared, difference.matched) == (4, 1)


def test_what_differs_between_parts_is_no_fault_of_the_next_one() -> None:
    chain = {
        **CHAIN,
        "between": node("Mul", "a", "between"),
        "b": node("Relu", "between", "b", "norm"),
    }
    wrong = {name: value * (1 if name == "a" else np.float32(2)) for name, value in RIGHT.items()}
    difference = differing({**wrong, "between": VALUES["conv"] * np.float32(3)}, chain)
    assert (difference.module, difference.after, difference.is_fed_wrong) == ("norm", "conv", True)


def test_a_convolution_that_took_the_normalisation_behind_it_agrees() -> None:
    chain = {name: entry for name, entry in CHAIN.items() if name != "b"}
    given = {"a": VALUES["norm"], "c": VALUES["act"], "d": VALUES[""] * np.float32(2)}
    difference = differing(given, chain)
    assert (difference.module, difference.kind, difference.node) == ("", "Net", "node_d")


def test_nodes_without_a_path_leave_the_question_open() -> None:
    chain = {"a": helper.make_node("Conv", ["x"], ["a"])}
    difference = differing({"a": VALUES["conv"]}, chain)
    assert difference.reason
    assert differing(RIGHT).reason


@pytest.mark.parametrize("value", [np.full((2, 4), np.nan, "float32"), np.empty((0, 4), "float32")])
def test_a_part_that_says_nothing_neither_agrees_nor_differs(value: object) -> None:
    values = {**VALUES, "norm": value}
    nodes = nodes_of_parts(CHAIN, values)
    given = {**RIGHT, "b": value, "c": VALUES["act"] * np.float32(2)}
    difference = first_difference_of(PARTS, values, nodes, given, CHAIN, near_db=120.0)
    assert (difference.module, difference.after) == ("act", "conv")
    assert (difference.compared, difference.matched) == (3, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_only_the_file_lacks_differ(value: float) -> None:
    difference = differing({**RIGHT, "b": np.full((2, 4), value, "float32")})
    assert (difference.module, difference.sqnr_db) == ("norm", None)
    assert (difference.compared, difference.matched) == (4, 3)
