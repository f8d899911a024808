"""What becomes of a case, in pytest's words: limits, failures, interruption, other plugins."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.launch.launcher import ProcessWorker
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.schema.question import CaseQuestion

from .conftest import QUICK, told

ModelFile = Callable[..., Path]


CASE = "mlp/native/cpu/b1"


def _cases(folder: Path) -> dict[str, dict]:
    (document,) = folder.glob("results/*/run.json")
    cases = json.loads(document.read_text())["cases"]
    return {case["case"]["model"]["name"]: case for case in cases}


def test_an_option_of_a_provider_that_no_test_asks_for_is_refused(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-provider-option=cuda.device_id=1", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "ERROR: --ort-provider-option: cuda.device_id is an option of cuda, but the requested "
        "providers are cpu. *--ort-providers*"
    )


def test_an_option_counts_for_the_provider_that_a_marker_asks_for(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", providers=["xnnpack"])
        def test_it(ortbench):
            pass
        """
    )
    threads = "--ort-provider-option=xnnpack.intra_op_num_threads=1"
    result = pytester.runpytest("--collect-only", threads, *QUICK)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("*mlp/native/xnnpack/b1*")


def test_a_library_of_custom_operators_that_is_not_there_starts_nothing(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-custom-ops=nope.so", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.stderr.lines if line]
    assert ("--ort-custom-ops" in line, "nope.so" in line) == (True, True)


@pytest.mark.usefixtures("drawn_numbers")
def test_a_limit_that_is_exceeded_fails_with_value_interval_and_limit(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        MODEL = "mlp.onnx"

        @pytest.mark.ortbench(models=MODEL, limits=["latency_p50 <= 1 ns", "model_size <= 1 MB"])
        def test_too_slow(ortbench):
            pass

        @pytest.mark.ortbench(models=MODEL, limits=["latency_p50 <= 60 s", "placement >= 95 %"])
        def test_fast_enough(ortbench):
            assert ortbench.latency().p50 < 60.0
            assert ortbench.placement().ratio == 1.0
        """
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines(
        [r"mlp/native/cpu/b1: limits exceeded", r"\s+latency_p50 is .* \[.*\].*<= 1.* ns.*"]
    )
    result.stdout.no_fnmatch_line("*model_size is*")
    first_command = result.outlines[result.outlines.index("next:") + 2]
    assert "profile mlp/native/cpu/b1 --run=" in first_command


def test_a_limit_on_p99_brings_its_samples(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", limits=["latency_p99 <= 60 s"])
        def test_tail(ortbench):
            assert ortbench.latency().p99.samples >= 368
        """
    )
    pytester.runpytest("--ort-time=0.001", *QUICK[1:]).assert_outcomes(passed=1)


def test_the_marker_wins_for_the_axes_it_names(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(batch_sizes=[2, 3])
        def test_it(ortbench):
            pass
        """
    )
    result = pytester.runpytest(
        "--collect-only", "-q", "--ort-models=mlp.onnx", "--ort-batch-sizes=7", "--ort-threads=1"
    )
    tests = [line.split("::")[1] for line in result.outlines if "::" in line]
    assert tests == [f"test_it[mlp/native/cpu/b{batch}/threads:1]" for batch in (2, 3)]


def test_a_wrong_marker_fails_its_own_test_and_the_others_run(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.ortbench(batchsize=[2])
        def test_unknown(ortbench):
            pass

        @pytest.mark.ortbench(models="gone.onnx")
        def test_gone(ortbench):
            pass

        @pytest.mark.ortbench(models="mlp.onnx", providers="cpuu")
        def test_provider(ortbench):
            pass

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_right(ortbench):
            assert ortbench.latency().p50 > 0
        """
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=1, errors=3)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_unknown, ortbench marker: *'batchsize'*batch_sizes*",
            "test_it.py::test_gone, models of the ortbench marker: *gone.onnx*",
            "test_it.py::test_provider, providers of the ortbench marker: *'cpuu'*",
        ]
    )


@pytest.mark.parametrize("table", ["tool.pytest", "tool.pytest.ini_options"])
def test_a_wrong_ini_value_is_one_line_however_many_tests_there_are(
    pytester: pytest.Pytester, table: str
) -> None:
    pytester.makepyprojecttoml(f"[{table}]\nort_workers = 0")
    pytester.makepyfile(test_a="def test_it(ortbench): pass", test_b="def test_it(ortbench): pass")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert "ort_workers" in line
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*no collected test takes*")


