"""What passes into a program of PyTorch, and what comes out of it: arrays of numpy, uncopied."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.seam import EngineRefusal, EngineTensor
from pytest_ortbench.engines.torch.worker.program import Program

#: From the feeds of one inference to what the program is called with: in order, and by name.
Passing = Callable[[Mapping[str, Any]], tuple[Sequence[Any], Mapping[str, Any]]]


def passing_of(program: Program, inputs: Sequence[EngineTensor], device: str) -> Passing:
    """Return what makes the arguments of a call out of the feeds.

    A tensor shares its memory with the array that is fed, unless it goes to another device.

    Args:
        program: What is called; what its examples hold besides tensors is passed as it is.
        inputs: What is fed, in the order of the file.
        device: Where the program computes.

    Raises:
        EngineRefusal: if the inputs of the file are not those of the program.
    """
    from torch.utils import _pytree

    if not program.has_examples:
        converters = [_converter(None, device) for _ in inputs]
        return _in_order([item.name for item in inputs], converters)
    leaves, structure = _pytree.tree_flatten((program.arguments, dict(program.keywords)))
    places = [place for place, leaf in enumerate(leaves) if _is_tensor(leaf)]
    names = _fed(program, inputs, len(places))
    converters = [_converter(leaves[place], device) for place in places]
    if None not in names and not program.keywords and len(program.arguments) == len(places):
        return _in_order([str(name) for name in names], converters)
    fed = [
        (place, name, convert)
        for place, name, convert in zip(places, names, converters, strict=True)
        if name is not None
    ]

    def arranged(feeds: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        values = list(leaves)
        for place, name, convert in fed:
            values[place] = convert(feeds[name])
        arguments, keywords = _pytree.tree_unflatten(values, structure)
        return arguments, keywords

    return arranged


def arrays_of(output: Any) -> Sequence[Any]:
    """Return the tensors of what a program gave as arrays, in the order of its export.

    Those of another device are copied to the host, which waits for them.
    """
    import torch
    from torch.utils import _pytree

    if isinstance(output, torch.Tensor):
        return (_array(output),)
    if isinstance(output, Mapping):
        output = tuple(output.values())
    if not isinstance(output, tuple | list) or not all(map(_is_tensor, output)):
        output = [leaf for leaf in _pytree.tree_leaves(output) if _is_tensor(leaf)]
    return [_array(tensor) for tensor in output]


def _in_order(names: Sequence[str], converters: Sequence[Callable[[Any], Any]]) -> Passing:
    pairs = list(zip(names, converters, strict=True))

    def ordered(feeds: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        return [convert(feeds[name]) for name, convert in pairs], {}

    return ordered


def _fed(program: Program, inputs: Sequence[EngineTensor], tensors: int) -> list[str | None]:
    """The name of the input for each tensor of the examples; ``None`` where an export left it out.

    An export names inputs in the order of the tensors. One that drops what no node reads leaves
    fewer, which only their names can tell apart.
    """
    names = [item.name for item in inputs]
    if len(names) == tensors:
        return list(names)
    if len(program.names) == tensors and set(names) <= set(program.names):
        return [name if name in names else None for name in program.names]
    more = tensors - len(names)
    raise EngineRefusal(
        f"the exported ONNX file has {counted(len(names), 'input')} ({', '.join(names)}), but the "
        f"example inputs hold {counted(tensors, 'tensor')}"
        + (", and it is not known which of them the export left out" if more > 0 else ""),
        kind="error",
        hint=f"Name the {counted(tensors, 'tensor')} in their order, with any other name for one "
        "that the export left out, e.g. return model, examples, "
        f'{{"names": {json.dumps([*names, *(f"unused{n}" for n in range(1, more + 1))])}}}'
        if more > 0
        else "Pass a tensor for each input. A number is not a tensor: write torch.tensor(3) in "
        "place of 3, in the example inputs and, if the model is an exported program, in its export",
    )


def _converter(example: Any, device: str) -> Callable[[Any], Any]:
    """From an array to a tensor: of the example's type, on the device."""
    import torch

    from_numpy: Callable[[Any], Any] = torch.from_numpy
    # Types that numpy lacks come as wider ones.
    lacking = example is not None and example.dtype in (torch.bfloat16, torch.float8_e4m3fn)
    if device == "cpu" and not lacking:
        return from_numpy
    dtype = example.dtype if lacking else None

    def moved(array: Any) -> Any:
        return from_numpy(array).to(device=device, dtype=dtype)

    return moved


def _array(tensor: Any) -> Any:
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError):  # a type that numpy lacks, a conjugate that nobody resolved
        return _of_a_type_that_numpy_has(tensor)


def _of_a_type_that_numpy_has(tensor: Any) -> Any:
    import torch

    resolved = tensor.detach().resolve_conj().resolve_neg()
    wide = resolved.float() if resolved.dtype == torch.bfloat16 else resolved
    return wide.numpy()


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
