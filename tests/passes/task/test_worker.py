"""Labelled samples through real sessions: right scores by hand, and one message for bad data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.passes.task.worker.scoring import (
    Scores,
    hold_against_reference,
    score,
    write_scores,
)
from tests.damaged_archives import DAMAGES, damaged
from tests.worker.graphs import serialised, value
from tests.worker.sessions import cpu_session

pytestmark = pytest.mark.live

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64

#: Four samples; the largest entry stands at 0, 1, 2, 2.
X = np.float32([[9, 1, 0], [1, 8, 0], [0, 1, 7], [2, 3, 5]])
LABELS = np.int64([0, 1, 2, 1])

Save = Callable[..., Dataset]


def identity(batch: int | str = "N") -> Any:
    """Logits are what is fed."""
    return cpu_session(
        serialised(
            [helper.make_node("Identity", ["x"], ["logits"])],
            [value("x", FLOAT, [batch, 3])],
            [value("logits", FLOAT, [batch, 3])],
            {},
        )
    )


def classifier() -> Any:
    """Two outputs: the class as a number, and scores under another axis."""
    return cpu_session(
        serialised(
            [
                helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0),
                helper.make_node("Neg", ["x"], ["away"]),
            ],
            [value("x", FLOAT, ["N", 3])],
            [value("label", INT64, ["N"]), value("away", FLOAT, ["N", 3])],
            {},
        )
    )


@pytest.fixture
def npz(tmp_path: Path) -> Save:
    def save(**arrays: Any) -> Dataset:
        np.savez(tmp_path / "data.npz", **arrays)
        return Dataset(path=str(tmp_path / "data.npz"))

    return save


@pytest.fixture
def script(tmp_path: Path) -> Save:
    """An entry point whose function has this body."""

    def save(body: str, *, argument: str = "batch") -> Dataset:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        code = f"import numpy as np\nX = np.float32({X.tolist()})\nY = np.int64([0, 1, 2, 1])\n"
        (tmp_path / "data.py").write_text(f"{code}def give({argument}):\n{lines}\n")
        return Dataset(path=str(tmp_path / "data.py"), function="give")

    return save


def refused(session: Any, dataset: Dataset, batch: int = 2) -> str:
    with pytest.raises(WorkerError) as error:
        score(session, dataset, batch)
    failure = error.value.failure
    assert "\n" not in failure.message
    return f"{failure.message}. {failure.hint}"


# -- right values --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7])
def test_three_of_four_are_right_whatever_the_batch(npz: Save, batch: int) -> None:
    found = score(identity(), npz(x=X, labels=LABELS), batch)
    assert found.values == (1.0, 1.0, 1.0, 0.0)
    assert found.metric == "top-1 of 'logits'"
    assert len(found.digests) == -(-4 // batch)


def test_a_file_that_allows_one_batch_size_only_is_filled_up(npz: Save) -> None:
    found = score(identity(batch=3), npz(x=X, labels=LABELS), 3)
    assert found.values == (1.0, 1.0, 1.0, 0.0)


def test_labels_of_minus_100_do_not_count_and_tokens_are_shares(npz: Save) -> None:
    session = cpu_session(
        serialised(
            [helper.make_node("Identity", ["x"], ["y"])],
            [value("x", FLOAT, ["N", "T", 3])],
            [value("y", FLOAT, ["N", "T", 3])],
            {},
        )
    )
    tokens = np.stack([X[:2], X[2:]])
    labels = np.int64([[0, 2], [2, -100]])
    assert score(session, npz(x=tokens, labels=labels), 1).values == (0.5, 1.0)


def test_a_class_that_the_model_gives_as_a_number_is_compared_as_such(npz: Save) -> None:
    found = score(classifier(), npz(x=X, labels=LABELS), 4)
    assert found.values == (1.0, 1.0, 1.0, 0.0)
    assert found.metric == "share of 'label' equal to the label"


def test_labels_may_name_their_output(npz: Save) -> None:
    found = score(classifier(), npz(**{"x": X, "labels:away": np.int64([2, 2, 0, 0])}), 4)
    assert found.values == (1.0, 1.0, 1.0, 1.0)
    assert found.metric == "top-1 of 'away'"


def test_a_row_with_nan_is_no_class(npz: Save) -> None:
    x = X.copy()
    x[0, 0] = np.nan  # argmax would say 0, which is the label
    assert score(identity(), npz(x=x, labels=LABELS), 4).values == (0.0, 1.0, 1.0, 0.0)


def test_nan_and_infinity_on_labelled_samples_are_counted(npz: Save, script: Save) -> None:
    x = X.copy()
    x[0, 0], x[3] = np.nan, np.inf
    found = score(identity(), npz(x=x, labels=LABELS), 2)
    assert (found.nonfinite, found.nonfinite_inputs) == (4, 4)
    # What only fills the last batch up is no sample.
    assert score(identity(3), npz(x=x, labels=LABELS), 3).nonfinite == 4
    roots = cpu_session(
        serialised(
            [helper.make_node("Sqrt", ["x"], ["logits"])],
            [value("x", FLOAT, ["N", 3])],
            [value("logits", FLOAT, ["N", 3])],
            {},
        )
    )
    compared = hold_against_reference(
        score(roots, npz(x=-X, labels=LABELS), 4), npz(x=-X, labels=LABELS), None
    )
    assert (compared.nonfinite, compared.nonfinite_inputs) == (9, 0)
    own_metric = script("return [({'x': X}, Y)], lambda outputs, labels: 1.0")
    assert score(identity(), own_metric, 4).nonfinite == 0


def test_floats_and_integers_are_fed_in_the_widths_of_the_model(npz: Save) -> None:
    found = score(identity(), npz(x=X.astype(np.float64), labels=LABELS.astype(np.int32)), 2)
    assert sum(found.values) == 3


def test_an_entry_point_gives_batches_and_a_metric(script: Save) -> None:
    dataset = script(
        "def nearness(outputs, labels):\n"
        "    return outputs['logits'][np.arange(len(labels)), labels] / 10\n"
        "return (({'x': X[i:i + batch]}, Y[i:i + batch]) for i in range(0, 4, batch)), nearness"
    )
    found = score(identity(), dataset, 2)
    assert found.values == pytest.approx((0.9, 0.8, 0.7, 0.3))
    assert (found.metric, len(found.digests)) == ("nearness", 2)
    assert len(score(identity(), dataset, 3).digests) == 2


def test_it_may_take_no_batch_size_and_give_one_score_a_batch(script: Save) -> None:
    dataset = script(
        "return [({'x': X}, Y), ({'x': X}, Y)], lambda outputs, labels: 0.25", argument=""
    )
    assert score(identity(), dataset, 2).values == (0.25, 0.25)


def test_it_may_import_what_lies_beside_it(script: Save, tmp_path: Path) -> None:
    (tmp_path / "beside_the_data.py").write_text("SHARE = 0.5\n")
    dataset = script(
        "from beside_the_data import SHARE\n"
        "return [({'x': X}, Y)], lambda outputs, labels: [SHARE] * 4"
    )
    assert score(identity(), dataset, 2).values == (0.5,) * 4


# -- against the reference -----------------------------------------------------------------------


def test_paired_with_the_reference_by_hand(npz: Save, tmp_path: Path) -> None:
    dataset = npz(x=X, labels=LABELS)
    found = score(identity(), dataset, 2)
    before = Scores(
        metric="", values=(1.0, 0.0, 1.0, 1.0), digests=found.digests, label="the fp32 model"
    )
    write_scores(tmp_path / "scores.npz", before)
    task = hold_against_reference(found, dataset, tmp_path / "scores.npz")
    assert (task.samples, task.score_sum, task.reference_sum) == (4, 3.0, 3.0)
    assert (task.better, task.worse, task.difference_squares) == (1, 1, 2.0)
    assert (task.largest, task.reference, task.dataset) == (1.0, "the fp32 model", "data.npz")
    alone = hold_against_reference(found, dataset, None)
    assert (alone.score_sum, alone.reference_sum) == (3.0, None)


def test_data_that_differs_from_call_to_call_is_refused(script: Save, tmp_path: Path) -> None:
    body = (
        "x = X + np.random.default_rng().standard_normal(X.shape).astype(np.float32)\n"
        "return [({'x': x}, Y)], lambda outputs, labels: [1.0] * 4"
    )
    dataset = script(body)
    write_scores(tmp_path / "scores.npz", score(identity(), dataset, 4))
    with pytest.raises(WorkerError, match="gave other data for this case than for its reference"):
        hold_against_reference(score(identity(), dataset, 4), dataset, tmp_path / "scores.npz")


def test_a_reference_that_gets_nothing_right_judges_nothing(npz: Save, tmp_path: Path) -> None:
    shifted = npz(x=X, labels=np.int64([1, 2, 0, 1]))
    found = score(identity(), shifted, 2)
    assert found.values == (0.0, 0.0, 0.0, 0.0)
    write_scores(tmp_path / "scores.npz", replace(found, label="the fp32 model"))
    with pytest.raises(WorkerError) as error:
        hold_against_reference(found, shifted, tmp_path / "scores.npz")
    assert error.value.failure.message == (
        "the reference (the fp32 model) scores 0 on every sample of data.npz (4 samples, "
        "top-1 of 'logits')"
    )
    assert "numbered from 0" in error.value.failure.hint
    # A negated error: the reference is perfect, and the case is not.
    worse = replace(found, values=(0.0, -0.5, 0.0, 0.0))
    assert hold_against_reference(worse, shifted, tmp_path / "scores.npz").score_sum == -0.5


# -- bad data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        (
            {"z": X, "labels": LABELS},
            "data.npz has no array for the input 'x'. Its arrays are: z, labels.",
        ),
        ({"x": X}, "data.npz has no array named 'labels'. Its arrays are: x."),
        (
            {"x": X, "labels": LABELS, "labels:logits": LABELS},
            "data.npz has 2 arrays of labels, but only one can be used: labels, labels:logits",
        ),
        (
            {"x": X, "labels": LABELS[:3]},
            "has 3 labels, but 4 rows in the array 'x'. Store one row",
        ),
        ({"x": X[:0], "labels": LABELS[:0]}, "the arrays in data.npz have no rows"),
        ({"x": X, "labels": np.int64(3)}, "the array 'labels' in data.npz is a single number"),
        (
            {"x": X, "labels": np.int64([1, 2, 3, 2])},
            "the label 3 of sample 2 is not a class of the output 'logits', which has classes "
            "0 to 2. Write a class from 0 to 2",
        ),
        ({"x": X, "labels": np.int64([0, 1, 2, -1])}, "the label -1 of sample 3 is not a class"),
        (
            {"x": X, "labels": np.float32([0, 1, 2, 1])},
            "e.g. labels.astype('int64')",
        ),
        ({"x": X, "labels": np.float32([0.5, 1, 2, 1])}, "For a regression, write"),
        ({"x": X, "labels": np.eye(3, dtype=np.float32)[LABELS]}, "labels.argmax(axis=-1)"),
        ({"x": X, "labels": np.eye(3, dtype=np.int64)[LABELS]}, "labels.argmax(axis=-1)"),
        ({"x": X, "labels": np.int64([[0, 1]] * 4)}, "fit no output of the model: logits float32"),
        ({"x": np.float32(1), "labels": LABELS}, "Name it 'shared:x' in the file"),
        ({"x": np.full(X.shape, np.inf, np.float16), "labels": LABELS}, "float16 holds numbers"),
        (
            {"x": X, "labels": np.array(["a"] * 4)},
            "labels of type <U1 and shape [2] (of one batch) fit no output",
        ),
        (
            {"x": X[:, :2], "labels": LABELS},
            "the model fails on the batch that begins with sample 0 of data.npz",
        ),
        (
            {"x": X, "labels:scores": LABELS},
            "the array 'labels:scores' of the data is for an output 'scores', which the model does "
            "not have. Name the array after an output of the model, e.g. 'labels:logits'",
        ),
        ({"x": X, "labels": np.array([object()] * 4)}, "can't be read as an .npz file"),
        (
            {"x": np.full_like(X, np.nan), "labels": LABELS},
            "all values for the input 'x' from data.npz are NaN or infinity",
        ),
        ({"x": X, "labels": np.full(4, -100)}, "all labels of sample 0 are -100"),
    ],
)
def test_arrays_that_do_not_fit(npz: Save, arrays: Mapping[str, Any], says: str) -> None:
    assert says in refused(identity(), npz(**arrays))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(b"no zip")
    dataset = Dataset(path=str(tmp_path / "data.npz"))
    assert "can't be read as an .npz file (numpy says: " in refused(identity(), dataset)
    (tmp_path / "data.npz").unlink()
    assert "data.npz does not exist" in refused(identity(), dataset)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive(tmp_path: Path, damage: str) -> None:
    path = damaged(tmp_path / "data.npz", damage, x=X, labels=LABELS)
    message = refused(identity(), Dataset(path=str(path)))
    assert message.startswith(f"{path} can't be read as an .npz file (numpy says: ")
    assert DAMAGES[damage] in message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('no images here')", "give raised ValueError: no images here"),
        ("import absent_package", "give raised ModuleNotFoundError: No module named 'absent"),
        (
            "return 3",
            "data.py:give returned a value of type int, not a pair of batches and a metric",
        ),
        ("return [], 3, 4", "data.py:give returned a tuple of 3, not a pair"),
        ("return [], 3", "the second value that data.py:give returned is a value of type int"),
        ("return {'x': X, 'labels': Y}, max", "returned is a value of type dict, not a list"),
        ("return 5, max", "the first value that data.py:give returned is a value of type int"),
        ("return [], max", "data.py:give returned no batch. Return at least one batch"),
        ("return [3], max", "batch 0 of data.py:give is a value of type int, not a pair"),
        ("return [(X, Y, Y)], max", "batch 0 of data.py:give is a tuple of 3, not a pair"),
        ("return [(X, Y)], max", "the inputs in batch 0 of data.py:give are a value of type nd"),
        (
            "return [({'x': X, 'mask': Y}, Y)], max",
            "data.py:give gives values for 'mask', which is not an input of the model. Leave "
            "'mask' out of the batches",
        ),
        ("return [({'mask': Y}, Y)], max", "an input of the model. The only choice is 'x'"),
        ("return [({'x': Y}, Y)], max", "The batch holds x int64 [4]. The runtime says"),
        ("return [({}, Y)], max", "data.py:give gives no values for the input 'x'"),
        (
            "def bad(outputs, labels):\n    return outputs['scores']\nreturn [({'x': X}, Y)], bad",
            "the metric bad raised KeyError: 'scores'",
        ),
        (
            "return [({'x': X}, Y)], lambda o, y: [1.0, 1.0, float('nan'), 0.0]",
            "the metric returned nan for sample 2. Return a finite number",
        ),
        (
            "return [({'x': X}, Y)], lambda o, y: [1.0, None, 1.0, 0.0]",
            "the metric returned None for sample 1. Return a finite number",
        ),
        ("return [({'x': X}, Y)], lambda o, y: None", "the metric returned None. Return one score"),
        (
            "return [({'x': X}, Y)], lambda o, y: 'good'",
            "the metric returned str 'good', not one number per sample",
        ),
        (
            "return [({'x': X}, Y)], lambda o, y: [1.0, 2.0]",
            "the metric returned 2 scores for batch 0, which has 4 samples. Return 4 scores",
        ),
        ("return [({'x': X}, Y)], lambda o, y: []", "the metric returned no score for batch 0"),
        (
            "def batches():\n"
            "    yield {'x': X}, Y\n"
            "    raise OSError('disk gone')\n"
            "return batches(), lambda o, y: [1.0] * 4",
            "batch 1 raised OSError: disk gone",
        ),
    ],
)
def test_entry_points_that_do_not_work(script: Save, body: str, says: str) -> None:
    assert says in refused(identity(), script(body))


def test_values_that_the_model_does_not_know_are_told_from_shapes(script: Save) -> None:
    table = helper.make_tensor("table", FLOAT, [2, 3], [0.0] * 6)
    words = cpu_session(
        serialised(
            [
                helper.make_node("Constant", [], ["table"], value=table),
                helper.make_node("Gather", ["table", "x"], ["logits"]),
            ],
            [value("x", INT64, ["N"])],
            [value("logits", FLOAT, ["N", 3])],
        )
    )
    message = refused(words, script("return [({'x': Y}, Y)], max"))
    assert "(x)" in message
    assert "int64" not in message


def test_one_value_for_all_samples_is_fed_beside_every_batch(npz: Save) -> None:
    scaled = cpu_session(
        serialised(
            [helper.make_node("Mul", ["x", "scale"], ["logits"])],
            [value("x", FLOAT, ["N", 3]), value("scale", FLOAT, [])],
            [value("logits", FLOAT, ["N", 3])],
        )
    )
    lone = np.float32(2)
    step = refused(scaled, npz(x=X, scale=lone, labels=LABELS))
    assert "'shared:scale'" in step
    found = score(scaled, npz(x=X, labels=LABELS, **{"shared:scale": lone}), 2)
    assert found.values == (1.0, 1.0, 1.0, 0.0)


def test_the_message_has_the_line_of_the_users_file(script: Save) -> None:
    assert "data.py:5: give raised ZeroDivisionError" in refused(identity(), script("1 / 0"))


def test_a_function_that_is_not_there(script: Save) -> None:
    dataset = Dataset(path=script("return None").path, function="gave")
    assert "data.py has no function 'gave'. Did you mean 'give'?" in refused(identity(), dataset)
    other = Dataset(path=dataset.path, function="X")
    assert "ndarray" in refused(identity(), other)
