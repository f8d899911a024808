"""Modules as a host sends them to a worker: a line each."""

from __future__ import annotations

import base64
import json
import zlib


def line_of(name: str, source: str, code: bytes = b"") -> bytes:
    """The line of a module."""
    parts = [base64.b64encode(zlib.compress(part)).decode() for part in (source.encode(), code)]
    return json.dumps([name, parts[0], parts[1] if code else ""]).encode()


def read_line(line: bytes) -> tuple[str, str, bytes]:
    """Name, source and code of a module."""
    name, source, code = json.loads(line)
    whole = [zlib.decompress(base64.b64decode(part)) if part else b"" for part in (source, code)]
    return name, whole[0].decode(), whole[1]
