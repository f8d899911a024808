"""What a run of pytest leaves for a CI service: a summary, annotations, reports of GitLab."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.report.ci.summary import MARKER, unfinished_summary

from .conftest import QUICK

ModelFile = Callable[..., Path]

REPORTS = (
    "--ort-summary=out/summary.md",
    "--ort-code-quality=out/quality.json",
    "--ort-metrics-report=out/metrics.txt",
)

LIMITED = """
    import pytest

    @pytest.mark.ortbench(limits=["latency_p50 <= 1 ms", "peak_rss <= 1 kB"])
    def test_mine(ortbench):
        pass
"""


def annotations(result: pytest.RunResult) -> list[str]:
    """Lines that GitHub takes for commands."""
    return [line for line in result.outlines if line.startswith("::")]


def entries(folder: Path) -> list[tuple[str, str, int]]:
    """Check, path and line of each entry of the report of code quality."""
    report = json.loads((folder / "out/quality.json").read_text())
    return [
        (entry["check_name"], entry["location"]["path"], entry["location"]["lines"]["begin"])
        for entry in report
    ]


@pytest.mark.usefixtures("drawn_numbers")
def test_a_broken_limit_of_a_marker_is_shown_at_its_test(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    model_file()
    pytester.makepyfile(LIMITED)
    name = f"{pytester._name}.py"
    result = pytester.runpytest("--ort-models=mlp.onnx", *REPORTS, *QUICK)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [line.partition(",title")[0] for line in annotations(result)] == [
        f"::error file={name},line=3"
    ] * 2
    assert entries(pytester.path) == [("ortbench-limit", name, 3)] * 2
    summary = (pytester.path / "out/summary.md").read_text()
    assert summary.splitlines()[1].startswith("## ❌")
    assert "ortbench_latency_p50_seconds{" in (pytester.path / "out/metrics.txt").read_text()


@pytest.mark.usefixtures("drawn_numbers")
def test_a_limit_of_the_command_line_is_shown_at_the_model(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    model_file("models/a b.onnx")
    result = pytester.runpytest(
        "models/a b.onnx", "-k", "latency", "--ort-limits=latency_p50:1us", *REPORTS, *QUICK
    )
    path = f"{pytester.path.name}/models/a b.onnx"
    (line,) = annotations(result)
    assert line.startswith(f"::error file={path},title=")
    assert entries(pytester.path) == [("ortbench-limit", path, 1)]


@pytest.mark.usefixtures("drawn_numbers")
def test_other_failures_of_a_case_are_told_and_tests_of_others_are_not(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        def test_own(ortbench):
            assert ortbench.latency().p50 < 0, "too slow"

        @pytest.mark.xfail
        def test_expected(ortbench):
            assert False

        def test_foreign():
            assert False, "foreign"
        """
    )
    result = pytester.runpytest("--ort-models=mlp.onnx", *REPORTS, *QUICK)
    result.assert_outcomes(failed=2, xfailed=1)
    assert annotations(result) == []
    assert [check for check, _, _ in entries(pytester.path)] == ["ortbench-test"]
    summary = (pytester.path / "out/summary.md").read_text()
    assert "too slow" in summary
    assert "foreign" not in summary


