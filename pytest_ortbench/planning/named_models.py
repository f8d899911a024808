"""The models that files of a suite name: of an earlier revision, and now.

Nothing is run: a suite may write its models as paths, as parts of paths, or search a folder for
them, and its texts tell which of a revision's model files it meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from pytest_ortbench.core.model_spec import PYTHON, SUFFIXES

#: What a suite calls to look for files.
_SEARCHES = frozenset({"glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk", "fwalk"})
#: What stands between words of a file that is no Python.
_BETWEEN = re.compile(r"""[\s"'`,;=\[\](){}]+""")
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFile:
    """One file that says which models a suite measures.

    Attributes:
        place: Its path in the working tree, with slashes.
        texts: Texts that stand in it: literals of Python, words of any other file.
        searches: Whether it calls what looks for files.
    """

    place: str
    texts: frozenset[str]
    searches: bool

    def means(self, model: PurePosixPath) -> bool:
        """Whether it names a model in any way."""
        return self.names(model) or self.composes(model) or self.looks_in(model)

    def names(self, model: PurePosixPath) -> bool:
        """Whether it writes a model's file, or the end of its path.

        Args:
            model: The path of a model file in the working tree.
        """
        return any(_is_file(text) and _ends(model, text) for text in self.texts)

    def composes(self, model: PurePosixPath) -> bool:
        """Whether it writes a model's name, and the ending of model files apart from it."""
        bare = model.with_suffix("")
        return any(_is_ending(text) for text in self.texts) and any(
            _is_word(text) and _ends(bare, text) for text in self.texts
        )

    def looks_in(self, model: PurePosixPath) -> bool:
        """Whether one of its patterns fits a model, or it searches a folder above one."""
        if any(self._fits(text, model) for text in self.texts if _is_pattern(text)):
            return True
        return self.searches and any(folder in model.parents for folder in self._folders())

    @property
    def _starts(self) -> tuple[PurePosixPath, ...]:
        """Folders that its paths may start from: its own, and those above."""
        own = PurePosixPath(self.place).parent
        return (own, *own.parents)

    def _fits(self, pattern: str, model: PurePosixPath) -> bool:
        """Whether a pattern with a folder fits, or one without that is handed to no search."""
        parts = _parts(pattern)
        if len(parts) == 1 and self.searches:
            return False
        for start in self._starts:
            tried = (*start.parts, *parts)
            if _is_match(model.parts, tried):
                return True
        return False

    def _folders(self) -> set[PurePosixPath]:
        """Folders that its texts name; where there are none, its own."""
        folders = {text for text in self.texts if _is_word(text) and not _is_file(text)}
        parts = filter(None, map(_parts, folders))
        named = {start.joinpath(*part) for part in parts for start in self._starts}
        own = self._starts[0]
        return named | ({own} if own != PurePosixPath() else set())


def suite_file(place: str, content: str) -> SuiteFile:
    """Read one file; what is no valid Python names nothing.

    Args:
        place: Its path in the working tree, with slashes.
        content: What it holds.
    """
    if PurePosixPath(place).suffix.lower() != PYTHON:
        words = frozenset(filter(None, _BETWEEN.split(content)))
        return SuiteFile(place=place, texts=words, searches=False)
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return SuiteFile(place=place, texts=frozenset(), searches=False)
    texts: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.Attribute):
            called.add(node.attr)
        elif isinstance(node, ast.Name):
            called.add(node.id)
    searches = not called.isdisjoint(_SEARCHES)
    return SuiteFile(place=place, texts=frozenset(texts), searches=searches)


def lost_models(
    before: Iterable[SuiteFile],
    now: Iterable[SuiteFile],
    *,
    there: Iterable[PurePosixPath],
    gone: Iterable[PurePosixPath],
    measured: Iterable[PurePosixPath],
) -> list[PurePosixPath]:
    """Return the models that a suite measured at a revision and measures no more.

    A file that is gone was measured if the suite wrote its name, or searched its folder: by what it
    says, or since it has models of the same folder now that it doesn't name. A file that is there
    was dropped if the suite wrote its name and writes it no longer.

    Args:
        before: The files of the suite at the revision.
        now: The same files in the working tree.
        there: Model files of the revision that are still there and are not measured now.
        gone: Model files of the revision that are there no more.
        measured: Model files that the suite measures now.
    """
    before, now = list(before), list(now)
    searched = {
        model.parent
        for model in measured
        if not any(file.names(model) or file.composes(model) for file in now)
    }
    lost = [
        model
        for model in gone
        if model.parent in searched or any(file.means(model) for file in before)
    ]
    dropped = [
        model
        for model in there
        if any(file.names(model) for file in before) and not any(file.means(model) for file in now)
    ]
    return [*lost, *dropped]


def _is_file(text: str) -> bool:
    return text.lower().endswith(SUFFIXES) and not _is_ending(text)


def _is_ending(text: str) -> bool:
    return text.lower() in SUFFIXES


def _is_word(text: str) -> bool:
    """Whether a text may be the name of a model, without an ending."""
    return bool(text) and not _BETWEEN.search(text) and not _MAGIC.search(text)


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a path, without what leads to its first folder."""
    return tuple(part for part in PurePosixPath(text.replace("\\", "/")).parts if part not in "/..")


def _ends(model: PurePosixPath, text: str) -> bool:
    parts = _parts(text)
    return bool(parts) and model.parts[-len(parts) :] == parts


def _is_pattern(text: str) -> bool:
    return _is_file(text) and bool(_MAGIC.search(text))


def _is_match(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a path fit those of a pattern; ``**`` is any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_is_match(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatch(parts[0], pattern[0]) and _is_match(parts[1:], pattern[1:])
