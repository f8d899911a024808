"""``pytest model.onnx``: the file is an item of its own, and the shipped suites are applied to it.

A folder with ``genai_config.json`` is one model; that file stands for it, since pytest gives ids to
tests of files alone.

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
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.model_spec import (
    CONFIG,
    GENAI_CONFIG,
    MAIN_ONNX,
    ONNX_FOLDER,
    SAVED_MODEL,
    SUFFIXES,
    function_file,
    is_model_file,
)

if TYPE_CHECKING:
    from pytest_ortbench.models.named_path import NamedPath

_SUITES = Path(__file__).parents[1] / "suites"


class Suite(pytest.Module):
    """A shipped suite: its tests are what they are, whatever a project calls its own tests.

    Attributes:
        unasked: Names of tests that take long, and that nothing asks for.
        is_idle: Whether a test is about cases that are not there.
    """

    unasked: frozenset[str] = frozenset()
    is_idle: Callable[[pytest.Item | pytest.Collector], bool] = staticmethod(lambda _: False)

    def istestfunction(self, obj: object, name: str) -> bool:
        """Whether something in the module is a test; ``python_functions`` has no say."""
        return name.startswith("test_") and callable(obj) and name not in self.unasked

    def istestclass(self, _obj: object, _name: str) -> bool:
        """Whether something in the module is a class of tests: suites have none."""
        return False

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        """Return the tests, but for those that are about cases that are not there."""
        return [test for test in super().collect() if not self.is_idle(test)]


class OnnxFile(Suite):
    """A model file that behaves like a module holding the tests of all shipped suites.

    A module and not a bare item, because fixtures, ids, ``-k`` and pytest-benchmark then work as
    they do everywhere else.
    """

    @property
    def spec(self) -> str:
        """The model, as ``--ort-models`` takes it."""
        return str(self.path)

    def _getobj(self) -> ModuleType:
        return merged_suites(self.path, self.nodeid.replace("/", "."))

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        """Return the tests of all suites.

        Raises:
            CollectError: if there are none, which no run may pass over.
        """
        self.config.stash.setdefault(_SEEN, set()).add(self.path)
        tests = list(super().collect())
        if not tests:
            raise self.CollectError(
                f"{self.nodeid}: none of the tests that come with pytest-ortbench was collected. "
                "The hook pytest_pycollect_makeitem of a plugin or a conftest.py excludes them. "
                "Change that hook, or run without that plugin: -p no:NAME"
            )
        for test in (test for test in tests if isinstance(test, pytest.Item)):
            # On the item: pytest makes it, and plugins put classes of their own in its place.
            setattr(test, "reportinfo", functools.partial(self._place_of, test))  # noqa: B010
        return tests

    def _place_of(self, test: pytest.Item) -> tuple[Path, int, str]:
        """Where a test stands, as pytest and its plugins report it: in the model file."""
        return self.path, 0, type(test).reportinfo(test)[2]


def merged_suites(file: Path, name: str) -> ModuleType:
    """Return one module that holds every test function of ``pytest_ortbench.suites``.

    Args:
        file: The model file that is measured; others take it for the file of the module.
        name: Name of the module.
    """
    package = importlib.import_module("pytest_ortbench.suites")
    merged = ModuleType(name, "The shipped suites, for one model file.")
    merged.__file__ = str(file)
    merged.__package__ = ""
    merged.__spec__ = ModuleSpec(name, None, origin=str(file))
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
    """Whether the user named ``path`` itself on the command line, or asked for all by ini.

    All are not the files of a folder that is named and is one model.
    """
    if config.getini("ort_collect") and not is_named_model(path.parent / GENAI_CONFIG, config):
        return True
    return path in _named_paths(config)


def is_named_model(path: Path, config: pytest.Config) -> bool:
    """Whether a file is the configuration of a language model that was named, or its folder was.

    A folder that pytest takes of itself, from its ini file or where it was called, is not named.
    """
    if path.name != GENAI_CONFIG or not path.is_file():
        return False
    named = _named_paths(config)
    is_folder = config.args_source is pytest.Config.ArgsSource.ARGS and path.parent in named
    return path in named or is_folder


def is_named_source(path: Path, config: pytest.Config) -> bool:
    """Whether a file was named that a framework exports, or that nothing may load: its row says so.

    What pytest comes across in a folder is none, whatever the ini file says: sources are programs.
    """
    if path not in _named_paths(config) or not path.is_file():
        return False
    return _looked_at(path).is_source


def _looked_at(path: Path) -> NamedPath:
    # A start of pytest that is given nothing of this kind does not load it.
    from pytest_ortbench.models.named_path import named_path

    return named_path(path)


def is_foreign_folder(path: Path, config: pytest.Config) -> bool:
    """Whether a folder was named that is a model of a format that nothing runs: its row says so."""
    is_one = bool(path.suffix) and path in _named_paths(config)
    return is_one and _looked_at(path).is_refused


def holds_named(folder: Path, config: pytest.Config) -> bool:
    """Whether a model file was named somewhere below a folder, or all were asked for by ini."""
    if config.getini("ort_collect"):
        return True
    named = [path for path in _named_paths(config) if is_model_file(path)]
    named += [
        path / GENAI_CONFIG
        for path in _named_paths(config)
        if is_named_model(path / GENAI_CONFIG, config)
    ]
    return any(folder in path.parents for path in named)


def refuse_missing_files(config: pytest.Config) -> None:
    """Refuse model files that were named and are not there, before pytest does without a hint.

    Raises:
        UsageError: with each of them and the nearest name.
    """
    absent = [
        (written, path)
        for written in (str(argument).split("::", 1)[0] for argument in config.args)
        for path in [_as_collected(written, config)]
        if not os.path.lexists(path)
        if _is_like_model_file(path, config) or _is_function_of_nothing(path)
    ]
    if absent:
        from pytest_ortbench.models.missing import advice_on

        raise pytest.UsageError(
            *(
                f"{written}: the file does not exist. {advice_on(written, path, {})}"
                for written, path in absent
            )
        )


def _is_like_model_file(path: Path, config: pytest.Config) -> bool:
    """Whether a path ends as a model file does, or nearly so where it can't be a module."""
    if is_model_file(path) or config.option.pyargs:
        return is_model_file(path)
    from difflib import get_close_matches

    return bool(get_close_matches(path.suffix.lower(), SUFFIXES, cutoff=0.75))


