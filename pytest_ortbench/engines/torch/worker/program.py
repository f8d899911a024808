"""What PyTorch runs: a module out of an entry function, or a program out of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import EngineRefusal

#: How files end that hold an exported program; others are in TorchScript.
EXPORTED = ".pt2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A model of PyTorch and what it is called with.

    Attributes:
        model: A module, a program in TorchScript, or an exported program.
        arguments: Examples of what stands in order.
        keywords: Examples of what is passed by name.
        names: Names of the tensors among both, in their order; empty where nobody names them.
    """

    model: Any
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def is_exported(self) -> bool:
        """Whether it is an exported program."""
        import torch

        return isinstance(self.model, torch.export.ExportedProgram)

    @property
    def is_scripted(self) -> bool:
        """Whether it is a program in TorchScript."""
        import torch

        return isinstance(self.model, torch.jit.ScriptModule)

    @property
    def has_examples(self) -> bool:
        """Whether it says what it is called with."""
        return bool(self.arguments or self.keywords)

    def module(self, device: str = "cpu") -> Any:
        """Return what is called, on a device; in its mode for inference."""
        import torch

        if isinstance(self.model, torch.export.ExportedProgram):
            return _on_device(self.model, device).module()
        return self.model.eval().to(device)


def program_of(loaded: LoadedSource) -> Program:
    """Return what a source gave as a program.

    Args:
        loaded: A model; its example inputs are one tensor, several in order, or a dict by name, and
            arrays of numpy count as tensors.

    Raises:
        EngineRefusal: if the model is none of PyTorch's.
    """
    import torch
    from torch.utils import _pytree

    model, example = loaded.model, loaded.example
    if not isinstance(model, torch.nn.Module | torch.export.ExportedProgram):
        raise EngineRefusal(
            f"the function {loaded.function} of {loaded.path.name} returns an object of the type "
            f"{type(model).__name__}, which is not a PyTorch model",
            kind="error",
            hint="Return a torch.nn.Module from this function, or leave the providers of PyTorch "
            "out of --ort-providers",
        )
    if example is None and isinstance(model, torch.export.ExportedProgram):
        example = model.example_inputs
    arguments, keywords = _examples(example)
    arguments, keywords = _pytree.tree_map(_as_tensor, (arguments, keywords))
    names = tuple(loaded.names or ())
    return Program(model=model, arguments=arguments, keywords=keywords, names=names)


def load_program_file(path: Path) -> LoadedSource:
    """Load a file that holds a program.

    Both kinds are code: whoever names the file runs it. Nothing else is read: a state dict is no
    program, and a pickle is never opened.

    Args:
        path: An exported program (``.pt2``), or one in TorchScript (``.pt``).

    Raises:
        EngineRefusal: if it holds none.
    """
    import torch

    is_exported = path.suffix == EXPORTED
    try:
        model = torch.export.load(path) if is_exported else torch.jit.load(path, "cpu")
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        kind = "exported program" if is_exported else "program in TorchScript"
        raise EngineRefusal(
            f"{path.name} holds no {kind}. {says('PyTorch', first_line(error))}",
            kind="error",
            hint="Weights alone are not a model. Write a function that builds the module, loads "
            "the weights with torch.load(…, weights_only=True) and returns the module with "
            "example inputs. Then measure that function, e.g. net.py:build",
        ) from error
    return LoadedSource(path=path, model=model)


def _examples(examples: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as what stands in order, and what is passed by name."""
    if examples is None:
        return (), {}
    if isinstance(examples, Mapping):
        return (), dict(examples)
    if isinstance(examples, tuple | list):
        in_order = tuple(examples)
        # As torch.export keeps them: a tuple in order, and a dict by name.
        if len(in_order) == 2 and isinstance(in_order[0], tuple) and isinstance(in_order[1], dict):
            return in_order[0], in_order[1]
        return in_order, {}
    return (examples,), {}


def _as_tensor(value: Any) -> Any:
    import numpy
    import torch

    return torch.from_numpy(value) if isinstance(value, numpy.ndarray) else value


def _on_device(program: Any, device: str) -> Any:
    """An exported program on a device: its constants go there, too."""
    if device == "cpu":
        return program
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(program, device)
