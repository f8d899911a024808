"""Quantisation by ONNX Runtime's tools: eight bits, dynamic or static, or weights of four bits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.convert.calibration import InputSets
from pytest_ortbench.convert.external import inlined, model_bytes
from pytest_ortbench.convert.failure import refuse_absent
from pytest_ortbench.convert.graph import (
    INLINE_LIMIT,
    Draft,
    count_types,
    graphs_within,
    load_typed,
    save_model,
)
from pytest_ortbench.convert.offline import save_optimised
from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    import onnx

#: Growth that is worth a word; folding an initialiser or two is none.
_MORE = 1.01

_NOT_OPTIMISED = "ONNX Runtime could not optimise the graph before quantising it"


def quantise_to_eight_bits(
    source: Path, target: Path, conversion: Conversion, scratch: Path
) -> Draft:
    """Quantise a float32 model.

    Args:
        source: The model.
        target: Where the result goes.
        conversion: With base ``int8-dynamic`` or ``int8-static``.
        scratch: Folder for what the tools write on the way.

    Raises:
        WorkerError: if the recipe does not fit the model, or calibration data can't be made.
        Exception: what the quantiser raises.
    """
    import onnx

    recipe = conversion.recipe
    original = onnx.load(str(source), load_external_data=False)
    # Not the user's file, which may be in half precision: what was made of it is twice as large.
    large = model_bytes(source) >= INLINE_LIMIT
    prepared, notes = _prepare(source, scratch, recipe, large=large)
    graph = onnx.load(str(prepared), load_external_data=False)
    excluded = _excluded(original, graph, recipe.nodes_to_exclude)
    before = count_types(graph)
    notes += _folding_note(count_types(original), before)
    common: dict[str, Any] = {
        "op_types_to_quantize": list(recipe.op_types) or None,
        "per_channel": recipe.per_channel,
        "reduce_range": recipe.reduce_range,
        "weight_type": _kind(recipe.weight_type),
        "nodes_to_exclude": excluded,
        "use_external_data_format": large,
    }
    with bounded_memory():
        if recipe.base == "int8-dynamic":
            facts = _dynamic(prepared, target, common, inner=_has_inner_graphs(graph))
        else:
            facts = _static(prepared, target, conversion, common)
    return Draft(before=before, facts=facts, notes=notes)


def _without_values(source: Path, scratch: Path) -> Path:
    """Return a copy of a file that does not say of which types and shapes its inner values are.

    Args:
        source: A model with its weights inside.
        scratch: Folder for the copy.
    """
    import onnx

    model = onnx.load(str(source))
    for graph in graphs_within(model.graph):
        del graph.value_info[:]
    copy = scratch / "without-values.onnx"
    onnx.save(model, str(copy))
    return copy


def _folding_note(stored: dict[int, int], prepared: dict[int, int]) -> tuple[str, ...]:
    """Why there may be more parameters after quantising than before."""
    import onnx

    kind = onnx.TensorProto.FLOAT
    had, has = stored.get(kind, 0), prepared.get(kind, 0)
    if has <= had * _MORE:
        return ()
    return (
        f"ONNX Runtime folded constants before quantising: {had} float values in the file became "
        f"{has} weights",
    )


#: Element type of a value that inference has none for, as behind an operator of another domain:
#: float32, as all that is quantised. What is wrong of it does not load.
_DEFAULT_TYPE = 1


def _kind(name: str) -> object:
    from onnxruntime.quantization import QuantType

    return {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[name]


def _has_inner_graphs(model: onnx.ModelProto) -> bool:
    return any(graph is not model.graph for graph in graphs_within(model.graph))


def _dynamic(
    prepared: Path, target: Path, common: dict[str, Any], *, inner: bool
) -> dict[str, str]:
    from onnxruntime.quantization import quantize_dynamic

    extra: dict[str, Any] = {"DefaultTensorType": _DEFAULT_TYPE}
    # Branches and loop bodies may hold all the weights.
    extra |= {"EnableSubgraph": True} if inner else {}
    quantize_dynamic(str(prepared), str(target), extra_options=extra, **common)
    return {}


def _static(
    prepared: Path, target: Path, conversion: Conversion, common: dict[str, Any]
) -> dict[str, str]:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, quantize_static

    recipe = conversion.recipe
    methods = {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }
    reader = InputSets(conversion)
    # The ranges of ONNX Runtime's percentile method are symmetric by default, which costs a bit
    # wherever values have one sign. One input set at a time, or the histogram methods keep every
    # activation of all of them.
    extra: dict[str, Any] = {"CalibTensorRangeSymmetric": False, "CalibStridedMinMax": 1}
    extra["DefaultTensorType"] = _DEFAULT_TYPE
    if recipe.calibration == "percentile":
        extra["CalibPercentile"] = recipe.percentile
    quantize_static(
        str(prepared),
        str(target),
        reader,
        quant_format=QuantFormat.QDQ,
        activation_type=_kind(recipe.activation_type),
        calibrate_method=methods[recipe.calibration],
        extra_options=extra,
        **common,
    )
    return {"calibrated_on": reader.description}


def _prepare(
    source: Path, scratch: Path, recipe: Recipe, *, large: bool
) -> tuple[Path, tuple[str, ...]]:
    """Optimise and infer shapes, as ONNX Runtime recommends; at least copy into the scratch folder.

    The quantiser writes beside the file that it is given, so it never gets the user's.

    Symbolic shape inference is left out: it wants the shapes of every operator to be known to it,
    and the optimised graph has the types that the quantiser needs.
    """
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if large and _leaves_weights_behind():
        return _prepare_large(source, scratch, recipe)
    if not large:
        # The optimised graph would go on pointing at weights in a folder where they are not.
        source = inlined(source, scratch)
    prepared = scratch / "prepared.onnx"

    def prepare(file: Path) -> None:
        quant_pre_process(
            str(file),
            str(prepared),
            skip_symbolic_shape=True,
            skip_optimization=not recipe.preprocess,
            save_as_external_data=large,
            all_tensors_to_one_file=True,
            external_data_location="prepared.data" if large else None,
        )

    with _errors_of("onnxruntime.quantization.shape_inference") as errors:
        try:
            prepare(source)
        except onnx.shape_inference.InferenceError:
            if large:  # one file could not hold it
                raise
            # What it says of its values in between contradicts what they are.
            prepare(_without_values(source, scratch))
    return prepared, (_NOT_OPTIMISED,) if errors else ()


def _leaves_weights_behind() -> bool:
    """Whether the tool's optimised graph points at weights that are elsewhere (before 1.21)."""
    ort, _ = load()
    major, minor = ort.__version__.split(".")[:2]
    return (int(major), int(minor)) < (1, 21)


