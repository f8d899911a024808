"""Which file of stages goes with which cases, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.stages.planning import (
    StageFile,
    parse_stage_files,
    read_profilers,
    refuse_profile_of_nothing,
    refuse_unused_stages,
    with_stages,
)
from tests.results_factory import make_case

PLACE = "--ort-stages"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", "a,b.py"):
        (tmp_path / name).write_text("def preprocess(frame):\n    return frame\n")
    return tmp_path


def test_files_with_and_without_pattern(folder: Path) -> None:
    texts = ("a.py, det*@b.py", "mlp*@a,b.py")
    assert parse_stage_files(texts, base=folder, place=PLACE) == (
        StageFile(path=str(folder / "a.py")),
        StageFile(pattern="det*", path=str(folder / "b.py")),
        StageFile(pattern="mlp*", path=str(folder / "a,b.py")),
    )


def test_a_file_that_is_named_for_a_case_goes_before_one_for_all() -> None:
    case = make_case()
    everything, own = StageFile(path="/a.py"), StageFile(pattern="cpu", path="/b.py")
    assert with_stages(case, {"stages": (everything, own)}).stages == "/b.py"
    assert with_stages(case, {"stages": (own, everything)}).stages == "/b.py"
    assert with_stages(case, {"stages": (everything,)}).stages == "/a.py"
    other = StageFile(pattern="no-such*", path="/c.py")
    assert with_stages(case, {"stages": (other,)}).stages == ""
    # Stages are a pass of their own: the case stays the same.
    assert with_stages(case, {"stages": (own,)}).key == case.key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.py", "the file '{}/none.py'"),
        ("a.py:preprocess", "the file '{}/a.py:preprocess' does not exist. Write a.py, and leave"),
        ("det@", "'det@' names no file"),
        ("det@.", "'{}' is a folder"),
        ("bad.py", "'{}/bad.py' is not valid Python in line 2 (Python says: "),
        ("null.py", "'{}/null.py' is not valid Python (Python says: "),
    ],
)
def test_what_is_no_file_of_python(folder: Path, text: str, message: str) -> None:
    (folder / "bad.py").write_text("x = 1\ny = = 2\n")
    (folder / "null.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError) as caught:
        parse_stage_files([text], base=folder, place=PLACE)
    assert str(caught.value).startswith(f"{PLACE}: {message.format(folder)}")


def test_a_file_that_no_case_goes_with_is_refused() -> None:
    case = make_case()
    refuse_unused_stages((StageFile(path="/a.py"),), [case], place=PLACE, runtimes="")
    with pytest.raises(UsageError, match=r"'det\*'") as caught:
        refuse_unused_stages(
            (StageFile(pattern="det*", path="/a.py"),), [case], place=PLACE, runtimes=""
        )
    assert case.case_id in caught.value.hint


def test_stages_need_the_current_runtime() -> None:
    case = make_case()
    other = replace(case, runtime=Runtime(label="onnxruntime-1.30.0"))
    files, written = (StageFile(path="/a.py"),), "onnxruntime==1.30.0"
    refuse_unused_stages(files, [other, case], place=PLACE, runtimes=f"{written},current")
    with pytest.raises(UsageError) as caught:
        refuse_unused_stages(files, [other], place=PLACE, runtimes=written)
    assert caught.value.place == PLACE
    assert f"--ort-runtimes=current,{written}" in caught.value.hint


@pytest.mark.parametrize("texts", [("a.py,b.py",), ("a.py", "b.py"), ("det*@a.py, det*@b.py",)])
def test_two_files_for_the_same_cases_are_refused(folder: Path, texts: tuple[str, ...]) -> None:
    """A case has one file: the second would be left out in silence."""
    with pytest.raises(UsageError) as caught:
        parse_stage_files(texts, base=folder, place=PLACE)
    what = "every case" if "det" not in texts[0] else "the cases that match 'det*'"
    assert caught.value.message == (
        f"{folder}/a.py and {folder}/b.py are both for {what}, but a case has only one"
    )
    assert "*@b.py" in caught.value.hint


def test_the_same_file_twice_is_one(folder: Path) -> None:
    assert parse_stage_files(["a.py,a.py"], base=folder, place=PLACE) == (
        StageFile(path=str(folder / "a.py")),
    )


def test_a_case_that_two_patterns_fit_is_refused() -> None:
    case = make_case()
    files = (StageFile(pattern="cpu", path="/a.py"), StageFile(pattern="native", path="/b.py"))
    with pytest.raises(UsageError) as caught:
        refuse_unused_stages(files, [case], place=PLACE, runtimes="")
    for named in ("cpu@/a.py", "native@/b.py", case.case_id):
        assert named in caught.value.message
    assert "@" not in caught.value.hint
    other = replace(case, provider=replace(case.provider, alias="cuda"))
    with pytest.raises(UsageError) as caught:
        refuse_unused_stages(files, [case, other], place=PLACE, runtimes="")
    assert f"'{other.case_id}@/b.py'" in caught.value.hint


def test_a_run_without_a_case_says_itself_why() -> None:
    refuse_unused_stages((StageFile(path="/a.py"),), [], place=PLACE, runtimes="")


@pytest.mark.parametrize(("function", "is_renamed"), [("preprocess", False), ("prep", True)])
def test_a_function_behind_the_file_is_left_out_or_renamed(
    folder: Path, function: str, is_renamed: bool
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_stage_files([f"a.py:{function}"], base=folder, place=PLACE)
    assert f" {function} " in f"{caught.value.hint} "
    assert ("postprocess" in caught.value.hint) is is_renamed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def frames():\n    return []\n",
        "def main():\n    def preprocess(frame):\n        return frame\n",
        "class Stages:\n    def preprocess(self, frame):\n        return frame\n",
        "print(preprocess)\n",
    ],
)
def test_a_file_that_defines_no_stage_is_refused(folder: Path, text: str) -> None:
    (folder / "none.py").write_text(text)
    with pytest.raises(UsageError, match=r"defines neither preprocess.*Define one of them at"):
        parse_stage_files(["none.py"], base=folder, place=PLACE)


@pytest.mark.parametrize(
    "text",
    [
        "def postprocess(outputs):\n    pass\n",
        "preprocess = lambda frame: frame\n",
        "from json import loads as preprocess\n",
        "from json import *\n",
        "try:\n    from json import loads as postprocess\nexcept ImportError:\n    pass\n",
        "if True:\n    def preprocess(frame):\n        return frame\n",
        "globals()['pre' + 'process'] = print\n",
        "def make():\n    global preprocess\n    preprocess = print\nmake()\n",
        "class preprocess:\n    def __init__(self, frame):\n        pass\n",
    ],
)
def test_a_file_that_may_define_a_stage_is_left_to_the_worker(folder: Path, text: str) -> None:
    (folder / "some.py").write_text(text)
    assert len(parse_stage_files(["some.py"], base=folder, place=PLACE)) == 1


def test_profilers_are_those_of_python(tmp_path: Path) -> None:
    def read(*texts: str) -> tuple[str, ...]:
        place = "--ort-profile-python"
        return read_profilers(OptionText(texts=texts, place=place, is_typed=True, base=tmp_path))

    assert read("cprofile, tracemalloc", "cprofile") == ("cprofile", "tracemalloc")
    for text in ("cProfile", "perf", "cprofile,"):
        with pytest.raises(UsageError) as refused:
            read(text)
        assert refused.value.place == "--ort-profile-python"


@pytest.mark.parametrize(
    ("stages", "serve", "is_refused"),
    [
        ((), "", True),
        ((), "reference", True),
        ((), "/app.py:app", False),
        ((StageFile(path="/a.py"),), "", False),
    ],
)
def test_a_profile_needs_code_of_the_users(
    stages: tuple[StageFile, ...], serve: str, is_refused: bool
) -> None:
    def refuse(value: tuple[str, ...]) -> None:
        refuse_profile_of_nothing(value=value, place=PLACE, stages=stages, serve=serve)

    refuse(())
    if not is_refused:
        refuse(("cprofile",))
        return
    with pytest.raises(UsageError) as refused:
        refuse(("cprofile",))
    assert refused.value.place == PLACE
