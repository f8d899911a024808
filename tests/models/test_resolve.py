"""From what a user typed to models."""

from __future__ import annotations

import shlex
from pathlib import Path

import onnx
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import Model
from pytest_ortbench.models import resolve
from pytest_ortbench.models.builders import BUILDERS
from pytest_ortbench.models.catalogue import CatalogueEntry
from pytest_ortbench.models.naming import Naming
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.planning.feeds import resolve_inputs, workloads
from pytest_ortbench.planning.sizes import ModelAxes
from tests.models.graphs import model, node, relu, value


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("ORTBENCH_OFFLINE", "1")


def save(path: Path, size: int = 4) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(relu(["N", size]), path)
    return path


def names(found: list[Model | BrokenModel]) -> list[str]:
    return [item.name for item in found]


def usage_error(spec: str, root: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve_models([spec], root=root)
    return caught.value


def test_file_relative_and_absolute_is_one_model(tmp_path: Path) -> None:
    path = save(tmp_path / "a" / "m.onnx")
    (found,) = resolve_models(["a/m.onnx", str(path), "./a/../a/m.onnx"], root=tmp_path)
    assert isinstance(found, Model)
    assert (found.name, found.path, found.source) == ("a/m", str(path), "file")


def test_folder_is_sorted_and_deep(tmp_path: Path) -> None:
    for name in ("zoo/b.onnx", "zoo/a.onnx", "zoo/sub/c.onnx", "zoo/.hidden/d.onnx"):
        save(tmp_path / name)
    (tmp_path / "zoo" / "notes.txt").write_text("x")
    assert names(resolve_models(["zoo"], root=tmp_path)) == ["zoo/a", "zoo/b", "zoo/sub/c"]


def test_globs(tmp_path: Path) -> None:
    for name in ("m1.onnx", "m2.onnx", "sub/m3.onnx", "m1.onnx.data"):
        save(tmp_path / name)
    assert names(resolve_models(["m*"], root=tmp_path)) == ["m1", "m2"]
    assert names(resolve_models(["**/*.onnx"], root=tmp_path)) == ["m1", "m2", "sub/m3"]
    naming = Naming(root=tmp_path)
    assert names(
        resolve_models([str(tmp_path / "*" / "*.onnx")], root=Path("/"), naming=naming)
    ) == ["sub/m3"]


def test_name_that_looks_like_a_glob(tmp_path: Path) -> None:
    save(tmp_path / "m[1].onnx")
    assert names(resolve_models(["m[1].onnx"], root=tmp_path)) == ["m[1]"]


def test_nothing_found_is_a_usage_error(tmp_path: Path) -> None:
    save(tmp_path / "model.onnx")
    (tmp_path / "empty").mkdir()
    error = usage_error("modle.onnx", tmp_path)
    assert error.place == "--ort-models"
    assert "'modle.onnx'" in error.message
    assert "'model.onnx'" in error.hint
    assert ".onnx" in usage_error("*.ort", tmp_path).message
    assert " 1 folder" in str(usage_error("emp*", tmp_path))
    assert "'empty'" in usage_error("empty", tmp_path).message
    assert str(tmp_path / "gone") in usage_error("gone/net.onnx", tmp_path).hint
    assert str(tmp_path / "empty") in usage_error("empty/net.onnx", tmp_path).hint
    assert "'ortbench models'" in usage_error("zoo:zzzzzzz", tmp_path).hint
    assert "empty" in usage_error(" ", tmp_path).message


def test_unknown_names_suggest_known_ones(tmp_path: Path) -> None:
    for name, nearest in (
        ("zoo:silero_vad", "zoo:silero-vad"),
        ("builtin:resnet5", "builtin:resnet50"),
        ("resnet50", "builtin:resnet50"),
        ("resnet", "builtin:resnet50"),
        ("zoo:resnet5", "builtin:resnet50"),
        ("magika", "zoo:magika"),
    ):
        assert repr(nearest) in usage_error(name, tmp_path).hint


def test_broken_file_does_not_stop_the_others(tmp_path: Path) -> None:
    save(tmp_path / "good.onnx")
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("not a model\n")
    (tmp_path / "folder.onnx").mkdir()
    found = resolve_models(["*.onnx"], root=tmp_path)
    assert names(found) == ["empty", "folder", "good", "text"]
    broken = {item.name: str(item.error) for item in found if isinstance(item, BrokenModel)}
    assert set(broken) == {"empty", "folder", "text"}
    for name, text in broken.items():
        assert text.startswith(str(tmp_path / f"{name}.onnx"))
        assert "\n" not in text
    assert len(set(broken.values())) == 3


def test_folder_named_like_a_model_is_an_error_of_that_model(tmp_path: Path) -> None:
    save(tmp_path / "m.onnx" / "inner.onnx")
    (found,) = resolve_models(["m.onnx"], root=tmp_path)
    assert isinstance(found, BrokenModel)
    assert "is a folder" in str(found.error)


def test_dangling_link_is_an_error_of_that_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").symlink_to(tmp_path / "gone.onnx")
    (found,) = resolve_models(["m.onnx"], root=tmp_path)
    assert isinstance(found, BrokenModel)
    assert "does not exist" in str(found.error)


def test_files_of_one_name_are_called_by_their_folders(tmp_path: Path) -> None:
    save(tmp_path / "a" / "model.onnx", 4)
    save(tmp_path / "b" / "model.onnx", 5)
    first, second = resolve_models(["a", "b"], root=tmp_path)
    assert (first.name, second.name) == ("a/model", "b/model")
    assert (first.place, second.place) == ("a/model.onnx", "b/model.onnx")
    assert isinstance(first, Model)
    assert isinstance(second, Model)
    assert first.digest != second.digest


def test_a_name_does_not_depend_on_what_else_is_asked_for(tmp_path: Path) -> None:
    for place, size in (("x", 4), ("y", 5), ("z", 5)):
        save(tmp_path / place / "onnx" / "model.onnx", size)
    together = names(resolve_models(["z", "x", "y"], root=tmp_path))
    alone = [names(resolve_models([place], root=tmp_path))[0] for place in "zxy"]
    assert together == alone == ["z/onnx/model", "x/onnx/model", "y/onnx/model"]


def test_a_broken_file_is_called_as_a_whole_one_would_be(tmp_path: Path) -> None:
    save(tmp_path / "a" / "model.onnx")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "model.onnx").write_text("no model")
    _, broken = resolve_models(["a", "b"], root=tmp_path)
    assert isinstance(broken, BrokenModel)
    assert (broken.name, broken.place) == ("b/model", "b/model.onnx")


