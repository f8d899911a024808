"""Files that tools write beside a model: where they lie, and what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: A configuration is a page of text.
_MOST_BYTES = 4 * 2**20


def folders_beside(path: Path) -> list[Path]:
    """Return the model's folder, and the one above where that is called ``onnx``."""
    return [path.parent, *([path.parent.parent] if path.parent.name == "onnx" else [])]


def object_in(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty where there is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
