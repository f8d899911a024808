"""Catalogues: typed, with errors that name file, entry, key and rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.models.builders import BUILDERS
from pytest_ortbench.models.catalogue import (
    DEFAULT_SET,
    models_folder,
    project_catalogue,
    read_catalogue,
    shipped_catalogue,
)

ROOT = Path(__file__).parents[2]


def catalogue(folder: Path, text: str) -> Path:
    path = folder / "catalogue.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_shipped_entries() -> None:
    entries = shipped_catalogue()
    assert list(entries) == [
        "silero-vad",
        "rapidocr-det",
        "rapidocr-rec",
        "rapidocr-cls",
        "magika",
        "nudenet-320n",
        "ddddocr-det",
        "ddddocr-rec",
    ]
    for entry in entries.values():
        assert "==" in entry.package
        assert entry.member.endswith(".onnx")
        assert entry.licence
        assert entry.description
        assert entry.tags
        assert entry.size_bytes > 0
        assert entry.download_bytes > 0
        assert all(hint.why for hint in entry.inputs.values())


def test_default_set_is_built_without_network() -> None:
    assert DEFAULT_SET == ("mobilenet_v2", "bert_tiny", "gbdt", "lstm_tagger")
    assert set(DEFAULT_SET) <= set(BUILDERS)


def test_example_of_this_project_is_valid() -> None:
    (entry,) = project_catalogue(ROOT).values()
    assert (entry.name, entry.builder, entry.dims) == ("tagger_short", "lstm_tagger", {"seq": 16})
    assert not entry.default


def test_no_model_file_in_the_repository() -> None:
    assert not list((ROOT / "models").rglob("*.onnx"))
    assert not list((ROOT / "pytest_ortbench").rglob("*.onnx"))


def test_project_without_catalogue(tmp_path: Path) -> None:
    assert project_catalogue(tmp_path) == {}


def test_all_keys(tmp_path: Path) -> None:
    text = """