def test_a_file_that_is_called_like_a_model_that_ships_keeps_its_suffix(tmp_path: Path) -> None:
    save(tmp_path / "linear.onnx")
    save(tmp_path / "nets" / "linear.onnx")
    specs = ["builtin:linear", "linear.onnx", "nets"]
    assert names(resolve_models(specs, root=tmp_path)) == ["linear", "linear.onnx", "nets/linear"]
    assert names(resolve_models(["linear.onnx"], root=tmp_path)) == ["linear.onnx"]


def test_a_listed_file_is_called_as_its_catalogue_says_and_no_other_file_is(tmp_path: Path) -> None:
    save(tmp_path / "mine.onnx", 4)
    save(tmp_path / "models" / "listed.onnx", 5)
    project(tmp_path, '[mine]\nfile = "listed.onnx"\n')
    found = resolve_models(["mine", "mine.onnx"], root=tmp_path)
    # A path that exists wins over a name.
    assert [(item.name, item.place) for item in found] == [
        ("mine", "models/listed.onnx"),
        ("mine.onnx", "mine.onnx"),
    ]


def test_same_graph_name_in_two_files(tmp_path: Path) -> None:
    """All models here have the graph name 'g'; only files and digests tell them apart."""
    save(tmp_path / "m1.onnx", 4)
    save(tmp_path / "m2.onnx", 5)
    first, second = resolve_models(["*.onnx"], root=tmp_path)
    assert isinstance(first, Model)
    assert isinstance(second, Model)
    assert (first.name, second.name) == ("m1", "m2")
    assert first.digest != second.digest


def test_spaces_unicode_and_long_paths(tmp_path: Path) -> None:
    path = save(tmp_path / "mon modèle" / ("d" * 200) / "größe 模型.onnx")
    naming = Naming(root=path.parent)
    (found,) = resolve_models([str(path)], root=Path("/"), naming=naming)
    assert isinstance(found, Model)
    assert found.name == "größe 模型"
    assert list(path.parent.iterdir()) == [path]


def test_too_long_a_path_is_a_usage_error(tmp_path: Path) -> None:
    assert usage_error("x" * 5000 + ".onnx", tmp_path).place == "--ort-models"


