"""Labelled data as typed: what can be seen without running anything, in one message each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.passes.task.planning import parse_dataset


def message(text: str, folder: Path) -> str:
    with pytest.raises(UsageError) as error:
        parse_dataset(text, folder, place="--ort-dataset")
    return str(error.value)


def test_a_file_of_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.zeros((2, 3)), labels=np.zeros(2))
    found = parse_dataset("data.npz", tmp_path, place="")
    assert found == Dataset(path=str(tmp_path / "data.npz"))
    assert found.label == "data.npz"
    np.savez(tmp_path / "named.npz", **{"x": np.zeros((2, 3)), "labels:scores": np.zeros(2)})
    assert parse_dataset("named.npz", tmp_path, place="").function == ""


@pytest.mark.parametrize(
    "code",
    [
        "def validation(batch): ...",
        "validation = make()",
        "from elsewhere import validation",
        "from elsewhere import other as validation",
        "from elsewhere import *",
        "class validation: ...",
    ],
)
def test_a_function_by_file_path_is_found_without_running_it(tmp_path: Path, code: str) -> None:
    (tmp_path / "data.py").write_text(code)
    found = parse_dataset("data.py:validation", tmp_path, place="")
    assert found == Dataset(path=str(tmp_path / "data.py"), function="validation")
    assert found.label == "data.py:validation"


def test_a_path_of_its_own_folder_stays(tmp_path: Path) -> None:
    file = tmp_path / "a:b.py"
    file.write_text("def f(): ...")
    assert parse_dataset(f"{file}:f", Path("elsewhere"), place="").path == str(file)


@pytest.mark.parametrize(
    "code",
    [
        "if True:\n    def first(): ...\n",
        "try:\n    import fast\nexcept ImportError:\n    def first(): ...\n",
        "async def first(): ...\n",
        "with open(__file__) as file:\n    first = file.read\n",
        "for first in (print,): ...\n",
    ],
)
def test_a_function_is_found_wherever_the_file_binds_it(tmp_path: Path, code: str) -> None:
    (tmp_path / "data.py").write_text(f"def another(): ...\n{code}")
    assert parse_dataset("data.py:first", tmp_path, place="").function == "first"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("data.csv", "'data.csv' ends in .csv, but "),
        ("data.csv", "--ort-labels=data.csv"),
        ("labels.json", "If the file has boxes on photos, write coco:labels.json. If not, "),
        ("missing.npz", "does not exist"),
        ("missing.py:f", "does not exist"),
        ("text.npz", "text.npz' ends in .npz, but "),
        ("text.npz", "If a script made the file, write it with numpy.savez. If it was fetched"),
        ("photos", "photos' does not exist. If it is a folder"),
        ("photos.txt", "photos.txt' does not exist"),
        (
            "bare.npz:x",
            "'bare.npz:x' has ':x' behind the .npz file, where nothing can stand. Write",
        ),
        ("coco:labels.json:reader.py", "e.g. coco:labels.json:reader.py:boxes"),
        ("coco:labels.json:data.py", "e.g. coco:labels.json:data.py:first"),
        ("coco:labels.json:yolov7", "Write coco:labels.json:"),
        ("coco:labels.json:yolo8", "'yolov8'?"),
        ("bare.npz", "has no array named 'labels', only x, y. Store the labels"),
        (
            "data.py",
            "'data.py' does not say which function of the file gives the data. Write the file and "
            "the function, e.g. data.py:first",
        ),
        ("imports.py", "gives the data. Write the function behind the file: imports.py:FUNCTION"),
        ("star.py", "gives the data. Write the function behind the file: star.py:FUNCTION"),
        ("bare.py", "gives the data, and the file has none. Define a function data() "),
        ("data.py:third", "data.py has no function 'third'. Choose one of: first, second"),
        ("data.py:secnd", "data.py has no function 'secnd'. Did you mean 'second'?"),
        ("broken.py:f", "is not valid Python in line 2 (Python says: 'invalid syntax')"),
    ],
)
def test_what_can_t_be_used_is_one_message(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "data.csv").touch()
    (tmp_path / "labels.json").touch()
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "bare.npz", x=np.zeros(2), y=np.zeros(2))
    code = "import numpy as np\nSIZE = 4\ndef first(): ...\ndef second(): ...\n"
    (tmp_path / "data.py").write_text(code)
    (tmp_path / "imports.py").write_text("from elsewhere import data")
    (tmp_path / "star.py").write_text("from elsewhere import *")
    (tmp_path / "bare.py").touch()
    (tmp_path / "broken.py").write_text("\ndef f(:\n")
    found = message(text, tmp_path)
    assert found.startswith("--ort-dataset: ")
    assert says in found
    assert "\n" not in found