def _prepare_large(source: Path, scratch: Path, recipe: Recipe) -> tuple[Path, tuple[str, ...]]:
    """What the tool does, for a model whose weights lie beside it."""
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    notes: tuple[str, ...] = ()
    if recipe.preprocess:
        optimised = scratch / "optimised.onnx"
        try:
            save_optimised(
                source, optimised, SessionConfig(graph_optimization_level="basic"), beside=True
            )
            source = optimised
        except Exception:  # noqa: BLE001 - native errors have no common base class
            notes = (_NOT_OPTIMISED,)
    model, more = load_typed(source)
    add_pre_process_metadata(model)
    prepared = scratch / "prepared.onnx"
    save_model(model, prepared)
    return prepared, (*notes, *more)


@contextmanager
def _errors_of(name: str) -> Iterator[list[str]]:
    """Collect what a tool logs as an error instead of raising it."""
    messages: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger(name), Collector(level=logging.ERROR)
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)


def _excluded(
    original: onnx.ModelProto, prepared: onnx.ModelProto, names: tuple[str, ...]
) -> list[str]:
    """Names in the prepared graph of nodes that the recipe excludes by their names in the file.

    Optimising may fuse a node with its neighbour under a new name; the fused node makes one of the
    values that the excluded one made, or that its neighbour made of it.
    """
    by_name = {node.name: node for node in original.graph.node if node.name}
    wanted: set[str] = set()
    made: set[str] = set()
    refuse_absent(names, by_name.values())
    for name in names:
        wanted.add(name)
        made.update(by_name[name].output)
    left = {name for node in prepared.graph.node for name in node.output}
    for _ in range(3):  # a chain that is fused into one node: Conv, BatchNormalization, activation
        gone = made - left
        readers = [node for node in original.graph.node if gone.intersection(node.input)]
        made.update(name for node in readers for name in node.output)
    return [
        node.name
        for node in prepared.graph.node
        if node.name in wanted or made.intersection(node.output)
    ]


def quantise_to_four_bits(source: Path, target: Path, recipe: Recipe) -> Draft:
    """Quantise the constant weights of matrix products, block by block.

    Matrix products become MatMulNBits; all else stays in float.

    Args:
        source: A model in float32.
        target: Where the result goes.
        recipe: With base ``int4``.

    Raises:
        ImportError: if the tool's own dependencies are not installed.
    """
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    model, notes = load_typed(source)
    before = count_types(model)
    # Four bits is what it does by default; 1.22 and 1.23 have no parameter for it.
    quantizer = MatMulNBitsQuantizer(
        model,
        block_size=recipe.block_size,
        is_symmetric=recipe.symmetric,
        accuracy_level=recipe.accuracy_level or None,
        nodes_to_exclude=list(recipe.nodes_to_exclude),
    )
    quantizer.process()
    save_model(quantizer.model.model, target)
    return Draft(before=before, notes=notes)


#: Elements of a weight that are quantised at a time; smaller arrays are left to the tool.
_ELEMENTS_AT_A_TIME = 1 << 24


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let ONNX Runtime's quantiser work in pieces while this lasts.

    ``quantize_nparray`` divides, rounds and shifts the whole array at once, each into an array of
    its own in float32. *Seen*: a weight of 0.54 GB took 3.2 GB. It works element by element, so a
    large array with one scale gives the same bits piece by piece.

    A version of ONNX Runtime that has no such function is left as it is.
    """
    from onnxruntime.quantization import quant_utils

    original = getattr(quant_utils, "quantize_nparray", None)
    if original is None:
        yield
        return

    def in_pieces(
        kind: Any, values: Any, scale: Any, zero_point: Any, *rest: Any, **more: Any
    ) -> Any:
        import numpy as np

        if (
            getattr(values, "size", 0) <= _ELEMENTS_AT_A_TIME
            or np.size(scale) != 1
            or np.size(zero_point) != 1
        ):
            return original(kind, values, scale, zero_point, *rest, **more)
        flat = values.reshape(-1)
        first = original(kind, flat[:_ELEMENTS_AT_A_TIME], scale, zero_point, *rest, **more)
        result = np.empty(flat.shape, dtype=first.dtype)
        result[:_ELEMENTS_AT_A_TIME] = first
        for start in range(_ELEMENTS_AT_A_TIME, flat.size, _ELEMENTS_AT_A_TIME):
            piece = flat[start : start + _ELEMENTS_AT_A_TIME]
            result[start : start + _ELEMENTS_AT_A_TIME] = original(
                kind, piece, scale, zero_point, *rest, **more
            )
        return result.reshape(values.shape)

    quant_utils.quantize_nparray = in_pieces
    try:
        yield
    finally:
        quant_utils.quantize_nparray = original