def test_builtin(tmp_path: Path) -> None:
    (found,) = resolve_models(["builtin:linear"], root=tmp_path)
    assert isinstance(found, Model)
    assert (found.name, found.source) == ("linear", "builtin:linear")
    assert found.digest == BUILDERS["linear"].digest
    assert not list(tmp_path.iterdir())


def test_builtin_decoder_has_its_workloads(tmp_path: Path) -> None:
    (found,) = resolve_models(["builtin:decoder"], root=tmp_path)
    assert isinstance(found, Model)
    assert [(item.name, item.dims) for item in workloads(ModelAxes(found))] == [
        ("decode", {"seq": 1, "past": 127}),
        ("prefill", {"seq": 128, "past": 0}),
    ]
    specs = {spec.name: spec for spec in resolve_inputs(found, batch=2, dims={})}
    assert specs["attention_mask"].shape == (2, 128)
    assert specs["attention_mask"].hint.kind == "ones"


def test_zoo_model_offline_is_broken_and_says_what(tmp_path: Path) -> None:
    save(tmp_path / "good.onnx")
    broken, good = resolve_models(["zoo:magika", "good.onnx"], root=tmp_path)
    assert isinstance(broken, BrokenModel)
    assert (broken.name, broken.path) == ("magika", "zoo:magika")
    assert "magika/models/standard_v3_3/model.onnx" in str(broken.error)
    assert isinstance(good, Model)


def test_zoo_all(tmp_path: Path) -> None:
    found = resolve_models(["zoo:all"], root=tmp_path)
    assert names(found)[:2] == ["silero-vad", "rapidocr-det"]
    assert len(found) == 8


def project(root: Path, text: str) -> None:
    (root / "models").mkdir(exist_ok=True)
    (root / "models" / "catalogue.toml").write_text(text)


def test_default_set_and_the_project_own_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_ortbench.models.resolve.DEFAULT_SET", ("linear",))
    assert names(resolve_models([], root=tmp_path)) == ["linear"]
    save(tmp_path / "models" / "own.onnx")
    save(tmp_path / "models" / "listed.onnx")
    project(
        tmp_path,
        '[mine]\nfile = "listed.onnx"\n[other]\nfile = "other.onnx"\ndefault = false\n',
    )
    # A file that the catalogue lists is measured once, under its name there.
    assert names(resolve_models([], root=tmp_path)) == ["linear", "mine", "models/own"]


def test_project_catalogue_brings_sizes_names_and_values(tmp_path: Path) -> None:
    save(tmp_path / "elsewhere.onnx")
    onnx.save(
        model([node("Relu", ["x"], ["y"])], [value("x", [None, None, 4])], [value("y", None)]),
        tmp_path / "elsewhere.onnx",
    )
    project(
        tmp_path,
        """
[churn]
file = "../elsewhere.onnx"
dims = { rows = 256 }
axes = { x = ["batch", "rows", 4] }
inputs.x = { kind = "uniform", low = 2.0, high = 3.0, why = "scaled" }
workloads.full = { rows = 256 }
""",
    )
    (found,) = resolve_models(["churn"], root=tmp_path)
    assert isinstance(found, Model)
    (spec,) = resolve_inputs(found, batch=2, dims={})
    assert spec.shape == (2, 256, 4)
    assert (spec.hint.kind, spec.hint.low, spec.hint.high) == ("uniform", 2.0, 3.0)
    assert "rows=256 (catalogue)" in [size.text for size in spec.resolved]
    assert workloads(ModelAxes(found))[0].name == "full"


def test_project_may_build_and_resize(tmp_path: Path) -> None:
    project(tmp_path, '[mine]\nbuilder = "lstm_tagger"\ndims = { seq = 16 }\n')
    (found,) = resolve_models(["mine"], root=tmp_path)
    assert isinstance(found, Model)
    assert (found.name, found.source) == ("mine", "project:mine")
    (spec,) = resolve_inputs(found, batch=1, dims={})
    assert spec.shape == (1, 16)
    assert "seq=16 (catalogue)" in [size.text for size in spec.resolved]


