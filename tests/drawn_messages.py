"""Draw messages of the package at random, for a reader to judge.

    python -m tests.drawn_messages [SEED [COUNT]]

A message is a text of five words or more in the code: of errors and hints, help, flags, metrics,
columns, notes and reports. Docstrings are none. ``{…}`` stands for a value.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator

from tests.parsed import product, tree_of

_WORD = re.compile(r"[A-Za-z]{2,}(?:['’-][a-z]+)*")
_FEWEST_WORDS = 5
#: Texts of code: types, programs, patterns, lists of operators.
_CODE = re.compile(r"import |\\[wdbs(\[]|\(\?|NDArray|dict\[|^Abs Acos")


def messages() -> list[tuple[str, str]]:
    """Return every message with its place, in the order of modules and lines."""
    return [
        (f"{path}:{line}", text)
        for path, source in sorted(product().items())
        for line, text in sorted(set(_texts(tree_of(source))))
    ]


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner or id(node) in docstrings:
            continue
        text = _text(node)
        if len(_WORD.findall(text)) >= _FEWEST_WORDS <= len(text.split()) and not _CODE.search(
            text
        ):
            yield node.lineno if isinstance(node, ast.expr) else 0, text


def _text(node: ast.AST) -> str:
    """Return a text with its values left out; empty for any other node."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values
        )
    return ""


if __name__ == "__main__":
    seed, count = (int(text) for text in [*sys.argv[1:], "1", "20"][:2])
    for place, text in random.Random(seed).sample(messages(), count):
        print(f"{place}\n    {' '.join(text.split())}")
