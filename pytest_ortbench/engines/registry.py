"""Every engine that comes with this package, one line each; this is the only list.

Declarations are imported when somebody asks: a start of pytest loads none of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from pytest_ortbench.engines.engine_kind import EngineKind

#: Folder of each engine, by its alias; its :class:`EngineKind` is ``ENGINE`` in ``declaration``.
FOLDERS = {
    "iree": "iree",
    "jax": "jax",
    "mnn": "mnn",
    "openvino-native": "openvino_native",
    "tensorflow": "tensorflow",
    "tflite": "tflite",
    "tract": "tract",
    "python": "python",
    "torch": "torch",
    "torch-compile": "torch_compile",
    "torch-script": "torch_script",
    "sklearn": "sklearn",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
}
#: Group of the entry points under which other packages bring theirs.
GROUP = "pytest_ortbench.engines"


@cache
def engine_kind(alias: str) -> EngineKind | None:
    """Return the engine of an alias; ``None`` where no package brings one."""
    if alias in FOLDERS:
        declaration = import_module(f"{__package__}.{FOLDERS[alias]}.declaration")
        shipped: EngineKind = declaration.ENGINE
        return shipped
    from importlib.metadata import entry_points  # 30 ms, and seldom needed

    for entry in entry_points(group=GROUP, name=alias):
        kind = entry.load()
        if isinstance(kind, EngineKind):
            return kind
    return None


def engine_kinds() -> dict[str, EngineKind]:
    """Return all engines that come with this package, by alias."""
    kinds = {alias: engine_kind(alias) for alias in FOLDERS}
    return {alias: kind for alias, kind in kinds.items() if kind is not None}


def brought_kinds() -> tuple[dict[str, EngineKind], dict[str, str]]:
    """Return the engines that other packages bring, by alias, and why others can't be read."""
    from importlib.metadata import entry_points  # as above

    kinds: dict[str, EngineKind] = {}
    problems: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        try:
            kind = entry.load()
        except Exception as error:  # noqa: BLE001 - whatever a package of others raises
            problems[entry.name] = f"{entry.value} can't be imported: {error}"
            continue
        if isinstance(kind, EngineKind):
            kinds[entry.name] = kind
        else:
            problems[entry.name] = f"{entry.value} is no EngineKind"
    return kinds, problems


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
