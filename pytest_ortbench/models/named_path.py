"""What a file or folder that a user named as an argument is, beside a model file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.models.sources import source_at
from pytest_ortbench.models.transformers_folder import exported_in, is_saved_model


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPath:
    """A path that was named.

    Attributes:
        is_source: Whether a framework exports it, or nothing may load it.
        is_refused: Whether it is a source that nothing may load.
        is_of_transformers: Whether it is a folder that a model of transformers was saved into.
        exported: What stands for the ONNX model of such a folder; ``None`` without one.
    """

    is_source: bool
    is_refused: bool
    is_of_transformers: bool
    exported: Path | None


def named_path(path: Path) -> NamedPath:
    """Look at a path that was named.

    Args:
        path: A file or folder that is there.
    """
    source = source_at(path)
    is_of_transformers = is_saved_model(path)
    return NamedPath(
        is_source=source is not None,
        is_refused=source is not None and bool(source.refusal),
        is_of_transformers=is_of_transformers,
        exported=exported_in(path) if is_of_transformers else None,
    )
