"""tract: one runnable model at fixed sizes, on one thread."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.core.errors import says
from pytest_ortbench.engines.seam import (
    Engine,
    EngineRefusal,
    EngineTensor,
    Inference,
    require_types,
)

#: Element types that tract takes from numpy, as its descriptions of inputs spell them.
_TYPES = {
    "tensor(bool)": "bool",
    "tensor(uint8)": "u8",
    "tensor(uint16)": "u16",
    "tensor(uint32)": "u32",
    "tensor(uint64)": "u64",
    "tensor(int8)": "i8",
    "tensor(int16)": "i16",
    "tensor(int32)": "i32",
    "tensor(int64)": "i64",
    "tensor(float16)": "f16",
    "tensor(float)": "f32",
    "tensor(double)": "f64",
}
#: How it names an operator that it has not.
_LACKING = re.compile(r"Unimplemented\(([^)]+)\)")


class Tract(Engine):
    """A model that tract has optimised for the sizes of the case."""

    _library: Any = None  # the package has no types
    _runnable: Any = None
    _order: tuple[str, ...] = ()

    def load(self) -> str:
        """Import ``tract``, and return its version; it has no number of threads to set."""
        import tract  # the measured thing itself, so its import is timed

        self._library = tract
        return str(tract.version())

    def threads(self) -> int:
        """Return one: its package for Python runs a model on the thread that calls it."""
        return 1

    def compile(self) -> int | None:
        """Read the file, fix the sizes of its inputs, and optimise what came of it."""
        require_types(self.task, "tract", _TYPES)
        facts = {item.name: fact_of(item) for item in self.task.inputs}
        try:
            model = self._library.onnx().load(self.task.path)
            order = tuple(model.input_name(index) for index in range(model.input_count()))
            for index, name in enumerate(order):
                model.set_input_fact(index, facts[name])
            for index in range(model.output_count()):
                # What the file says of outputs may contradict the sizes of the case.
                model.set_output_fact(index, None)
            self._runnable = model.into_model().into_runnable()
        except self._library.TractError as error:
            raise EngineRefusal(refusal_of(str(error))) from error
        self._order = order
        return None

    def open(self) -> Inference:
        """Return what hands arrays over, runs the model, and copies its outputs out."""
        run, order, failed = self._runnable.run, self._order, self._library.TractError

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            try:
                return [result.into_numpy() for result in run([feeds[name] for name in order])]
            except failed as error:
                raise EngineRefusal(refusal_of(str(error))) from error

        return infer

    def close(self) -> None:
        """Let go of the model."""
        self._runnable = None


def fact_of(item: EngineTensor) -> str:
    """Return what tract is told of an input: its sizes and its type.

    Args:
        item: The input, of a type that tract has.
    """
    return ",".join([*map(str, item.shape or ()), _TYPES[item.type]])


def refusal_of(text: str) -> str:
    """Return a message of tract in one line: what it did, then the causes, and no stack.

    Args:
        text: The message.
    """
    told = text.partition("Stack backtrace:")[0].replace("Caused by:", "")
    lines = [re.sub(r"^\d+: ", "", line.strip()) for line in told.splitlines()]
    quoted = ": ".join(line for line in lines if line)
    operator = _LACKING.search(quoted)
    if operator is None:
        return f"tract can't run the model. {says('It', quoted)}"
    return f"tract lacks the operator {operator[1]}. {says('It', quoted)}"
