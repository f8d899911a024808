"""Sources are loaded: code of the user's runs, or a framework reads a file of its own."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.errors import (
    WorkerError,
    class_and_line,
    did_you_mean,
    first_line,
    says,
    supply_step,
)
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.source import Source
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.entry import ENTRY_KEYS, LoadedSource
from pytest_ortbench.engines.registry import engine_kinds, framework_of_file, framework_of_model
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.worker.user_code import call, class_of, load_file

#: What the entry function returns, for messages.
_IN_A_SCRIPT = "Export the model in a script of your own, and measure the ONNX file"
SHAPE = "Return a model, (model, example inputs) or (model, example inputs, {'names': …})"
#: The same where several example inputs may have been returned one by one.
SEVERAL = f"{SHAPE}. Several example inputs go into one tuple: (model, (first, second))"


def load_source(source: Source) -> LoadedSource:
    """Load what a model was exported from, for a framework that runs it.

    Args:
        source: Of the model.

    Raises:
        WorkerError: with the place in the user's file, if it can't be loaded.
    """
    try:
        return load_named(Path(source.path), source.function)[0]
    except WorkerError as error:
        raise WorkerError(replace(error.failure, phase="session")) from error


def load_named(path: Path, function: str) -> tuple[LoadedSource, EngineKind]:
    """Load a source, and say which framework it belongs to.

    Args:
        path: A Python file, or the file or folder of a framework.
        function: The function in the Python file, empty for others.

    Raises:
        WorkerError: if it can't be loaded.
    """
    if function:
        return _called(path, function)
    kind = framework_of_file(path)
    if kind is None:
        raise export_error(
            f"no installed package reads {path.name} where this case is measured",
            "Install the package there that provides the framework of this file",
        )
    with_place = _with_place(path, "", kind)
    return with_place(import_named(kind.loader), path), kind


def _called(path: Path, function: str) -> tuple[LoadedSource, EngineKind]:
    module = _in_export(load_file, path)
    made = getattr(module, function, None)
    if made is not None and not callable(made):
        raise export_error(
            f"{function!r} in {path.name} is of type {class_of(made)}, not a function",
            _name_function(path, module),
        )
    if made is None:
        known = [name for name, value in vars(module).items() if _is_entry(value, module)]
        raise export_error(
            f"{path.name} has no function {function!r}",
            did_you_mean(function, known) if known else _define_function(path),
        )
    needed = _needed_arguments(made)
    if needed:
        raise export_error(
            f"{path.name}:{function} needs the {_arguments(needed)}, but it is called without "
            "arguments",
            f"In {path.name}, give the {_arguments(needed)} a default value. If {function!r} is "
            "the wrong function, name one that needs no arguments"
            + (f", e.g. {fitting}" if (fitting := _fitting(path, module)) else ""),
        )
    returned = _in_export(call, path, f"{function}()", made)
    parts = returned if isinstance(returned, tuple) else (returned,)
    if not 1 <= len(parts) <= 3 or parts[0] is None:
        got = f"{len(parts)} values" if len(parts) > 1 else "nothing"
        raise export_error(
            f"{path.name}:{function} returned {got}", SEVERAL if len(parts) > 1 else SHAPE
        )
    model, example, settings = (*parts, None, None)[:3]
    kind = framework_of_model(model)
    if kind is None:
        raise export_error(
            f"{path.name}:{function} returned a {class_of(model)}, which is no model of a known "
            "framework",
            f"Return a model of one of these: {_frameworks()}. If it is an ONNX model, write it to "
            "a file with onnx.save, and name that file",
        )
    _check_settings(path, function, {} if settings is None else settings, kind)
    loaded = LoadedSource(
        path=path, function=function, model=model, example=example, settings=dict(settings or {})
    )
    return loaded, kind


def _arguments(names: list[str]) -> str:
    return f"argument{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _name_function(path: Path, module: ModuleType) -> str:
    fitting = _fitting(path, module)
    wanted = "Name a function without arguments that returns the model"
    return f"{wanted}, e.g. {fitting}" if fitting else _define_function(path)


def _fitting(path: Path, module: ModuleType) -> str:
    """The first function of a file that can be called without arguments; empty if none can."""
    for name, value in vars(module).items():
        if _is_entry(value, module) and not _needed_arguments(value):
            return f"{path.name}:{name}"
    return ""


def _define_function(path: Path) -> str:
    return f"Define a function in {path.name} that takes no argument and returns the model"


def _check_settings(path: Path, function: str, settings: object, kind: EngineKind) -> None:
    if not isinstance(settings, Mapping):
        raise export_error(
            f"the third value that {path.name}:{function} returned is of type "
            f"{class_of(settings)}, not a dictionary",
            SEVERAL,
        )
    known = {**ENTRY_KEYS, **kind.entry_keys}
    for key in settings:
        if key not in known:
            raise export_error(
                f"the third value that {path.name}:{function} returned has the unknown key {key!r}",
                f"Give it to the exporter: --ort-exporter={key}={settings[key]}"
                if key in kind.exporter_options
                else did_you_mean(str(key), known),
            )


def _frameworks() -> str:
    return ", ".join(kind.title for kind in engine_kinds().values() if kind.exporter)


def _needed_arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of arguments that a function can't be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # one of a library, which tells nothing of itself
        return []
    varying = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        item.name
        for item in parameters
        if item.default is inspect.Parameter.empty and item.kind not in varying
    ]


def _is_entry(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def files_read(loaded: LoadedSource) -> list[Path]:
    """Return every file whose content decides on the export, as far as that can be known.

    The file itself (of a folder all in it), modules beside it that were imported, and what the
    entry function names.

    Raises:
        WorkerError: for a named file that is not there.
    """
    files = [loaded.path]
    if loaded.path.is_dir():
        files = sorted(file for file in loaded.path.rglob("*") if file.is_file())
    if loaded.function:
        files += _modules_beside(loaded.path)
    for name in loaded.settings.get("files", ()):
        file = (loaded.path.parent / str(name)).absolute()
        if not file.is_file():
            raise export_error(
                f"{loaded.path.name}:{loaded.function} names {str(name)!r} in 'files', but the "
                f"file {file} does not exist",
                f"Correct the path in 'files'. A relative path there starts at "
                f"{loaded.path.parent}",
            )
        files.append(file)
    return list(dict.fromkeys(files))


def _modules_beside(path: Path) -> list[Path]:
    """Files of imported modules that lie in the folder of a Python file or below it."""
    installed = tuple(Path(place) for place in sysconfig.get_paths().values())
    files = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py") or not Path(file).is_file():
            continue
        place = Path(file).absolute()
        if path.parent not in place.parents or place == path:
            continue
        if not any(folder in place.parents for folder in installed):
            files.append(place)
    return sorted(files)


def _in_export(function: Callable[..., Any], *arguments: object) -> Any:
    """Call what runs code of the user's; its failure is one of the export."""
    try:
        return function(*arguments)
    except WorkerError as error:
        failure = replace(error.failure, phase="export")
        if isinstance(error.__cause__, ImportError):
            hint = (
                f"Install the package that has the module {error.__cause__.name!r}. To install it "
                "in a runtime of its own, write --ort-runtimes=onnxruntime+PACKAGE"
            )
            failure = replace(failure, kind="unavailable", hint=hint)
        raise WorkerError(failure) from error


