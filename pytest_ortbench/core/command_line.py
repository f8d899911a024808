"""How a command is written so that it can be copied."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence


def in_shell(words: Sequence[str]) -> str:
    """Return words as the shell of this machine reads them."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
