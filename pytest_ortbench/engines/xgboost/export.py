"""Boosted trees of XGBoost become ONNX by onnxmltools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.worker.boosted import export_boosted


def export_xgboost(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a model or booster."""
    from onnxmltools import convert_xgboost

    return export_boosted(loaded, path, convert_xgboost, "xgboost")