@pytest.mark.usefixtures("drawn_numbers")
def test_a_gate_is_shown_at_the_model(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    model_file()
    (pytester.path / "mlp.onnx").rename(pytester.path / "net.onnx")
    arguments = ("net.onnx", "-k", "latency", *QUICK)
    pytester.runpytest(*arguments, "--ort-json=base.json")
    result = pytester.runpytest(
        *arguments, "--ort-baseline=base.json", "--ort-gate=model_size:<=1B", *REPORTS
    )
    (line,) = annotations(result)
    assert line.startswith("::error file=net.onnx,title=ortbench gate")
    assert entries(pytester.path) == [("ortbench-gate", "net.onnx", 1)]
    summary = (pytester.path / "out/summary.md").read_text()
    assert summary.splitlines()[1].startswith("## ❌")


@pytest.mark.usefixtures("drawn_numbers")
def test_a_removed_model_is_told_once(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file("models/one.onnx")
    model_file("models/two.onnx")
    arguments = ("--pyargs", "pytest_ortbench.suites", "-k", "latency", "--ort-models=models")
    pytester.runpytest(*arguments, "--ort-json=base.json", *QUICK)
    (pytester.path / "models/two.onnx").unlink()
    pytester.runpytest(*arguments, "--ort-baseline=base.json", *REPORTS, *QUICK)
    assert entries(pytester.path) == [("ortbench-gate", ".", 1)]


@pytest.mark.usefixtures("drawn_numbers")
def test_a_passing_run_has_empty_reports_and_no_annotation(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    model_file()
    (pytester.path / "out").mkdir()
    (pytester.path / "out/summary.md").write_text("obsolete")
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *REPORTS, *QUICK)
    assert result.ret == 0
    assert annotations(result) == []
    assert entries(pytester.path) == []
    summary = (pytester.path / "out/summary.md").read_text()
    assert summary.startswith(MARKER)
    assert "obsolete" not in summary
    assert [path.name for path in sorted((pytester.path / "out").iterdir())] == [
        "metrics.txt", "quality.json", "summary.md",
    ]  # fmt: skip


@pytest.mark.usefixtures("drawn_numbers")
@pytest.mark.parametrize("is_named", [True, False])
def test_the_summary_of_a_job_is_appended_once(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    monkeypatch: pytest.MonkeyPatch,
    is_named: bool,
) -> None:
    model_file()
    path = pytester.path / "step.md"
    path.write_text("earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    options = [f"--ort-summary={path}"] if is_named else []
    pytester.runpytest("mlp.onnx", "-k", "latency", *options, *QUICK)
    text = path.read_text()
    assert text.startswith("earlier\n")
    assert text.count(MARKER) == 1


def test_a_run_without_a_case_says_so(pytester: pytest.Pytester) -> None:
    (pytester.path / "out").mkdir()
    (pytester.path / "out/summary.md").write_text("obsolete")
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest(*REPORTS, *QUICK)
    text = (pytester.path / "out/summary.md").read_text()
    assert text.startswith(MARKER)
    assert "obsolete" not in text
    assert entries(pytester.path) == []


def test_collecting_alone_writes_nothing(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    pytester.runpytest("mlp.onnx", "--collect-only", *REPORTS, *QUICK)
    assert not (pytester.path / "out").exists()


@pytest.mark.usefixtures("drawn_numbers")
def test_an_interrupted_run_has_a_summary_that_says_so(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_file()
    before: list[str] = []

    def interrupted(*_: object, **__: object) -> None:
        before.append((pytester.path / "out/summary.md").read_text())
        os.kill(os.getpid(), signal.SIGINT)

    pytester.makepyfile(
        """
        def test_one(ortbench):
            assert ortbench.latency().p50

        def test_two(ortbench, stop):
            stop()
        """
    )
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef stop():\n    return STOP[0]\n")
    monkeypatch.setattr("builtins.STOP", [interrupted], raising=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pytester.runpytest("--ort-models=mlp.onnx", *REPORTS, *QUICK, no_reraise_ctrlc=True)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert before == [unfinished_summary()]
    text = (pytester.path / "out/summary.md").read_text()
    assert text.splitlines()[1].startswith("## ⚠️")


@pytest.mark.parametrize("option", [option.partition("=")[0] for option in REPORTS])
def test_a_report_that_can_not_be_written_is_refused_before_measuring(
    pytester: pytest.Pytester, model_file: ModelFile, option: str
) -> None:
    model = model_file()
    result = pytester.runpytest("mlp.onnx", f"{option}={model}/report", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(line.startswith(f"ERROR: {option}: ") for line in result.errlines)
