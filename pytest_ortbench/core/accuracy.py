"""Outputs compared with a reference, and the reference compared with itself: raw figures."""

from __future__ import annotations

from dataclasses import dataclass

#: Ways in which a reference is run again, none of which changes what is right; for people.
TRIALS: dict[str, str] = {
    "again": "run a second time",
    "moved": "with inputs moved by one unit in the last place",
    "moved-back": "with inputs moved by one unit in the last place, the other way",
    "one-thread": "run with one thread",
    "float64": "run in float64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceAccuracy:
    """Slices of an output that are much smaller than its others, over all samples together.

    Attributes:
        axis: The axis along which the reference has large slices and small ones.
        first: Index of the first small one.
        last: Index of the last.
        count: How many they are.
        size: How many slices the axis has.
        sqnr_db: Signal to quantisation noise ratio over all of them, not below -200.
        largest: Largest magnitude of the reference in them.
        others_largest: Largest magnitude of the reference in the other slices.
        distinct: Different values that came out; ``None`` where they are more than 32.
        reference_distinct: Different values of the reference, likewise.
    """

    axis: int
    first: int
    last: int
    count: int
    size: int
    sqnr_db: float
    largest: float
    others_largest: float
    distinct: int | None = None
    reference_distinct: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FarthestValue:
    """The value of an output that is farthest from that of its reference.

    Attributes:
        index: Where it stands in the output, by axis; empty in a scalar.
        value: What came out.
        reference: What the reference has there.
    """

    index: tuple[int, ...]
    value: float
    reference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccuracy:
    """One output against its reference, over all samples.

    Attributes:
        name: Output name.
        kind: ``float``, ``class`` (last axis read as logits), ``integer``, ``string``.
        finite: Whether there is no NaN or infinity, neither in the output nor in the reference, in
            any sample that counts: those of the measured magnitude, those whose reference is
            finite, and all others where the output adds some.
        nan_count: NaN values where the reference has none.
        inf_count: Infinite values where the reference has another value.
        max_abs: Largest absolute error over finite pairs.
        max_rel: Largest error relative to the largest magnitude of the reference.
        cosine: Smallest cosine similarity over the samples.
        sqnr_db: Smallest signal to quantisation noise ratio over the samples, 20·log10 of
            ‖reference‖ ÷ ‖reference − output‖, not below -200; ``None`` where there is no error at
            all (or no finite pair). An output of another shape or none counts as zeros: 0 dB.
        exact: Whether all samples agree bit for bit, and the output is finite: NaN is never exact.
        agree: Rows whose class (or whole value, for integers and strings) agrees.
        rows: Rows compared.
        compared: Values that were compared: pairs that are finite on both sides, or whole values;
            ``None`` in older documents.
        nonfinite: NaN and infinite values of the output at the measured magnitude, whatever the
            reference has.
        reference_nonfinite: Those of the reference, likewise.
        slices: Those much smaller than the others, which the ratio over all values does not see;
            ``None`` where there are none that differ, and in older documents.
        mismatch: How its type, shape or keys differ from those of the reference in the first sample
            where they do, so that no values were compared there; empty where they are the same.
        farthest: The value of the largest absolute error; ``None`` where there is none, where
            values are complex or text, and in older documents.
    """

    name: str
    kind: str
    finite: bool
    nan_count: int = 0
    inf_count: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    sqnr_db: float | None = None
    exact: bool = False
    agree: int | None = None
    rows: int | None = None
    compared: int | None = None
    nonfinite: int = 0
    reference_nonfinite: int = 0
    slices: SliceAccuracy | None = None
    mismatch: str = ""
    farthest: FarthestValue | None = None

    @property
    def adds_nonfinite(self) -> bool:
        """Whether the output has NaN or infinity where the reference has another value."""
        return bool(self.nan_count or self.inf_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadTrial:
    """A reference that was run again in another way, against its own first outputs.

    Attributes:
        name: A key of :data:`TRIALS`.
        samples: Number of input sets.
        outputs: How far each output is from the first ones.
        reason: Why it was not run; empty if it was.
    """

    name: str
    samples: int = 0
    outputs: tuple[OutputAccuracy, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSpread:
    """How far a reference differs from itself.

    Attributes:
        trials: One entry a way of running it again.
        reason: Why it was not run again at all; empty otherwise.
    """

    trials: tuple[SpreadTrial, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Outputs compared with a reference on the same inputs.

    Attributes:
        reference: What was compared with: ``fp32 on CPUExecutionProvider, no optimisation``.
        samples: Number of input sets.
        magnitudes: Factors applied to drawn float inputs.
        outputs: One entry an output.
        reason: Why nothing could be compared; empty otherwise.
        repeatable: Whether first, middle and last run of the measured loop gave finite outputs
            that agree with each other; ``None`` if not checked.
        repeat_note: How they differ, if they do.
        spread: How far the reference differs from itself; ``None`` where nobody had to know, since
            the outputs are as near to it as they must be.
        note: What the figures leave out: samples whose reference is not finite, shapes that differ.
        set_elements: Values in all outputs together, for each random input set.
        set_durations_ns: Duration of an inference on each of them, the shortest of several where
            the first ones differed. It says which sets are worth a second look, nothing else.
        set_pairs_ns: Durations on the set that seemed slowest and on the one that seemed fastest,
            a pair a round, each round in random order; empty where no two sets seemed to differ.
    """

    reference: str = ""
    samples: int = 0
    magnitudes: tuple[float, ...] = ()
    outputs: tuple[OutputAccuracy, ...] = ()
    reason: str = ""
    repeatable: bool | None = None
    repeat_note: str = ""
    note: str = ""
    spread: ReferenceSpread | None = None
    set_elements: tuple[int, ...] = ()
    set_durations_ns: tuple[int, ...] = ()
    set_pairs_ns: tuple[tuple[int, int], ...] = ()
