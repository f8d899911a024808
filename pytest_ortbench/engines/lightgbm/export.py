"""Boosted trees of LightGBM become ONNX by onnxmltools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.worker.boosted import export_boosted


def export_lightgbm(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a model or booster, without ZipMap."""
    from onnxmltools import convert_lightgbm

    return export_boosted(loaded, path, partial(convert_lightgbm, zipmap=False), "lightgbm")
