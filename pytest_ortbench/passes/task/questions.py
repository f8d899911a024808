"""What the host asks about labelled data."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.schema.question import (
    CaseOfReference,
    CaseQuestion,
    LabelledData,
    Question,
    ReadFile,
    WrittenFile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteScores(Question[None]):
    """Run labelled data through the case's reference on the CPU without optimisation.

    Attributes:
        case: The case that is right.
        dataset: The data.
        path: Where the scores go.
    """

    case: CaseOfReference
    dataset: LabelledData
    path: WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTask(CaseQuestion[TaskAccuracy]):
    """Run labelled data through the measured session.

    Attributes:
        dataset: The data.
        reference: File of the reference's scores; empty for none.
    """

    dataset: LabelledData
    reference: ReadFile = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOwnScores(CaseQuestion[None]):
    """Score labelled data through the measured session, and write the scores to a file.

    Attributes:
        dataset: The data.
        path: The file to make.
    """

    dataset: LabelledData
    path: WrittenFile
