"""Loads in a run of pytest: asked for by option or by a test, announced, reported, limited."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK

ModelFile = Callable[..., Path]

TEST = """
    import pytest

    @pytest.mark.ortbench(models="mlp.onnx", limits={limits})
    def test_load(ortbench):
        {body}
"""


def test_a_load_is_announced_measured_reported_and_limited(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    """The only run here under load, which takes its ten seconds."""
    model_file()
    limits = ["load_p99 <= 10 s", "load_rate >= 5 /s", "load_valid >= 1"]
    body = """load = ortbench.load()
        assert load.valid
        assert load.rate > 5
        assert load.p50 < 10
        assert load.facts.spec.rate_per_s == 20
        with pytest.raises(pytest.fail.Exception, match="no search for the peak was requested"):
            load.peak
        with pytest.raises(AttributeError, match="no metric 'p42' here"):
            load.p42"""
    pytester.makepyfile(TEST.format(limits=limits, body=body))
    result = pytester.runpytest(
        "--ort-load=server:20:10s:p50", "--ort-load-logs=logs", "--junitxml=junit.xml",
        "--ort-json=run.json", *QUICK,
    )  # fmt: skip
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "ortbench: load server:20:10s:p50: 10.0 s per case, ?? queries for p50 "
            "(non-conforming: MLPerf requires 600 s)",
            "load of mlp/native/cpu/b1 (1 caller, * threads in all; MLPerf loadgen 6.*; "
            "non-conforming: MLPerf requires 600 s)",
            "  server:20:10s:p50 *VALID  20.0/s * 0 of *s",
        ]
    )
    (case,) = json.loads(Path("run.json").read_text())["cases"]
    (load,) = case["loads"]
    (test,) = load["tests"]
    assert test["valid"] is True
    assert len(test["latencies_ns"]) == test["queries"]
    assert test["version"].startswith("6.")
    assert 'name="ortbench.load_rate_per_s"' in Path("junit.xml").read_text()
    (summary,) = Path("logs").rglob("mlperf_log_summary.txt")
    assert ": VALID" in summary.read_text()
    assert summary.parent.name == "server_20_10s_p50"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--ort-load=sever:1:2ms"],
            "ERROR: --ort-load: 'sever' in 'sever:1:2ms' is not a load scen",
        ),
        (["--ort-load=server:1:2"], "ERROR: --ort-load: the latency '2' in 'server:1:2' has no un"),
        (
            ["--ort-load=offline,server:1:1s"],
            "ERROR: --ort-load: server:1:1s needs 700 s (700 queries for p99 at 1.00/s), more than",
        ),
        (
            ["--ort-load=offline", "--ort-load-official"],
            "ERROR: --ort-load: offline needs 600 s (MLPerf's rules require 600 s), more than",
        ),
        (
            ["--ort-load=offline", "--ort-load-logs=/proc/x"],
            "ERROR: --ort-load-logs: can't write to '/proc/x': No such file or directory",
        ),
        (
            ["--ort-load=offline", "--ort-load-logs=mlp.onnx/logs"],
            "ERROR: --ort-load-logs: can't write to ",
        ),
    ],
)
def test_what_can_not_be_had_is_refused_before_anything_is_measured(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: list[str], message: str
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", *arguments, *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert not Path("results").exists()


def test_without_a_load_the_suite_is_skipped_and_a_limit_fails(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        test_asks=TEST.format(limits=[], body="ortbench.load()"),
        test_limits=TEST.format(limits=["load_p99 <= 1 s"], body="pass"),
    )
    result = pytester.runpytest("-rs", *QUICK)
    result.assert_outcomes(skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*'load_p99 <= 1 s'*", "SKIPPED*--ort-load=*"])


def test_a_test_may_ask_for_a_load_of_its_own_and_hears_why_it_can_not_be_had(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        test_long=TEST.format(limits=[], body='assert ortbench.load("server:1:1s").valid'),
        test_wrong=TEST.format(limits=[], body='assert ortbench.load("sever:1:1s").valid'),
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["mlp/*: load_valid *700 s *p97*", "mlp/*: load_valid *'sever'*"])


def test_the_shipped_suite_fails_for_a_later_load_that_is_invalid(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second load has a bound of a nanosecond, which no answer keeps; each takes a second."""
    monkeypatch.setattr("pytest_ortbench.passes.load.numbers.plan.LEAST_S", 1.0)
    model_file()
    pytester.makepyfile(
        """
        from pytest_ortbench.suites.test_load import test_load as shipped
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", limits=["load_valid >= 1"])
        def test_load(ortbench):
            shipped(ortbench)

        @pytest.mark.ortbench(models="mlp.onnx", limits=["load_valid >= 1"])
        def test_limit(ortbench):
            pass
        """
    )
    result = pytester.runpytest(
        "--ort-load=server:100:10s:p50,server:100:1ns:p50", "--tb=short", *QUICK
    )
    result.assert_outcomes(failed=2)
    why = "server:100:1ns:p50*: Performance constraints satisfied: NO*the limit is 1.00 ns*"
    result.stdout.fnmatch_lines([f"INVALID *: {why}"])
    result.stdout.fnmatch_lines([f"*load_valid *>= 1.00: {why}"])
    assert "server:100:10s:p50 is INVALID" not in result.stdout.str()
