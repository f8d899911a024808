"""What Git LFS leaves in place of a file whose content was not fetched."""

from __future__ import annotations

from pathlib import Path

#: Such a text begins so.
POINTER = b"version https://git-lfs"
#: The step that fetches the content.
PULL = "Run: git lfs pull"


def is_pointer(path: Path) -> bool:
    """Return whether a file is such a text; one that can't be read is none.

    Args:
        path: The file.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(len(POINTER)) == POINTER
    except OSError:
        return False
