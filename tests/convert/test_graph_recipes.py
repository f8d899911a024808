"""Recipes that change the graph and no precision: simplified, and optimised offline."""

from __future__ import annotations

import builtins
import logging
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.convert import graph, memory, offline
from pytest_ortbench.convert.make import convert
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.recipe import Conversion, Converted, Recipe
from tests.convert.conversions import conversion_of
from tests.worker.graphs import serialised, value, weights, wordy
from tests.worker.sessions import cpu_session

pytestmark = pytest.mark.live

FLOAT = TensorProto.FLOAT

SIMPLIFIED = Recipe(name="simplified", base="simplified")
OPTIMIZED = Recipe(name="optimized", base="optimized")

Make = Callable[..., Converted]


def quantised() -> bytes:
    """A trained quantised product, as its file stores it."""
    return serialised(
        [
            helper.make_node("Identity", ["x"], ["x0"], name="id"),
            helper.make_node("QuantizeLinear", ["x0", "s", "z"], ["q"], name="q"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dq"),
            helper.make_node("DequantizeLinear", ["wq", "s"], ["wd"], name="dqw"),
            helper.make_node("MatMul", ["d", "wd"], ["y"], name="mm"),
        ],
        [value("x", FLOAT, ["N", 16])],
        [value("y", FLOAT, ["N", 16])],
        {
            "wq": (weights(16, 16) * 40).astype(np.int8),
            "s": np.float32(8 / 255),
            "z": np.uint8(128),
        },
    )


@pytest.fixture(autouse=True)
def _tools_stay_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a worker the process is given up after the conversion; this one goes on.
    monkeypatch.setattr(memory, "_cap", lambda _: None)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Convert a serialised model; the result lies in ``tmp_path / "out"``."""

    def run(source: bytes, recipe: Recipe, **changed: Any) -> Converted:
        path = tmp_path / "in" / "m.onnx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source)
        conversion = conversion_of(path, recipe)
        out = tmp_path / "out"
        out.mkdir()
        made = convert(replace(conversion, **changed), out, lambda _: None)
        assert [each.name for each in path.parent.iterdir()] == ["m.onnx"]
        return made

    return run


def made(tmp_path: Path) -> onnx.ModelProto:
    return onnx.load(str(tmp_path / "out" / "model.onnx"))


def outputs(content: bytes) -> np.ndarray[Any, Any]:
    feed = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)
    found: np.ndarray[Any, Any] = cpu_session(content, optimise=False).run(None, {"x": feed})[0]
    return found


def test_a_simplified_graph_does_the_same_with_fewer_nodes(make: Make, tmp_path: Path) -> None:
    converted = make(wordy(), SIMPLIFIED)
    model = made(tmp_path)
    left = [node.op_type for node in model.graph.node]
    assert "Tanh" not in left
    assert "Identity" not in left
    assert converted.facts["nodes"] == f"10 → {len(left)}"
    assert len(left) < 5
    assert converted.facts["simplified_by"].startswith("onnxslim ")
    assert converted.notes == ()
    np.testing.assert_allclose(
        outputs(model.SerializeToString()), outputs(wordy()), rtol=1e-5, atol=1e-6
    )


def test_a_graph_with_nothing_to_simplify_says_so(make: Make) -> None:
    plain = serialised(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        [value("x", FLOAT, ["N", 16])],
        [value("y", FLOAT, ["N", 16])],
        {"w": weights(16, 16)},
    )
    converted = make(plain, SIMPLIFIED)
    (note,) = converted.notes
    assert note.startswith("onnxslim ")
    assert converted.facts["nodes"] == "1 → 1"


def test_a_recipe_may_simplify_before_it_converts(make: Make, tmp_path: Path) -> None:
    recipe = Recipe(
        name="slim8", base="int8-dynamic", weight_type="uint8", simplify=True, preprocess=False
    )
    converted = make(wordy(), recipe)
    assert converted.facts["nodes"].startswith("10 → ")
    assert converted.facts["weights"].endswith(" int8-dynamic")
    assert "Identity" not in {node.op_type for node in made(tmp_path).graph.node}


@pytest.mark.parametrize("recipe", [SIMPLIFIED, OPTIMIZED], ids=lambda recipe: recipe.name)
def test_a_quantised_file_keeps_its_numbers(make: Make, recipe: Recipe, tmp_path: Path) -> None:
    make(quantised(), recipe)
    stored = {tensor.data_type for tensor in made(tmp_path).graph.initializer}
    assert TensorProto.INT8 in stored
    np.testing.assert_allclose(
        outputs(made(tmp_path).SerializeToString()), outputs(quantised()), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_an_offline_optimised_file_is_what_onnx_runtime_saved(
    make: Make, level: str, tmp_path: Path
) -> None:
    converted = make(wordy(), replace(OPTIMIZED, level=level))
    model = made(tmp_path)
    assert converted.facts["nodes"] == f"10 → {len(model.graph.node)}"
    # Constants are folded; ONNX Runtime keeps what leads nowhere.
    assert not {"Add", "Mul"} & {node.op_type for node in model.graph.node}
    (note,) = converted.notes
    assert f" level {level}" in note
    assert ("hardware" in note) == (level == "all")
    np.testing.assert_allclose(
        outputs(model.SerializeToString()), outputs(wordy()), rtol=1e-5, atol=1e-6
    )


def test_large_weights_of_an_optimised_graph_lie_beside_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (offline, graph):
        monkeypatch.setattr(module, "INLINE_LIMIT", 2000)
    large = serialised(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        [value("x", FLOAT, ["N", 16])],
        [value("y", FLOAT, ["N", 64])],
        {"w": weights(16, 64)},
    )
    converted = make(large, OPTIMIZED)
    assert converted.external_files == ("model.onnx.data",)
    assert converted.size_bytes > 16 * 64 * 4
    path = tmp_path / "out" / "model.onnx"
    assert path.stat().st_size < 2000
    assert onnx.load(str(path)).graph.initializer[0].dims[:] == [16, 64]


def test_without_the_package_the_extra_is_named(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "onnxslim":
            raise ModuleNotFoundError("No module named 'onnxslim'", name="onnxslim")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(WorkerError) as error:
        make(wordy(), SIMPLIFIED)
    failure = error.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "convert")
    assert " onnxslim, " in failure.message
    assert "'pytest-ortbench[simplify]'" in failure.hint


def test_resize_and_control_flow_survive(make: Make, tmp_path: Path) -> None:
    """A branch inside: its nodes count, and stay."""
    branch = [
        helper.make_graph(
            [helper.make_node(op, ["x"], [f"{op}_out"])],
            op,
            [],
            [value(f"{op}_out", FLOAT, ["N", 16])],
        )
        for op in ("Relu", "Neg")
    ]
    model = serialised(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"]),
            helper.make_node(
                "If", ["positive"], ["y"], then_branch=branch[0], else_branch=branch[1]
            ),
        ],
        [value("x", FLOAT, ["N", 16])],
        [value("y", FLOAT, ["N", 16])],
        {"zero": np.float32(0)},
    )
    converted = make(model, SIMPLIFIED)
    assert converted.facts["nodes"].startswith("5 → ")
    np.testing.assert_array_equal(outputs(made(tmp_path).SerializeToString()), outputs(model))


def test_the_layout_of_this_machine_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ortbench.convert import variants

    def key(recipe: Recipe) -> str:
        return variants.variant_key(
            Conversion(
                recipe=recipe, source="", digest="d", size_bytes=1, own_precision="fp32", inputs=()
            )
        )

    extended, tied = OPTIMIZED, replace(OPTIMIZED, level="all")
    before = key(extended), key(tied)
    assert before[0] != before[1]
    variants._hardware.cache_clear()
    monkeypatch.setattr(platform, "machine", lambda: "another")
    try:
        assert key(extended) == before[0]
        assert key(tied) != before[1]
    finally:
        variants._hardware.cache_clear()


def test_another_version_of_the_simplifier_makes_another_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pytest_ortbench.convert import variants

    def keys() -> list[str]:
        return [
            variants.variant_key(
                Conversion(
                    recipe=recipe,
                    source="",
                    digest="d",
                    size_bytes=1,
                    own_precision="fp32",
                    inputs=(),
                )
            )
            for recipe in (SIMPLIFIED, replace(OPTIMIZED, simplify=True), OPTIMIZED)
        ]

    before = keys()
    real = variants._version
    monkeypatch.setattr(
        variants, "_version", lambda name: "9.9" if name == "onnxslim" else real(name)
    )
    after = keys()
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]


def listed(ir_version: int) -> bytes:
    """A convolution and a normalisation, all of whose weights are inputs."""
    parts = ("scale", "bias", "mean", "var")
    tensors = {"w": weights(8, 4, 3, 3, scale=0.2), **dict.fromkeys(parts, np.ones(8, np.float32))}
    model = onnx.load_from_string(
        serialised(
            [
                helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
                helper.make_node("BatchNormalization", ["c", *parts], ["y"], name="norm"),
            ],
            [value("x", FLOAT, ["N", 4, 12, 12])],
            [value("y", FLOAT, ["N", 8, 12, 12])],
            tensors,
        )
    )
    for name, tensor in tensors.items():
        model.graph.input.append(value(name, FLOAT, tensor.shape))
    model.ir_version = ir_version
    return model.SerializeToString()


@pytest.mark.parametrize("base", ["cleaned", "optimized", "simplified", "fp16", "int8-dynamic"])
def test_a_graph_is_made_without_weights_among_its_inputs(
    make: Make, tmp_path: Path, base: str
) -> None:
    converted = make(listed(8), Recipe(name=base, base=base, weight_type="uint8"))
    model = made(tmp_path)
    assert [info.name for info in model.graph.input] == ["x"]
    assert sum("5 weights" in note for note in converted.notes) == 1
    if base == "optimized":
        assert [node.op_type for node in model.graph.node] == ["Conv"]


def test_weights_of_old_files_are_constants_all_the_same(make: Make, tmp_path: Path) -> None:
    converted = make(listed(3), Recipe(name="fp16", base="fp16"))
    model = made(tmp_path)
    assert ([info.name for info in model.graph.input], model.ir_version) == (["x"], 4)
    assert not any("5 weights" in note for note in converted.notes)


def test_external_weights_of_a_cleaned_graph_come_along(tmp_path: Path) -> None:
    source = tmp_path / "external" / "m.onnx"
    source.parent.mkdir()
    onnx.save(
        onnx.load_from_string(listed(8)),
        str(source),
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    (tmp_path / "out").mkdir()
    cleaned = conversion_of(source, Recipe(name="cleaned", base="cleaned"))
    convert(cleaned, tmp_path / "out", lambda _: None)
    model = made(tmp_path)
    assert {tensor.name: len(tensor.raw_data) for tensor in model.graph.initializer}["w"] == 1152