def _is_function_of_nothing(path: Path) -> bool:
    """Whether a path is written as a function of a Python file, and there is no such file."""
    file = function_file(str(path))
    return bool(file) and not os.path.lexists(file)


def refuse_uncollected(config: pytest.Config) -> None:
    """Refuse a run that was given a model file and measures nothing of it.

    Raises:
        UsageError: with each of them.
    """
    seen = {path.resolve() for path in config.stash.get(_SEEN, set())}
    left = [
        str(argument)
        for argument in config.args
        for named in [config.invocation_params.dir / str(argument).split("::", 1)[0]]
        for path in (*_stand_ins_of(named, config), named)
        if path.name in (GENAI_CONFIG, SAVED_MODEL) or is_model_file(path)
        if path.exists() and path.resolve() not in seen
    ]
    if left:
        raise pytest.UsageError(
            *(
                f"{argument}: no test of this model was collected. Either an option such as "
                "--ignore or norecursedirs excludes the file, or a folder that contains it is "
                "named as well. Remove that option, or name the file without the folder"
                for argument in left
            )
        )


def note_passed_over(path: Path, config: pytest.Config) -> None:
    """Note a model file that pytest came across and that nobody named."""
    config.stash.setdefault(_PASSED_OVER, []).append(path)


def folders_of_models_alone(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> dict[str, list[Path]]:
    """Return the folders that pytest was given and that hold model files and no test.

    Args:
        config: The run.
        items: All tests, before any is deselected.

    Returns:
        By folders as they were written the model files below that were passed over. Folders of the
        ini file count only where nothing at all was collected.
    """
    passed = config.stash.get(_PASSED_OVER, None)
    if passed is None or (items and config.args_source is not pytest.Config.ArgsSource.ARGS):
        return {}
    folders = {str(argument): _as_collected(str(argument), config) for argument in config.args}
    models = {
        written: [path for path in sorted(passed) if folder in path.parents]
        for written, folder in folders.items()
        if not any(folder in item.path.parents for item in items)
    }
    return {written: files for written, files in models.items() if files}


def how_to_measure(folder: str, models: Sequence[Path], config: pytest.Config) -> str:
    """Say how model files are measured that a folder holds and pytest passed over.

    A folder with ``genai_config.json`` is one model, and the folder is what is named.
    """
    here = config.invocation_params.dir
    parts = dict.fromkeys(
        path.parent if (path.parent / GENAI_CONFIG).is_file() else path for path in models
    )
    folders = [part for part in parts if part not in models]
    first = shlex.quote(os.path.relpath(next(iter(parts)), here))
    kind = "model" if folders else "model file"
    count = f"a {kind}" if len(parts) == 1 else f"{len(parts)} {kind}s"
    return (
        f"{folder} contains {count} and no test. A model is measured if it is named: pytest "
        f"{first}. To measure all of them: pytest {shlex.quote(folder)} -o ort_collect=true"
    )


def folders_to_export(
    config: pytest.Config, items: Sequence[pytest.Item], others: Collection[str]
) -> list[str]:
    """Return the folders of transformers that pytest was given and that hold no ONNX file.

    Args:
        config: The run.
        items: All tests.
        others: Folders of which something else is said.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return []
    folders = {str(argument): _as_collected(str(argument), config) for argument in config.args}
    found = []
    for written, folder in folders.items():
        if written in others or not (folder / CONFIG).is_file():
            continue
        is_empty = not any(folder in item.path.parents for item in items)
        if is_empty and _looked_at(folder).is_of_transformers:
            found.append(written)
    return found


def how_to_export(folder: str) -> str:
    """Say how a model of transformers is measured that is there without an ONNX file."""
    file = os.path.join(folder, ONNX_FOLDER, MAIN_ONNX)  # noqa: PTH118  # as it was typed
    return (
        f"{folder} contains a model of transformers and no ONNX file. Export it, with optimum or "
        f"with the builder of onnxruntime-genai, to {shlex.quote(file)}, and repeat this command. "
        "Or name a function that returns the model: pytest net.py:build"
    )


def keep_from_testmon(report: pytest.TestReport) -> None:
    """Take tests of model files out of what pytest-testmon has put into a report.

    It would read the file of each test as source of Python; and a test that it knows is left out
    as long as no source changes, whatever became of the model.
    """
    lines = getattr(report, "nodes_files_lines", None)
    if isinstance(lines, dict):
        files = {nodeid: _path_of(nodeid) for nodeid in lines}
        for nodeid, file in files.items():
            if is_model_file(file) or file.name == GENAI_CONFIG:
                del lines[nodeid]


def _path_of(nodeid: str) -> Path:
    return Path(nodeid.partition("::")[0])


#: Model files that were collected.
_SEEN = pytest.StashKey[set[Path]]()
#: Those that were not.
_PASSED_OVER = pytest.StashKey[list[Path]]()
_NAMED = pytest.StashKey[frozenset[Path]]()


def _named_paths(config: pytest.Config) -> frozenset[Path]:
    """Paths among the command line's arguments, without a ``::`` part, links resolved or not."""
    if _NAMED not in config.stash:
        named: set[Path] = set()
        for argument in config.args:
            path = config.invocation_params.dir / str(argument).split("::", 1)[0]
            named |= {path, _as_collected(str(argument), config), path.resolve()}
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            folders = [path for path in named if path.is_dir()]
            named |= {file for folder in folders for file in _stand_ins(folder, config)}
        config.stash[_NAMED] = frozenset(named)
    return config.stash[_NAMED]


def _stand_ins_of(named: Path, config: pytest.Config) -> list[Path]:
    """Return the files that stand for a folder that was named; none for anything else."""
    genai = named / GENAI_CONFIG
    return [genai] if is_named_model(genai, config) else list(_stand_ins(named, config))


def _stand_ins(folder: Path, config: pytest.Config) -> Iterator[Path]:
    """Yield the files that stand for a folder of a library that was named itself.

    The folder that pytest is called in is never taken for a source, since that is a program.
    """
    if (folder / CONFIG).is_file():
        file = _looked_at(folder).exported
        yield from () if file is None else (file,)
    if (folder / SAVED_MODEL).is_file() and folder.resolve() != config.invocation_params.dir:
        yield folder / SAVED_MODEL


def _as_collected(argument: str, config: pytest.Config) -> Path:
    """The path of an argument as pytest names what it collects: no ``..``, and no link followed."""
    path = config.invocation_params.dir / argument.split("::", 1)[0]
    return Path(os.path.normpath(path))


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
