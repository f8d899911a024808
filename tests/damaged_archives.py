"""``.npz`` files that open as archives, and whose arrays can't be read all the same."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

#: What is wrong, and what Python says of it.
DAMAGES = {
    "stream": "while decompressing data",
    "encrypted": "is encrypted, password required",
    "method": "compression method is not supported",
}

_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def damaged(path: Path, damage: str, **arrays: Any) -> Path:
    """Write ``arrays`` to ``path``, then damage the first of them."""
    np.savez_compressed(path, **arrays)
    with zipfile.ZipFile(path) as archive:
        entry = archive.infolist()[0]
    content = bytearray(path.read_bytes())
    local, central = content.index(_LOCAL), content.index(_CENTRAL)
    if damage == "stream":
        name, extra = (
            int.from_bytes(content[local + i : local + i + 2], "little") for i in (26, 28)
        )
        start = local + 30 + name + extra
        content[start : start + entry.compress_size] = b"\xff" * entry.compress_size
    elif damage == "encrypted":
        content[local + 6] |= 1
        content[central + 8] |= 1
    else:
        content[local + 8] = content[central + 10] = 77
    path.write_bytes(content)
    return path
