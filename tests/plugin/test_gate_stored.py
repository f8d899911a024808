"""What a stored run decides, and which one it is for which case."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import QUICK, failed_tests, held_against, told, told_last

pytestmark = pytest.mark.usefixtures("shared_machine")

ModelFile = Callable[..., Path]

SUITE = """
    import pytest

    pytestmark = pytest.mark.ortbench(models=["one.onnx", "two.onnx"])

    def test_latency(ortbench):
        assert ortbench.latency().min > 0
"""


@pytest.fixture
def two(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    """Two models and a test of each."""
    model_file("one.onnx")
    model_file("two.onnx")
    pytester.makepyfile(SUITE)


def run_of(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "run.json").read_text())
    return found


def judged(folder: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((folder / "run.json").read_text())["gate"]
    return entries


def grow(path: Path) -> None:
    """Make a model file larger and nothing else."""
    import onnx

    proto = onnx.load(path)
    proto.metadata_props.add(key="ballast", value="x" * 200)
    onnx.save(proto, path)


@pytest.mark.usefixtures("two", "drawn_numbers")
def test_a_run_of_a_selection_leaves_the_other_cases_their_baseline(
    pytester: pytest.Pytester,
) -> None:
    document = "--ort-json=run.json"
    pytester.runpytest(*QUICK, document).assert_outcomes(passed=2)
    whole = run_of(pytester.path)["run_id"]
    pytester.runpytest(*QUICK, "-k", "one").assert_outcomes(passed=1)
    grow(pytester.path / "two.onnx")
    result = pytester.runpytest(*QUICK, document, "--ort-baseline=latest")
    result.assert_outcomes(passed=1, failed=1)
    assert told_last(result, "gate") == ["two/native/cpu/b1"]
    _one, of_two = judged(pytester.path)
    assert (of_two["baseline"], held_against(of_two)) == (whole, ["model_size"])


@pytest.mark.usefixtures("two", "drawn_numbers")
def test_a_run_whose_test_failed_before_its_case_was_judged_is_no_baseline(
    pytester: pytest.Pytester,
) -> None:
    pytester.runpytest(*QUICK).assert_outcomes(passed=2)
    grow(pytester.path / "two.onnx")
    slow = "--ort-limits=two*@latency_p50 <= 1 ns"
    arguments = (*QUICK, "--ort-json=run.json", "--ort-baseline=latest")
    pytester.runpytest(*arguments, slow).assert_outcomes(passed=1, failed=1)
    result = pytester.runpytest(*arguments)
    result.assert_outcomes(passed=1, failed=1)
    assert any("used" in text.split() for text in told(result, "gate"))
    assert [held_against(entry) for entry in judged(pytester.path)] == [[], ["model_size"]]


@pytest.mark.usefixtures("two")
def test_absolute_limits_hold_without_a_baseline_and_have_the_samples_that_they_need(
    pytester: pytest.Pytester,
) -> None:
    limits = "--ort-gate=one*@latency_p99:<=1ns,two*@latency_p99:<=1min"
    result = pytester.runpytest(*QUICK, "--ort-json=run.json", limits, "--ort-baseline=latest")
    result.assert_outcomes(passed=1, failed=1)
    entries = judged(pytester.path)
    assert [entry["baseline"] for entry in entries] == ["no baseline"] * 2
    assert [held_against(entry) for entry in entries] == [["latency_p99"], []]
    # Who exceeded a limit of its own is held to it again, and blocks nobody who does not.
    again = pytester.runpytest(*QUICK, "--ort-baseline=latest")
    again.assert_outcomes(passed=2)
    assert again.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--ort-gate=peak_rss:<=1MiB"],
            "ERROR: --ort-gate: * Add --ort-baseline=latest *",
        ),
        (
            ["--ort-gate-strict"],
            "ERROR: --ort-gate-strict: * Add --ort-baseline=latest *",
        ),
        (
            ["--ort-baseline=latest", "--ort-gate=tow*@peak_rss:1%"],
            "ERROR: --ort-gate: 'tow[*]' in 'tow[*]@peak_rss:1%' matches no case. The cases are "
            "one/native/cpu/b1, two/native/cpu/b1",
        ),
        (
            ["--ort-baseline=models"],
            "ERROR: --ort-baseline: *models' contains 'net.txt', but no run*",
        ),
    ],
)
@pytest.mark.usefixtures("two")
def test_what_would_decide_nothing_is_refused(
    pytester: pytest.Pytester, arguments: list[str], message: str
) -> None:
    pytester.mkdir("models").joinpath("net.txt").touch()
    result = pytester.runpytest(*QUICK, "--ort-no-results", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


@pytest.mark.usefixtures("two", "drawn_numbers")
def test_limits_of_an_ini_file_wait_for_a_gate(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nort_gate = peak_rss:<=1kB")
    pytester.runpytest(*QUICK, "--ort-no-results").assert_outcomes(passed=2)


@pytest.mark.usefixtures("two", "drawn_numbers")
def test_a_baseline_of_an_ini_file_lies_beside_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.runpytest(*QUICK, "--ort-json=before/run.json").assert_outcomes(passed=2)
    pytester.makeini("[pytest]\nort_baseline = before/")
    grow(pytester.path / "two.onnx")
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    result = pytester.runpytest(
        *QUICK,
        "--ort-no-results",
        "--ort-json=run.json",
        "--ort-models=../two.onnx",
        "--pyargs",
        "pytest_ortbench.suites",
        "-k",
        "test_latency",
    )
    assert [held_against(entry) for entry in judged(below)] == [["model_size"]]
    result.assert_outcomes(failed=1, deselected=5)


@pytest.mark.usefixtures("drawn_numbers")
def test_what_any_test_of_a_case_says_of_its_gate_holds(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("net.onnx")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="net.onnx", gate=["session_rss:<=1kB", "peak_rss:<=1kB"])
        def test_memory(ortbench):
            assert ortbench.result

        @pytest.mark.ortbench(models="net.onnx", gate=["peak_rss:<=1000GB"])
        def test_latency(ortbench):
            assert ortbench.result
        """
    )
    pytester.runpytest(*QUICK).assert_outcomes(passed=2)
    result = pytester.runpytest(*QUICK, "--ort-json=run.json", "--ort-baseline=latest")
    result.assert_outcomes(passed=1, failed=1)
    assert failed_tests(result) == ["test_latency[net/native/cpu/b1]"]
    assert [held_against(entry) for entry in judged(pytester.path)] == [["session_rss"]]
