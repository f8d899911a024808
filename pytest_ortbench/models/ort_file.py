"""Files in ONNX Runtime's own format (``.ort``): what can be told without ONNX Runtime.

That is their digest and size. What they take and give only a session says, which is asked where
sessions are (:class:`~pytest_ortbench.planning.planner.Planner`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.errors import ModelError, why_unreadable
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.model_spec import ONNX, ORT
from pytest_ortbench.models.dataflow import Dataflow
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.hints import hint_inputs
from pytest_ortbench.models.language_config import language_config
from pytest_ortbench.models.model_file import regular_size

#: Identifier of the flatbuffer, four bytes behind its start.
_MARK = (4, b"ORTM")

_NOTE = (
    "ONNX Runtime's own format: a graph that was optimised when it was saved, whose nodes and "
    "weights can't be read here; without a named reference it is compared with itself"
)


def is_ort_file(path: Path) -> bool:
    """Whether a file is in ONNX Runtime's format, by its name, as ONNX Runtime itself decides."""
    return path.suffix.lower() == ORT


def read_ort_file(path: Path, *, name: str, source: str) -> Model:
    """Return what is known of the file; its interface is empty until :func:`with_interface`.

    Args:
        path: The file.
        name: Short name, the first part of every case id.
        source: ``file`` or ``project:NAME``.

    Raises:
        ModelError: if it is missing, empty, or something else.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links
    size = regular_size(path)
    offset, mark = _MARK
    try:
        with path.open("rb") as stream:
            head = stream.read(offset + len(mark))
    except OSError as error:
        why, step = why_unreadable(error)
        raise ModelError(f"the file {why}", place=str(path), hint=step) from None
    if head[offset:] != mark:
        raise ModelError(
            "the name of the file ends in .ort, but the file is not in ONNX Runtime's own format",
            place=str(path),
            hint=f"If it is an ONNX model, rename it to {path.stem}.onnx. If not, make it again "
            "from the ONNX model: 'python -m onnxruntime.tools.convert_onnx_models_to_ort "
            f"{path.with_suffix(ONNX)}'",
        )
    return Model(
        name=name,
        path=str(path),
        source=source,
        digest=file_digest(path),
        size_bytes=size,
        notes=(_NOTE,),
    )


def with_interface(
    model: Model, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> Model:
    """Return the model with what its session says that it takes and gives.

    What the inputs must hold is told by their names and types alone.
    """
    import onnx  # only where a model is read

    empty = onnx.helper.make_model(onnx.helper.make_graph([], "unknown", [], []))
    hinted = hint_inputs(tuple(inputs), Dataflow(empty, tuple(inputs)))
    told = language_config(Path(model.path))
    return replace(
        model,
        inputs=hinted.inputs,
        outputs=tuple(outputs),
        implied_dims=hinted.implied_dims,
        decoder=decoder_of(hinted.inputs, outputs, sizes=hinted.implied_dims, told=told).decoder,
    )


def hinted_by(model: Model, reference: Model) -> Model:
    """Return the model with the hints of a reference that can be read and has the same inputs."""
    known = {info.name: info for info in reference.inputs}
    if not reference.op_types or any(info.name not in known for info in model.inputs):
        return model
    inputs = tuple(
        replace(
            info,
            hint=known[info.name].hint,
            batch_axis=known[info.name].batch_axis,
            roles=known[info.name].roles,
        )
        for info in model.inputs
    )
    return replace(model, inputs=inputs, implied_dims=reference.implied_dims)
