"""Names that a Python file binds at its top level, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple


class BoundName(NamedTuple):
    """A name, and how it is bound.

    Attributes:
        name: ``*`` for what an import with a star brings.
        is_defined: Whether the file defines a function or class of this name.
    """

    name: str
    is_defined: bool


def bound_names(node: ast.AST) -> Iterator[BoundName]:
    """Yield names that statements bind, also under ``if``, ``try`` and ``with``.

    What functions and classes bind inside of them is left out.

    Args:
        node: A module, or a part of one.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield BoundName(child.name, is_defined=True)
            continue
        if isinstance(child, ast.alias):
            yield BoundName(child.asname or child.name.partition(".")[0], is_defined=False)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield BoundName(child.id, is_defined=False)
        if not isinstance(child, ast.Lambda):
            yield from bound_names(child)
