"""Outputs whose channels have units of their own, under one scale and under sound ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_ortbench.analysis.inaccuracy import judge_accuracy, needs_spread
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.accuracy import (
    Accuracy,
    OutputAccuracy,
    ReferenceSpread,
    SliceAccuracy,
    SpreadTrial,
)
from pytest_ortbench.core.case import Case
from pytest_ortbench.worker.accuracy import Collected
from pytest_ortbench.worker.sample_file import Sample
from tests.results_factory import make_case, make_result

Arrays = list[NDArray[Any]]


def drawn(*shape: int, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def detector(seed: int, *, seen: float = 0.9) -> NDArray[Any]:
    """Boxes in pixels and eighteen scores, most of which are near zero."""
    boxes = 320 * drawn(1, 4, 500, seed=seed)
    scores = seen * drawn(1, 18, 500, seed=seed + 1000) ** 8
    scores[:, 9:] *= 0.01
    return np.concatenate([boxes, scores], axis=1)


def quantised(values: NDArray[Any], scale: float) -> NDArray[Any]:
    return np.asarray(np.round(values / scale) * scale, dtype=np.float32)


def noisy(values: NDArray[Any], db: float, seed: int = 7) -> NDArray[Any]:
    """Noise of equal power relative to each slice of the axis 1, as sound variants have it."""
    rng = np.random.default_rng(seed)
    axes = tuple(axis for axis in range(values.ndim) if axis != 1)
    power = np.sqrt((values.astype(np.float64) ** 2).mean(axis=axes, keepdims=True))
    noise = rng.standard_normal(values.shape) * power * 10 ** (-db / 20)
    return np.asarray(values + noise, dtype=np.float32)


def compared(expected: Arrays, got: Arrays, magnitude: float = 1.0) -> OutputAccuracy:
    collected = Collected()
    for right, values in zip(expected, got, strict=True):
        collected.add(Sample(magnitude=magnitude, feeds={}, outputs=[right]), [values], ["out"])
    (output,) = collected.outputs()
    return output


def judged(output: OutputAccuracy, case: Case, spread: ReferenceSpread | None = None):
    accuracy = Accuracy(
        reference="fp32", samples=4, magnitudes=(1.0,), outputs=(output,), spread=spread
    )
    return replace(make_result(case=case), accuracy=accuracy)


INT8 = make_case(precision="int8-static", inputs_file="/data/photos.npz")
FADING = np.linspace(0, 1, 200, dtype=np.float32)[None, :, None] ** 6
PICTURES = [detector(seed) for seed in range(4)]


def test_scores_under_the_scale_of_boxes_are_seen_apart() -> None:
    output = compared(PICTURES, [quantised(values, 1.27) for values in PICTURES])
    assert output.sqnr_db is not None
    assert output.sqnr_db > 40
    slices = output.slices
    assert slices is not None
    assert (slices.axis, slices.first, slices.last, slices.count, slices.size) == (1, 4, 21, 18, 22)
    assert (slices.distinct, slices.reference_distinct) == (2, None)
    assert slices.sqnr_db < 5
    assert slices.largest == pytest.approx(0.9, rel=0.05)
    result = judged(output, INT8)
    assert judge_accuracy(result).is_bad
    summary = summarise(result)
    assert summary.quantities["accuracy_slices"].value == slices.sqnr_db
    assert summary.worst_db == slices.sqnr_db


@pytest.mark.parametrize("axis", [1, 2])
def test_the_axis_of_the_channels_does_not_matter(axis: int) -> None:
    pictures = [np.moveaxis(values, 1, axis) for values in PICTURES]
    slices = compared(pictures, [quantised(values, 1.27) for values in pictures]).slices
    assert slices is not None
    assert (slices.axis, slices.first, slices.last) == (axis, 4, 21)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        pytest.param(PICTURES, [noisy(values, 12) for values in PICTURES], id="noise of int8"),
        pytest.param(
            [detector(seed, seen=1e-4) for seed in range(4)],
            [quantised(detector(seed, seen=1e-4), 1.27) for seed in range(4)],
            id="nothing detected",
        ),
        pytest.param([drawn(4, 1000)], [quantised(drawn(4, 1000), 1 / 255)], id="probabilities"),
        pytest.param(
            [np.concatenate([20 * drawn(1, 30, 64, 64), drawn(1, 2, 64, 64)], axis=1)],
            [np.concatenate([20 * drawn(1, 30, 64, 64), 0 * drawn(1, 2, 64, 64)], axis=1)],
            id="two dead channels of many",
        ),
        pytest.param(
            [255 * FADING * drawn(1, 200, 50)],
            [quantised(255 * FADING * drawn(1, 200, 50), 1.0)],
            id="rows that fade",
        ),
        pytest.param(
            [np.where(np.arange(17)[None, :, None] > 12, 0.02, 0.9) * drawn(1, 17, 400)],
            [np.where(np.arange(17)[None, :, None] > 12, 0, 0.9) * drawn(1, 17, 400)],
            id="heat maps of hidden joints",
        ),
    ],
)  # fmt: skip
def test_sound_outputs_are_not_condemned(expected: Arrays, got: Arrays) -> None:
    output = compared(expected, got)
    assert output.sqnr_db is not None
    assert output.sqnr_db > 10.9
    assert judge_accuracy(judged(replace(output, sqnr_db=40.0), INT8)).is_good


@pytest.mark.parametrize(
    ("expected", "scale"),
    [
        pytest.param(
            np.concatenate([101_325 + drawn(64, 1), 300 * drawn(64, 1), drawn(64, 1)], axis=1),
            400.0,
            id="units of a table",
        ),
        pytest.param(
            np.concatenate([640 * drawn(1, 300, 4), drawn(1, 300, 1), 79 * drawn(1, 300, 1)], 2),
            2.5,
            id="box, score and class in a row",
        ),
        pytest.param(
            np.concatenate([90 * drawn(1, 16, 1), drawn(1, 16, 767, seed=3)], axis=2),
            3.0,
            id="one component far above all others",
        ),
    ],
)
def test_neighbours_of_the_detector_are_seen(expected: NDArray[Any], scale: float) -> None:
    output = compared([expected], [quantised(expected, scale)])
    assert output.slices is not None
    assert output.slices.sqnr_db < 5
    assert judge_accuracy(judged(output, INT8)).is_bad


def test_other_magnitudes_than_the_measured_one_tell_nothing_of_slices() -> None:
    broken = [quantised(values, 1.27) for values in PICTURES]
    assert compared(PICTURES, broken, magnitude=10.0).slices is None


def test_equal_outputs_have_no_slices_that_differ() -> None:
    assert compared(PICTURES, PICTURES).slices is None


def test_an_unchanged_file_is_judged_by_how_far_its_reference_is_from_itself() -> None:
    slices = SliceAccuracy(
        axis=1, first=4, last=21, count=18, size=22, sqnr_db=12.0, largest=1, others_largest=320
    )
    plain = make_case()
    output = replace(compared(PICTURES, [values + 1e-5 for values in PICTURES]), slices=slices)
    assert needs_spread(judged(output, plain))
    trial = SpreadTrial(
        name="one-thread",
        samples=4,
        outputs=(replace(output, slices=replace(slices, sqnr_db=25.0)),),
    )
    assert judge_accuracy(judged(output, plain, ReferenceSpread(trials=(trial,)))).is_good
    calm = replace(trial, outputs=(replace(output, slices=replace(slices, sqnr_db=60.0)),))
    assert judge_accuracy(judged(output, plain, ReferenceSpread(trials=(calm,)))).is_bad
    lost = replace(trial, outputs=(replace(output, slices=replace(slices, sqnr_db=2.0)),))
    assert judge_accuracy(judged(output, plain, ReferenceSpread(trials=(lost,)))).is_unjudged
