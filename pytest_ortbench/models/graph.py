"""From a file to a :class:`~pytest_ortbench.core.model.Model`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.errors import ModelError, class_and_line, did_you_mean
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.models import inspection
from pytest_ortbench.models.axes.tracking import walked
from pytest_ortbench.models.cache_flow import flowing_pairs
from pytest_ortbench.models.cache_pairs import cache_pairs, sizes_of_presents, with_named_axes
from pytest_ortbench.models.claims import MAKE_AGAIN
from pytest_ortbench.models.dataflow import Dataflow
from pytest_ortbench.models.decoder_graph import decoder_graph
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.hints import default_hint, hint_inputs
from pytest_ortbench.models.inspection import all_tensors
from pytest_ortbench.models.language_config import language_config
from pytest_ortbench.models.model_file import read_model_file
from pytest_ortbench.models.pixel_weights import byte_pixels
from pytest_ortbench.models.subnormals import subnormal_weights
from pytest_ortbench.models.told_sizes import told_pixels, told_sizes
from pytest_ortbench.models.well_known import is_past
from pytest_ortbench.models.zeros import compressed_size, zero_share
from pytest_ortbench.schema.bound_kinds import LONGEST_NAME
from pytest_ortbench.schema.meaning import faults_of

if TYPE_CHECKING:
    import onnx


def read_model(
    path: Path,
    *,
    name: str,
    source: str,
    default_dims: Mapping[str, int] | None = None,
    axes: Mapping[str, Sequence[int | str]] | None = None,
    hints: Mapping[str, ValueHint] | None = None,
    described_in: str = "",
) -> Model:
    """Read a model file: its interface, its operators, and what its inputs must hold.

    External data is checked and hashed, never loaded; nothing is written beside the model.

    Args:
        path: The file.
        name: Short name, the first part of every case id.
        source: ``file``, ``builtin:NAME`` or ``zoo:NAME``.
        default_dims: Sizes that the catalogue names.
        axes: Names that the catalogue gives to the axes of inputs.
        hints: Values that the catalogue prescribes for inputs, in place of what the graph tells.
        described_in: The entry of the catalogue with ``axes`` and ``hints``, for messages.

    Raises:
        ModelError: in one line with the path, if it can't be read, says what no document can hold,
            or if ``axes`` and ``hints`` don't fit it.
    """
    file = read_model_file(path)
    proto = file.proto
    outputs = tuple(inspection.tensor_info(value) for value in proto.graph.output)
    flowing = flowing_pairs(proto)
    declared = with_named_axes(inspection.declared_inputs(proto.graph), outputs, flowing)
    inputs = _with_axes(declared, axes or {}, described_in or str(path))
    facts = Model(
        name=name,
        path=str(file.path),
        source=source,
        digest=file.digest,
        size_bytes=file.size_bytes,
        external_files=tuple(item.location for item in file.external),
        ir_version=proto.ir_version,
        opsets=inspection.opsets(proto),
        outputs=outputs,
        parameters=inspection.parameter_count(proto),
        nodes=sum(1 for _ in inspection.all_nodes(proto)),
        op_types=inspection.op_types(proto),
        weight_types=weight_types(proto),
        default_dims=dict(default_dims or {}),
        random_ops=inspection.random_ops(proto),
        notes=inspection.notes(proto),
        told_sizes=told_sizes(file.path, {item.key: item.value for item in proto.metadata_props}),
        zero_share=zero_share(proto, file.path.parent),
        weights_as_inputs=inspection.weights_as_inputs(proto),
        subnormal_weights=subnormal_weights(proto, file.path.parent),
        compiled=inspection.compiled_parts(proto),
    )
    if facts.is_pruned:
        facts = replace(facts, compressed_bytes=compressed_size(file.path, file.external))
    told_by_file = told_pixels(file.path)
    pixels = {
        info.name: told_by_file or byte_pixels(proto, info, file.path.parent) for info in inputs
    }
    # From here on the parsed model is changed: large weights are dropped from memory.
    pasts = {past for past, _ in flowing}
    told = _told_by_graph(proto, inputs, pixels, pasts)
    config = language_config(file.path)
    has_cache = bool(pasts) or any(is_past(info.name) for info in inputs)
    pairs = cache_pairs(told.inputs, outputs, flowing)
    pairs = () if isinstance(pairs, str) else pairs
    implied = {**sizes_of_presents(pairs), **told.implied_dims}
    decoder = decoder_of(
        told.inputs, outputs, sizes=implied, graph=decoder_graph(proto, pairs, flowing), told=config
    ).decoder
    faults = config.faults if decoder is None else decoder.config_faults
    model = replace(
        facts,
        inputs=_with_hints(told.inputs, hints or {}, described_in or str(path)),
        decoder=decoder,
        implied_dims=implied,
        told_sizes={**facts.told_sizes, **(config.told_sizes if has_cache else {})},
        notes=(*facts.notes, *told.notes, *config.notes, *(fault.told for fault in faults)),
    )
    for domain in model.opsets:
        if len(domain) > LONGEST_NAME:
            raise ModelError(
                f"the name of an operator set (opset_import) has {len(domain):,} characters, but "
                f"may have {LONGEST_NAME:,} at most: {domain[:40]!r}…",
                place=str(path),
                hint=MAKE_AGAIN,
            )
    fault = next(faults_of(model, name), None)
    if fault is not None:
        raise ModelError(
            f"a value in the file is not valid: {fault}",
            place=str(path),
            hint=MAKE_AGAIN,
        )
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToldByGraph:
    """What the nodes of a graph say of its inputs, and what keeps them from saying it."""

    inputs: tuple[TensorInfo, ...]
    implied_dims: dict[str, int]
    notes: tuple[str, ...] = ()


def _told_by_graph(
    proto: onnx.ModelProto,
    inputs: tuple[TensorInfo, ...],
    pixels: Mapping[str, ValueHint | None],
    pasts: Collection[str],
) -> _ToldByGraph:
    """Follow the inputs through the graph.

    A graph that breaks the rules of ONNX says nothing; what is wrong with it, ONNX Runtime tells
    when it is loaded.
    """
    try:
        walk = walked(inspection.without_functions(proto), inputs)
        roles = walk.roles()
        hinted = hint_inputs(inputs, Dataflow(proto, inputs, walk.shapes()), roles, pixels, pasts)
    except Exception as error:  # noqa: BLE001 - a file can break the rules of ONNX in any place
        plain = tuple(replace(info, hint=default_hint(info.type)) for info in inputs)
        why = class_and_line(error)
        note = f"the graph can't be analysed, so inputs get random values of their types: {why}"
        return _ToldByGraph(inputs=plain, implied_dims={}, notes=(note,))
    told = tuple(replace(info, roles=roles.get(info.name, ())) for info in hinted.inputs)
    return _ToldByGraph(inputs=told, implied_dims=hinted.implied_dims)


def _with_axes(
    inputs: Sequence[TensorInfo], axes: Mapping[str, Sequence[int | str]], place: str
) -> tuple[TensorInfo, ...]:
    _check_known("axes", axes, inputs, place)
    return tuple(
        replace(info, shape=_named(info, axes[info.name], place)) if info.name in axes else info
        for info in inputs
    )


def _named(info: TensorInfo, axes: Sequence[int | str], place: str) -> tuple[int | str | None, ...]:
    declared = info.shape
    fits = declared is None or (
        len(declared) == len(axes)
        and all(
            not isinstance(size, int) or size == axis
            for size, axis in zip(declared, axes, strict=True)
        )
    )
    if not fits:
        own = declared or ()
        fitting = [
            size if isinstance(size, int) else (axes[at : at + 1] or [size or f"axis_{at}"])[0]
            for at, size in enumerate(own)
        ]
        raise ModelError(
            f"'axes' gives the input {info.name!r} the shape {list(axes)}, but the model declares "
            f"{list(own)}",
            place=place,
            hint=f"Write {_toml_key(info.name)} = {json.dumps(fitting)} in 'axes'",
        )
    return tuple(axes)


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _with_hints(
    inputs: Sequence[TensorInfo], hints: Mapping[str, ValueHint], place: str
) -> tuple[TensorInfo, ...]:
    _check_known("inputs", hints, inputs, place)
    return tuple(
        replace(info, hint=hints[info.name]) if info.name in hints else info for info in inputs
    )


def _check_known(
    key: str, names: Mapping[str, object], inputs: Sequence[TensorInfo], place: str
) -> None:
    known = [info.name for info in inputs]
    for name in names:
        if name not in known:
            raise ModelError(
                f"{key!r} names {name!r}, which is not an input of this model",
                place=place,
                hint=did_you_mean(name, known),
            )


def weight_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Number of elements of all stored tensors by element type, in order of the type's name.

    Weights in external files are counted by their shape; nothing is loaded.
    """
    counts: Counter[str] = Counter()
    for tensor in all_tensors(proto):
        counts[ELEMENT_NAMES.get(tensor.data_type, "unknown")] += element_count(tensor.dims) or 0
    return dict(sorted(counts.items()))
