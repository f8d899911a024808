"""Boosted trees, estimators and boosters, are exported by onnxmltools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.worker.estimators import shape_of_labels
from pytest_ortbench.worker.exporting import versions_of
from pytest_ortbench.worker.tabular import table_form


def export_boosted(
    loaded: LoadedSource, path: Path, convert: Callable[..., Any], package: str
) -> Made:
    """Write the ONNX file of an estimator or booster.

    Args:
        loaded: It, with example rows.
        path: The file to write.
        convert: The converter of onnxmltools.
        package: What it is of.
    """
    from onnxmltools.convert.common.data_types import FloatTensorType

    form = table_form(loaded, matrix=True)
    (name,) = form.types
    made = convert(loaded.model, initial_types=[(name, FloatTensorType([None, form.width]))])
    shape_of_labels(made)
    path.write_bytes(made.SerializeToString())
    return Made(
        exporter="onnxmltools",
        versions=versions_of((package, "onnxmltools", "skl2onnx", "onnx", "numpy")),
        feeds={} if loaded.example is None else form.feeds(loaded.example),
    )
