"""One conversion from the source file to a checked variant in an empty folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.convert import (
    census,
    check,
    external,
    half,
    integer,
    memory,
    offline,
    simplify,
    widen,
)
from pytest_ortbench.convert.failure import (
    as_failure,
    refuse_absent,
    unconverted,
    without_precision,
)
from pytest_ortbench.convert.graph import (
    Draft,
    clean_of_weight_inputs,
    graphs_within,
    keep_versions,
    load_typed,
    save_model,
)
from pytest_ortbench.convert.shape_guard import guarded
from pytest_ortbench.core.errors import WorkerError, did_you_mean, nearest
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.recipe import GRAPH_BASES, Conversion, Converted, Recipe
from pytest_ortbench.schema.model_questions import Convert
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.state import WorkerState

Enter = Callable[[str], None]

#: Name of the file that a conversion makes.
FILE = "model.onnx"


def make_variant(question: Convert, state: WorkerState) -> Converted:
    """Make a variant in the asked folder."""
    return convert(question.conversion, Path(question.folder), state.enter)


def convert(conversion: Conversion, folder: Path, enter: Enter) -> Converted:
    """Make a variant.

    Args:
        conversion: What to make.
        folder: An empty folder for it; nothing is written anywhere else but in a temporary folder
            inside it, which is gone at the end.
        enter: Called with each phase as it begins.

    Returns:
        What was made, after it was checked: it loads, the weights really changed their type, and
        its outputs are finite where the source's are.

    Raises:
        WorkerError: if it can't be made, or does not stand the check; the failure names the class
            of the native error and its first line.
        Exception: what ONNX Runtime says of the source, if that is why: so it is told as it is for
            the source alone.
    """
    enter("import")
    load()
    enter("convert")
    with (
        _told(conversion, folder, enter),
        tempfile.TemporaryDirectory(dir=folder, prefix="scratch-") as scratch,
    ):
        memory.limit(conversion)
        source = external.at_hand(Path(conversion.source), Path(scratch) / "source")
        readable = replace(conversion, source=str(source))
        with _told(readable, folder, enter):  # while its weights are still there to be looked at
            return _convert(readable, folder / FILE, Path(scratch))


@contextmanager
def _told(conversion: Conversion, folder: Path, enter: Enter) -> Iterator[None]:
    try:
        yield
    except WorkerError as error:
        if error.failure.kind == "unsupported":
            _blame_source(conversion, enter)
        raise
    except Exception as error:
        # The tools raise whatever their code runs into: assertions, key errors, native errors.
        failure = as_failure(error, conversion, folder)
        if failure.kind == "unsupported":
            _blame_source(conversion, enter)
        raise WorkerError(failure) from error


def _blame_source(conversion: Conversion, enter: Enter) -> None:
    """Raise what ONNX Runtime says of a source that does not load, in the phase that it says it."""
    error = check.refusal_of_source(conversion)
    if error is not None:
        enter("session")
        raise error


def _convert(conversion: Conversion, target: Path, scratch: Path) -> Converted:
    check_names(conversion.recipe, Path(conversion.source))
    clean = scratch / "clean.onnx"
    cleaning = clean_of_weight_inputs(Path(conversion.source), clean)
    if clean.exists():
        conversion = replace(conversion, source=str(clean))
    in_graph = conversion.recipe.base in GRAPH_BASES
    with guarded() as untyped:
        draft = _make(conversion, target, scratch)
        changed = (
            None
            if in_graph
            else census.changed(draft.before, target, conversion.recipe, Path(conversion.source))
        )
    if changed is not None and not changed.weights:
        raise unconverted(
            f"{conversion.recipe.base} changes nothing: {changed.reason}",
            without_precision(conversion.recipe),
        )
    notes = (
        *cleaning,
        *draft.notes,
        *untyped,
        *keep_versions(Path(conversion.source), target),
    )
    try:
        unchecked = check.run_once(conversion, target)
    except WorkerError as error:
        if not untyped:
            raise
        message = f"{error.failure.message} ({untyped[0]})"
        raise WorkerError(replace(error.failure, message=message)) from error
    files = tuple(sorted(path.name for path in target.parent.iterdir() if path.is_file()))
    beside = tuple(name for name in files if name != target.name)
    return Converted(
        file=target.name,
        external_files=beside,
        digest=file_digest(target, tuple((name, target.parent / name) for name in sorted(beside))),
        size_bytes=sum((target.parent / name).stat().st_size for name in files),
        facts={
            **({} if changed is None else changed.facts),
            **draft.facts,
            "tools": check.tools(),
        },
        notes=notes,
        unchecked=unchecked,
    )


def _make(conversion: Conversion, target: Path, scratch: Path) -> Draft:
    """Simplify the graph if the recipe says so; then the tool of its base."""
    base = conversion.recipe.base
    source = Path(conversion.source)
    if base == "cleaned":
        model, notes = load_typed(source)
        save_model(model, target)
        return Draft(before={}, notes=notes)
    if base == "simplified":
        return simplify.simplify(source, target)
    first = Draft(before={})
    if conversion.recipe.simplify:
        slim = scratch / "slim.onnx"
        first = simplify.simplify(source, slim)
        source = slim
    if base == "optimized":
        draft = offline.optimise(source, target, conversion, scratch)
    else:
        draft = _converted(source, target, conversion, scratch)
    return Draft(
        before=draft.before,
        facts={**draft.facts, **first.facts},
        notes=(*first.notes, *draft.notes),
    )


def _converted(source: Path, target: Path, conversion: Conversion, scratch: Path) -> Draft:
    """Choose the tool of the recipe's base; a half-precision source is widened first."""
    base = conversion.recipe.base
    if base == "fp32":
        return widen.to_float32(source, target, keep_io=conversion.recipe.keep_io_types)
    note: tuple[str, ...] = ()
    if conversion.widened:
        wide = scratch / "wide.onnx"
        widen.to_float32(source, wide, keep_io=True)
        source = wide
        note = (f"made from a file in {conversion.own_precision}, widened to fp32 first",)
    if base in ("fp16", "bf16"):
        draft = half.to_half(source, target, conversion.recipe)
    elif base == "int4":
        draft = integer.quantise_to_four_bits(source, target, conversion.recipe)
    else:
        draft = integer.quantise_to_eight_bits(source, target, conversion, scratch)
    return Draft(before=draft.before, facts=draft.facts, notes=(*note, *draft.notes))


