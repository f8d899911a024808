"""Calls an estimator of scikit-learn's kind and returns its answers as its ONNX file gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def labels_and_scores(model: Any) -> Callable[[Any], Sequence[Any]]:
    """Return what gives labels and probabilities, or scores where there are no probabilities.

    Labels are those of the largest probability, as an application takes them: predicting twice
    would take twice the time. Where a model itself decides by something else, it is asked for both.

    Args:
        model: A fitted classifier.
    """
    import numpy as np

    classes = np.asarray(model.classes_)
    if classes.dtype.kind == "U":
        classes = classes.astype(object)  # as ONNX Runtime gives texts

    def with_probabilities(rows: Any) -> Sequence[Any]:
        probabilities = model.predict_proba(rows)
        return classes[probabilities.argmax(axis=1)], probabilities

    def with_both(rows: Any) -> Sequence[Any]:
        return model.predict(rows).astype(classes.dtype), model.predict_proba(rows)

    def with_scores(rows: Any) -> Sequence[Any]:
        scores = model.decision_function(rows)
        if scores.ndim == 1:
            labels, scores = classes[(scores > 0).astype(int)], np.stack([-scores, scores], axis=1)
        else:
            labels = classes[scores.argmax(axis=1)]
        return labels, scores

    if not hasattr(model, "predict_proba"):
        return with_scores
    return with_both if _decides_otherwise(model) else with_probabilities


def _decides_otherwise(model: Any) -> bool:
    """Whether a model's label need not be the one that it says is most probable."""
    from sklearn.svm import SVC, NuSVC

    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return isinstance(last, SVC | NuSVC)


def as_column(values: Any) -> Any:
    """Return values of one axis as a column, as ONNX files give them."""
    return values.reshape(-1, 1) if values.ndim == 1 else values


def shape_of_labels(made: Any) -> None:
    """Let labels be as many as there are rows: *seen*, onnxmltools 1.16 declares one.

    Args:
        made: The ONNX model, whose first output are labels where it has two.
    """
    outputs = made.graph.output
    if len(outputs) > 1 and len(outputs[0].type.tensor_type.shape.dim) == 1:
        outputs[0].type.tensor_type.shape.dim[0].Clear()


def labels_of_chances(chances: Any) -> Sequence[Any]:
    """Return labels, numbered from 0, and the probability of each, of what a booster predicts.

    Args:
        chances: One probability a row where there are two classes, else one for each.
    """
    import numpy as np

    if chances.ndim == 1:
        return (chances > 0.5).astype(np.int64), np.stack([1 - chances, chances], axis=1)
    return chances.argmax(axis=1), chances
