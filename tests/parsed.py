"""Sources as trees, each parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest_ortbench

PACKAGE = Path(pytest_ortbench.__file__).parent


@cache
def product() -> dict[str, str]:
    """Return the text of every module of the product by its path from the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source, which nobody changes."""
    return ast.parse(text)


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source, as ``ast.walk`` gives them."""
    return tuple(ast.walk(tree_of(text)))
