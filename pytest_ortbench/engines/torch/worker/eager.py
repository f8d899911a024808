"""PyTorch, running a model eagerly under ``torch.inference_mode``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference, InnerValue
from pytest_ortbench.engines.torch.worker.inner import values_of_modules
from pytest_ortbench.engines.torch.worker.passing import arrays_of, passing_of
from pytest_ortbench.engines.torch.worker.program import Program, program_of
from pytest_ortbench.worker.entry import load_source


class Eager(Engine):
    """A model that PyTorch runs operator by operator.

    Attributes:
        alias: What ``--ort-providers`` calls it.
        program: What its source gave; ``None`` before it is built.
        called: What is called: a module on the device.
        device: Where it computes, as PyTorch writes it.
    """

    alias = "torch"
    program: Program | None = None
    called: Any = None

    @property
    def device(self) -> str:
        """Where it computes, as PyTorch writes it."""
        return self.task.device or "cpu"

    def load(self) -> str:
        """Import ``torch``, set its threads, and return its version."""
        import torch

        threads = self.task.threads
        torch.set_num_threads(threads)
        beside = int(self.task.options.get("num_interop_threads", threads))
        if beside != torch.get_num_interop_threads():  # which can be set once
            torch.set_num_interop_threads(beside)
        return str(torch.__version__)

    def build(self) -> None:
        """Call the entry function or load the file, and put the model on its device."""
        import torch

        self._require_device()
        self.program = self._program()
        self.called = self.program.module(self.device)
        wanted = self.task.options.get("memory_format", "")
        if wanted:
            layout = getattr(torch, wanted, None)
            if not isinstance(layout, torch.memory_format):
                raise EngineRefusal(
                    f"memory_format={wanted} is not a memory format of PyTorch",
                    kind="error",
                    hint=f"Write --ort-provider-option={self.alias}.memory_format=channels_last. "
                    "To keep the format of the model, leave this option out",
                )
            self.called = self.called.to(memory_format=layout)

    def open(self) -> Inference:
        """Return what runs one inference; a session beside it shares the model."""
        import torch

        called, names = self.called, [item.name for item in self.task.outputs]
        passed = passing_of(self._built(), self.task.inputs, self.device)
        mode, cast = torch.inference_mode, self._autocast

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            with mode():
                arguments, keywords = passed(feeds)
                outputs = arrays_of(called(*arguments, **keywords))
            if len(outputs) != len(names):
                raise _other_outputs(len(outputs), names)
            return outputs

        def infer_cast(feeds: Mapping[str, Any]) -> Sequence[Any]:
            with cast():
                return infer(feeds)

        return infer_cast if "autocast" in self.task.options else infer

    def in_force(self) -> dict[str, str]:
        """Return threads, device, and what else is set."""
        import torch

        settings = {
            "num_threads": str(torch.get_num_threads()),
            "num_interop_threads": str(torch.get_num_interop_threads()),
            "device": self.device,
        }
        chosen = self.task.options.keys() & {"memory_format", "autocast"}
        return settings | {key: self.task.options[key] for key in sorted(chosen)}

    def inner_values(self, feeds: Mapping[str, Any]) -> Sequence[InnerValue]:
        """Run one inference, and return what each module gave."""
        infer = self.open()
        return values_of_modules(self.called, lambda: infer(feeds))

    def close(self) -> None:
        """Let go of the model."""
        self.program = self.called = None

    def example(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return what the model is called with at the sizes of the case: zeros."""
        import numpy
        import torch

        from_name = {"float": "float32", "double": "float64", "bfloat16": "float32"}
        feeds = {}
        for item in self.task.inputs:
            element = item.type.removeprefix("tensor(").removesuffix(")")
            kind = from_name.get(element, element)
            try:
                feeds[item.name] = numpy.zeros(item.shape or (), dtype=kind)
            except TypeError as error:
                raise EngineRefusal(
                    f"PyTorch does not support {item.type}, the type of the input {item.name!r}",
                    hint=f"Leave {self.alias} out of --ort-providers",
                ) from error
        with torch.inference_mode():
            return passing_of(self._built(), self.task.inputs, self.device)(feeds)

    def _built(self) -> Program:
        if self.program is None:
            raise RuntimeError("the model was not built")
        return self.program

    def _autocast(self) -> AbstractContextManager[Any]:
        import torch

        name = self.task.options.get("autocast", "")
        if not name:
            return nullcontext()
        dtype = getattr(torch, name, None)
        if dtype not in (torch.bfloat16, torch.float16):
            raise EngineRefusal(
                f"autocast={name} is not a type that PyTorch casts to",
                kind="error",
                hint=f"Write --ort-provider-option={self.alias}.autocast=bfloat16, or float16 in "
                "place of bfloat16",
            )
        kind = torch.device(self.device).type
        cast: AbstractContextManager[Any] = torch.autocast(kind, dtype=dtype)
        return cast

    def _require_device(self) -> None:
        import torch

        try:
            torch.zeros(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise EngineRefusal(
                f"PyTorch can't use the device {self.device!r} here. "
                f"{says('PyTorch', first_line(error))}",
                kind="unavailable",
                hint=f"{_step_for_device(self.device, self.alias)}. To measure on the CPU, write "
                f"--ort-providers={self.alias}:cpu",
            ) from error

    def _program(self) -> Program:
        """The model of the source, which is no program in TorchScript."""
        program = self.sourced()
        if program.is_scripted:
            raise EngineRefusal(
                f"{self.alias} can't run a TorchScript program",
                hint=f"In --ort-providers, write torch-script in place of {self.alias}",
            )
        return program

    def sourced(self) -> Program:
        """Return the model of the source.

        Raises:
            EngineRefusal: if the case has no source.
        """
        return program_of(load_source(self.task.required_source()))


def _step_for_device(device: str, alias: str) -> str:
    """What makes a device usable that PyTorch refused."""
    import torch

    try:
        wanted = torch.device(device)
    except RuntimeError:
        return f"Write a device as PyTorch names it, e.g. --ort-providers={alias}:cuda:0"
    count = int(getattr(getattr(torch, wanted.type, None), "device_count", int)())
    if count and (wanted.index or 0) >= count:
        return (
            f"PyTorch sees {counted(count, 'device')} of the type {wanted.type}, and counts from "
            f"0. Write a number below {count}: --ort-providers={alias}:{wanted.type}:{count - 1}"
        )
    if count:
        return f"To use {device}, remove the cause that PyTorch names"
    return (
        f"To use {device}, install its driver, and PyTorch for it as "
        "https://pytorch.org/get-started says"
    )


def _other_outputs(count: int, names: Sequence[str]) -> EngineRefusal:
    return EngineRefusal(
        f"the model returns {counted(count, 'tensor')}, but the ONNX file that was exported from "
        f"it has {counted(len(names), 'output')} ({', '.join(names)})",
        kind="error",
        hint="If the model returns a tensor twice, change it so that it returns each tensor once. "
        "If it does not, export the ONNX file again"
        if count > len(names)
        else "If the model returns numbers, return tensors, e.g. torch.tensor(len(boxes)) in "
        "place of len(boxes). If it returns tensors only, export the ONNX file again",
    )
