"""What the host asks about model files, beside measuring them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.compilation import Compilation
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.node_error import NodeErrors
from pytest_ortbench.core.readiness import NodeTrials, SessionTrial
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
class CompileModel(Question[Compilation]):
    """Have the provider of a case compile its file ahead, in the empty folder ``folder``.

    A worker that is asked shares the files of the host.
    """

    opens_session: ClassVar[bool] = True

    case: CaseToMeasure
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrySession(Question[SessionTrial]):
    """Make a session of a case and say where its nodes went; nothing is run.

    Attributes:
        case: The case.
        sizes: Sizes that symbolic dimensions are fixed to; empty leaves them open.
    """

    opens_session: ClassVar[bool] = True

    case: CaseToMeasure
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryNodes(Question[NodeTrials]):
    """Make a session of each file of one node on a provider; nothing is run.

    A worker that is asked shares the files of the host.

    Attributes:
        provider: Where.
        folder: Where the files are.
        names: Their names in it.
        custom_ops: Custom operator libraries that they need.
    """

    provider: Provider
    folder: str
    names: tuple[str, ...]
    custom_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredOperators:
    """What a reduced build of ONNX Runtime has to have for some models.

    Attributes:
        lines: Lines of its configuration, without comments.
        operators: Number of operators in it, each once an operator set.
        has_types: Whether types stand behind operators.
        version: ONNX Runtime that told them.
    """

    lines: tuple[str, ...]
    operators: int
    has_types: bool
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOperators(Question[RequiredOperators]):
    """List the operators and types of models, as they are and as ONNX Runtime optimises them.

    A worker that is asked shares the files of the host.

    Attributes:
        paths: The models.
        folder: An empty folder for files in between.
        custom_ops: Custom operator libraries that they need.
    """

    paths: tuple[str, ...]
    folder: str
    custom_ops: tuple[str, ...] = ()


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