def _with_place(path: Path, function: str, kind: EngineKind) -> Callable[..., Any]:
    """Return what calls code of a framework, so that its failures name the source."""
    text = f"{path.name}:{function}" if function else path.name

    def called(step: Callable[..., Any], *arguments: object) -> Any:
        try:
            return step(*arguments)
        except (WorkerError, MemoryError):
            raise
        except EngineRefusal as error:
            raise case_error(
                f"{text}: {error}", error.hint or _IN_A_SCRIPT, kind=error.kind, phase="export"
            ) from error
        except ImportError as error:
            packages = (*kind.distributions, *kind.exporter_distributions)
            raise case_error(
                f"{text} can't be exported. {says('Python', first_line(error))}",
                _supply(error, packages),
                kind="unavailable",
                phase="export",
            ) from error
        except Exception as error:
            # Code of the user's and of the framework raises whatever it likes.
            raise export_error(
                f"{text} can't be exported. {says(kind.title, class_and_line(error))}",
                f"Correct {text}, or return a model that the exporter supports. To see the whole "
                "error, export the model in a script of your own"
                if function
                else "If the file was copied or fetched, copy or fetch it again. If it needs code "
                "of your own, name a function that loads it: --ort-models=FILE.py:FUNCTION",
            ) from error

    return called


def _supply(error: ImportError, packages: tuple[str, ...]) -> str:
    """The next step where code of a framework, or of the user's, misses a module."""
    name = error.name or ""
    own = {package.replace("-", "_") for package in packages}
    are_there = not any(map(_is_missing, packages))
    if not packages or (are_there and name and name.split(".")[0] not in own):
        return f"Install the package that has the module {name!r}"
    step = supply_step(error, f"Run: pip install {' '.join(packages)}", *packages)
    if name.split(".")[0] in own:
        return step
    return f"{step}. If the module {name!r} belongs to another package, install that package"


def _is_missing(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return True
    return False


def exported_by(
    kind: EngineKind, loaded: LoadedSource, path: Path, settings: Mapping[str, str]
) -> Any:
    """Have a framework's exporter write the ONNX file of a source, and return what it made.

    Args:
        kind: The framework.
        loaded: The source.
        path: The file to write.
        settings: What the user set for the exporter.

    Raises:
        WorkerError: if it can't be exported.
    """
    for key in settings:
        if key not in kind.exporter_options:
            raise export_error(
                f"the exporter of {kind.title} has no setting {key!r} (--ort-exporter)"
                if kind.exporter_options
                else f"the exporter of {kind.title} takes no settings, but {key!r} is given",
                did_you_mean(key, kind.exporter_options)
                if kind.exporter_options
                else "Leave --ort-exporter out",
            )
    with_place = _with_place(loaded.path, loaded.function, kind)
    return with_place(import_named(kind.exporter), loaded, path, settings)


def export_error(message: str, hint: str = "") -> WorkerError:
    """Return the failure of an export."""
    return case_error(message, hint or _IN_A_SCRIPT, kind="error", phase="export")
