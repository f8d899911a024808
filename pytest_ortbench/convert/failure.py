"""From what a tool raises to a failure that a person can act on."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import INLINE_LIMIT, graphs_within
from pytest_ortbench.core.errors import (
    RAISE_OPEN_FILES,
    TOO_MANY_OPEN,
    WorkerError,
    cache_advice,
    class_and_line,
    did_you_mean,
    says,
    supply_step,
)
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.core.failures import case_error, case_failure
from pytest_ortbench.core.namesakes import HOW_TO_MEND, namesake_of
from pytest_ortbench.core.recipe import BASES, Conversion, Recipe
from pytest_ortbench.core.units import format_amount

if TYPE_CHECKING:
    import onnx

#: Packages that a tool needs and that are not needed elsewhere, and what brings them.
_EXTRAS = {"onnx_ir": "int4", "ml_dtypes": "int4", "sympy": "int4", "onnxslim": "simplify"}

#: Parts of ONNX Runtime that earlier versions lack, and the first that has them.
_SINCE = {"quantization.matmul_nbits_quantizer": "1.22"}

_WORD = re.compile(r"[\w/.:\-]+")

#: Nothing can be written, whatever file it was.
_FULL = frozenset({errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)})
_DENIED = frozenset({errno.EACCES, errno.EPERM})


def conversion_failure(message: str, hint: str = "", *, kind: str = "unsupported") -> Failure:
    """Return why a variant can't be made.

    Args:
        message: One line in plain words.
        hint: The next step, empty where none is known.
        kind: A key of :data:`~pytest_ortbench.core.failure.FAILURE_KINDS`.
    """
    return case_failure(message, hint, kind=kind, phase="convert")


def unconverted(message: str, hint: str = "") -> WorkerError:
    """Return the error that carries a failure of kind ``unsupported``.

    Args:
        message: One line in plain words.
        hint: The next step, empty where none is known.
    """
    return case_error(message, hint, phase="convert")


def more_memory(conversion: Conversion) -> str:
    """Return the next step where this machine has too little memory for a conversion.

    Args:
        conversion: What was to be made.
    """
    command = f"pytest {Path(conversion.source).name} --ort-precisions={conversion.recipe.name}"
    return (
        f"Run 'ORTBENCH_CACHE=ortbench-cache {command}' on a machine with more memory. Copy its "
        "folder ortbench-cache to this machine, and run "
        "'pytest ortbench-cache/variants/*/model.onnx'"
    )


def refuse_absent(names: Iterable[str], nodes: Iterable[onnx.NodeProto]) -> None:
    """Refuse the names of nodes that a model does not have.

    Args:
        names: What a recipe excludes.
        nodes: Those of the model.

    Raises:
        WorkerError: with the nearest name.
    """
    known = {node.name for node in nodes if node.name}
    for name in names:
        if name not in known:
            raise unconverted(
                f"nodes_to_exclude names the node {name!r}, but the model has no such node",
                did_you_mean(name, known)
                if known
                else "The nodes of this model have no names: remove nodes_to_exclude",
            )


def as_failure(error: Exception, conversion: Conversion, folder: Path | None = None) -> Failure:
    """Say what a conversion ran into.

    Args:
        error: What was raised.
        conversion: What was to be made.
        folder: Where it is made: a file in it that can't be opened can't be written.
    """
    base = called(conversion.recipe)
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM or "bad allocation" in str(error):
        return conversion_failure(
            f"memory ran out while the model ({format_amount(conversion.size_bytes, 'bytes')}) was "
            f"converted to {base}",
            more_memory(conversion),
            kind="out_of_memory",
        )
    hidden = namesake_of("onnx", "onnxruntime", "numpy")
    if hidden:
        message = f"{base} can't be made: {hidden}"
        return conversion_failure(message, HOW_TO_MEND, kind="unavailable")
    if isinstance(error, ImportError):
        return _missing(error, base)
    if isinstance(error, OSError) and number is not None:
        return _of_a_file(error, Path(conversion.source).parent, folder)
    broken = _broken_weight(conversion)
    if broken:
        return conversion_failure(
            f"{base} can't be made, since the weight {broken!r} of the model contains NaN",
            "Export the model again with weights that are numbers, or "
            f"{without_precision(conversion.recipe, 'leave')}",
        )
    said = class_and_line(error)
    node = _named_node(said, conversion)
    at = f" at node {node!r}" if node else ""
    if "symbolic shape inference" in said:  # of the whole model, before nodes are looked at
        return conversion_failure(
            f"{base} can't be made, since not all shapes in the model can be inferred. "
            f"{says('The converter', said)}",
            "Export the model with fixed sizes, or "
            f"{without_precision(conversion.recipe, 'leave')}",
        )
    return conversion_failure(
        f"{base} can't be made{at}. {says('The converter', said)}",
        without_nodes(conversion.recipe, node),
    )


def called(recipe: Recipe) -> str:
    """Return how a message names a precision; a name of the user's own stands in quotes."""
    return recipe.name if recipe.name == recipe.base else f"the precision {recipe.name!r}"


def without_precision(recipe: Recipe, leave: str = "Leave") -> str:
    """Return the next step where a model can't have a precision.

    Args:
        recipe: The precision.
        leave: The word that the step begins with.
    """
    return f"{leave} {recipe.name} out of --ort-precisions for this model"


