"""Why a model is not taken for one that writes text."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.model import Model
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.encoders import later_half
from pytest_ortbench.models.language_config import language_config


def writes_first(later: Path) -> str:
    """Return what is said of the first half of a model, beside which the later one lies."""
    return (
        f"this file writes only the first token of a text, and {later.name} beside it writes the "
        f"others, so requests of both files are measured under the name of {later.name}"
    )


def why_no_decoder(model: Model) -> str:
    """Return why a model is not taken for one that writes text."""
    later = later_half(Path(model.path))
    if later is not None:
        return writes_first(later)
    told = language_config(Path(model.path))
    return decoder_of(model.inputs, model.outputs, sizes=model.implied_dims, told=told).reason
