"""Passes beside the standard one, as a run of pytest asks for them and judges by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.passes.soak import run
from pytest_ortbench.passes.soak.facts import Soak

from .conftest import QUICK

ModelFile = Callable[..., Path]
SUITE = Path(__file__).parents[2] / "pytest_ortbench" / "suites" / "test_memory.py"


def soaked(growth_bytes: int) -> Soak:
    """Memory that grows by so much every inference."""
    at = tuple(range(0, 20_000, 100))
    sizes = tuple(10**8 + growth_bytes * done for done in at)
    return Soak(seconds=60.0, inferences=at[-1], at=at, resident_bytes=sizes, source="laid")


@pytest.mark.parametrize(("growth_bytes", "outcome"), [(10_000, "failed"), (0, "passed")])
def test_a_leak_fails_the_memory_suite(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    monkeypatch: pytest.MonkeyPatch,
    growth_bytes: int,
    outcome: str,
) -> None:
    def measure(*_: object) -> Soak:
        return soaked(growth_bytes)

    monkeypatch.setattr(run, "measure", measure)
    pytester.makepyfile(test_memory=SUITE.read_text())
    options = (f"--ort-models={model_file()}", "--ort-soak=1", "--ort-no-results")
    result = pytester.runpytest(*options, *QUICK)
    result.assert_outcomes(**{outcome: 1})
    if growth_bytes:
        result.stdout.fnmatch_lines(["10.0 MB [[]*] *"])
    else:
        result.stdout.fnmatch_lines(["soak of mlp/*: *: no growth *"])


def test_a_real_soak_over_shapes(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    pytester.makepyfile("def test_it(ortbench): assert ortbench.result.soak.reason == ''")
    options = (f"--ort-models={model_file()}", "--ort-soak=1s", "--ort-soak-dims=N:1-40")
    pytester.runpytest(*options, "--ort-json=run.json", *QUICK).assert_outcomes(passed=1)
    [case] = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert case["soak"]["shapes"] == 40
    assert case["soak"]["inferences"] > 40


def test_a_soak_without_a_verdict_is_no_pass(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    pytester.makepyfile(test_memory=SUITE.read_text())
    options = (f"--ort-models={model_file()}", "--ort-soak=0.3s", "--ort-no-results")
    result = pytester.runpytest(*options, *QUICK)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["mlp/*: leaks *: * 64 are needed: *"])


def test_a_limit_on_start_up_starts_the_processes_that_it_needs(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(
            batch_sizes=[1, 2],
            limits=["session_create_cached <= 1 min", "first_inference_shape <= 1 min"],
        )
        def test_it(ortbench):
            startup = ortbench.startup()
            assert startup.session_create_cached > 0
            assert startup.get("session_create_disk") is None or startup.session_create_disk > 0
        """
    )
    options = (f"--ort-models={model_file()}", "--ort-json=run.json", "--ort-no-results")
    result = pytester.runpytest(*options, *QUICK)
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines_random(
        [
            r"start-up of mlp/native/cpu/b1 in fresh processes, medians",
            r"  in the page cache +1 +.*",
            r"  b2: first inference .*, next one .*",
        ]
    )
    cases = json.loads((pytester.path / "run.json").read_text())["cases"]
    states = [[trial["page_cache"] for trial in case["start_ups"]["trials"]] for case in cases]
    assert states == [["cold", "warm"]] * 2


def test_processes_at_a_time(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    pytester.makepyfile("def test_it(ortbench):\n    assert ortbench.throughput() > 0\n")
    options = (f"--ort-models={model_file()}", "--ort-processes=1,2", "--ort-json=run.json")
    result = pytester.runpytest(*options, "--ort-no-results", *QUICK)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines_random([r"processes of mlp/native/cpu/b1: highest throughput .*"])
    [case] = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert [len(point["processes"]) for point in case["processes"]] == [1, 2]
    for point in case["processes"]:
        assert point["reason"] == ""
        assert all(each["samples"]["count"] > 0 for each in point["processes"])


def test_windows_of_energy_that_are_too_short_are_refused(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    pytester.makepyfile("def test_it(ortbench):\n    pass\n")
    result = pytester.runpytest(f"--ort-models={model_file()}", "--ort-energy-window=1", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ort-energy-window: *'1'*5 seconds*"])
