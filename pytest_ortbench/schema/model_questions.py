"""What the host asks about model files, beside measuring them; a part of the protocol."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.recipe import Conversion


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeModel:
    """Load a model that only ONNX Runtime can read, and say what it takes and gives."""

    path: str
    custom_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInterface:
    """What a session says of its model, without any hints."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert:
    """Make a variant of a model in the empty folder ``folder``, and check it."""

    conversion: Conversion
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareNodes:
    """Run the case's variant and the file ``reference``, and compare the value of every node."""

    case: Case
    reference: str
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReference:
    """Run the case's source model on the CPU without optimisation; write feeds and outputs."""

    case: Case
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpread:
    """Run the case's source model again, in ways that don't change what is right.

    Attributes:
        case: The case of the reference.
        reference: File of its feeds and first outputs.
        magnitudes: Only input sets of these magnitudes count; empty for all.
    """

    case: Case
    reference: str
    magnitudes: tuple[float, ...] = ()
