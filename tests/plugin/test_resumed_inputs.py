"""``--ort-resume`` after a file that the cases read was changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .conftest import QUICK, told

ModelFile = Callable[..., Path]


def _ends_after_the_first_case(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file("first.onnx")
    model_file("second.onnx")
    pytester.makepyfile(
        test_both="""
        def test_it(ortbench):
            assert ortbench.result.status != "measured"
        """
    )


def test_results_of_other_inputs_are_not_taken(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    _ends_after_the_first_case(pytester, model_file)
    photos = pytester.path / "photos.npz"
    arguments = ("--ort-models=first.onnx,second.onnx", "--ort-inputs=photos.npz", "-x", *QUICK)
    np.savez(photos, x=np.ones((1, 8), np.float32))
    pytester.runpytest(*arguments).assert_outcomes(failed=1)
    np.savez(photos, x=np.zeros((1, 8), np.float32))
    result = pytester.runpytest(*arguments, "--ort-resume")
    assert told(result, "resumed")[0].startswith("none of 2 ")
    # Those of the same ones are, also where the file was written anew.
    np.savez(photos, x=np.ones((1, 8), np.float32))
    result = pytester.runpytest(*arguments, "--ort-resume")
    assert told(result, "resumed")[0].startswith("1 of 2 ")


def test_results_of_other_calibration_data_are_not_taken(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    _ends_after_the_first_case(pytester, model_file)
    sets = pytester.path / "sets"
    sets.mkdir()
    pytester.makepyprojecttoml(
        '[tool.ortbench.precisions.mine]\nbase = "int8-static"\ncalibration_data = "sets"\n'
    )
    arguments = (
        "--ort-models=first.onnx,second.onnx",
        "--ort-precisions=native,mine",
        "-x",
        *QUICK,
    )
    np.savez(sets / "0.npz", x=np.ones((1, 8), np.float32))
    pytester.runpytest(*arguments).assert_outcomes(failed=1)
    np.savez(sets / "0.npz", x=np.zeros((1, 8), np.float32))
    result = pytester.runpytest(*arguments, "--ort-resume")
    assert told(result, "resumed")[0].startswith("none of 4 ")
    np.savez(sets / "0.npz", x=np.ones((1, 8), np.float32))
    result = pytester.runpytest(*arguments, "--ort-resume")
    assert told(result, "resumed")[0].startswith("1 of 4 ")
