"""Limits without a marker: ``--ort-limits`` and ``ort_limits``, in the marker's grammar."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest

from .conftest import QUICK, failed_tests, told

ModelFile = Callable[..., Path]


def _broken(result: pytest.RunResult) -> list[str]:
    """The metric of each broken limit, in the order of the tests."""
    # Where CI is set pytest repeats whole messages in its summary.
    before = takewhile(lambda line: "short test summary" not in line, result.outlines)
    told = [line for line in before if ", the limit is " in line]
    return [line.partition(" is ")[0].strip() for line in told]


def test_one_test_of_the_case_breaks_whatever_number_of_tests_read_its_numbers(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    limits = "--ort-limits=latency_p50 <= 1 ns,peak_rss:1000GB,process_peak_rss:1kB"
    result = pytester.runpytest("mlp.onnx", limits, "-k", "latency or memory or startup", *QUICK)
    result.assert_outcomes(failed=1, passed=2)
    assert _broken(result) == ["latency_p50", "process_peak_rss"]
    assert [name.partition("[")[0] for name in failed_tests(result)] == ["test_latency"]


def test_an_ini_key_names_cases_and_the_first_selected_test_carries_them(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyprojecttoml(
        '[tool.pytest]\nort_limits = ["mlp*b4@latency_p50 <= 1 ns", "other*@peak_rss <= 1 kB"]'
    )
    pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", batch_sizes=[1, 4], limits=["peak_rss >= 1000 GB"])
        def test_first(ortbench): pass

        @pytest.mark.ortbench(models="mlp.onnx", batch_sizes=[1, 4])
        def test_second(ortbench): pass
        """
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(failed=2, passed=2)
    assert _broken(result) == ["peak_rss", "peak_rss", "latency_p50"]
    result.stdout.fnmatch_lines(
        [
            "ortbench: ort_limits in *pyproject.toml: 'other[*]' in 'other[*]@peak_rss <= 1 kB' "
            "matches no case"
        ]
    )


def test_limits_of_an_ini_file_may_hold_blanks_and_stand_in_lines(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    lines = ["latency_p50 <= 1 ns, peak_rss:1000GB", "process_peak_rss <= 1 kB"]
    pytester.makeini("\n    ".join(["[pytest]\nort_limits =", *lines]))
    result = pytester.runpytest("mlp.onnx", "-k", "latency or memory", *QUICK)
    assert _broken(result) == ["latency_p50", "process_peak_rss"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "resnet*@latency_p50:1ms",
            "'resnet*' in 'resnet*@latency_p50:1ms' matches no case. The cases are mlp/native/cpu/"
            "b1",
        ),
        (
            "latncy_p50:1ms",
            "'latncy_p50' in 'latncy_p50:1ms' is not a metric. Did you mean 'latency_p50'?",
        ),
        (
            "latency_p50",
            "'latency_p50' is not a limit. Write a metric, an operator (<=, >=, <, > or ==) and a "
            "value, e.g. 'latency_p90 <= 30 ms'",
        ),
    ],
)
def test_a_wrong_limit_is_one_message_before_measuring(
    pytester: pytest.Pytester, model_file: ModelFile, written: str, said: str
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", f"--ort-limits={written}", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert errors == [f"ERROR: --ort-limits: {said}"]
    assert not (pytester.path / "results").exists()


_TESTS = {
    "test_other": "def test_it(): pass",
    "test_absent": "import pytest\npytest.importorskip('a_package_that_is_not_here')",
    "test_gone": (
        "import pytest\npytest.importorskip('a_package_that_is_not_here')\n"
        "@pytest.mark.ortbench(models='mlp.onnx')\ndef test_it(ortbench): pass"
    ),
    "test_ours": "import pytest\n@pytest.mark.ortbench(models='mlp.onnx')\n"
    "def test_it(ortbench): pass",
}


@pytest.mark.parametrize(
    ("files", "arguments", "missing"),
    [
        (("test_other", "test_absent"), (), ""),
        (("test_other", "test_gone"), (), "skipped as a whole: test_gone.py"),
        (("test_other", "test_ours"), ("-m", "not ortbench"), ""),
        (("test_other", "test_ours"), ("-k", "other"), "1 case collected, all deselected"),
    ],
)
def test_limits_of_a_project_are_missed_where_tests_of_ours_are_missing(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    files: tuple[str, ...],
    arguments: tuple[str, ...],
    missing: str,
) -> None:
    model_file()
    pytester.makeini("[pytest]\nort_limits = latency_p50 <= 1 s")
    pytester.makepyfile(**{name: _TESTS[name] for name in files})
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.OK
    lines = [line for line in told(result) if line.startswith("ort_limits in ")]
    reasons = [line.partition("'latency_p50 <= 1 s': ")[2] for line in lines]
    assert reasons == ([missing] if missing else [])
    assert missing or not told(result)
