"""What the host asks about model files, beside measuring them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.node_error import NodeErrors
from pytest_ortbench.core.recipe import Converted
from pytest_ortbench.schema.question import (
    CaseOfReference,
    CaseToMeasure,
    ModelToConvert,
    Question,
    ReadFile,
    WrittenFile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInterface:
    """What a session says of its model, without any hints."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeModel(Question[ModelInterface]):
    """Load a model that only ONNX Runtime can read, and say what it takes and gives."""

    path: str
    custom_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(Question[Converted]):
    """Make a variant of a model in the empty folder ``folder``, and check it."""

    conversion: ModelToConvert
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareNodes(Question[NodeErrors]):
    """Run a case and its reference, and compare the value of every node, on the CPU.

    Attributes:
        case: The case, whose variant is compared.
        right: Its reference; both are fed its inputs.
        samples: Input sets.
    """

    case: CaseToMeasure
    right: CaseOfReference
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReference(Question[None]):
    """Run the case's source model on the CPU without optimisation; write feeds and outputs."""

    case: CaseOfReference
    path: WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpread(Question[ReferenceSpread]):
    """Run the case's source model again, in ways that don't change what is right.

    Attributes:
        case: The case of the reference.
        reference: File of its feeds and first outputs.
        magnitudes: Only input sets of these magnitudes count; empty for all.
    """

    case: CaseOfReference
    reference: ReadFile
    magnitudes: tuple[float, ...] = ()
