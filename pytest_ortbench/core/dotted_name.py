"""What a table names by ``module:attribute``, so that it is imported only when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_named(dotted_name: str) -> Any:
    """Import and return what ``module:attribute`` stands for."""
    module, _, attribute = dotted_name.partition(":")
    return getattr(import_module(module), attribute)
