"""``builtin:NAME``: networks built on the spot, with the same bytes on every machine.

Weights are drawn, not trained; sizes, operators and activations are those of the real thing.
"""

from __future__ import annotations

from pytest_ortbench.models.builders.building import build
from pytest_ortbench.models.builders.registry import BUILDERS, BuilderInfo

__all__ = ["BUILDERS", "BuilderInfo", "build"]
