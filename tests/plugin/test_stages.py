"""``--ort-stages`` in a run of pytest: numbers of frames, limits on them, mistakes in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK

STAGES = """
import numpy as np


def frames():
    return [np.zeros(8), np.ones(8)]


def preprocess(frame):
    return {"x": frame.reshape(1, 8).astype("float32")}


def postprocess(outputs, frame):
    return outputs["y"].argmax()
"""

TEST = """
import pytest

@pytest.mark.ortbench(limits=["frame_p50 <= 1 s", "pipeline_rate >= 1 /s"])
def test_frame(ortbench):
    frames = ortbench.frames()
    parts = [frames.preprocess_p50, frames.frame_inference_p50, frames.postprocess_p50]
    assert all(part > 0 for part in parts)
    assert frames.frame_p90 >= frames.frame_p50 > max(part.value for part in parts)
"""


def run(
    pytester: pytest.Pytester, model: Path, *options: str, test: str = TEST
) -> pytest.RunResult:
    pytester.makepyfile(test_frames=test)
    return pytester.runpytest("test_frames.py", f"--ort-models={model}", *QUICK, *options)


def test_frames_are_measured_shown_and_stored(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    pytester.makepyfile(own_stages=STAGES)
    result = run(
        pytester,
        model_file(),
        "--ort-stages=own_stages.py",
        "--ort-json=run.json",
        "--ort-profile-python=tracemalloc,cprofile",
    )
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines_random(
        [
            r"stages of mlp/native/cpu/b1 \(own_stages.py, \d+ frames \(2 .*\) in 1 .*\)",
            r"  preprocess  +\d.*s .*",
            r"  frame  +\d.*s .*",
            r"  frames per second: .* one after .*; .* a thread for each stage \(.* times .*\)",
            r"tracemalloc of the stages of mlp/native/cpu/b1 .*",
            r"cprofile of the stages of mlp/native/cpu/b1 .*",
        ]
    )
    run_document = json.loads((pytester.path / "run.json").read_text())
    [case] = run_document["cases"]
    stages = case["stages"]
    assert stages["functions"] == ["frames", "preprocess", "postprocess"]
    assert stages["workers"][0]["frame"]["count"] >= 6
    assert case["case"]["stages"] == str(pytester.path / "own_stages.py")
    memory, calls = stages["python"]
    assert [memory["profiler"], calls["profiler"]] == ["tracemalloc", "cprofile"]
    assert [memory["reason"], calls["reason"]] == ["", ""]
    [preprocess] = [row for row in calls["functions"] if row["name"] == "preprocess"]
    assert preprocess["file"].endswith("own_stages.py")
    line = STAGES.strip().splitlines().index("def preprocess(frame):") + 1
    assert (preprocess["line"], preprocess["calls"]) == (line, calls["rounds"])
    assert any(row["file"].endswith("own_stages.py") for row in memory["lines"])
    assert memory["peak_bytes"] > 0


def test_the_ini_key_starts_at_the_ini_file(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    pytester.makepyfile(**{"tools/own_stages": STAGES})
    pytester.makepyprojecttoml(
        "[tool.pytest.ini_options]\nort_stages = ['mlp*@tools/own_stages.py']\n"
    )
    run(pytester, model_file(), "--ort-no-results").assert_outcomes(passed=1)


def test_a_limit_that_a_frame_breaks(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    pytester.makepyfile(own_stages=STAGES)
    test = TEST.replace("<= 1 s", "<= 1 ns")
    result = run(
        pytester, model_file(), "--ort-stages=own_stages.py", "--ort-no-results", test=test
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*frame_p50 is *<= 1*ns*"])


def test_a_mistake_in_the_file_fails_with_its_place_and_nothing_else(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    pytester.makepyfile(own_stages="def preprocess(frame):\n    return frame.missing\n")
    test = "def test_it(ortbench):\n    assert ortbench.latency().p50 > 0\n"
    result = run(
        pytester, model_file(), "--ort-stages=own_stages.py", "--ort-no-results", test=test
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mlp/native/cpu/b1: stages: own_stages.py:2: preprocess of frame 0 raised "
            "AttributeError: 'dict' object has no attribute 'missing'. Correct */own_stages.py"
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_without_a_file_a_limit_on_frames_says_so(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    test = TEST.replace("frames = ortbench.frames()\n", "return\n")
    result = run(pytester, model_file(), "--ort-no-results", test=test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*frame_p50 *(--ort-stages)*"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("gone.py", "*--ort-stages: the file '*/gone.py'*"),
        ("resnet*@own_stages.py", "*--ort-stages: no case matches the pattern 'resnet[*]'*"),
        ("broken.py", "*--ort-stages: '*/broken.py' *in line 1 (*"),
    ],
)
def test_what_is_wrong_with_the_option_ends_the_run_before_it_starts(
    pytester: pytest.Pytester, model_file: Callable[..., Path], option: str, message: str
) -> None:
    pytester.makepyfile(own_stages=STAGES)
    (pytester.path / "broken.py").write_text("def preprocess(frame)\n")
    result = run(pytester, model_file(), f"--ort-stages={option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
