"""Boosted trees of XGBoost become ONNX by onnxmltools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.worker.estimators import shape_of_labels
from pytest_ortbench.worker.exporting import versions_of
from pytest_ortbench.worker.tabular import table_form

_PACKAGES = ("xgboost", "onnxmltools", "skl2onnx", "onnx", "numpy")


def export_xgboost(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a model or booster."""
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    form = table_form(loaded, matrix=True)
    (name,) = form.types
    made = convert_xgboost(
        loaded.model, initial_types=[(name, FloatTensorType([None, form.width]))]
    )
    shape_of_labels(made)
    path.write_bytes(made.SerializeToString())
    return Made(
        exporter="onnxmltools",
        versions=versions_of(_PACKAGES),
        feeds={} if loaded.example is None else form.feeds(loaded.example),
    )
