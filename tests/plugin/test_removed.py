"""What a run lost is an item of its own, and what is accepted fails nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pytest_ortbench.core.acceptance import FILE_NAME
from pytest_ortbench.store import accepted

from .conftest import QUICK as KEPT
from .conftest import held_against

ModelFile = Callable[..., Path]

#: The document stands in ``run.json``, that of the baseline in ``before.json``.
QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json", "--ort-models=nets")
STORED = "--ort-baseline=before.json"
#: The baseline, by the folder that it was measured in: once for all tests.
MEASURED: dict[str, str] = {}
GONE = "ortbench::removed[[]nets/gone[]]"


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 11, 28))


@pytest.fixture
def lost(pytester: pytest.Pytester, model_file: ModelFile, drawn_numbers: None) -> None:
    """``nets`` held two models when ``before.json`` was measured, and holds one."""
    for name in ("kept", "gone"):
        model_file(f"nets/{name}.onnx")
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(
        """
        def test_memory(ortbench): ortbench.result
        def test_latency(ortbench): ortbench.result
        """
    )
    before = pytester.path / "before.json"
    if not MEASURED:
        pytester.runpytest(*QUICK).assert_outcomes(passed=4)
        MEASURED[str(pytester.path)] = (pytester.path / "run.json").read_text()
    for folder, text in MEASURED.items():
        before.write_text(text.replace(folder, str(pytester.path)))
    (pytester.path / "nets/gone.onnx").unlink()


def verdicts(folder: Path) -> dict[str, dict]:
    run = json.loads((folder / "run.json").read_text())
    return {entry["case_id"]: entry for entry in run["gate"]}


def committed(folder: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for call in (("init", "-q"), ("add", "nets"), ("commit", "-qm", "first")):
        subprocess.run(["git", "-C", folder, *identity, *call], check=True, capture_output=True)


def write_acceptance(folder: Path, **values: object) -> None:
    lines = [f'{key} = "{value}"\n' for key, value in values.items()]
    (folder / FILE_NAME).write_text("".join(["[[accepted]]\n", *lines]))


@pytest.mark.usefixtures("lost")
def test_a_removed_model_is_one_failing_item_in_every_report(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(*QUICK, STORED, "--junitxml=j.xml", "-q", "-rf")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "the model nets/gone was removed: * contains it, as nets/gone/native/cpu/b1",
            "If it was intended: ortbench accept nets/gone --metric=removed --reason=TEXT",
            f"FAILED {GONE} - *",
        ]
    )
    (case,) = ElementTree.parse(pytester.path / "j.xml").iterfind(".//testcase[failure]")
    assert (case.get("classname"), case.get("name")) == ("ortbench", "removed[nets/gone]")
    assert verdicts(pytester.path)["nets/gone/native/cpu/b1"]["removed"] is True


@pytest.mark.usefixtures("lost")
def test_a_removed_case_of_a_model_that_is_there_is_named_with_its_case(
    pytester: pytest.Pytester,
) -> None:
    text = (
        (pytester.path / "before.json").read_text().replace("nets/gone/native", "nets/kept/other")
    )
    run = json.loads(text)
    for case in run["cases"]:
        if case["case"]["model"]["name"] == "nets/gone":
            case["case"]["model"] = next(
                other["case"]["model"]
                for other in run["cases"]
                if other["case"]["model"]["name"] == "nets/kept"
            )
            case["case"]["dims"] = {"more": 2}
    (pytester.path / "before.json").write_text(json.dumps(run))
    result = pytester.runpytest(*QUICK, STORED, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["ortbench::removed[[]nets/kept/native/cpu/b1/more:2[]]"])


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize(
    ("arguments", "is_selected"),
    [
        (["-k", "gone"], True),
        (["-k", "latency"], True),
        (["-k", "memory"], True),
        (["-k", "kept"], False),
        (["-k", "not gone"], False),
        (["--deselect=ortbench::removed[nets/gone]"], False),
        (["-m", "slow"], False),
        (["test_{name}.py::test_latency"], True),
        (["test_{name}.py::test_latency[nets/kept/native/cpu/b1]"], False),
    ],
)
def test_it_is_selected_like_any_test(
    pytester: pytest.Pytester, request: pytest.FixtureRequest, arguments: list[str], is_selected
) -> None:
    (path,) = pytester.path.glob("test_*.py")
    arguments = [text.replace("test_{name}.py", path.name) for text in arguments]
    result = pytester.runpytest(*QUICK, STORED, "--collect-only", "-q", *arguments)
    listed = "ortbench::removed[nets/gone]" in result.stdout.lines
    assert listed is is_selected
    told = (
        "not judged, because its test was deselected: the model nets/gone was removed"
    ) in result.stdout.str()
    assert told is (not is_selected and "::test" not in arguments[0])


@pytest.mark.usefixtures("lost")
def test_a_mark_of_the_tests_that_asked_for_it_selects_it(pytester: pytest.Pytester) -> None:
    (path,) = pytester.path.glob("test_*.py")
    path.write_text(f"import pytest\npytestmark = pytest.mark.ortbench()\n{path.read_text()}")
    result = pytester.runpytest(*QUICK, STORED, "--collect-only", "-q", "-m", "ortbench")
    assert "ortbench::removed[nets/gone]" in result.stdout.lines


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize(
    "before",
    ["pytestmark = pytest.mark.ortbench(limits=['latency_p50 <= 1 s'])", "pytestmark = MARKS"],
)
def test_a_marker_of_the_tests_that_asked_for_it_does_not_make_it_an_error(
    pytester: pytest.Pytester, before: str
) -> None:
    (path,) = pytester.path.glob("test_*.py")
    marks = "MARKS = [pytest.mark.ortbench(), pytest.mark.filterwarnings('ignore')]"
    path.write_text(f"import pytest\n{marks}\n{before}\n{path.read_text()}")
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(passed=2, failed=1)
    assert held_against(verdicts(pytester.path)["nets/gone/native/cpu/b1"]) == ["removed"]
    write_acceptance(pytester.path, case="gone", reason="replaced by kept")
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.usefixtures("lost")
def test_the_last_failures_are_run_again_and_nothing_else(pytester: pytest.Pytester) -> None:
    arguments = [text for text in QUICK if text not in ("-p", "no:cacheprovider")]
    pytester.runpytest(*arguments, STORED).assert_outcomes(passed=2, failed=1)
    result = pytester.runpytest(*arguments, STORED, "--lf")
    result.assert_outcomes(failed=1, deselected=2)


@pytest.mark.usefixtures("lost")
def test_it_stops_a_run_that_stops_at_failures(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(*QUICK, STORED, "-x")
    result.assert_outcomes(failed=1)


@pytest.mark.usefixtures("lost")
def test_where_nothing_else_is_left_it_is_there_all_the_same(pytester: pytest.Pytester) -> None:
    (pytester.path / "nets/kept.onnx").unlink()
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(failed=2, skipped=2)
    assert set(verdicts(pytester.path)) == {"nets/gone/native/cpu/b1", "nets/kept/native/cpu/b1"}
    write_acceptance(pytester.path, case="*/native/*", metric="removed", reason="a new start")
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(passed=2, skipped=2)
    assert result.ret == pytest.ExitCode.OK
    assert not any(entry["failures"] for entry in verdicts(pytester.path).values())


@pytest.mark.usefixtures("lost")
def test_a_specification_without_a_model_stays_an_error_where_nothing_is_missed(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "nets/kept.onnx").unlink()
    run = json.loads((pytester.path / "before.json").read_text())
    run["cases"] = []
    (pytester.path / "before.json").write_text(json.dumps(run))
    result = pytester.runpytest(*QUICK, STORED)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ort-models:*'nets'*"])


@pytest.mark.usefixtures("lost")
def test_an_accepted_removal_passes_with_its_reason_until_its_day(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "replaced by kept"
    write_acceptance(pytester.path, case="gone", reason=reason, until="2026-11-28")
    result = pytester.runpytest(*QUICK, STORED, "--junitxml=j.xml", "--ort-html=r.html")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [f"*2026-11-28: {reason}", "gate: 1 accepted, 1 not judged in full"]
    )
    (entry,) = verdicts(pytester.path)["nets/gone/native/cpu/b1"]["findings"]
    assert entry["acceptance"]["state"] == "accepted"
    assert entry["acceptance"]["reason"] == reason
    assert reason in (pytester.path / "j.xml").read_text()
    assert reason in (pytester.path / "r.html").read_text()
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 11, 29))
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"*2026-11-28 ({reason})*"])
    (entry,) = verdicts(pytester.path)["nets/gone/native/cpu/b1"]["findings"]
    assert entry["acceptance"]["state"] == "expired"


@pytest.mark.usefixtures("lost")
def test_an_acceptance_in_a_document_counts_for_nothing(pytester: pytest.Pytester) -> None:
    write_acceptance(pytester.path, case="gone", reason="replaced by kept")
    pytester.runpytest(*QUICK, STORED)
    (pytester.path / "run.json").rename(pytester.path / "accepted.json")
    (pytester.path / FILE_NAME).unlink()
    run = json.loads((pytester.path / "before.json").read_text())
    run["gate"] = json.loads((pytester.path / "accepted.json").read_text())["gate"]
    (pytester.path / "before.json").write_text(json.dumps(run))
    pytester.runpytest(*QUICK, STORED).assert_outcomes(passed=2, failed=1)


@pytest.mark.usefixtures("lost")
def test_the_file_lies_in_the_root_directory_or_where_the_option_says(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_acceptance(pytester.path, case="gone", reason="replaced by kept")
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    arguments = (*KEPT, "--ort-no-results", "--ort-models=../nets", "--ort-baseline=../before.json")
    pytester.runpytest(*arguments, "..").assert_outcomes(passed=3)
    (pytester.path / FILE_NAME).rename(below / "other.toml")
    pytester.runpytest(*arguments, "..").assert_outcomes(passed=2, failed=1)
    pytester.runpytest(*arguments, "..", "--ort-accepted=other.toml").assert_outcomes(passed=3)


@pytest.mark.usefixtures("lost")
def test_a_fault_of_the_file_is_one_line_before_anything_is_measured(
    pytester: pytest.Pytester,
) -> None:
    write_acceptance(pytester.path, case="gone", reason="why", until="2026-02-30")
    result = pytester.runpytest(*QUICK, STORED)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.stderr.lines if line.strip()]
    assert f"{FILE_NAME}, line 1" in line
    assert "2026-02-30" in line
    # Without a gate nobody reads it.
    pytester.runpytest(*QUICK).assert_outcomes(passed=2)


@pytest.mark.needs("git")
def test_a_folder_of_a_revision_that_is_gone_is_missed(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    for name in ("one", "two"):
        model_file(f"nets/{name}.onnx")
    committed(pytester.path)
    shutil.rmtree(pytester.path / "nets")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    result = pytester.runpytest(*QUICK, "--ort-against=git:HEAD")
    result.assert_outcomes(failed=2, skipped=1)
    assert {case_id: entry["removed"] for case_id, entry in verdicts(pytester.path).items()} == {
        "nets/one/native/cpu/b1": True,
        "nets/two/native/cpu/b1": True,
    }


@pytest.mark.needs("git")
def test_a_folder_whose_files_are_all_tests_misses_what_it_lost(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    for name in ("one", "two"):
        model_file(f"nets/{name}.onnx")
    committed(pytester.path)
    (pytester.path / "nets/two.onnx").unlink()
    pytester.makeini("[pytest]\nort_collect = true\n")
    arguments = [text for text in QUICK if text != "--ort-models=nets"]
    for side in ("--ort-against=git:HEAD", "--ort-against=git:HEAD --ort-baseline=latest"):
        result = pytester.runpytest(*arguments, *side.split(), "nets", "--collect-only", "-q")
        assert result.stdout.lines.count("ortbench::removed[nets/two]") == 1
    result = pytester.runpytest(*arguments, "--ort-against=git:HEAD", "nets/one.onnx", "--co", "-q")
    assert "removed" not in result.stdout.str()
    (pytester.path / "nets/one.onnx").unlink()
    result = pytester.runpytest(*arguments, "--ort-against=git:HEAD", "nets")
    result.assert_outcomes(failed=2)
