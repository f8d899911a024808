"""A case is called, and paired, by the path of its model: never by what else is selected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import QUICK, failed_tests, told, told_last

ModelFile = Callable[..., Path]

ONCE = (*QUICK, "--ort-no-results", "--ort-json=run.json", "-k", "latency")


@pytest.fixture
def nets(pytester: pytest.Pytester, model_file: ModelFile, drawn_numbers: None) -> None:
    """Two models of one file name, of different sizes, and a test of each."""
    model_file("a/model.onnx")
    model_file("b/model.onnx", symbol="seq")
    for folder in ("a", "b"):
        pytester.path.joinpath(f"test_{folder}.py").write_text(
            "import pytest\n"
            f"@pytest.mark.ortbench(models='{folder}/model.onnx')\n"
            "def test_latency(ortbench): assert ortbench.latency().min > 0\n"
        )


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def baseline(folder: Path, edit: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Keep the last document as the baseline, changed if asked."""
    found = document(folder)
    if edit is not None:
        edit(found)
    (folder / "before.json").write_text(json.dumps(found))


def relations(folder: Path) -> dict[str, str]:
    """How the gate says that the model of each case is related to the baseline's."""
    return {entry["case_id"]: entry["model_relation"] for entry in document(folder)["gate"]}


def ids(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    result = pytester.runpytest(*arguments, *QUICK, "--collect-only", "-q", "-k", "latency")
    return [line.split("[")[1].rstrip("]") for line in result.outlines if "::" in line]


def grow(path: Path) -> None:
    """Make a model file larger and nothing else."""
    import onnx

    proto = onnx.load(path)
    proto.metadata_props.add(key="ballast", value="x" * 2)
    onnx.save(proto, path)


A, B = "a/model/native/cpu/b1", "b/model/native/cpu/b1"


@pytest.mark.usefixtures("nets")
def test_ids_depend_on_no_order_and_no_selection(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    assert ids(pytester, "a/model.onnx", "b/model.onnx") == [A, B]
    assert ids(pytester, "b/model.onnx", "a/model.onnx") == [B, A]
    assert ids(pytester, "b/model.onnx") == ids(pytester, "test_b.py") == [B]
    model_file("c/model.onnx")
    models = "--ort-models=c/model.onnx,b/model.onnx"
    pytester.makepyfile(test_all="def test_latency(ortbench): pass")
    assert ids(pytester, "test_all.py", models) == ["c/model/native/cpu/b1", B]
    assert ids(pytester, "test_all.py", "--ort-models=*/model.onnx")[:2] == [A, B]


@pytest.mark.usefixtures("nets")
def test_ids_start_at_the_root_directory_wherever_pytest_is_started(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytester.path / "b")
    # Without a configuration file there is no root but the folder where pytest was started.
    assert ids(pytester, "model.onnx") == ["model/native/cpu/b1"]
    assert ids(pytester, "model.onnx", "../a/model.onnx") == [
        "model/native/cpu/b1",
        "../a/model/native/cpu/b1",
    ]
    assert ids(pytester, "model.onnx", f"--rootdir={pytester.path}") == [B]
    pytester.makeini("[pytest]")
    assert ids(pytester, "model.onnx") == [B]
    assert ids(pytester, "model.onnx", "../a/model.onnx") == [B, A]


@pytest.mark.usefixtures("nets")
def test_a_baseline_pairs_by_path_and_says_that_a_file_changed(pytester: pytest.Pytester) -> None:
    pytester.runpytest("b/model.onnx", "a/model.onnx", *ONCE).assert_outcomes(passed=2)
    baseline(pytester.path)
    grow(pytester.path / "b" / "model.onnx")
    result = pytester.runpytest(
        "a/model.onnx",
        "b/model.onnx",
        *ONCE,
        "--ort-baseline=before.json",
        "--ort-gate=model_size:10%",
    )
    result.assert_outcomes(passed=2)
    assert relations(pytester.path) == {A: "same", B: "changed"}
    result.stdout.fnmatch_lines(["gate b/model/*", "  model: *"])


@pytest.mark.usefixtures("nets")
def test_one_test_alone_is_held_against_its_own_model(pytester: pytest.Pytester) -> None:
    pytester.runpytest(*ONCE).assert_outcomes(passed=2)
    baseline(pytester.path)
    result = pytester.runpytest("test_b.py", *ONCE, "--ort-baseline=before.json")
    assert result.ret == pytest.ExitCode.OK
    assert relations(pytester.path) == {B: "same"}
    # One that was never recorded is compared with no other model.
    pytester.runpytest("test_b.py", *ONCE)
    baseline(pytester.path)
    result = pytester.runpytest("test_a.py", *ONCE, "--ort-baseline=before.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not document(pytester.path).get("gate")
    assert A in told_last(result, "gate")


@pytest.mark.usefixtures("drawn_numbers")
def test_a_moved_file_is_removed_and_new_with_a_hint(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    path = model_file("a/model.onnx")
    model_file("a/other.onnx", symbol="seq")
    pytester.runpytest("a/model.onnx", "a/other.onnx", *ONCE)
    baseline(pytester.path)
    (pytester.path / "new").mkdir()
    path.rename(pytester.path / "new" / "model.onnx")
    result = pytester.runpytest(
        "new/model.onnx", "a/other.onnx", *ONCE, "--ort-baseline=before.json"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (removed,) = [entry for entry in document(pytester.path)["gate"] if entry.get("removed")]
    assert (removed["case_id"], removed["moved_to"]) == (A, "new/model")
    assert "new/model/native/cpu/b1" in told_last(result, "gate")
    assert any(text.startswith("new/model ") and "a/model" in text for text in told(result, "gate"))


def _as_before(run: dict[str, Any]) -> None:
    """Write a document as versions did that called files by their last part."""
    for entry in run["cases"]:
        model = entry["case"]["model"]
        del model["place"]
        model["name"] = "model" if model["name"] == "b/model" else "a-model"


@pytest.mark.usefixtures("nets")
def test_a_document_of_before_pairs_by_the_path_that_it_recorded(
    pytester: pytest.Pytester,
) -> None:
    pytester.runpytest(*ONCE).assert_outcomes(passed=2)
    baseline(pytester.path, _as_before)
    pytester.runpytest("test_a.py", *ONCE, "--ort-baseline=before.json").assert_outcomes(passed=1)
    (entry,) = document(pytester.path)["gate"]
    assert (entry["case_id"], entry["baseline_case_id"]) == (A, "a-model/native/cpu/b1")
    assert entry["model_relation"] == "same"


@pytest.mark.usefixtures("nets")
def test_a_document_of_before_that_shows_no_path_pairs_with_nothing_and_says_why(
    pytester: pytest.Pytester,
) -> None:
    def elsewhere(run: dict[str, Any]) -> None:
        _as_before(run)
        run["cases"][0]["case"]["model"]["path"] = "/ci/x/model.onnx"

    pytester.runpytest("test_b.py", *ONCE)
    baseline(pytester.path, elsewhere)
    result = pytester.runpytest("test_a.py", *ONCE, "--ort-baseline=before.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any("/ci/x/model.onnx" in text for text in told(result, "gate"))
    assert not [entry for entry in document(pytester.path)["gate"] if entry["case_id"] == A]


@pytest.mark.usefixtures("nets")
def test_a_limit_names_one_of_several_models_of_one_file_name(pytester: pytest.Pytester) -> None:
    for pattern in ("b/model", "b/*", B):
        result = pytester.runpytest(*ONCE, f"--ort-limits={pattern}@latency_p50<1ns")
        result.assert_outcomes(passed=1, failed=1)
        assert failed_tests(result) == [f"test_latency[{B}]"]
    result = pytester.runpytest(*ONCE, "--ort-limits=model/native/cpu/b1@latency_p50<1ns")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.usefixtures("nets")
def test_what_failed_last_is_found_again_though_a_file_was_added(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    keep = [argument for argument in ONCE if argument not in ("-p", "no:cacheprovider")]
    pytester.makepyfile(
        test_all="def test_latency(ortbench): assert 'b/' not in ortbench.case.case_id"
    )
    everything = ("test_all.py", *keep, "--ort-models=*/model.onnx")
    pytester.runpytest(*everything).assert_outcomes(passed=1, failed=1)
    model_file("0/model.onnx")
    pytester.runpytest(*everything, "--lf").assert_outcomes(failed=1, deselected=2)


@pytest.mark.usefixtures("drawn_numbers")
def test_one_content_at_two_paths_is_two_models(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a/model.onnx")
    model_file("b/model.onnx")
    pytester.runpytest("a/model.onnx", "b/model.onnx", *ONCE).assert_outcomes(passed=2)
    baseline(pytester.path)
    grow(pytester.path / "b" / "model.onnx")
    pytester.runpytest("b/model.onnx", "a/model.onnx", *ONCE, "--ort-baseline=before.json")
    assert relations(pytester.path) == {A: "same", B: "changed"}


@pytest.mark.usefixtures("drawn_numbers")
def test_an_interrupted_run_is_not_taken_up_by_one_of_other_files(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a/model.onnx")
    stored = (*QUICK, "-k", "latency", "--ort-resume")
    pytester.runpytest("a/model.onnx", *stored)
    journal = next(pytester.path.glob("results/*/run.json"))
    run = json.loads(journal.read_text())
    run["finished_at"] = None
    journal.write_text(json.dumps(run))
    model_file("b/model.onnx", symbol="seq")
    result = pytester.runpytest("b/model.onnx", *stored, "--ort-json=run.json")
    result.assert_outcomes(passed=1)
    assert document(pytester.path).get("resumed", 0) == 0
    result = pytester.runpytest("a/model.onnx", *stored, "--ort-json=run.json")
    assert document(pytester.path)["resumed"] == 1
