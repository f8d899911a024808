"""Under pytest-xdist tests of ours run in the controller, after all others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK, failed_tests, told

ModelFile = Callable[..., Path]

OTHERS = """
    import os, pathlib, time

    def test_first():
        pathlib.Path("worker").write_text(str(os.getpid()))
        time.sleep(0.2)

    def test_second():
        pass
    """
OWN = """
    import os, pathlib
    import pytest

    def test_plain():
        pass

    @pytest.mark.ortbench(models="mlp.onnx", limits=["latency_p90 <= 10 s"])
    def test_own(ortbench):
        assert ortbench.latency().p50 > 0
        assert "PYTEST_XDIST_WORKER" not in os.environ
        worker = int(pathlib.Path("worker").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)

    @pytest.mark.ortbench(models="mlp.onnx", limits=["latency_p90 <= 1 ns"])
    def test_slow(ortbench):
        pass
    """


def test_ours_run_when_all_workers_have_ended(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makeini("[pytest]\naddopts = -n 2")
    pytester.makepyfile(test_others=OTHERS, test_ours=OWN)
    result = pytester.runpytest_subprocess(*QUICK)
    result.assert_outcomes(passed=4, failed=1)
    assert failed_tests(result) == ["test_slow[mlp/native/cpu/b1]"]
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*.ortbench:*")  # behind the dots of workers
    (document,) = pytester.path.glob("results/*/run.json")
    assert [case["status"] for case in json.loads(document.read_text())["cases"]] == ["measured"]


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (("mlp.onnx", "-k", "latency or memory", "--ort-precisions=fp32,fp16"), 4),
        (("mlp.onnx::test_memory[mlp/native/cpu/b1]", "test_others.py"), 3),
        (("mlp.onnx", "test_others.py", "-k", "native and startup or first"), 2),
        (("test_ours.py::test_plain",), 1),
    ],
)
def test_what_is_selected_is_run(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: tuple[str, ...], passed: int
) -> None:
    model_file()
    pytester.makepyfile(test_others=OTHERS, test_ours=OWN)
    result = pytester.runpytest_subprocess("-n2", *arguments, *QUICK)
    result.assert_outcomes(passed=passed, deselected=result.parseoutcomes().get("deselected", 0))
    assert result.ret == pytest.ExitCode.OK


def test_a_run_that_is_over_at_the_first_failure_measures_nothing(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(test_others="def test_it(): assert 0", test_ours=OWN)
    result = pytester.runpytest_subprocess("-n2", "-x", "test_others.py", "mlp.onnx", *QUICK)
    result.assert_outcomes(failed=1)
    assert not list(pytester.path.glob("results/*"))


@pytest.mark.parametrize("processes", ["0", "2"])
def test_skipped_benchmarks_are_neither_planned_nor_measured(
    pytester: pytest.Pytester, model_file: ModelFile, processes: str
) -> None:
    model_file()
    pytester.makeini("[pytest]\nort_limits = latency_p90 <= 1 ns\nort_models = gone.onnx")
    pytester.makepyfile(test_others=OTHERS, test_ours=OWN)
    result = pytester.runpytest_subprocess("--benchmark-skip", "-n", processes, "--ort-time=0.06")
    result.assert_outcomes(passed=3, skipped=2)
    assert result.ret == pytest.ExitCode.OK
    assert told(result) == []
