"""What whoever exported a model wrote beside its graph: metadata, and configuration files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import UsageError, why_no_json, why_unreadable


def metadata_of(path: Path) -> dict[str, str]:
    """Return the metadata of a model file; empty where it has none or can't be read."""
    import onnx

    try:
        proto = onnx.load(str(path), load_external_data=False)
    except Exception:  # noqa: BLE001 - onnx raises its own errors and protobuf's
        return {}
    return {entry.key: entry.value for entry in proto.metadata_props}


def configuration_of(path: Path, name: str) -> dict[str, Any]:
    """Return a JSON file that lies beside a model, or one folder above it; empty without one.

    Raises:
        UsageError: if it is there and can't be read.
    """
    file = file_beside(path, name)
    if file is None:
        return {}
    try:
        read = json.loads(file.read_text("utf-8"))
    except OSError as error:
        why, step = why_unreadable(error)
        raise UsageError(f"{str(file)!r} {why}", hint=step) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{str(file)!r} {why_no_json(error)}",
            hint="Correct the file. If it does not belong to the model, move it out of the model's "
            "folder",
        ) from None
    return read if isinstance(read, dict) else {}


def file_beside(path: Path, name: str) -> Path | None:
    """Return a file that lies beside a model, or one folder above it as in exports of a hub."""
    folders = (path.parent, path.parent.parent)
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
