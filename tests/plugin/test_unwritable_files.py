"""Files that a run was asked for and can't be written: known before, or else the run fails."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK, told

fcntl = pytest.importorskip("fcntl", reason="pipes and locks of POSIX")

ModelFile = Callable[..., Path]

#: Measures, and then puts something in the way of what is written at the end.
_OBSTRUCTING = """
    from pathlib import Path

    def test_it(ortbench):
        assert ortbench.latency().p50 > 0
        {obstruct}
"""


def _run(pytester: pytest.Pytester, obstruct: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(_OBSTRUCTING.format(obstruct=obstruct))
    return pytester.runpytest("--ort-models=mlp.onnx", "-p", "no:benchmark", *options, *QUICK)


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that refuses even root: /proc")
@pytest.mark.parametrize(
    ("option", "path", "hint"),
    [
        ("--ort-json", "/proc/lab/run.json", "Name a file in a writable folder"),
        ("--ort-html", "/proc/page.html", "Name a file in a writable folder"),
        ("--ort-prometheus", "/proc/ort.prom", "Name a file in a writable folder"),
        ("--ort-plots", "/proc/plots", "Name a writable folder"),
    ],
)
def test_a_file_that_nothing_can_write_is_refused_before_measuring(
    pytester: pytest.Pytester, model_file: ModelFile, option: str, path: str, hint: str
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", f"{option}={path}", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert line.startswith(
        f"ERROR: {option}: can't write to {path!r}: '/proc' can't be written to. "
    )
    assert line.endswith(f". {hint}")
    assert not (pytester.path / "results").exists()


def test_a_model_is_not_written_over_by_what_is_made_of_it(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model = model_file()
    before = model.read_bytes()
    for named in (
        ["--ort-json=mlp.onnx"],
        ["--ort-summary=mlp.onnx"],
        ["--ort-code-quality=mlp.onnx"],
        # Refused before there are cases.
        ["--ort-summary=mlp.onnx", "--ort-dims=no:4"],
    ):
        result = pytester.runpytest("mlp.onnx", *named, "-k", "latency", *QUICK)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert model.read_bytes() == before


def test_a_file_below_a_file_is_refused_before_measuring(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model = model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-json=mlp.onnx/run.json", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{str(model)!r} is " in result.stderr.str()


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe by a path: /proc/self/fd")
def test_a_pipe_needs_no_folder(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    # Nothing can be made in its folder, and nothing need be.
    model_file()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 2**20)
    try:
        result = _run(pytester, "pass", "--ort-no-results", f"--ort-json=/proc/self/fd/{writer}")
    finally:
        os.close(writer)
    assert result.ret == pytest.ExitCode.OK
    with os.fdopen(reader, "rb") as stream:
        assert json.load(stream)["cases"][0]["status"] == "measured"


def test_metrics_go_into_a_pipe_and_leave_it_one(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pipe = pytester.path / "metrics"
    os.mkfifo(pipe)
    # Both ends, so that writing waits for nobody.
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        result = _run(pytester, "pass", "--ort-no-results", "--ort-prometheus=metrics")
        written = os.read(descriptor, 2**16)
    finally:
        os.close(descriptor)
    assert result.ret == pytest.ExitCode.OK
    assert pipe.is_fifo()
    assert "\nortbench_latency_p50_seconds{" in written.decode()
    assert not list(pytester.path.glob(".metrics*"))


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("--ort-json=out/run.json", "--ort-json"),
        ("--ort-html=out/page.html", "--ort-html"),
        ("--ort-prometheus=out/ort.prom", "--ort-prometheus"),
        ("--ort-plots=out/plots", "plots"),
    ],
)
def test_a_named_file_that_fails_at_the_end_fails_the_run_and_keeps_the_table(
    pytester: pytest.Pytester, model_file: ModelFile, option: str, what: str
) -> None:
    model_file()
    result = _run(pytester, 'Path("out").write_text("")', option, "--ort-no-results")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["* native/cpu/b1 *", f"ortbench: {what}: *"])


def test_a_run_document_that_fails_at_the_end_fails_the_run(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    obstruct = '[f.with_name("run.json").mkdir() for f in Path("results").glob("*/journal.jsonl")]'
    result = _run(pytester, obstruct)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["* native/cpu/b1 *", "*journal.jsonl * 1 of 1 *"])


def test_plots_that_nobody_named_do_not_fail_the_run(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    obstruct = '[f.with_name("plots").touch() for f in Path("results").glob("*/journal.jsonl")]'
    result = _run(pytester, obstruct)
    assert result.ret == pytest.ExitCode.OK
    assert told(result, "plots")
