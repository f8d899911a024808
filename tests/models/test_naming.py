"""What a model file is called: by its path, never by what else is measured."""

from __future__ import annotations

import os
import string
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.ids import model_part
from pytest_ortbench.models.naming import Naming

ROOT = Path("/work/project")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("model.onnx", "model"),
        ("models/det/model.onnx", "models/det/model"),
        ("models/../model.onnx", "model"),
        ("../other/model.onnx", "../other/model"),
        ("/data/model.onnx", "../../data/model"),
        # Without the suffix these would be called as another file is.
        ("model.ort", "model.ort"),
        ("model.ort.onnx", "model.ort.onnx"),
        ("model.onnx.onnx", "model.onnx.onnx"),
        ("model.ONNX", "model.ONNX"),
        ("linear.onnx", "linear.onnx"),
        ("nets/linear.onnx", "nets/linear"),
        (".onnx", ".onnx"),
        ("model", "model/"),
        ("nets/.onnx", "nets/.onnx"),
    ],
)
def test_a_file_is_called_by_its_path(path: str, name: str) -> None:
    naming = Naming(root=ROOT, taken={"linear"})
    assert naming.name_of(ROOT / path) == name


_parts = st.text(string.ascii_letters + "._- +:a/" + "é", min_size=1, max_size=6)
_files = st.tuples(_parts, st.sampled_from([".onnx", ".ort", ".ONNX", ".onnx.onnx", ""])).map(
    "".join
)


@given(_files, _files)
def test_two_paths_never_have_one_spelling(one: str, other: str) -> None:
    naming = Naming(root=ROOT, taken={"a"})
    paths = [os.path.normpath(ROOT / file.lstrip("/")) for file in (one, other)]
    spelt = [model_part(naming.name_of(Path(path))) for path in paths]
    assert (spelt[0] == spelt[1]) == (paths[0] == paths[1])


def test_a_link_on_the_way_to_the_root_changes_no_name(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "nets").mkdir(parents=True)
    (project / "nets" / "model.onnx").touch()
    link = tmp_path / "link"
    link.symlink_to(project)
    for root, seen in ((project, link), (link, project)):
        assert Naming(root=root).name_of(seen / "nets" / "model.onnx") == "nets/model"


def test_a_link_is_called_by_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "blob").touch()
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "model.onnx").symlink_to(tmp_path / "blob")
    assert Naming(root=tmp_path).name_of(tmp_path / "nets" / "model.onnx") == "nets/model"


def test_a_copy_is_called_as_what_it_stands_for(tmp_path: Path) -> None:
    copy = tmp_path / "revision" / "x.onnx"
    naming = Naming(root=ROOT, originals={str(copy): ROOT / "nets" / "x.onnx"})
    assert naming.name_of(copy) == "nets/x"
    assert PurePosixPath(naming.place_of(copy)) == PurePosixPath("nets/x.onnx")
