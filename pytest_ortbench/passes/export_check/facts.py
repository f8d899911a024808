"""What an ONNX file and the source that it was exported from answer to the same inputs.

Raw facts only. The file runs on the CPU without optimisation, the source in its framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.accuracy import OutputAccuracy, ReferenceSpread


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSizes:
    """Inputs of one choice of sizes, through the file and through the source.

    Attributes:
        sizes: Size of each open dimension of the file; empty where all are fixed.
        changed: Dimensions that have another size here than in the first choice.
        samples: Input sets that both answered.
        outputs: The file's outputs with the source's as what is right.
        empty: Outputs of the same shape on both sides that have no value in any input set: nothing
            but their shapes was compared.
        note: What the figures leave out, such as outputs of another shape.
        file_reason: Why the file refused an input set, the first after ``samples``; empty if it
            took all.
        source_reason: Why the source did not answer, a set that the file refused among them.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    samples: int = 0
    outputs: tuple[OutputAccuracy, ...] = ()
    empty: tuple[str, ...] = ()
    note: str = ""
    file_reason: str = ""
    source_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """A size that the file fixes, and whether the source takes another one.

    Attributes:
        axis: Which axis of these inputs.
        size: The size in the file.
        inputs: Inputs that have it there; all of them got the other size at once.
        tried: The other size.
        taken: Whether the source answered.
    """

    axis: int
    size: int
    inputs: tuple[str, ...]
    tried: int
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """An output of the file that is another output of the source.

    Attributes:
        output: Name of the file's output.
        source_output: Name of the output in whose place the source gives these values.
    """

    output: str
    source_output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """The first node of the graph whose value is not the source's.

    Attributes:
        module: Path of the part of the source (``encoder.layer.0.norm``).
        kind: What that is: ``LayerNorm``.
        node: Name of the node that makes its value in the file.
        op_type: Operator of that node.
        sqnr_db: How near the two values are.
        after: Path of the last part before it that agrees; empty for none.
        is_fed_wrong: Whether nothing that the node is fed is a value of a part, so that the cause
            may stand before it, outside of all parts.
        compared: Parts whose values could be compared.
        matched: Parts among them that agree.
        reason: Why none is named; empty otherwise.
    """

    module: str = ""
    kind: str = ""
    node: str = ""
    op_type: str = ""
    sqnr_db: float | None = None
    after: str = ""
    is_fed_wrong: bool = False
    compared: int = 0
    matched: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCheck:
    """An export held against its source, or why it was not.

    Attributes:
        framework: Alias of the framework.
        version: Its version.
        choices: One entry a choice of sizes; the first has the usual ones.
        fixed: Sizes that the file fixes and another of which was tried.
        confusions: Outputs that are another output of the source.
        spread: How far the file is from itself, where it was run again.
        repeats: Whether the source answers the same when it is asked again; ``None`` where that
            was not asked, since nothing differs, or could not be told.
        rebuilds: Likewise, of a source that was loaded a second time.
        again_reason: Why the source did not answer again; empty where it did, or was not asked.
        first_difference: Where in the graph they differ first; ``None`` where outputs do not.
        reason: Why nothing was compared; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run does it.
    """

    framework: str = ""
    version: str = ""
    choices: tuple[CheckedSizes, ...] = ()
    fixed: tuple[FixedSize, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    spread: ReferenceSpread | None = None
    repeats: bool | None = None
    rebuilds: bool | None = None
    again_reason: str = ""
    first_difference: FirstDifference | None = None
    reason: str = ""
    interrupted: bool = False

    @property
    def samples(self) -> int:
        """Input sets that both sides answered, over all choices of sizes."""
        return sum(choice.samples for choice in self.choices)
