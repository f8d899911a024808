"""What a run says without being asked: nothing of libraries, and each thing once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.plugin.foreign_logs import without_foreign_logs

from .conftest import QUICK, failed_tests

ModelFile = Callable[..., Path]

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{:064d}\nsize 123456\n"


def test_no_library_logs_a_line_at_any_level(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makeini("[pytest]\nlog_cli = true\nlog_cli_level = 1\nlog_level = 1")
    # In a process of its own, which draws figures.
    result = pytester.runpytest_subprocess("mlp.onnx", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.OK
    assert list(pytester.path.glob("results/*/plots/*.png"))
    assert [line for line in result.outlines if line.startswith(("DEBUG", "INFO", "WARN"))] == []


def test_loggers_are_as_they_were_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="matplotlib")
    child = logging.getLogger("matplotlib.font_manager")
    with without_foreign_logs():
        child.critical("quiet")
    child.debug("heard")
    logging.getLogger("of_the_user").warning("heard too")
    assert caplog.messages == ["heard", "heard too"]


def test_a_broken_file_fails_once_and_its_other_tests_are_skipped(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    for number in range(3):
        (pytester.path / f"m{number}.onnx").write_text(POINTER.format(number))
    cut = model_file("cut.onnx")
    cut.write_bytes(cut.read_bytes()[:100])
    names = ("m0", "m1", "m2", "cut")
    models = [f"{name}.onnx" for name in names]
    result = pytester.runpytest(*models, "-rfs", "--ort-precisions=fp32,fp16", *QUICK)
    result.assert_outcomes(failed=4, skipped=4 * 12 - 4)
    assert failed_tests(result) == [f"test_accuracy[{name}/fp32/cpu/b1]" for name in names]
    result.stdout.fnmatch_lines("*Git LFS pointer*")
    result.stdout.fnmatch_lines("Skipped, since m0.onnx::test_accuracy* already failed *")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failure_that_is_expected_tells_nobody(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    (pytester.path / "m.onnx").write_text(POINTER.format(1))
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.xfail
        def test_expected(ortbench):
            pass

        def test_one(ortbench):
            pass

        def test_other(ortbench):
            assert ortbench.latency().p50 < 1
        """
    )
    result = pytester.runpytest("--ort-models=m.onnx", *QUICK)
    result.assert_outcomes(xfailed=1, failed=1, skipped=1)
    assert failed_tests(result) == ["test_one[m/native/cpu/b1]"]


def test_the_thread_of_a_time_limit_ends_no_run_for_a_test_of_ours(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    """A stand-in for pytest-timeout: its hook, asked as that plugin asks it."""
    model_file()
    pytester.makeconftest(
        """
        import collections
        import pytest

        Settings = collections.namedtuple("Settings", "timeout method")

        class Specs:
            @pytest.hookspec(firstresult=True)
            def pytest_timeout_set_timer(item, settings): ...

        class Timer:
            @pytest.hookimpl(trylast=True)
            def pytest_timeout_set_timer(self, item, settings):
                print(item.originalname, settings.method)
                return True

        def pytest_addhooks(pluginmanager):
            pluginmanager.add_hookspecs(Specs)
            pluginmanager.register(Timer())

        def pytest_runtest_setup(item):
            item.ihook.pytest_timeout_set_timer(item=item, settings=Settings(6, "thread"))
        """
    )
    pytester.makepyfile("def test_ours(ortbench): pass\n\ndef test_other(): pass")
    result = pytester.runpytest("--ort-models=mlp.onnx", "--ort-no-results", "-s", *QUICK)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_ours signal*", "*test_other thread*"])


def test_a_case_without_a_number_fails_once_however_many_tests_it_has(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    command = ("mlp.onnx", "--ort-providers=cpu,migraphx", "--ort-batch-sizes=1,2", *QUICK)
    result = pytester.runpytest(*command)
    # Two of the four cases can't be had; of the others all six tests pass.
    result.assert_outcomes(passed=12, failed=2, skipped=10)
    assert failed_tests(result) == [
        f"test_accuracy[mlp/native/migraphx/b{size}]" for size in (1, 2)
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--ort-provider=cpu", "--ort-providers"),
        ("--ort-batchsizes=1", "--ort-batch-sizes"),
        ("--ort_time=1", "--ort-time"),
        ("--ort-limit", "--ort-limits"),
        ("--ort-xyzzy=1", "pytest --help"),
    ],
)
def test_a_misspelt_option_is_told_with_the_one_that_was_meant(
    pytester: pytest.Pytester, written: str, meant: str
) -> None:
    result = pytester.runpytest(written)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert written.partition("=")[0] in line
    assert meant in line


def test_an_option_of_a_project_may_begin_like_ours(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--ort-own')")
    pytester.makepyfile("def test_it(request): assert request.config.getoption('--ort-own') == '1'")
    pytester.runpytest("--ort-own=1").assert_outcomes(passed=1)
