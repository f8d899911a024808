"""A sentence of an answer cut into the parts that a page stresses or links."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pytest_ortbench.analysis.told import Told
from pytest_ortbench.report.escape import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some words of a sentence; ``kind``: ``plain``, ``winner``, or ``flag``, which is a link."""

    text: str
    kind: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence: whom it is about, and the rest cut around words to stress."""

    about: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The sentence as it is read."""
        return self.about + "".join(part.text for part in self.parts)


def sentence_of(told: Told, flags: Collection[str] = ()) -> Sentence:
    """Cut a sentence into its parts, each of them inert.

    Args:
        told: The sentence.
        flags: Names of the flags that the page explains: they become links.
    """
    clean = told.cleaned(one_line)
    cut = (Part(text=clean.before), Part(text=clean.winner, kind="winner"), Part(text=clean.after))
    parts = (part for piece in cut for part in _linked(piece, flags))
    return Sentence(about=clean.about, parts=tuple(part for part in parts if part.text))


def _linked(part: Part, flags: Collection[str]) -> list[Part]:
    if part.kind != "plain" or not flags:
        return [part]
    names = "|".join(re.escape(name) for name in sorted(flags, key=len, reverse=True))
    pieces = re.split(rf"(?<![\w/-])({names})(?![\w/-])", part.text)
    return [Part(text=text, kind="flag" if i % 2 else "plain") for i, text in enumerate(pieces)]
