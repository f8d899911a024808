"""Arguments that come through a shell on another machine as they are.

``ssh`` joins what stands behind the host with blanks, and the login shell over there splits it
again. So each word is quoted once for that shell; the loader is passed in a form of its own, see
:mod:`pytest_ortbench.launch.bootstrap`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

#: Programs that do so.
_PROGRAMS = ("ssh", "autossh", "plink")
#: Options of OpenSSH's client that take a value, from its manual.
_WITH_VALUE = frozenset("BbcDEeFIiJLlmOoPpQRSWw")


def joins_arguments(program: str) -> bool:
    """Whether a program, named without its folder, gives its arguments to a shell."""
    return program in _PROGRAMS


def for_remote_shell(words: Sequence[str]) -> tuple[str, ...]:
    """Quote what the remote shell reads: all behind the host; in front of it are our own options.

    Args:
        words: ``ssh``'s command line.
    """
    start = _behind_options(words, 1)  # the host
    start = _behind_options(words, start + 1)  # options may follow it too
    return (*words[:start], *(shlex.quote(word) for word in words[start:]))


def _behind_options(words: Sequence[str], start: int) -> int:
    """Index of the first word from ``start`` on that is no option and no option's value."""
    index = start
    while index < len(words) and words[index].startswith("-") and len(words[index]) > 1:
        if words[index] == "--":
            return index + 1
        letters = words[index][1:]
        valued = next((n for n, letter in enumerate(letters) if letter in _WITH_VALUE), None)
        # The value is the rest of the word, or the next word where nothing is left of this one.
        index += 2 if valued == len(letters) - 1 else 1
    return index
