"""What the host asks about an export and its source."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.passes.export_check.facts import (
    CheckedSizes,
    Confusion,
    FirstDifference,
    FixedSize,
)
from pytest_ortbench.schema.question import (
    CaseOfReference,
    CaseQuestion,
    Question,
    ReadFile,
    WrittenFile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChoice:
    """Inputs of one choice of sizes.

    Attributes:
        inputs: The inputs, every size resolved.
        samples: Input sets.
    """

    inputs: tuple[InputSpec, ...]
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswered:
    """What a file answered to choices of sizes.

    Attributes:
        samples: Input sets that it answered, for each choice.
        reasons: Why it did not answer more, for each choice; empty where it answered all.
    """

    samples: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFile(Question[FileAnswered]):
    """Run an exported file on the CPU without optimisation; write what it is fed and answers.

    Attributes:
        case: The case; its model's file is run.
        choices: What it is fed.
        path: Where feeds and answers go, in the order of the choices.
    """

    case: CaseOfReference
    choices: tuple[SizeChoice, ...]
    path: WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrial:
    """Inputs with a size that the file does not take.

    Attributes:
        fixed: Which size.
        inputs: All inputs, with the other size.
    """

    fixed: FixedSize
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """A part of a source.

    Attributes:
        path: Where it is: ``encoder.layers.0.norm``.
        kind: What it is: ``LayerNorm``.
    """

    path: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswered:
    """What a source answered, and how the file's answers compare with that.

    Attributes:
        choices: One entry a choice of sizes; names of sizes are the host's to add.
        version: Version of the framework.
        fixed: What became of each trial.
        confusions: Outputs of the file that are another output of the source.
        repeats: As of an :class:`~pytest_ortbench.passes.export_check.facts.ExportCheck`.
        rebuilds: Likewise.
        again_reason: Likewise.
        parts: Parts whose values were written, in their order; empty where nothing differs, or
            the framework can't tell.
    """

    choices: tuple[CheckedSizes, ...]
    version: str = ""
    fixed: tuple[FixedSize, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    repeats: bool | None = None
    rebuilds: bool | None = None
    again_reason: str = ""
    parts: tuple[SourcePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSource(CaseQuestion[SourceAnswered]):
    """Let the framework of the open case answer what a file was asked, and compare.

    Attributes:
        path: What an :class:`AskFile` wrote.
        choices: What the file was fed.
        samples: Input sets of each choice that are in ``path``.
        trials: Sizes that the file does not take.
        near_db: Outputs that are nearer than this need no second look.
        inner: Where the values of parts go, with what was fed, if outputs differ.
    """

    path: ReadFile
    choices: tuple[SizeChoice, ...]
    samples: tuple[int, ...]
    trials: tuple[SizeTrial, ...] = ()
    near_db: float
    inner: WrittenFile = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindFirstDifference(Question[FirstDifference]):
    """Find the first node of a file whose value is not that of its part in the source.

    Attributes:
        case: The case; its model's file is run.
        path: What :class:`AskSource` wrote of parts.
        parts: Those parts.
        near_db: Values that are nearer than this agree.
    """

    case: CaseOfReference
    path: ReadFile
    parts: tuple[SourcePart, ...]
    near_db: float
