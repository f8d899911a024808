"""Which file of reference outputs belongs to a case."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.schema.wire import to_plain


def reference_key(case: Case) -> str:
    """Digest over all that decides reference outputs."""
    deciding = {
        "model": case.model.digest,
        "path": case.model.path,
        "inputs": to_plain(case.inputs),
        "files": [_stamp(spec.path) for spec in case.inputs if spec.path],
        "seed": case.seed,
        "custom_ops": list(case.session.custom_ops),
    }
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:24]


def _stamp(path: str) -> list[int]:
    """Size and time of an input file: a changed one is another input."""
    try:
        found = Path(path).stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]
