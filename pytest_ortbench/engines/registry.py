"""Every engine that comes with this package, one line each; this is the only list.

Declarations are imported when somebody asks: a start of pytest loads none of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError, class_and_line, says
from pytest_ortbench.engines.engine_kind import EngineKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Alias of each engine. Its folder is called so, with underscores; its :class:`EngineKind` is
#: ``ENGINE`` in ``declaration``.
ALIASES = (
    "endpoint",
    "iree",
    "jax",
    "lightgbm",
    "mnn",
    "ncnn",
    "openvino-native",
    "python",
    "sklearn",
    "tensorflow",
    "tflite",
    "torch",
    "torch-compile",
    "torch-script",
    "tract",
    "xgboost",
)
#: Group of the entry points under which other packages bring theirs.
GROUP = "pytest_ortbench.engines"


@cache
def engine_kind(alias: str) -> EngineKind | None:
    """Return the engine of an alias; ``None`` where no package brings one.

    Raises:
        UsageError: if what another package brings under the alias can't be read.
    """
    if alias in ALIASES:
        folder = alias.replace("-", "_")
        shipped: EngineKind = import_module(f"{__package__}.{folder}.declaration").ENGINE
        return shipped
    from importlib.metadata import entry_points  # 30 ms, and seldom needed

    for entry in entry_points(group=GROUP, name=alias):
        kind = _brought(entry)
        if isinstance(kind, str):
            package = entry.dist.name if entry.dist is not None else ""
            raise UsageError(
                kind,
                place=f"the engine {alias!r} of the package {package!r}",
                hint="If the package is yours, correct its entry point. If not, run: pip uninstall "
                f"{package}",
            )
        return kind
    return None


def _brought(entry: EntryPoint) -> EngineKind | str:
    """Return what another package brings under an entry point, or why it can't be read."""
    try:
        kind = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever a package of others raises
        return f"{entry.value!r} can't be imported. {says('Python', class_and_line(error))}"
    if not isinstance(kind, EngineKind):
        return f"{entry.value!r} is not an EngineKind, the class that describes an engine"
    if kind.alias != entry.name:
        return f"{entry.value!r} has the alias {kind.alias!r}, not that of its entry point"
    return kind


def engine_kinds() -> dict[str, EngineKind]:
    """Return all engines that come with this package, by alias."""
    kinds = {alias: engine_kind(alias) for alias in ALIASES}
    return {alias: kind for alias, kind in kinds.items() if kind is not None}


def brought_kinds() -> tuple[dict[str, EngineKind], dict[str, str]]:
    """Return the engines that other packages bring, by alias, and why others can't be read."""
    from importlib.metadata import entry_points  # as above

    kinds: dict[str, EngineKind] = {}
    problems: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        kind = _brought(entry)
        if isinstance(kind, str):
            problems[entry.name] = kind
        else:
            kinds[entry.name] = kind
    return kinds, problems


def marked_folder(path: Path) -> Path:
    """Return the folder that a file stands for where it marks one of a framework, else the path.

    Args:
        path: What was named.
    """
    marks = {mark for kind in engine_kinds().values() if kind.loader for mark in kind.source_marks}
    return path.parent if path.name in marks and path.is_file() else path


def framework_of_file(path: Path) -> EngineKind | None:
    """Return the framework whose own file or folder lies at a path, by its suffix or its marks."""
    suffix = path.suffix.lower()
    for kind in engine_kinds().values():
        if suffix in kind.source_suffixes and kind.loader:
            return kind
        if kind.loader and any((path / mark).is_file() for mark in kind.source_marks):
            return kind
    return None


def framework_of_model(model: object) -> EngineKind | None:
    """Return the framework of a model, by the nearest class that it inherits from."""
    owners = [kind for kind in engine_kinds().values() if kind.exporter]
    for owner in type(model).__mro__:
        for kind in owners:
            if any(f"{owner.__module__}.".startswith(f"{name}.") for name in kind.models):
                return kind
    return None