[mine]
file = "m.onnx"
dims = { rows = 256 }
axes = { x = ["batch", "rows", 12] }
inputs.x = { kind = "uniform", low = 0.0, high = 1, why = "scaled" }
inputs.word = { kind = "choice", choices = ["a", "b"] }
workloads.small = { rows = 8 }
workloads.large = { rows = 512 }
"""
    entry = read_catalogue(catalogue(tmp_path, text))["mine"]
    assert entry.axes == {"x": ("batch", "rows", 12)}
    assert (entry.inputs["x"].low, entry.inputs["x"].high) == (0.0, 1.0)
    assert entry.inputs["word"].choices == ("a", "b")
    assert list(entry.workloads) == ["small", "large"]
    assert entry.origin == "file m.onnx"


DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[m\n", "is not valid TOML"),
        ("m = 1\n", "m is 1, not a table"),
        ("[m]\nfil = 'a'\n", r"the key 'fil' is not known\. Did you mean 'file'"),
        ("[m]\n", "does not say where its model comes from"),
        (
            "[m]\nfile = 'a'\nbuilder = 'b'\n",
            r"in 2 keys where its model comes from \(file, builder\)",
        ),
        ("[m]\nfile = 3\n", "file is 3, not text"),
        ("[m]\ndefault = 'no'\n", "default is 'no', not true or false"),
        ("[m]\ntags = 'a'\n", "tags is 'a', not a list of texts"),
        ("[m]\nsize_bytes = 'a'\n", "size_bytes is 'a', not a whole number"),
        ("[m]\nfile = 'a'\ninputs = 3\n", "inputs is 3, not a table of keys"),
        ("[m]\nfile = 'a'\ndims = { n = 'x' }\n", "dims.n is 'x', not a whole number"),
        (
            "[m]\nfile = 'a'\ninputs.x = { kind = 'normal', low = 'a' }\n",
            "inputs.x.low is 'a', not a",
        ),
        ("[m]\nfile = 'a'\ninputs.x = { kind = 'choice', choices = [0] }\n", r"choices is \[0\]"),
        ("[m]\nfile = 'a'\nworkloads.w = 3\n", "workloads.w is 3, not a table"),
        ("[m]\nfile = 'a'\nworkloads.w = { n = 'x' }\n", "workloads.w.n is 'x', not a whole"),
        ("[m]\nfile = 'a'\nvariants.q = 3\n", "variants.q is 3, not a path or a table"),
        ("[m]\nfile = 'a'\naxes.x = 'batch'\n", "axes.x is 'batch', not a list"),
        ("[m]\nfile = 'a'\ndims = { n = -1 }\n", "dims.n is -1"),
        ("[m]\nfile = 'a'\nworkloads.w = { n = -2 }\n", "workloads.w.n is -2"),
        ("[m]\nfile = 'a'\nsha256 = 'abc'\n", "64 hexadecimal digits"),
        (f"[m]\npackage = 'p'\nmember = 'x'\nsha256 = '{DIGEST}'\n", "without an exact version"),
        ("[m]\npackage = 'p==1'\nsha256 = 'x'\n", "'member' is missing"),
        ("[m]\nhub = 'a/b'\nhub_file = 'm.onnx'\n", "'sha256' is missing"),
        ("[m]\nfile = 'a'\ninputs.x = { kind = 'normla' }\n", "Did you mean 'normal'"),
        ("[m]\nfile = 'a'\ninputs.x = { kind = 'choice' }\n", "choices"),
        ("[m]\nfile = 'a'\ninputs.x = { knd = 'normal' }\n", "the key 'knd' is not known"),
        ("[m]\nfile = 'a'\ninputs.x = 3\n", "not a table"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    path = catalogue(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        read_catalogue(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("m = 'a.onnx'\n", 'file = "a.onnx"'),
        ("[m]\nfile = 'a'\ninputs.x = 'ones'\n", '{ kind = "ones" }'),
        ("[m]\nfile = 'a'\ninputs.x = 3\n", '{ kind = "constant", choices = ["3"] }'),
        ("[m]\nfile = 'a'\ninputs.x = { low = 1 }\n", 'kind = "uniform"'),
        ("[m]\nfile = 'a'\ninputs.x = { low = 0, high = 9 }\n", 'kind = "integers"'),
        ("[m]\nfile = 'a'\ninputs.x = { low = 0, high = 0.5 }\n", 'kind = "uniform"'),
        ("[m]\nfile = 'a'\ninputs.x = { kind = 'constant' }\n", 'choices = ["0"]'),
        ("[m]\npackage = 'a'\nmember = 'b'\nsha256 = 'c'\n", "'pip index versions a'"),
        ("version = 1\n", "Remove"),
        ("[m]\nfile = 'a'\ndims = { N = -1 }\n", "leave N out"),
        ("[m]\nfile = 'a'\ninputs.x = { choices = ['1'] }\n", 'kind = "choice"'),
        (f"[m]\nfile = 'a'\nsha256 = '{'A' * 64}'\n", f'sha256 = "{"a" * 64}"'),
        (
            f"[m]\npackage = 'p>=1.4'\nmember = 'x'\nsha256 = '{DIGEST}'\n",
            'package = "p==1.4"',
        ),
    ],
)
def test_what_was_written_stands_in_the_next_step(tmp_path: Path, text: str, written: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_catalogue(catalogue(tmp_path, text))
    assert written in caught.value.hint


def test_unreadable_catalogue(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_catalogue(tmp_path / "nothing.toml")
    assert caught.value.place == str(tmp_path / "nothing.toml")
    path = tmp_path / "catalogue.toml"
    path.write_bytes(b"[m]\nfile = '\xff'\n")
    with pytest.raises(UsageError) as caught:
        read_catalogue(path)
    assert caught.value.place == f"{path}, line 2"
    path.write_bytes("\ufeff[m]\nfile = 'a'\n".encode())
    assert read_catalogue(path)["m"].file == "a"


def test_the_catalogue_of_a_project_is_found_from_every_folder_of_it(tmp_path: Path) -> None:
    inner = tmp_path / "a/b"
    (inner / "models").mkdir(parents=True)
    assert project_catalogue(inner) == {}
    assert models_folder(inner) == inner / "models"
    (tmp_path / "models").mkdir()
    (tmp_path / "models/catalogue.toml").write_text('[m]\nfile = "m.onnx"\n')
    assert list(project_catalogue(inner)) == ["m"]
    assert models_folder(tmp_path / "a") == tmp_path / "models"
    (tmp_path / "a/pyproject.toml").touch()
    assert project_catalogue(inner) == {}
    assert models_folder(tmp_path / "a") == tmp_path / "a/models"
