"""``pytest model.onnx``: the file is an item of its own, and the shipped suites are applied to it.

Files are collected only when they are named on the command line (or with the ini key
``ort_collect``): a bare ``pytest`` must not start to benchmark every model below it.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

SUFFIXES = (".onnx", ".ort")


class OnnxFile(pytest.Module):
    """A model file that behaves like a module holding the tests of all shipped suites.

    A module and not a bare item, because fixtures, ids, ``-k`` and pytest-benchmark then work as
    they do everywhere else.
    """

    def _getobj(self) -> ModuleType:
        return merged_suites()


def merged_suites() -> ModuleType:
    """Return one module that holds every test function of ``pytest_ortbench.suites``."""
    package = importlib.import_module("pytest_ortbench.suites")
    merged = ModuleType("pytest_ortbench.suites.merged", "The shipped suites, for one model file.")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("test_"):
            continue
        suite = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(suite).items():
            if name.startswith("test_") and callable(value):
                setattr(merged, name, value)
    return merged


def is_named(path: Path, config: pytest.Config) -> bool:
    """Whether the user named ``path`` itself on the command line, or asked for all by ini."""
    if config.getini("ort_collect"):
        return True
    return path in _named_paths(config)


_NAMED = pytest.StashKey[frozenset[Path]]()


def _named_paths(config: pytest.Config) -> frozenset[Path]:
    """Paths among the command line's arguments, without a ``::`` part, links resolved or not."""
    if _NAMED not in config.stash:
        named: set[Path] = set()
        for argument in config.args:
            path = config.invocation_params.dir / str(argument).split("::", 1)[0]
            # As pytest names what it collects: without "..", and no link followed.
            collected = Path(os.path.normpath(path))
            named |= {path, collected, path.resolve()}
        config.stash[_NAMED] = frozenset(named)
    return config.stash[_NAMED]
