"""Exports a model of PyTorch to ONNX, by its current exporter or the one of TorchScript."""

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import near_and_known, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch.worker.program import Program, program_of

#: Exporters of PyTorch, by the word for each, and what each is for people.
EXPORTERS = {"dynamo": "torch.onnx", "torchscript": "torch.onnx (TorchScript)"}
#: How messages of exporters name an operator that they can't express in ONNX.
_OPERATOR = re.compile(
    r"OpOverload\(op='([\w.]+)'|[Ee]xporting the operator '?([\w:]+)|namespace ([\w:]+)"
)
#: What exporters advise, in a list.
_ADVICE = re.compile(r"^- (.+)$", re.MULTILINE)


def export_module(loaded: LoadedSource, path: Path, settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a model.

    Args:
        loaded: The model and example inputs.
        path: Where the file goes; large weights lie beside it.
        settings: ``exporter`` (``dynamo`` or ``torchscript``), ``opset``, and ``inputs``, sizes of
            what is fed to a program that does not say it.

    Raises:
        EngineRefusal: if the exporter can't, with the operator, the opset and its advice.
    """
    import torch
    from torch.onnx import _constants  # nothing public says which opset is the default

    program = _with_examples(program_of(loaded), settings, loaded.function)
    exporter = _exporter(program, settings)
    opset = _opset(settings) or int(_constants.ONNX_DEFAULT_OPSET)
    write = _by_dynamo if exporter == "dynamo" else _by_torchscript
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of PyTorch's own parts, to its own developers
            write(loaded, program, path, opset)
    except (EngineRefusal, MemoryError):
        raise
    except Exception as error:
        # The exporters run the user's own forward, and so raise whatever that raises, beside errors
        # of their own of a dozen classes. All of it is told, none is taken for a defect of ours.
        raise exporter_refusal(error, exporter, opset, loaded.path) from error
    notes = () if exporter == settings.get("exporter", "dynamo") else (_SCRIPTED_NOTE,)
    return Made(exporter=EXPORTERS[exporter], versions=_versions(exporter), notes=notes)


def _opset(settings: Mapping[str, str]) -> int | None:
    """The opset that the user asks for; ``None`` for the exporter's own."""
    asked = settings.get("opset", "")
    if asked and not (asked.isdecimal() and int(asked)):
        raise EngineRefusal(
            f"opset={asked} is not a whole number above 0",
            kind="error",
            hint="Write e.g. --ort-exporter=opset=18",
        )
    return int(asked) if asked else None


_SCRIPTED_NOTE = "a TorchScript program needs the TorchScript exporter"


def _exporter(program: Program, settings: Mapping[str, str]) -> str:
    """The exporter that was asked for, or the only one that takes the program."""
    asked = settings.get("exporter", "")
    if asked and asked not in EXPORTERS:
        raise EngineRefusal(
            f"{asked!r} in --ort-exporter is not an exporter of PyTorch",
            kind="error",
            hint=near_and_known(asked, EXPORTERS),
        )
    if program.is_exported and asked == "torchscript":
        raise EngineRefusal(
            "the TorchScript exporter does not accept an exported program (.pt2)",
            hint="To export this file, leave torchscript out of --ort-exporter. To use the "
            "TorchScript exporter, name a function that returns the module, e.g. net.py:build",
        )
    return "torchscript" if program.is_scripted else asked or "dynamo"


def _with_examples(program: Program, settings: Mapping[str, str], function: str) -> Program:
    """The program with what it is called with: its own examples, else zeros of the asked sizes."""
    if "inputs" in settings:
        shapes = [_zeros(item) for item in settings["inputs"].split(";")]
        return replace(program, arguments=tuple(shapes), keywords={})
    if program.has_examples:
        return program
    raise EngineRefusal(
        "the model has no example inputs, which an export needs",
        kind="error",
        hint=f"Return them from {function}, too: end it with e.g. 'return model, "
        "(torch.zeros(1, 3, 224, 224),)', with the size that your model takes"
        if function
        else "Add the size of each input, e.g. --ort-exporter=inputs=1x3x224x224",
    )


def _zeros(text: str) -> Any:
    """A tensor of zeros for ``1x3x224x224`` or ``1x16:int64``."""
    import torch

    sizes, _, name = text.strip().partition(":")
    dtype = getattr(torch, name or "float32", None)
    parts = [part for part in sizes.split("x") if part]
    if not isinstance(dtype, torch.dtype):
        behind = name.split("x")
        is_size = all(part.isdecimal() for part in behind)
        raise EngineRefusal(
            f"{name!r} in inputs={text} is not a type of PyTorch",
            kind="error",
            hint=f"The exporter takes sizes in the order of the inputs. In place of {text}, write "
            f"{name}"
            if is_size
            else f"In place of {name}, write a type as PyTorch names it, e.g. float32 or int64",
        )
    if not all(part.isdecimal() for part in parts):
        raise EngineRefusal(
            f"{sizes!r} in inputs={text} is not the size of a tensor",
            kind="error",
            hint="Write whole numbers with x between them, e.g. --ort-exporter=inputs=1x3x224x224, "
            "or for two inputs --ort-exporter='inputs=1x3x224x224;1x16:int64'",
        )
    return torch.zeros([int(part) for part in parts], dtype=dtype)


def _by_dynamo(loaded: LoadedSource, program: Program, path: Path, opset: int) -> None:
    import torch

    if program.is_exported:
        made = torch.onnx.export(
            program.model,
            input_names=loaded.names,
            output_names=loaded.outputs,
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    else:
        made = torch.onnx.export(
            program.module(),
            _in_order(program),
            kwargs=dict(program.keywords) or None,
            input_names=loaded.names,
            output_names=loaded.outputs,
            dynamic_shapes=_dynamic_shapes(loaded, program),
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    assert made is not None  # as documented for this exporter
    require_as_many("names", loaded.names, [item.name or "" for item in made.model.graph.inputs])
    require_as_many(
        "outputs", loaded.outputs, [item.name or "" for item in made.model.graph.outputs]
    )
    written = made.model.opset_imports.get("")
    if written != opset:
        raise EngineRefusal(
            f"torch.onnx wrote opset {written} instead of {opset}",
            hint=f"This exporter can't write opset {opset}. The TorchScript exporter writes older "
            f"opsets: write --ort-exporter=torchscript,opset={opset}"
            if opset < (written or 0) and not program.is_exported
            else f"Write --ort-exporter=opset={written}",
        )
    made.save(path)


def require_as_many(key: str, given: Sequence[str] | None, made: Sequence[str]) -> None:
    """Refuse names that the exporter had no tensor for, which it drops without a word.

    Args:
        key: Of the entry function's dictionary.
        given: The names; ``None`` where the user gave none.
        made: Names in the ONNX file.

    Raises:
        EngineRefusal: if there are more names than tensors.
    """
    if given is not None and len(given) > len(made):
        noun = "output" if key == "outputs" else "input"
        raise EngineRefusal(
            f"{key!r} has {counted(len(given), 'name')} ({', '.join(given)}), but the exported "
            f"model has only {counted(len(made), noun)} ({', '.join(made)})",
            kind="error",
            hint=_as_many_names(key, len(made), f"{noun}s of the exported model"),
        )


def _as_many_names(key: str, count: int, tensors: str) -> str:
    """The step where a key of the entry function's dictionary has another number of names."""
    if not count:
        return f"Leave {key!r} out"
    order = f", in the order of the {tensors}" if count > 1 else ""
    return f"Write {counted(count, 'name')} in {key!r}{order}"


def _in_order(program: Program) -> tuple[Any, ...]:
    """What stands in order: a dictionary that is last would be taken for what is passed by name."""
    arguments = program.arguments
    if arguments and isinstance(arguments[-1], dict) and not program.keywords:
        return (*arguments, {})
    return arguments


def _by_torchscript(loaded: LoadedSource, program: Program, path: Path, opset: int) -> None:
    import torch

    tensors, names = _tensors(program), loaded.names or _parameters(program)
    axes = {name: _axes(name, given, rank) for name, given, rank in _asked_axes(loaded, program)}
    torch.onnx.export(
        program.module() if program.is_scripted else _flat(program),
        tuple(tensors),
        path,
        input_names=names,
        output_names=loaded.outputs,
        dynamic_axes=axes,
        opset_version=opset,
        dynamo=False,
        verbose=False,
    )


def _flat(program: Program) -> Any:
    """The module as one that takes its tensors alone, in order, and gives tensors alone.

    This exporter makes inputs of numbers that have a default.
    """
    import torch
    from torch.utils import _pytree

    leaves, structure = _pytree.tree_flatten((program.arguments, dict(program.keywords)))
    places = _places(leaves)

    module = program.module()

    def forward(*tensors: Any) -> Any:
        values = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        arguments, keywords = _pytree.tree_unflatten(values, structure)
        given = _pytree.tree_leaves(module(*arguments, **keywords))
        return tuple(leaf for leaf in given if isinstance(leaf, torch.Tensor))

    flat = torch.nn.Module().eval()
    flat.module, flat.forward = module, forward
    return flat


def _parameters(program: Program) -> list[str] | None:
    """Names of the inputs as the module's own parameters, where each takes a tensor."""
    import torch

    values = [*program.arguments, *program.keywords.values()]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return None
    return [*_signature(program)[: len(program.arguments)], *program.keywords]


def _signature(program: Program) -> list[str]:
    """Names of what ``forward`` takes in order."""
    model = program.model
    if program.is_scripted:
        return [argument.name for argument in model.forward.schema.arguments[1:]]
    return list(inspect.signature(model.forward).parameters)


def _tensors(program: Program) -> list[Any]:
    """The tensors among the examples, in order."""
    from torch.utils import _pytree

    leaves, _ = _pytree.tree_flatten((program.arguments, dict(program.keywords)))
    return [leaves[place] for place in _places(leaves)]


def _places(leaves: Sequence[Any]) -> list[int]:
    """Where tensors stand."""
    import torch

    return [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]


def _asked_axes(loaded: LoadedSource, program: Program) -> list[tuple[str, Mapping[int, str], int]]:
    """Name, open dimensions and rank of each input; nothing where all dimensions are fixed."""
    dynamic = loaded.dynamic
    if not dynamic:
        return []
    tensors, names = _tensors(program), loaded.names or _parameters(program) or []
    if loaded.names and len(names) != len(tensors):
        raise EngineRefusal(
            f"'names' has {counted(len(names), 'name')} ({', '.join(names)}), but the example "
            f"inputs hold {counted(len(tensors), 'tensor')}",
            kind="error",
            hint=_as_many_names("names", len(tensors), "example inputs"),
        )
    unknown = [name for name in dynamic if name not in names]
    if unknown or len(names) != len(tensors):
        example = [f"x{place}" for place in range(1, len(tensors) + 1)]
        raise EngineRefusal(
            f"'dynamic' names {', '.join(unknown) or 'inputs'}, but the inputs are "
            f"{', '.join(names) or 'without names'}",
            kind="error",
            hint="Write one of these names in 'dynamic'. To give the inputs other names, add "
            f"'names': {example} to the same dictionary"
            if len(names) == len(tensors)
            else f"Add 'names': {example} to the same dictionary, one name for each input, and use "
            "these names in 'dynamic'",
        )
    return [
        (name, dynamic.get(name, {}), tensor.dim())
        for name, tensor in zip(names, tensors, strict=True)
    ]


def _dynamic_shapes(loaded: LoadedSource, program: Program) -> Any:
    """The open dimensions as torch.export takes them: in the structure of the arguments."""
    from torch.utils import _pytree

    asked = _asked_axes(loaded, program)
    if not asked:
        return None
    leaves, structure = _pytree.tree_flatten((program.arguments, dict(program.keywords)))
    shapes: list[Any] = [None] * len(leaves)
    for place, (name, axes, rank) in zip(_places(leaves), asked, strict=True):
        shapes[place] = _axes(name, axes, rank) or None
    in_order, by_name = _pytree.tree_unflatten(shapes, structure)
    if not by_name:
        return in_order
    return dict(zip(_signature(program), in_order, strict=False)) | by_name


def _axes(name: str, axes: Mapping[int, str], rank: int) -> dict[int, str]:
    """Open dimensions of one input, counted from the first."""
    wrong = [axis for axis in axes if not -rank <= axis < rank]
    if wrong:
        raise EngineRefusal(
            f"'dynamic' names axis {wrong[0]} of input {name!r}, which has "
            f"{rank} {'axis' if rank == 1 else 'axes'}",
            kind="error",
            hint=f"Write an axis from 0 to {rank - 1}"
            if rank > 1
            else "Write axis 0"
            if rank
            else f"Leave {name!r} out of 'dynamic'",
        )
    return {axis % rank: symbol for axis, symbol in axes.items()}


def exporter_refusal(error: Exception, exporter: str, opset: int, source: Path) -> EngineRefusal:
    """Return what an exporter said: the operator, the opset and its advice, on one line.

    Args:
        error: What it raised.
        exporter: Its word in :data:`EXPORTERS`.
        opset: What it was to write.
        source: The user's file, of which the innermost line is named.
    """
    causes = list(_causes(error))
    texts = [str(cause) for cause in causes]
    operator = next((word for text in texts for word in _operators(text)), "")
    advice = next((match.group(1) for text in texts if (match := _ADVICE.search(text))), "")
    root = causes[-1]
    reason = " ".join(_plain(str(root)).split("\n\n")[0].split())
    said = f"{reason.rstrip('.')}. {_plain(advice)}" if advice else reason
    line = next((line for cause in reversed(causes) if (line := _line(cause, source))), 0)
    where = f"{EXPORTERS[exporter]} at opset {opset}"
    message = (
        f"{where} can't express the operator {operator}. {says('It', said)}"
        if operator
        else f"{where} could not export the model. {says('It', f'{type(root).__name__}: {said}')}"
    )
    other = next(word for word in EXPORTERS if word != exporter)
    return EngineRefusal(
        message + (f" ({source.name}:{line})" if line else ""),
        kind="unsupported" if operator else "error",
        hint=f"Try the other exporter: --ort-exporter={other}",
    )


def _line(error: BaseException, source: Path) -> int:
    """The innermost line of a file that led to an error; 0 for none."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 0 for frame in frames if frame.filename == str(source)]
    return lines[-1] if lines else 0


def _causes(error: BaseException) -> Sequence[BaseException]:
    """An error and what led to it, the root last."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    return chain


def _operators(text: str) -> list[str]:
    return [next(filter(None, groups)) for groups in _OPERATOR.findall(text)]


def _plain(text: str) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[\d*m", "", text).strip()


def _versions(exporter: str) -> dict[str, str]:
    from importlib.metadata import version

    names = ("torch", "onnx", "onnxscript") if exporter == "dynamo" else ("torch", "onnx")
    return {name: version(name) for name in names}
