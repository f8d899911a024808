"""Example inputs of a source: real rows, which are timed in place of drawn ones.

They are as many as the entry function returned. Where the user sets another batch, they are
repeated in their order, or the first of them are taken.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.planning.feeds import stored_batch
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes
from pytest_ortbench.worker.array_archive import write_arrays


def fed_from_file(
    request: PlanRequest,
    axes: ModelAxes,
    batch: int | None,
    dims: Mapping[str, int],
    *,
    has_data: bool,
) -> tuple[PlanRequest, int | None]:
    """Return a request with the file that a model is fed from, if any, and the batch in it.

    Args:
        request: What was asked for.
        axes: The axes of the model.
        batch: The batch that was asked for, ``None`` where nobody asked.
        dims: Sizes that the user set.
        has_data: Whether photos, sounds or texts are fed.
    """
    if request.inputs is None and not has_data:
        request = replace(request, inputs=example_inputs(axes, batch, dims))
    if batch is None and request.inputs is not None:
        batch = stored_batch(axes, dims, request.inputs)
    return request, batch


def example_inputs(axes: ModelAxes, batch: int | None, dims: Mapping[str, int]) -> Path | None:
    """Return the file of example inputs at a batch; ``None`` where inputs are drawn.

    Args:
        axes: The axes of the model.
        batch: The batch that was asked for, ``None`` for that of the example inputs.
        dims: Sizes that the user set: where one is no batch, the example inputs don't have it.
    """
    source = axes.model.exported_from
    if source is None or not source.example:
        return None
    symbols = axes.batch_axis.symbols
    if any(name not in symbols for name in dims):
        return None
    wanted = next((dims[name] for name in symbols if name in dims), batch)
    path = Path(source.example)
    if wanted is None or not symbols:
        return path
    return _with_rows(axes, path, wanted)


def _with_rows(axes: ModelAxes, path: Path, wanted: int) -> Path | None:
    """The file that holds so many rows, made beside that of the example inputs."""
    import numpy as np

    target = path.with_name(f"{path.stem}-{wanted}{path.suffix}")
    if target.is_file() and target.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        return target
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    shapes = {info.name: shape for info, shape in zip(axes.model.inputs, axes.shapes, strict=True)}
    for name, array in arrays.items():
        for axis, symbol in enumerate(shapes.get(name) or ()):
            if symbol in axes.batch_axis.symbols and array.shape[axis]:
                order = np.arange(wanted) % array.shape[axis]
                array = array.take(order, axis=axis)
        arrays[name] = array
    written = io.BytesIO()
    write_arrays(written, arrays)
    replace_file(target, written.getvalue())
    return target
