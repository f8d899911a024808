"""The recipes of the guide about many machines, as files."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fleet.md"


def recipe(heading: str, language: str) -> str:
    """Return the first block of a language below a heading of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    section = text.split(f"\n### {heading}\n", 1)[1]
    block = re.search(rf"^```{language}\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)
    assert block is not None
    return block[1]
