"""The operator tests of the onnx package as files: model, inputs, expected outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTest:
    """One test.

    Attributes:
        name: As onnx calls it (``test_gather_0``).
        model: Its model.
        inputs: Its values, in order of the model's inputs.
        outputs: What is right.
        rtol: How far a value may be off, as a share.
        atol: And beside that.
    """

    name: str
    model: onnx.ModelProto
    inputs: list[Any]
    outputs: list[Any]
    rtol: float
    atol: float

    @property
    def operator(self) -> str:
        """The operator that it is about: that of its one node, else by its name."""
        nodes = self.model.graph.node
        if len(nodes) == 1:
            domain = nodes[0].domain
            return f"{domain}::{nodes[0].op_type}" if domain else str(nodes[0].op_type)
        words = self.name.removeprefix("test_").split("_expanded")[0].split("_")
        known = {schema.name.lower(): schema.name for schema in onnx.defs.get_all_schemas()}
        for count in range(len(words), 0, -1):
            operator = known.get("".join(words[:count]))
            if operator:
                return str(operator)
        return "several operators"


def operator_tests() -> list[OperatorTest]:
    """Return all of them, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in collect_testcases(None) if case.model is not None]
    return [
        OperatorTest(
            name=case.name,
            model=case.model,
            inputs=list(case.data_sets[0][0]),
            outputs=list(case.data_sets[0][1]),
            rtol=case.rtol,
            atol=case.atol,
        )
        for case in sorted(cases, key=lambda case: str(case.name))
    ]


def write_test(test: OperatorTest, folder: Path) -> tuple[Path, Path]:
    """Write model and inputs.

    Returns:
        The model, and the folder of its inputs as a ``test_data_set`` of ONNX.
    """
    model, inputs = folder / f"{test.name}.onnx", folder / test.name
    inputs.mkdir(parents=True, exist_ok=True)
    onnx.save(test.model, model)
    for number, value in enumerate(test.inputs):
        if value is not None:
            (inputs / f"input_{number}.pb").write_bytes(_written(value))
    return model, inputs


def _written(value: Any) -> bytes:
    if isinstance(value, onnx.TensorProto):
        return bytes(value.SerializeToString())
    if isinstance(value, list):
        sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR)
        sequence.tensor_values.extend(numpy_helper.from_array(np.asarray(v)) for v in value)
        return bytes(sequence.SerializeToString())
    return bytes(numpy_helper.from_array(np.asarray(value)).SerializeToString())


def plain(values: list[Any]) -> Iterator[Any]:
    """Yield values as numpy has them: what it lacks in float32 or small integers."""
    for value in values:
        if isinstance(value, onnx.TensorProto):
            yield from plain([numpy_helper.to_array(value)])
        elif isinstance(value, list):
            yield list(plain(value))
        elif value is None:
            yield None
        else:
            held = np.asarray(value)
            if held.dtype.kind == "V":
                held = held.astype(np.float32)
            elif held.dtype.name.startswith(("int4", "int2", "uint4", "uint2")):
                held = held.astype(np.int8)
            yield held
