"""How often the product calls its functions: cost that does not depend on how busy a machine is."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of each function of the product by its name."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "pytest_ortbench" in frame.f_code.co_filename:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
