"""What a run says after collection where there is nothing to measure: why, and no wrong advice."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK, told

ModelFile = Callable[..., Path]

_ADVICE = (
    "no collected test takes the ortbench fixture. Measure a file with 'pytest MODEL.onnx', "
    "or run the shipped suites with 'pytest --pyargs pytest_ortbench.suites'"
)


def test_all_deselected(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "--ort-batch-sizes=1,4", "-k", "fp61", *QUICK)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    (text,) = told(result, "no case to measure")
    assert re.findall(r"\d+", text) == ["2"]


def test_all_deselected_but_one_whose_marker_is_wrong(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_right(ortbench): pass

        @pytest.mark.ortbench(batchsize=1)
        def test_wrong(ortbench): pass
        """
    )
    result = pytester.runpytest("-k", "test_wrong", *QUICK)
    result.assert_outcomes(errors=1, deselected=1)
    (text,) = told(result, "no case to measure")
    assert re.findall(r"\d+", text) == ["1", "1"]


def test_what_is_left_out_beyond_the_first_twenty_is_counted(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    names = [f"m{number:02d}.onnx" for number in range(23)]
    for name in ("net.onnx", "own.onnx", *names):
        model_file(name)
    pytester.makepyprojecttoml(
        '[tool.ortbench.models.net]\nreference = "net.onnx"\nvariants.own = "own.onnx"\n'
    )
    result = pytester.runpytest(
        "--pyargs", "pytest_ortbench.suites", f"--ort-models=net,{','.join(names)}",
        "--ort-precisions=own", "--collect-only", "-k=latency", *QUICK,
    )  # fmt: skip
    left_out = [text for text in told(result) if text.startswith("left out ")]
    assert len(left_out) == 21
    assert left_out[19].startswith("left out m19 × own: ")
    assert left_out[20].split()[2] == "3"


def test_options_without_a_test_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): pass")
    assert told(pytester.runpytest(*QUICK)) == [_ADVICE]


def test_keys_of_a_project_say_nothing_where_its_other_tests_run(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nort_time = 1\nort_limits = latency_p50 <= 1 s")
    pytester.makepyfile("def test_it(): pass")
    assert told(pytester.runpytest()) == []
    assert told(pytester.runpytest("-k", "another")) == [_ADVICE]