def check_names(recipe: Recipe, source: Path) -> None:
    """Refuse operator types that there are none of, and nodes that the model has none of.

    An operator type that exists and that this model lacks is fine: one recipe serves many models.

    Args:
        recipe: Names operator types to quantise or to leave, and nodes to exclude.
        source: The model.

    Raises:
        WorkerError: with the setting and the nearest name.
    """
    import onnx

    named = {"op_types": recipe.op_types, "block_list": recipe.block_list or ()}
    if not any(named.values()) and not (recipe.base == "int4" and recipe.nodes_to_exclude):
        return
    model = onnx.load(str(source), load_external_data=False)
    nodes = [node for graph in graphs_within(model.graph) for node in graph.node]
    used = {node.op_type for node in nodes}
    known = used | _operators() if any(named.values()) else used
    for key, names in named.items():
        for name in names:
            if name not in known:
                # ``Linear`` of PyTorch is no slip of the pen of QLinearMul.
                meant = nearest(name, sorted(known), cutoff=0.8)
                hint = (
                    did_you_mean(name, [meant])
                    if meant
                    else did_you_mean(name, used, "The model has no others")
                )
                raise unconverted(
                    f"{key} of the precision {recipe.name!r} contains {name!r}, which is not an "
                    "operator type",
                    hint,
                )
    if recipe.base == "int4":  # the other tools' own modules look at nodes, before they fuse any
        refuse_absent(recipe.nodes_to_exclude, nodes)


def _operators() -> set[str]:
    """Every operator type that ONNX or ONNX Runtime defines."""
    import onnx

    operators = {schema.name for schema in onnx.defs.get_all_schemas()}
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as native

        operators |= {schema.name for schema in native.get_all_operator_schema()}
    except (ImportError, AttributeError):
        # Minimal builds leave it out; the converter's own list has the usual ones.
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

        operators |= set(DEFAULT_OP_BLOCK_LIST)
    return operators
