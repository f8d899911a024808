"""Paths that markers and hooks name are the same files wherever pytest is called."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.plugin.marked_paths import placed_specs, texts_of_specs

ModelFile = Callable[..., Path]


def _folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("top.onnx", "both.onnx", "tests/beside.onnx", "tests/both.onnx", "nets/m.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path, tmp_path / "tests"


@pytest.mark.parametrize(
    ("written", "placed"),
    [
        ("top.onnx", "top.onnx"),
        ("beside.onnx", "tests/beside.onnx"),
        ("both.onnx", "both.onnx"),
        ("../top.onnx", "tests/../top.onnx"),
        ("nets", "nets"),
        ("nets/*.onnx", "nets/*.onnx"),
        ("b*e.onnx", "tests/b*e.onnx"),
        ("gone.onnx", "gone.onnx"),
        ("gone/*.onnx", "gone/*.onnx"),
    ],
)
def test_a_path_starts_at_the_root_or_at_the_tests_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, placed: str
) -> None:
    folders = _folders(tmp_path)
    monkeypatch.chdir(tmp_path / "nets")
    assert placed_specs([written], folders) == (str(tmp_path / placed),)


@pytest.mark.parametrize("written", ["zoo:bert", "builtin:gbdt", "detector", "", " ", "/m.onnx"])
def test_names_and_whole_paths_stay_as_they_are(tmp_path: Path, written: str) -> None:
    assert placed_specs([written], _folders(tmp_path)) == (written,)


def test_texts_and_paths_are_specifications() -> None:
    assert texts_of_specs("a.onnx") == ("a.onnx",)
    assert texts_of_specs(Path("a/b.onnx")) == ("a/b.onnx",)
    assert texts_of_specs(["zoo:x", Path("b.onnx")]) == ("zoo:x", "b.onnx")
    for wrong in (3, [3], None):
        with pytest.raises(TypeError):
            texts_of_specs(wrong)


MARKED = """
from pathlib import Path
import pytest
measure = pytest.mark.ortbench

@measure(models="nets/m.onnx")
def test_root(ortbench): pass

@measure(models=Path("own.onnx"))
def test_beside(ortbench): pass

@measure(models=Path(__file__).parent / "own.onnx")
def test_whole(ortbench): pass

@measure(models=["nets", Path("o*n.onnx")])
def test_both(ortbench): pass

@measure(models="detector")
def test_name(ortbench): pass

def test_none(ortbench): pass
"""


@pytest.mark.parametrize("folder", [".", "tests", "elsewhere", "../outside"])
def test_a_marker_means_the_same_from_every_folder(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    model_file("nets/m.onnx")
    model_file("tests/own.onnx")
    model_file("models/det.onnx")
    model_file("models/plain.onnx")
    (pytester.path / "models/catalogue.toml").write_text('[detector]\nfile = "det.onnx"\n')
    (pytester.path / "tests/test_x.py").write_text(MARKED)
    pytester.makeini("[pytest]")
    (pytester.path / folder).mkdir(exist_ok=True)
    monkeypatch.chdir(pytester.path / folder)
    test = pytester.path / "tests/test_x.py"
    result = pytester.runpytest(test, f"--rootdir={pytester.path}", "--collect-only", "-q")
    tests = [line.partition("::")[2] for line in result.outlines if "::" in line]
    assert tests == [
        "test_root[nets/m/native/cpu/b1]",
        "test_beside[tests/own/native/cpu/b1]",
        "test_whole[tests/own/native/cpu/b1]",
        "test_both[nets/m/native/cpu/b1]",
        "test_both[tests/own/native/cpu/b1]",
        "test_name[detector/native/cpu/b1]",
        "test_none[detector/native/cpu/b1]",
        "test_none[models/plain/native/cpu/b1]",
    ]


def test_a_model_that_is_nowhere_names_the_folders_that_were_tried(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        **{
            "tests/test_x": """
            import pytest

            @pytest.mark.ortbench(models="gone.onnx")
            def test_it(ortbench): pass
            """
        }
    )
    pytester.makeini("[pytest]")
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    result = pytester.runpytest("../tests", f"--rootdir={pytester.path}")
    result.assert_outcomes(errors=1)
    tests = pytester.path / "tests"
    result.stdout.fnmatch_lines([f"*gone.onnx*tried in {pytester.path} and {tests}.*"])


def test_models_and_inputs_of_hooks_start_at_the_root(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    model_file("nets/m.onnx")
    np.savez(pytester.path / "x.npz", x=np.zeros((3, 8), np.float32))
    pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_ortbench_models(): return Path("nets/m.onnx")
        def pytest_ortbench_inputs(): return "x.npz"
        """
    )
    pytester.makepyfile(test_x="def test_it(ortbench): pass")
    pytester.makeini("[pytest]")
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    result = pytester.runpytest("..", f"--rootdir={pytester.path}", "--collect-only")
    result.stdout.fnmatch_lines([f"*nets/m/native/cpu/b1*{pytester.path}/x.npz*"])


def test_a_hook_that_returns_no_models_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_ortbench_models(): return 3")
    pytester.makepyfile("def test_it(ortbench): pass")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "pytest_ortbench_models" in result.stderr.str()
    assert " returned 3," in result.stderr.str()