def test_models_beside_a_named_file_are_said_not_to_count(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-models=builtin:gbdt", "--collect-only")
    assert any(text.startswith("--ort-models ") for text in told(result))


def test_a_metric_that_was_not_measured_fails_with_its_reason(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_power(ortbench):
            assert ortbench.energy().power < 100

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_power_if_any(ortbench):
            assert ortbench.energy().get("power") is None
        """
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"{CASE}: power *"])


def test_a_provider_that_is_not_here_fails_when_named_and_names_who_has_it(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "--ort-providers=cpu,openvino", *QUICK)
    result.assert_outcomes(passed=1, failed=1)
    (document,) = pytester.path.glob("results/*/run.json")
    cases = json.loads(document.read_text())["cases"]
    assert [case["status"] for case in cases] == ["measured", "unavailable"]
    assert cases[1]["measurements"] == []
    assert cases[1]["failure"]["kind"] == "unavailable"
    assert "onnxruntime-openvino" in cases[1]["failure"]["hint"]
    assert "onnxruntime-openvino" in result.stdout.str()


def test_a_test_that_asks_for_nothing_needs_its_provider_all_the_same(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", providers="openvino")
        def test_it(ortbench): pass
        """
    )
    result = pytester.runpytest("--ort-no-results", "--ort-json=run.json", *QUICK)
    result.assert_outcomes(failed=1)
    cases = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert [case["status"] for case in cases] == ["unavailable"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of POSIX")
def test_a_worker_killed_from_outside_costs_that_case_only(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_file("victim.onnx")
    model_file("after.onnx")
    ask = ProcessWorker.ask

    def ask_a_killed_one(worker: ProcessWorker, question: CaseQuestion[Any]) -> object:
        if isinstance(question, TimeBlock) and _case_of(worker).model.name == "victim":
            os.kill(worker.pid, signal.SIGKILL)
        return ask(worker, question)

    monkeypatch.setattr(ProcessWorker, "ask", ask_a_killed_one)
    result = pytester.runpytest("victim.onnx", "after.onnx", "-k", "latency", *QUICK)
    result.assert_outcomes(passed=1, failed=1)
    cases = _cases(pytester.path)
    assert cases["after"]["status"] == "measured"
    failure = cases["victim"]["failure"]
    assert (cases["victim"]["status"], failure["signal"]) == ("crash", "SIGKILL")
    assert failure["phase"] in ("warm-up", "measure")
    result.stdout.fnmatch_lines(["victim/native/cpu/b1:*SIGKILL*"])


def test_a_case_that_takes_too_long_ends_as_timeout(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "--ort-timeout=0.05")
    result.assert_outcomes(failed=1)
    case = _cases(pytester.path)["mlp"]
    assert case["status"] == "timeout"
    assert float(case["failure"]["hint"].rpartition("=")[2]) > 0.05
    assert result.ret == 1


#: Once a case is stored, the measuring of the next one does not end.
_ENDLESS = """
    import pathlib
    import time

    from pytest_ortbench.launch.launcher import ProcessWorker
    from pytest_ortbench.schema.case_questions import TimeBlock

    ask = ProcessWorker.ask

    def ask_for_ever(worker, question):
        if isinstance(question, TimeBlock) and list(pathlib.Path().glob("results/*/journal.jsonl")):
            pathlib.Path("endless").touch()
            time.sleep(600)
        return ask(worker, question)

    ProcessWorker.ask = ask_for_ever
"""


def test_an_interrupted_run_keeps_what_was_finished_and_leaves_no_worker(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("first.onnx")
    model_file("second.onnx")
    pytester.makeconftest(_ENDLESS)
    command = [sys.executable, "-m", "pytest", "first.onnx", "second.onnx", "-k", "latency", *QUICK]
    # A child would go on ignoring interrupts if these tests were started in the background.
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, cwd=pytester.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    signal.signal(signal.SIGINT, outside)
    try:
        deadline = time.monotonic() + 600
        while not (pytester.path / "endless").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert not [worker for worker in workers if _is_alive(worker)]
    (document,) = pytester.path.glob("results/*/run.json")
    run = json.loads(document.read_text())
    assert [case["case"]["model"]["name"] for case in run["cases"]] == ["first"]
    assert run["expected"] == 2
    assert "first: " in output


def _is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; one that ended before it was known may wait to be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _case_of(worker: ProcessWorker) -> Case:
    case = worker._questioner._case
    assert case is not None
    return case


def test_an_interrupted_run_is_resumed_without_measuring_again(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_file("first.onnx")
    model_file("second.onnx")
    measured: list[str] = []
    ask = ProcessWorker.ask

    def ask_and_interrupt(worker: ProcessWorker, question: CaseQuestion[Any]) -> object:
        if isinstance(question, TimeBlock):
            name = _case_of(worker).model.name
            measured.append(name)
            if name == "second" and not resumed:
                raise KeyboardInterrupt
        return ask(worker, question)

    monkeypatch.setattr(ProcessWorker, "ask", ask_and_interrupt)
    # Without pytest-benchmark, whose warning about its unused fixture is an error in this process.
    arguments = ("first.onnx", "second.onnx", "-k", "latency", "-p", "no:benchmark", *QUICK)
    resumed = False
    result = pytester.runpytest_inprocess(*arguments, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    measured.clear()
    resumed = True
    (folder,) = (path.parent.name for path in pytester.path.glob("results/*/run.json"))
    result = pytester.runpytest(*arguments, "--ort-resume")
    result.assert_outcomes(passed=2)
    assert "first" not in measured
    assert "second" in measured
    result.stdout.fnmatch_lines([f"ortbench: resumed: 1 *{folder}", f"resumed: 1 *{folder}"])
    runs = [json.loads(path.read_text()) for path in pytester.path.glob("results/*/run.json")]
    assert sorted(run["resumed"] for run in runs) == [0, 1]


def test_nothing_to_resume_is_said(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "--ort-resume", *QUICK)
    result.assert_outcomes(passed=1)
    assert len(told(result, "resumed")) == 1
    (document,) = pytester.path.glob("results/*/run.json")
    assert json.loads(document.read_text())["resumed"] == 0


@pytest.mark.parametrize("arguments", [("-p", "no:benchmark"), ("-p", "no:terminal"), ("-q",)])
def test_it_runs_beside_and_without_other_plugins(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: tuple[str, ...]
) -> None:
    model_file()
    result = pytester.runpytest_subprocess("mlp.onnx", "-k", "latency", *arguments, *QUICK)
    assert result.ret == 0
    assert _cases(pytester.path)["mlp"]["status"] == "measured"


def test_metrics_are_junit_properties(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    from xml.etree import ElementTree

    model_file()
    pytester.runpytest("mlp.onnx", "-k", "latency", "--junitxml=out.xml", *QUICK)
    (case,) = ElementTree.parse(pytester.path / "out.xml").getroot().iter("testcase")
    properties = {item.get("name"): item.get("value") for item in case.iter("property")}
    samples = _cases(pytester.path)["mlp"]["measurements"][0]["samples"]
    (p50,) = [s for s in samples["order_statistics"] if s["percent"] == 50]
    assert float(properties["ortbench.latency_p50_s"]) == pytest.approx(
        p50["value_ns"] * 1e-9, rel=1e-9
    )


def test_the_job_summary_is_written_where_the_ci_service_asks(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_file()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *QUICK)
    (answer,) = [line for line in result.outlines if line.startswith("mlp: ")]
    assert answer.split(",")[0] in (pytester.path / "summary.md").read_text()


def test_a_results_folder_that_cannot_be_written_is_known_before_measuring(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    (pytester.path / "results").write_text("a file")
    result = pytester.runpytest("mlp.onnx", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*results*--ort-results*"])


def test_a_fixture_asked_for_at_run_time_says_what_to_do(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(request): request.getfixturevalue('ortbench')")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Add 'ortbench' to the arguments of the test function*"])
    result.stdout.no_fnmatch_line("*plugin/taken.py*")


def test_the_hook_hears_of_every_result(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    pytester.makeconftest(
        """
        def pytest_ortbench_case_measured(result):
            with open("heard.txt", "a") as file:
                file.write(f"{result.case.case_id} {result.status}\\n")

        def pytest_ortbench_models():
            return ["mlp.onnx"]

        def pytest_ortbench_machine_info():
            return {"asset": "lab-07"}
        """
    )
    pytester.makepyfile("def test_it(ortbench): assert ortbench.latency().p50 > 0")
    pytester.runpytest(*QUICK).assert_outcomes(passed=1)
    assert (pytester.path / "heard.txt").read_text().split() == [CASE, "measured"]
    (document,) = pytester.path.glob("results/*/run.json")
    assert json.loads(document.read_text())["machine"]["volatile"]["asset"] == "lab-07"