def test_project_with_an_unknown_builder(tmp_path: Path) -> None:
    project(tmp_path, '[mine]\nbuilder = "lstm_taggr"\n')
    assert "'lstm_tagger'" in usage_error("mine", tmp_path).hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('sha256 = "' + "0" * 64 + '"', "the catalogue says 0000000000000000"),
        ('axes = { x = ["batch"] }', "but the model declares ['N', 4]"),
        ('axes = { x = ["batch", 5] }', "but the model declares ['N', 4]"),
        ('axes = { z = ["batch", 4] }', "'z', which is not an input"),
        ('inputs.y = { kind = "normal" }', "'y', which is not an input"),
    ],
)
def test_catalogue_that_does_not_fit_its_model(tmp_path: Path, text: str, message: str) -> None:
    save(tmp_path / "models" / "m.onnx")
    project(tmp_path, f'[mine]\nfile = "m.onnx"\n{text}\n')
    (found,) = resolve_models(["mine"], root=tmp_path)
    assert isinstance(found, BrokenModel)
    assert message in str(found.error)


def test_a_graph_that_breaks_the_analysis_is_checked_by_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Model:
        raise IndexError("list index out of range")

    monkeypatch.setattr(resolve, "read_model", fail)
    proto = relu()
    proto.graph.output[0].CopyFrom(value("y", ["N", 4]))
    path = tmp_path / "it's.onnx"
    onnx.save(proto, path)
    (found, built) = resolve_models([str(path), "builtin:linear"], root=tmp_path)
    assert isinstance(found, BrokenModel)
    assert isinstance(built, BrokenModel)
    assert "check_model" not in built.error.hint
    command = found.error.hint.partition("Run: ")[2].partition(". If ")[0]
    _, _, code = shlex.split(command)
    exec(code, {})
    path.write_bytes(b"no model")
    with pytest.raises(Exception, match="parse"):
        exec(code, {})


def test_a_folder_of_ort_files_is_named_by_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone" / "m.ort").write_bytes(b"\x00\x00\x00\x00ORTM")
    pattern = usage_error("phone", tmp_path).hint.split("'")[1]
    assert names(resolve_models([pattern], root=tmp_path)) == ["phone/m.ort"]


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        ("mod*", "mod*/*.onnx"),
        ("*.txt", "models/*.onnx"),
        ("models/*.ort", "models"),
        ("gone/*.onnx", "the pattern"),
        ("/gone/*.onnx", "the pattern"),
    ],
)
def test_a_pattern_of_no_model_is_corrected_by_what_it_matches(
    tmp_path: Path, spec: str, step: str
) -> None:
    save(tmp_path / "models" / "m.onnx")
    (tmp_path / "notes.txt").write_text("x")
    error = usage_error(spec, tmp_path)
    assert error.hint.rstrip("'").endswith(step)
    assert ("folder" in error.message) == (spec in ("mod*", "gone/*.onnx", "/gone/*.onnx"))


def test_a_built_model_with_another_digest_is_not_looked_for_in_a_package(tmp_path: Path) -> None:
    project(tmp_path, f'[mine]\nbuilder = "linear"\nsha256 = "{"0" * 64}"\n')
    (found,) = resolve_models(["mine"], root=tmp_path)
    assert isinstance(found, BrokenModel)
    assert "sha256 = " in found.error.hint
    assert "'builder'" in found.error.hint


def test_broken_catalogue_is_a_usage_error(tmp_path: Path) -> None:
    project(tmp_path, "[mine]\nfiel = 'm.onnx'\n")
    save(tmp_path / "m.onnx")
    assert "'file'" in usage_error("m.onnx", tmp_path).hint


@pytest.mark.live
def test_a_file_of_the_catalogue_is_fed_as_its_entry_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as a bare file it is the same workload; with another digest it is any file."""
    proto = model([node("Sigmoid", ["x"], ["y"])], [value("x", [None, None])], [value("y", None)])
    onnx.save(proto, tmp_path / "vad.onnx")
    digest = file_digest(tmp_path / "vad.onnx")
    entry = CatalogueEntry(
        name="vad",
        place="catalogue",
        sha256=digest,
        dims={"samples": 576},
        axes={"x": ["batch", "samples"]},
    )
    monkeypatch.setattr(resolve, "shipped_catalogue", lambda: {"vad": entry})
    (found,) = resolve_models([str(tmp_path / "vad.onnx")], root=tmp_path)
    assert isinstance(found, Model)
    assert (found.source, found.default_dims) == ("file", {"samples": 576})
    assert found.inputs[0].shape == ("batch", "samples")
    assert any("zoo:vad" in note for note in found.notes)
