"""What the two sides of a gate are asked, so that their answers can be compared."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.accuracy import Accuracy
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.schema.question import CaseQuestion, ReadFile, WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsWritten:
    """A side of a gate wrote its outputs. ``types``: type by name of each output, in order."""

    types: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsCompared:
    """The two sides of a gate were compared.

    Attributes:
        types: Type by name of each output of the side that was asked, in order.
        accuracy: The contender's outputs against the baseline's.
    """

    types: dict[str, str]
    accuracy: Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutputs(CaseQuestion[OutputsWritten]):
    """Write outputs for random inputs to the file ``path``, for the other side of a gate.

    Attributes:
        path: The file to make.
        inputs: What both sides are fed.
        magnitudes: Factors on drawn float inputs.
    """

    path: WrittenFile
    inputs: tuple[InputSpec, ...]
    magnitudes: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSides(CaseQuestion[OutputsCompared]):
    """Compare outputs with those that the other side of a gate wrote to the file ``path``.

    Attributes:
        path: What the other side wrote.
        is_baseline: Whether the asked side is the baseline.
    """

    path: ReadFile
    is_baseline: bool
