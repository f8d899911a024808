"""Benchmark ONNX models over execution providers, precisions and shapes, as pytest items.

What is public is in ``__all__``; it is for annotations: ``def test(ortbench: OrtBench)``.
"""

from typing import TYPE_CHECKING

from pytest_ortbench.core.version import VERSION as __version__

if TYPE_CHECKING:
    from pytest_ortbench.plugin.fixture import OrtBench
    from pytest_ortbench.plugin.measured import Measured

__all__ = ["Measured", "OrtBench", "__version__"]

#: Where the public names are that a start of pytest, or of a worker, must not load.
_PLACES = {
    "Measured": "pytest_ortbench.plugin.measured",
    "OrtBench": "pytest_ortbench.plugin.fixture",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is asked for."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
