"""Nothing is collected or measured that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK, told

ModelFile = Callable[..., Path]

STANDARD = {"accuracy", "latency", "memory", "placement", "startup", "throughput"}


def collected(pytester: pytest.Pytester, *arguments: str) -> set[str]:
    """Return the names of the shipped tests that a run collects."""
    result = pytester.runpytest(*arguments, "--collect-only", "-q", *QUICK)
    tests = [line.partition("::test_")[2] for line in result.outlines if "::test_" in line]
    return {test.partition("[")[0] for test in tests}


@pytest.mark.parametrize(
    ("arguments", "besides"),
    [
        ((), set()),
        (("--ort-energy",), {"energy"}),
        (("--ort-energy-window=60",), set()),
        (("--ort-load=offline",), {"load"}),
        (("--ort-limits=power <= 75 W",), {"energy"}),
        (("--ort-limits=load_p99:20ms",), {"load"}),
        (("--ort-limits=latency_p90:20ms",), set()),
        (("--ort-against=model:mlp.onnx", "--ort-gate=energy_per_inference:<=1J"), {"energy"}),
        (("-o", "ort_energy=true"), {"energy"}),
    ],
)
def test_long_tests_are_collected_where_an_option_asks_for_them(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: tuple[str, ...], besides: set[str]
) -> None:
    model_file()
    assert collected(pytester, "mlp.onnx", *arguments) == STANDARD | besides


def test_long_tests_are_collected_where_they_are_named(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    assert collected(pytester, "mlp.onnx::test_energy") == {"energy"}
    assert collected(pytester, "mlp.onnx::test_load[mlp/native/cpu/b1]") == {"load"}
    assert collected(pytester, "mlp.onnx", "-k", "Energy") == {"energy"}
    assert collected(pytester, "mlp.onnx", "-k", "not energy and not load") == STANDARD


@pytest.mark.parametrize(("name", "tests"), [("", STANDARD), (".test_load", {"load"})])
def test_the_suites_as_modules_have_long_tests_where_they_are_named(
    pytester: pytest.Pytester, model_file: ModelFile, name: str, tests: set[str]
) -> None:
    model_file()
    suites = ("--pyargs", f"pytest_ortbench.suites{name}", "--rootdir=.", "--ort-models=mlp.onnx")
    # A process of its own: this one may have imported another test_load.py already.
    result = pytester.runpytest_subprocess(*suites, "--collect-only", "-q", *QUICK)
    lines = [line.partition("::test_")[2] for line in result.outlines if "::test_" in line]
    assert {line.partition("[")[0] for line in lines} == tests


OWN = """
    import pytest

    @pytest.mark.ortbench({keywords})
    def test_marked(ortbench):
        pass

    def test_bare(ortbench):
        pass
    """


@pytest.mark.parametrize("keywords", ["", "limits=['latency_p90 <= 30 ms']", "batch_sizes=4"])
def test_a_test_of_the_user_that_names_no_model_is_an_error(
    pytester: pytest.Pytester, keywords: str
) -> None:
    pytester.makepyfile(OWN.format(keywords=keywords))
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines("*::test_marked: *models*--ort-models=*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not list(pytester.path.glob("results/*/run.json"))


@pytest.mark.parametrize("way", ["option", "ini", "hook", "folder"])
def test_models_are_named_in_many_ways(
    pytester: pytest.Pytester, model_file: ModelFile, way: str
) -> None:
    path = model_file("models/mlp.onnx" if way == "folder" else "nets/mlp.onnx")
    pytester.makepyfile(OWN.format(keywords="limits=['latency_p90 <= 1 s']"))
    if way == "ini":
        pytester.makeini("[pytest]\nort_models = nets")
    if way == "hook":
        pytester.makeconftest("def pytest_ortbench_models(): return ['nets']")
    option = ("--ort-models=nets",) if way == "option" else ()
    result = pytester.runpytest("--collect-only", *option, *QUICK)
    assert told(result)[0].startswith("1 case, ")
    case = path.relative_to(pytester.path).with_suffix("").as_posix()
    result.stdout.fnmatch_lines([f"*test_marked[[]{case}/native/cpu/b1[]]*"])
