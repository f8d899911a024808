"""``pytest net.py:build``: a function that returns a model, named as an argument and measured.

``net.py::build`` is the same. To pytest that is a test of the file, so it is taken for one where it
may be one: where the file defines no such function, or one that pytest collects as a test. pytest
imports the file of neither.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.model_spec import PYTHON, function_file
from pytest_ortbench.plugin.model_files import OnnxFile

_KEY = "ortbench_functions"
#: Functions that were written with one colon, as ``FILE.py::FUNCTION``: no test is written so.
_TYPED = pytest.StashKey[list[str]]()
_NAMED = pytest.StashKey[dict[Path, dict[str, str]]]()


class FunctionModel(OnnxFile):
    """One function that returns a model: all shipped suites, for what it returns."""

    @property
    def spec(self) -> str:
        """The model, as ``--ort-models`` takes it."""
        return f"{self.path}:{self.name}"


class SourceFile(pytest.File):
    """A Python file with functions that return models, of which some were named.

    Attributes:
        prepare: Called with the collector of each of them.
    """

    prepare: Callable[[OnnxFile], OnnxFile]

    def collect(self) -> list[OnnxFile]:
        """Return a collector for each function that was named."""
        functions = functions_named(self.path, self.config)
        made = [
            FunctionModel.from_parent(
                self, path=self.path, name=function, nodeid=f"{self.nodeid}::{function}"
            )
            for function in functions
        ]
        return [self.prepare(model) for model in made]


def take_typed(config: pytest.Config) -> None:
    """Write functions among the arguments as pytest can look for them, ``net.py::build``.

    Args:
        config: The run; a worker of pytest-xdist is told which these are.
    """
    told = getattr(config, "workerinput", {}).get(_KEY, [])
    typed = config.stash.setdefault(_TYPED, [*told])
    for place, argument in enumerate(map(str, config.args)):
        file, name = function_file(argument), argument.rpartition(":")[2]
        here = config.invocation_params.dir
        is_one = "::" not in argument and name.isidentifier() and not _may_be_test(name, config)
        if file and is_one and (here / file).is_file() and not (here / argument).exists():
            config.args[place] = f"{file}::{name}"
            typed.append(config.args[place])


def tell_worker(node: Any) -> None:
    """Tell a worker of pytest-xdist which functions were named.

    Args:
        node: The worker, before it is configured.
    """
    node.workerinput[_KEY] = node.config.stash.get(_TYPED, [])


def functions_named(path: Path, config: pytest.Config) -> tuple[str, ...]:
    """Return the functions of a Python file that were named as models.

    Args:
        path: The file, as pytest collects it.
        config: The run.
    """
    if path.suffix != PYTHON:
        return ()
    typed = config.stash.get(_TYPED, [])
    return tuple(
        name
        for argument, name in _named(config).get(path.resolve(), {}).items()
        if argument in typed or (not _may_be_test(name, config) and name in _defined_in(path))
    )


def is_named_alone(path: Path, functions: Sequence[str], config: pytest.Config) -> bool:
    """Return whether nothing but these functions of a Python file was named.

    Args:
        path: The file.
        functions: Those that are models.
        config: The run.
    """
    file = path.resolve()
    whole = {config.invocation_params.dir / str(argument) for argument in config.args}
    around = (file, *file.parents)
    if any(part.resolve() in around for part in whole):
        return False
    return set(_named(config).get(file, {}).values()) <= set(functions)


def holds_functions(folder: Path, config: pytest.Config) -> bool:
    """Return whether functions of files below a folder were named, and may be models.

    Args:
        folder: The folder.
        config: The run.
    """
    files = [file for file in _named(config) if folder.resolve() in file.parents]
    return any(functions_named(file, config) for file in files)


def _named(config: pytest.Config) -> dict[Path, dict[str, str]]:
    """What was named of Python files: arguments as far as the first name, and that name."""
    if _NAMED not in config.stash:
        named: dict[Path, dict[str, str]] = {}
        for argument in map(str, config.args):
            file, *names = argument.split("::")
            if names and file.endswith(PYTHON):
                path = (config.invocation_params.dir / file).resolve()
                named.setdefault(path, {})[f"{file}::{names[0]}"] = names[0]
        config.stash[_NAMED] = named
    return config.stash[_NAMED]


def _may_be_test(name: str, config: pytest.Config) -> bool:
    """Whether pytest collects a function or a class of this name for its tests."""
    patterns = [*config.getini("python_functions"), *config.getini("python_classes")]
    return any(
        name.startswith(pattern) or fnmatchcase(name, pattern) for pattern in map(str, patterns)
    )


def _defined_in(path: Path) -> frozenset[str]:
    """Names of the functions that a file defines and that are no fixtures; none without Python."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    functions = [part for part in body if isinstance(part, ast.FunctionDef)]
    return frozenset(
        part.name for part in functions if not any(map(_is_fixture, part.decorator_list))
    )


def _is_fixture(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(named, "attr", getattr(named, "id", "")) == "fixture"
