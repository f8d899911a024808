"""One conversion from the source file to a checked variant in an empty folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.convert.failure import as_failure
from pytest_ortbench.convert.graph import Draft
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import GRAPH_BASES, Conversion, Converted

Enter = Callable[[str], None]

#: Name of the file that a conversion makes.
FILE = "model.onnx"


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
    """
    from pytest_ortbench.convert import external, memory
    from pytest_ortbench.worker.runtime import load

    enter("import")
    load()
    enter("convert")
    with (
        _told(conversion, folder),
        tempfile.TemporaryDirectory(dir=folder, prefix="scratch-") as scratch,
    ):
        memory.limit(conversion)
        source = external.at_hand(Path(conversion.source), Path(scratch) / "source")
        readable = replace(conversion, source=str(source))
        with _told(readable, folder):  # while its weights are still there to be looked at
            return _convert(readable, folder / FILE, Path(scratch))


@contextmanager
def _told(conversion: Conversion, folder: Path) -> Iterator[None]:
    try:
        yield
    except WorkerError:
        raise
    except Exception as error:
        # The tools raise whatever their code runs into: assertions, key errors, native errors.
        raise WorkerError(as_failure(error, conversion, folder)) from error


def _convert(conversion: Conversion, target: Path, scratch: Path) -> Converted:
    from pytest_ortbench.convert import census, check, named

    named.check(conversion.recipe, Path(conversion.source))
    draft = _make(conversion, target, scratch)
    in_graph = conversion.recipe.base in GRAPH_BASES
    changed = (
        None
        if in_graph
        else census.changed(draft.before, target, conversion.recipe, Path(conversion.source))
    )
    if changed is not None and not changed.weights:
        raise WorkerError(
            Failure(
                kind="unsupported",
                phase="convert",
                message=f"{conversion.recipe.base} changes nothing: {changed.reason}",
                hint="Leave this precision out for this model",
            )
        )
    notes = (*draft.notes, *check.run(conversion, target))
    files = tuple(sorted(path.name for path in target.parent.iterdir() if path.is_file()))
    external = tuple(name for name in files if name != target.name)
    return Converted(
        file=target.name,
        external_files=external,
        digest=file_digest(
            target, tuple((name, target.parent / name) for name in sorted(external))
        ),
        size_bytes=sum((target.parent / name).stat().st_size for name in files),
        facts={
            **({} if changed is None else changed.facts),
            **draft.facts,
            "tools": check.tools(),
        },
        notes=notes,
    )


def _make(conversion: Conversion, target: Path, scratch: Path) -> Draft:
    """Simplify the graph if the recipe says so; then the tool of its base."""
    from pytest_ortbench.convert import offline, simplify

    base = conversion.recipe.base
    source = Path(conversion.source)
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
    from pytest_ortbench.convert import four_bit, half, integer, widen

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
        draft = four_bit.quantise(source, target, conversion.recipe)
    else:
        draft = integer.quantise(source, target, conversion, scratch)
    return Draft(before=draft.before, facts=draft.facts, notes=(*note, *draft.notes))
