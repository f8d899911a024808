"""A variant asks of a runtime what its source asks, and what its own operators need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.convert.graph import keep_versions
from pytest_ortbench.core.recipe import Converted, Recipe
from tests.worker.graphs import value, weights

from .conversions import DYNAMIC, FLOAT, FP16, STATIC, made

OPTIMISED = Recipe(name="optimized", base="optimized")
SIMPLIFIED = Recipe(name="simplified", base="simplified")
INT4 = Recipe(name="int4", base="int4")


def product(*, opset: int = 17, ir_version: int = 8, more: tuple[str, ...] = ()) -> onnx.ModelProto:
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
            helper.make_node("Relu", ["m"], ["y"], name="relu"),
        ],
        "g",
        [value("x", FLOAT, ["N", 64])],
        [value("y", FLOAT, ["N", 64])],
        [numpy_helper.from_array(weights(64, 64, scale=0.1), "w")],
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in more)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def imports(model: onnx.ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in model.opset_import}


@pytest.mark.live
@pytest.mark.parametrize(
    ("recipe", "added"),
    [
        (STATIC, {}),
        (DYNAMIC, {}),
        (OPTIMISED, {}),
        (SIMPLIFIED, {}),
        (FP16, {}),
        (INT4, {"com.microsoft": 1}),
    ],
    ids=lambda case: getattr(case, "name", None),
)
def test_no_operator_set_is_named_that_no_node_uses(
    make: Callable[..., Converted], tmp_path: Path, recipe: Recipe, added: dict[str, int]
) -> None:
    converted = make(product().SerializeToString(), recipe)
    model = made(tmp_path)
    assert imports(model) == {"": 17, **added}
    assert model.ir_version == 8
    assert not any("operator set" in note for note in converted.notes)


@pytest.mark.live
def test_an_operator_set_that_had_to_be_raised_is_said(
    make: Callable[..., Converted], tmp_path: Path
) -> None:
    converted = make(product(opset=9, ir_version=4).SerializeToString(), DYNAMIC)
    assert imports(made(tmp_path)) == {"": 11}
    assert made(tmp_path).ir_version == 4
    assert sum("operator set 11 of ai.onnx" in note for note in converted.notes) == 1


def written(folder: Path, name: str, model: onnx.ModelProto) -> Path:
    path = folder / name
    onnx.save(model, str(path))
    return path


def test_what_the_source_names_stays(tmp_path: Path) -> None:
    source = written(tmp_path, "s.onnx", product(more=("ai.onnx.ml",)))
    target = written(tmp_path, "t.onnx", product(more=("ai.onnx.ml", "com.microsoft.nchwc")))
    assert keep_versions(source, target) == ()
    assert imports(onnx.load(str(target))) == {"": 17, "ai.onnx.ml": 1}


def test_domains_of_branches_and_functions_are_used(tmp_path: Path) -> None:
    inner = helper.make_graph(
        [helper.make_node("Gelu", ["x"], ["o"], domain="com.microsoft")],
        "branch",
        [],
        [value("o", FLOAT, ["N", 64])],
    )
    model = product(more=("com.microsoft", "own", "unused"))
    model.graph.node.append(
        helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    )
    function = helper.make_function("own", "F", ["a"], ["b"], [], [helper.make_opsetid("", 17)])
    model.functions.append(function)
    target = written(tmp_path, "t.onnx", model)
    keep_versions(written(tmp_path, "s.onnx", product()), target)
    assert imports(onnx.load(str(target))) == {"": 17, "com.microsoft": 1, "own": 1}


def test_an_ir_version_is_raised_only_for_types_that_ask_for_it(tmp_path: Path) -> None:
    source = written(tmp_path, "s.onnx", product())
    target = written(tmp_path, "t.onnx", product(ir_version=11))
    keep_versions(source, target)
    assert onnx.load(str(target)).ir_version == 8
    model = product(ir_version=11)
    model.graph.initializer.append(onnx.TensorProto(name="i", data_type=onnx.TensorProto.INT4))
    keep_versions(source, written(tmp_path, "t.onnx", model))
    assert onnx.load(str(target)).ir_version == 11


def test_external_weights_stay_where_they_are(tmp_path: Path) -> None:
    source = written(tmp_path, "s.onnx", product())
    target = tmp_path / "t.onnx"
    onnx.save(
        product(more=("unused",)),
        str(target),
        save_as_external_data=True,
        location="t.data",
        size_threshold=0,
    )
    data = (tmp_path / "t.data").read_bytes()
    keep_versions(source, target)
    assert imports(onnx.load(str(target))) == {"": 17}
    assert (tmp_path / "t.data").read_bytes() == data
    assert target.stat().st_size < len(data)
