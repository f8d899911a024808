"""Models whose weights lie beside them, as files, as links, and as links to elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from pytest_ortbench.convert import external
from pytest_ortbench.convert.by_node import compare_nodes
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.recipe import Converted, Recipe
from tests.worker.graphs import weights

from .conversions import DYNAMIC, FP16, STATIC, mlp, outputs, refusal, sqnr_db

pytestmark = pytest.mark.live

SIMPLIFIED = Recipe(name="simplified", base="simplified")
OPTIMIZED = Recipe(name="optimized", base="optimized")
ALL = [FP16, DYNAMIC, STATIC, SIMPLIFIED, OPTIMIZED]

#: Where the model says that its weights are.
LOCATION = "weights/data.bin"


def files(folder: Path, model: onnx.ModelProto | None = None) -> Path:
    """A model and its weights, as an exporter leaves them."""
    (folder / "weights").mkdir(parents=True)
    onnx.save(
        model or onnx.load_from_string(mlp()),
        str(folder / "m.onnx"),
        save_as_external_data=True,
        location=LOCATION,
        size_threshold=0,
    )
    return folder / "m.onnx"


def hub_cache(root: Path, model: onnx.ModelProto | None = None) -> Path:
    """As in the cache of a model hub: model and weights are links to files with other names."""
    source = files(root / "exported", model)
    blobs, snapshot = root / "blobs", root / "snapshots" / "1"
    blobs.mkdir()
    (snapshot / "weights").mkdir(parents=True)
    source.rename(blobs / "1111")
    (source.parent / LOCATION).rename(blobs / "2222")
    (snapshot / "m.onnx").symlink_to("../../blobs/1111")
    (snapshot / LOCATION).symlink_to("../../../blobs/2222")
    return snapshot / "m.onnx"


def hard_links(root: Path) -> Path:
    source = files(root / "exported")
    (root / "linked" / "weights").mkdir(parents=True)
    for name in ("m.onnx", LOCATION):
        os.link(source.parent / name, root / "linked" / name)
    return root / "linked" / "m.onnx"


def linked_within(root: Path) -> Path:
    """The folder of the weights is a link to another one beside the model."""
    source = files(root / "exported")
    (source.parent / "weights").rename(source.parent / "kept")
    (source.parent / "weights").symlink_to("kept")
    return source


def linked_folder(root: Path) -> Path:
    """The model is a file, the folder of its weights a link to somewhere else."""
    source = files(root / "exported")
    (root / "linked").mkdir()
    shutil.copy(source, root / "linked" / "m.onnx")
    (root / "linked" / "weights").symlink_to(root / "exported" / "weights")
    return root / "linked" / "m.onnx"


def listing(folder: Path) -> list[str]:
    return sorted(str(item) for item in folder.rglob("*"))


def assert_computes_the_same(found: Path, recipe: Recipe) -> None:
    x = np.random.default_rng(5).standard_normal((2, 48)).astype(np.float32)
    w0, w1 = (weights(48, 48, seed=seed, scale=48**-0.5).astype(np.float32) for seed in range(2))
    expected = np.maximum(x @ w0, 0) @ w1
    (got,) = outputs(found, {"x": x})
    if recipe in (SIMPLIFIED, OPTIMIZED):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    else:
        assert sqnr_db(expected, got) > (50 if recipe is FP16 else 15)


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.base)
@pytest.mark.parametrize("layout", [hub_cache, hard_links, linked_within])
def test_linked_weights_are_converted(
    make: Callable[..., Converted],
    tmp_path: Path,
    layout: Callable[[Path], Path],
    recipe: Recipe,
) -> None:
    source = layout(tmp_path / "source")
    before = listing(tmp_path / "source")
    result = make(source, recipe)
    assert listing(tmp_path / "source") == before
    assert listing(tmp_path / "out") == [str(tmp_path / "out" / "model.onnx")]
    assert result.external_files == ()
    assert_computes_the_same(tmp_path / "out" / "model.onnx", recipe)


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.base)
def test_weights_behind_a_link_out_of_the_folder_are_refused(
    make: Callable[..., Converted], tmp_path: Path, recipe: Recipe
) -> None:
    source = linked_folder(tmp_path / "source")
    before = listing(tmp_path / "source")
    with pytest.raises(ModelError) as refused:
        make(source, recipe)
    assert refused.value.place == str(source)
    assert LOCATION in refused.value.message
    assert listing(tmp_path / "source") == before
    assert listing(tmp_path / "out") == []


@pytest.mark.parametrize("recipe", [SIMPLIFIED, OPTIMIZED], ids=lambda recipe: recipe.base)
def test_a_graph_made_of_weights_beside_it_does_not_point_back_at_them(
    make: Callable[..., Converted], tmp_path: Path, recipe: Recipe
) -> None:
    source = files(tmp_path / "source")
    result = make(source, recipe)
    shutil.rmtree(source.parent)
    assert result.external_files == ()
    assert result.size_bytes > 4 * 2 * 48 * 48
    assert_computes_the_same(tmp_path / "out" / "model.onnx", recipe)


def test_nan_in_linked_weights_is_still_the_reason(
    make: Callable[..., Converted], tmp_path: Path
) -> None:
    model = onnx.load_from_string(mlp())
    broken = np.full((48, 48), np.nan, np.float32)
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(broken, "w1"))
    failure = refusal(make, hub_cache(tmp_path / "source", model), DYNAMIC)
    assert "the weight 'w1' " in failure.message


def test_nodes_of_linked_models_are_compared(
    make: Callable[..., Converted], tmp_path: Path
) -> None:
    source = hub_cache(tmp_path / "source")
    make(source, FP16)
    spec = InputSpec(name="x", type="tensor(float)", shape=(2, 48), hint=ValueHint(kind="normal"))
    found = compare_nodes(
        str(source), str(tmp_path / "out" / "model.onnx"), (spec,), seed=0, samples=1
    )
    assert "mm0" in [node.node for node in found.nodes]
    assert all((node.sqnr_db or 99) > 50 for node in found.nodes)


def test_only_linked_weights_are_copied(tmp_path: Path) -> None:
    plain = files(tmp_path / "plain")
    assert external.at_hand(plain, tmp_path / "copy") == plain
    assert not (tmp_path / "copy").exists()
    linked = hub_cache(tmp_path / "linked")
    copied = external.at_hand(linked, tmp_path / "copy")
    assert copied == tmp_path / "copy" / "m.onnx"
    assert copied.read_bytes() == linked.read_bytes()
    assert (tmp_path / "copy" / LOCATION).read_bytes() == (linked.parent / LOCATION).read_bytes()


def test_weights_elsewhere_are_not_copied_along(tmp_path: Path) -> None:
    """A model must not make us write outside of the scratch folder."""
    source = hub_cache(tmp_path / "source")
    model = onnx.load(str(source), load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = f"../1/{LOCATION}"
    source.unlink()
    source.write_bytes(model.SerializeToString())
    assert external.at_hand(source, tmp_path / "a" / "copy") == source
    assert not (tmp_path / "a").exists()
