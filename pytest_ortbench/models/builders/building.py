"""Puts a built network into a folder: checked by its digest, once, however many ask for it."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from pytest_ortbench.core.errors import (
    ModelError,
    UsageError,
    cache_advice,
    did_you_mean,
    why_unwritable,
)
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.models.builders.registry import BUILDERS, BuilderInfo


def build(name: str, folder: Path, place: str = "") -> Path:
    """Build a network, or take the file that is there if its digest is right.

    A damaged file is built anew. Parallel callers wait for the first; no one ever sees half a
    file.

    Args:
        name: One of ``BUILDERS``.
        folder: Where the file goes; made if it is missing.
        place: What names it, for messages; ``builtin:NAME`` where that is not told.

    Returns:
        Path of the file, ``<name>-v<version>.onnx``; large weights lie beside it.

    Raises:
        UsageError: No builder has that name.
        ModelError: The file can't be written, or came out with other bytes than it should.
    """
    info = BUILDERS.get(name)
    if info is None:
        raise UsageError(
            f"the built-in model {name!r} does not exist",
            place=place or f"builtin:{name}",
            hint=did_you_mean(name, BUILDERS),
        )
    target = folder / info.file_name
    try:
        if _is_right(target, info):
            return target
        _build_locked(info, target)
    except IsADirectoryError as error:
        raise ModelError(
            "a folder stands where the built model is to be written",
            place=str(target),
            hint="Remove this folder",
        ) from error
    except OSError as error:
        raise ModelError(
            f"the built model {why_unwritable(error, target)}",
            place=str(target),
            hint=cache_advice(error),
        ) from error
    return target


#: Packages that decide about the bytes of a file that is built.
_BUILT_WITH = ("numpy", "onnx", "protobuf")


def serialised(info: BuilderInfo, weights: BinaryIO | None = None) -> bytes:
    """Return the bytes of a network's model file.

    Args:
        info: The network.
        weights: Takes what lies beside the model file.
    """
    # numpy and onnx cost more than the whole start of pytest may.
    from pytest_ortbench.models.builders.graph_writer import GraphWriter, WeightsFile

    beside = None if weights is None else WeightsFile(weights, info.weights_name)
    graph = GraphWriter(info.name, version=info.version, beside=beside)
    write: Callable[[GraphWriter], None] = pkgutil.resolve_name(info.writer)
    write(graph)
    return graph.serialise()


def _build_locked(info: BuilderInfo, target: Path) -> None:
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if _is_right(target, info):  # built while this caller waited
            return
        # One name for every attempt, so that a killed process leaves nothing that piles up.
        part = target.with_name(f".{target.name}.part")
        weights = _weights(info, part)
        try:
            with ExitStack() as stack:
                beside = stack.enter_context(weights.open("wb")) if weights else None
                with part.open("wb") as file:
                    file.write(serialised(info, beside))
                    _put_on_disk(file)
                if beside is not None:
                    _put_on_disk(beside)
            digest = _digest(info, part)
            if digest != info.digest:
                raise ModelError(
                    f"the model that was built here has SHA-256 {digest[:16]}…, but must have "
                    f"{info.digest[:16]}…, so its results could not be compared with those of "
                    "other machines",
                    place=f"builtin:{info.name}",
                    hint="Please open an issue in the repository of pytest-ortbench, with this "
                    "message and these versions: "
                    + ", ".join(f"{name} {version(name)}" for name in _BUILT_WITH),
                )
            if weights:
                weights.replace(target.with_name(info.weights_name))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
            if weights:
                weights.unlink(missing_ok=True)


def _put_on_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _weights(info: BuilderInfo, path: Path) -> Path | None:
    """Return the file beside a model file, if its network has one."""
    return path.with_name(f"{path.name}.data") if info.external else None


def _digest(info: BuilderInfo, path: Path) -> str:
    weights = _weights(info, path)
    return file_digest(path, ((info.weights_name, weights),) if weights else ())


def _is_right(path: Path, info: BuilderInfo) -> bool:
    """Whether the files are there, whole and of this version."""
    weights = _weights(info, path)
    if not path.is_file() or (weights and not weights.is_file()):
        return False
    return _digest(info, path) == info.digest