def without_nodes(recipe: Recipe, node: str = "") -> str:
    """Return the next step where a conversion fails at a node, or at one that nobody knows.

    Args:
        recipe: What was to be made.
        node: The name of the node, empty if it is not known.
    """
    leave = without_precision(recipe)
    if "nodes_to_exclude" not in BASES.get(recipe.base, ()):
        return leave
    own = recipe.name if recipe.name != recipe.base else "mine"
    excluded = [*recipe.nodes_to_exclude, node or "NAME OF THE NODE"]
    based = f"base = {recipe.base!r} and " if own != recipe.name else ""
    step = (
        f"write [tool.ortbench.precisions.{own}] with {based}nodes_to_exclude = {excluded} in "
        f"pyproject.toml, and run with --ort-precisions={own}"
    )
    if node:
        return f"To leave this node in float, {step}"
    return f"{leave}. If you know which node is the cause, {step}"


def _named_node(text: str, conversion: Conversion) -> str:
    """The first word behind "node" that is the name of a node of the source; empty if none is."""
    words = _WORD.findall(text)
    behind = next(
        (n for n, word in enumerate(words) if word.lower().startswith("node")), len(words)
    )
    if behind == len(words):
        return ""
    import onnx

    try:
        main = onnx.load(conversion.source, load_external_data=False).graph
    except Exception:  # noqa: BLE001 - the file can't be read: what was raised says more
        return ""
    names = {node.name for graph in graphs_within(main) for node in graph.node}
    # A sentence may end behind the name.
    near = [name for word in words[behind:] for name in (word, word.rstrip(".:"))]
    return next((name for name in near if name and name in names), "")


def _of_a_file(error: OSError, sources: Path, folder: Path | None) -> Failure:
    """Tell what can't be written from what can't be read."""
    said = error.strerror or str(error)
    read, made = _named_file(error.filename), _named_file(error.filename2)
    file = made or read  # of a copy that failed, what was to be made
    in_folder = folder is not None and file is not None and folder in (file, *file.parents)
    if error.errno in _FULL or (in_folder and error.errno in _DENIED):
        return conversion_failure(
            f"{file or folder or 'a file'} can't be written. {says('The system', said)}",
            cache_advice(error),
            kind="error",
        )
    file = read or made
    if error.errno in TOO_MANY_OPEN:
        return conversion_failure(
            f"{file or 'a file'} can't be opened: too many files are open",
            RAISE_OPEN_FILES,
            kind="error",
        )
    if error.errno == errno.ENOENT:
        hint = "Put the file back, leave it there until the run ends, and run again"
    elif error.errno in _DENIED:
        hint = "Make the file readable, and run again"
    else:
        what = "the file" if file else "the model"
        hint = f"Run again. If this happens twice, copy {what} to another disk"
        if folder is not None and not file:
            hint += ", or name another folder in the environment variable ORTBENCH_CACHE"
    named = file or f"a file in {sources}{f' or {folder}' if folder is not None else ''}"
    return conversion_failure(
        f"{named} can't be used. {says('The system', said)}", hint, kind="error"
    )


def _named_file(name: object) -> Path | None:
    return Path(os.fsdecode(name)) if isinstance(name, (str, bytes)) and name else None


def _broken_weight(conversion: Conversion) -> str:
    """The first float weight with NaN; empty if there is none.

    Tools run into such weights in ways that say nothing of them: a scale that is no number.
    Infinity is left alone: it masks things out, and by purpose.
    """
    import numpy as np
    import onnx

    if conversion.size_bytes >= INLINE_LIMIT:
        return ""
    try:
        model = onnx.load(conversion.source)
        for graph in graphs_within(model.graph):
            held = [node for node in graph.node if node.op_type == "Constant"]
            constants = [
                (node.output[0], a.t) for node in held for a in node.attribute if a.HasField("t")
            ]
            for name, tensor in [*((t.name, t) for t in graph.initializer), *constants]:
                values = onnx.numpy_helper.to_array(tensor)
                if values.dtype.kind == "f" and np.isnan(values).any():
                    return str(name)
    except Exception:  # noqa: BLE001 - the file can't be read: what was raised says more
        return ""
    return ""


#: The step where an import fails in a compiled part, which names no package.
_FITTING = "Run: pip install --upgrade numpy onnx onnxruntime"


def _missing(error: ImportError, base: str) -> Failure:
    name, _, tool = (error.name or "").partition(".")
    here = getattr(sys.modules.get(name), "__version__", "")
    if name == "onnxruntime" and tool and here:
        since = (
            f"ONNX Runtime {_SINCE[tool]} or newer"
            if tool in _SINCE
            else "the package onnxruntime from PyPI, which has all Python tools,"
        )
        return conversion_failure(
            f"{base} needs {name}.{tool}, which the installed ONNX Runtime {here} does not have",
            f"Install {since} in the environment that runs pytest",
            kind="unavailable",
        )
    extra = _EXTRAS.get(name)
    package = f"'pytest-ortbench[{extra}]'" if extra else name
    step = f"Run: pip install {package}"
    if isinstance(error, ModuleNotFoundError) and name:
        message = f"{base} needs the package {name}, which is not installed"
    else:
        needed = f"the package {name}, which" if name else "a package that"
        message = f"{base} needs {needed} can't be imported. {says('Python', str(error))}"
    if not name:  # numpy's own: an extension module that was compiled for another version of it
        return conversion_failure(message, _FITTING, kind="unavailable")
    return conversion_failure(message, supply_step(error, step, name), kind="unavailable")
