"""``pytest model.onnx``: the file is an item of its own, and the shipped suites are applied to it.

Files are collected only when they are named on the command line (or with the ini key
``ort_collect``): a bare ``pytest`` must not start to benchmark every model below it.

Model files inside Python packages are measured without importing the package: it may be missing
something, load a framework into the process, or take seconds, and nothing of it is needed. Tests of
Python below the same package have it as ever.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

SUFFIXES = (".onnx", ".ort")

_SUITES = Path(__file__).parents[1] / "suites"


class Suite(pytest.Module):
    """A shipped suite: its tests are what they are, whatever a project calls its own tests.

    Attributes:
        unasked: Names of tests that take long, and that nothing asks for.
    """

    unasked: frozenset[str] = frozenset()

    def istestfunction(self, obj: object, name: str) -> bool:
        """Whether something in the module is a test; ``python_functions`` has no say."""
        return name.startswith("test_") and callable(obj) and name not in self.unasked

    def istestclass(self, _obj: object, _name: str) -> bool:
        """Whether something in the module is a class of tests: suites have none."""
        return False


class OnnxFile(Suite):
    """A model file that behaves like a module holding the tests of all shipped suites.

    A module and not a bare item, because fixtures, ids, ``-k`` and pytest-benchmark then work as
    they do everywhere else.
    """

    def _getobj(self) -> ModuleType:
        return merged_suites()

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        """Return the tests of all suites.

        Raises:
            CollectError: if there are none, which no run may pass over.
        """
        self.config.stash.setdefault(_SEEN, set()).add(self.path)
        tests = list(super().collect())
        if not tests:
            raise self.CollectError(
                f"{self.nodeid}: no test of the shipped suites was collected. A plugin or a "
                "conftest.py with the hook pytest_pycollect_makeitem keeps them out"
            )
        return tests


def merged_suites() -> ModuleType:
    """Return one module that holds every test function of ``pytest_ortbench.suites``."""
    package = importlib.import_module("pytest_ortbench.suites")
    merged = ModuleType("pytest_ortbench.suites.merged", "The shipped suites, for one model file.")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("test_"):
            continue
        suite = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(suite).items():
            if name.startswith("test_") and isinstance(value, FunctionType):
                setattr(merged, name, _moved(value, merged))
    return merged


def _moved(function: FunctionType, module: ModuleType) -> FunctionType:
    """The same function as one of another module, for projects that collect no imported tests."""
    moved = FunctionType(function.__code__, function.__globals__, function.__name__)
    functools.update_wrapper(moved, function)
    del moved.__dict__["__wrapped__"]
    moved.__module__ = module.__name__
    return moved


def is_suite(path: Path) -> bool:
    """Return whether a file is one of the shipped suites."""
    return path.suffix == ".py" and path.name.startswith("test_") and path.parent == _SUITES


def is_named(path: Path, config: pytest.Config) -> bool:
    """Whether the user named ``path`` itself on the command line, or asked for all by ini."""
    if config.getini("ort_collect"):
        return True
    return path in _named_paths(config)


def holds_named(folder: Path, config: pytest.Config) -> bool:
    """Whether a model file was named somewhere below a folder, or all were asked for by ini."""
    if config.getini("ort_collect"):
        return True
    named = [path for path in _named_paths(config) if path.suffix in SUFFIXES]
    return any(folder in path.parents for path in named)


def refuse_uncollected(config: pytest.Config) -> None:
    """Refuse a run that was given a model file and measures nothing of it.

    Raises:
        UsageError: with each of them.
    """
    seen = {path.resolve() for path in config.stash.get(_SEEN, set())}
    left = [
        str(argument)
        for argument in config.args
        for path in [config.invocation_params.dir / str(argument).split("::", 1)[0]]
        if path.suffix in SUFFIXES and path.exists() and path.resolve() not in seen
    ]
    if left:
        raise pytest.UsageError(
            *(
                f"{argument}: nothing of this model is collected, though it is named: an option "
                "such as --ignore or norecursedirs leaves it out, or a folder above it is named "
                "as well and passes over it. Name it without that folder"
                for argument in left
            )
        )


#: Model files that were collected.
_SEEN = pytest.StashKey[set[Path]]()
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


class ModelPackage(pytest.Package):
    """A package that holds a model file: set up before its first test of Python, no earlier."""

    _for_model = False
    _waiting = False
    _error: BaseException | None = None

    def setup(self) -> None:
        """Set the package up, unless it is a model that is about to be measured."""
        self._waiting = self._for_model
        if not self._for_model:
            self._import()

    def _import(self) -> None:
        try:
            super().setup()
        except BaseException as error:
            self._error = error
            raise

    def teardown(self) -> None:
        """Forget what became of it."""
        self._waiting = False
        self._error = None
        super().teardown()

    def expect(self, *, model: bool) -> None:
        """Be ready for the next item: a test of a model, or one of Python.

        Raises:
            BaseException: what the package raised, for a test of Python.
        """
        self._for_model = model
        stack = self.session._setupstate.stack
        if self not in stack:
            return
        if model:
            # What a package raises is the affair of its own tests. pytest keeps it for every item
            # below, so it is taken out here and raised below for those that it concerns.
            stack[self] = (stack[self][0], None)
        elif self._error is not None:
            raise self._error
        elif self._waiting:
            self._waiting = False
            self._import()


def expect(item: pytest.Item) -> None:
    """Have the packages above an item imported if it is a test of Python, and else not."""
    model = item.getparent(OnnxFile) is not None
    for node in item.listchain():
        if isinstance(node, ModelPackage):
            node.expect(model=model)
