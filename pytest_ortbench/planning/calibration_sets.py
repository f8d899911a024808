"""Stored input sets for calibration: one file, or a folder of them."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import Model, ValueHint
from pytest_ortbench.planning.real_inputs import stored_inputs


def stored_sets(model: Model, path: Path) -> tuple[tuple[InputSpec, ...], ...]:
    """Find the input sets of a model, without loading their values.

    Args:
        model: The model.
        path: A ``.npz`` file (one set), a folder of ``.npz`` files (one set each), a folder with
            ``test_data_set_N`` or other folders in it that hold one set each, or a folder that is
            one set itself (``.npy`` or ``input_0.pb``).

    Returns:
        One entry a set, in the order of their names; empty for an empty folder.

    Raises:
        UsageError: if there is nothing at ``path``, or if names or types don't fit the model.
    """
    return tuple(_specs(model, place) for place in _places(path))


def _places(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    archives = sorted(item for item in path.iterdir() if item.suffix.lower() == ".npz")
    if archives:
        return archives
    if any(item.suffix.lower() in (".npy", ".pb") for item in path.iterdir()):
        return [path]
    return sorted(item for item in path.iterdir() if item.is_dir())


def _specs(model: Model, place: Path) -> tuple[InputSpec, ...]:
    found = stored_inputs(model, place)
    return tuple(
        InputSpec(
            name=info.name,
            type=info.type,
            shape=found[info.name].shape or (),
            hint=info.hint or ValueHint(kind="normal"),
            path=str(found[info.name].path.absolute()),
            member=found[info.name].member,
        )
        for info in model.inputs
        if info.name in found
    )
