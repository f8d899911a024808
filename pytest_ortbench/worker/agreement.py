"""One output against its reference: sums over one sample, then figures over all samples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.accuracy import FarthestValue, OutputAccuracy
from pytest_ortbench.worker.outputs import Leaf, real_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Kinds that are compared for equality only.
_COUNTED = ("integer", "string")

#: Classes that a last axis may stand for where no name says so.
_CLASSES = range(2, 100_001)
#: Likewise where the name does: vocabularies of language models have up to some 260,000 entries.
_NAMED_CLASSES = range(2, 1_000_001)

_CLASS_NAME = re.compile(r"logit|prob|score|class|label|softmax", re.IGNORECASE)
_OTHER_NAME = re.compile(
    r"embed|hidden|feature|state|box|coord|mask|key|value|attention|pooler|dets", re.IGNORECASE
)

#: Noise beyond this is all the same, and may be beyond the range of doubles.
_WORST_DB = -200.0

#: How far a row of probabilities may be from adding up to 1; half precision is within it.
_SUM_SLACK = 5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Sums over one sample of one output; over finite pairs where they are of floats.

    Attributes:
        exact: Whether type, shape and every bit agree.
        nonfinite: NaN and infinite values of the output.
        reference_nonfinite: Those of the reference.
        nan: NaN where the reference has none.
        inf: Infinity where the reference has another value.
        pairs: Pairs that are finite on both sides; 0 where values are compared for equality only.
        signal: Sum of squares of the reference.
        power: Sum of squares of the output.
        product: Sum of products of both.
        noise: Sum of squares of the difference.
        max_abs: Largest difference; ``None`` where values have none.
        max_reference: Largest magnitude of the reference.
        agree: Rows that agree; ``None`` where rows mean nothing.
        rows: Rows compared, likewise.
        mismatch: How types, shapes or keys differ, so that nothing could be compared by element.
        farthest: The value of the largest difference; ``None`` without one, and of complex values.
    """

    exact: bool
    nonfinite: int = 0
    reference_nonfinite: int = 0
    nan: int = 0
    inf: int = 0
    pairs: int = 0
    signal: float = 0.0
    power: float = 0.0
    product: float = 0.0
    noise: float = 0.0
    max_abs: float | None = None
    max_reference: float = 0.0
    agree: int | None = None
    rows: int | None = None
    mismatch: str = ""
    farthest: FarthestValue | None = None

    @property
    def reference_finite(self) -> bool:
        """Whether the reference holds finite values only."""
        return not self.reference_nonfinite


def kind_of(leaf: Leaf) -> str:
    """``float``, ``class``, ``integer`` or ``string``.

    A float output is read as classes, by the largest entry of its last axis, if

    - its name speaks of logits, probabilities, scores or classes (not of boxes, embeddings or
      hidden states), or it is a table by class label (ZipMap); or
    - each of its rows holds no negative value and adds up to 1; or
    - it has two axes, so that it is one row an item, and its name does not speak against it.

    An embedding of two axes with a name that tells nothing is read as classes too; its agreement is
    then that of its largest component. Whether a case is accurate is never decided by it.
    """
    values = leaf.values
    if values.dtype == object:
        return "string"
    if values.dtype.kind not in "fc":
        return "integer"
    if values.dtype.kind == "c" or values.ndim < 2 or not values.size:
        return "float"
    classes = values.shape[-1]
    if leaf.keys is not None:
        return "class" if classes in _CLASSES else "float"
    if _OTHER_NAME.search(leaf.label):
        return "float"
    if _CLASS_NAME.search(leaf.label):
        return "class" if classes in _NAMED_CLASSES else "float"
    if classes not in _CLASSES:
        return "float"
    return "class" if values.ndim == 2 or _adds_up(values) else "float"


def difference(kind: str, reference: Leaf, output: Leaf | None) -> Difference:
    """Compare one sample.

    An output that is absent, or of another shape, counts like one of zeros: noise as large as the
    signal (0 dB, also where the reference itself is empty or zero), and no row that agrees.

    Args:
        kind: What :func:`kind_of` said of the reference.
        reference: What is right.
        output: What came out.
    """
    mismatch = _mismatch(reference, output)
    expected = reference.values
    if output is None or mismatch:
        return _all_wrong(kind, expected, output, mismatch)
    values = output.values
    if kind in _COUNTED:
        return _equality(expected, values)
    return _float_difference(kind, expected, values)


def worst_figures(
    name: str, kind: str, differences: Sequence[Difference], *, measured: Sequence[Difference] = ()
) -> OutputAccuracy:
    """Reduce all samples of one output to the worst of each figure.

    Samples whose reference is not finite are left out of errors and agreement, unless all are.

    Args:
        name: Of the output.
        kind: What :func:`kind_of` said of the reference.
        differences: Every sample.
        measured: Those at the measured magnitude: what is not finite is counted there.
    """
    kept = comparable(differences)
    nan = sum(sample.nan for sample in differences)
    inf = sum(sample.inf for sample in differences)
    counted = [sample for sample in kept if sample.rows is not None]
    floats = [sample for sample in kept if sample.pairs]
    finite = not (nan or inf) and not any(
        sample.nonfinite or sample.reference_nonfinite for sample in (*kept, *measured)
    )
    return OutputAccuracy(
        name=name,
        kind=kind,
        finite=finite,
        nan_count=nan,
        inf_count=inf,
        max_abs=_largest(sample.max_abs for sample in kept),
        max_rel=_largest(
            sample.max_abs / sample.max_reference
            for sample in floats
            if sample.max_abs is not None and sample.max_reference
        ),
        cosine=_smallest(_cosine(sample) for sample in floats if sample.signal),
        sqnr_db=_smallest([*_sqnr_db(floats), *([] if kind in _COUNTED else _unfit_db(kept))]),
        exact=finite and all(sample.exact for sample in differences),
        agree=sum(sample.agree or 0 for sample in counted) if counted else None,
        rows=sum(sample.rows or 0 for sample in counted) if counted else None,
        compared=sum((sample.rows or 0) if kind in _COUNTED else sample.pairs for sample in kept),
        nonfinite=sum(sample.nonfinite for sample in measured),
        reference_nonfinite=sum(sample.reference_nonfinite for sample in measured),
        mismatch=next((sample.mismatch for sample in differences if sample.mismatch), ""),
        farthest=max(
            (sample.farthest for sample in kept if sample.farthest is not None),
            key=lambda farthest: abs(farthest.value - farthest.reference),
            default=None,
        ),
    )


def comparable(differences: Sequence[Difference]) -> Sequence[Difference]:
    """Samples whose reference is finite; all of them where none is (masks of minus infinity)."""
    return [sample for sample in differences if sample.reference_finite] or differences


def _adds_up(values: NDArray[Any]) -> bool:
    import numpy as np

    if not (values >= 0).all():
        return False
    sums = values.sum(axis=-1, dtype=np.float64)
    return bool((np.abs(sums - 1) <= _SUM_SLACK).all())


def _mismatch(reference: Leaf, output: Leaf | None) -> str:
    if output is None:
        return "is absent"
    expected, values = reference.values, output.values
    if (expected.dtype.kind in "fc") != (values.dtype.kind in "fc") or (
        (expected.dtype == object) != (values.dtype == object)
    ):
        return f"has type {values.dtype} where the reference has {expected.dtype}"
    if expected.shape != values.shape:
        return f"has shape {list(values.shape)} where the reference has {list(expected.shape)}"
    if reference.keys != output.keys:
        return f"has keys {output.keys} where the reference has {reference.keys}"
    return ""


def _all_wrong(kind: str, expected: NDArray[Any], output: Leaf | None, mismatch: str) -> Difference:
    import numpy as np

    if kind in _COUNTED:
        # What came out where the reference is empty is as wrong as what is missing.
        rows = max(expected.size, 0 if output is None else output.values.size, 1)
        return Difference(exact=False, agree=0, rows=rows, mismatch=mismatch)
    against_zeros = _float_difference(kind, expected, np.zeros_like(expected))
    return Difference(
        exact=False,
        nonfinite=0 if output is None else nonfinite_values(output.values),
        reference_nonfinite=against_zeros.reference_nonfinite,
        pairs=against_zeros.pairs,
        signal=against_zeros.signal,
        noise=against_zeros.noise,
        max_abs=against_zeros.max_abs,
        max_reference=against_zeros.max_reference,
        agree=None if against_zeros.rows is None else 0,
        rows=against_zeros.rows,
        mismatch=mismatch,
    )


def _equality(expected: NDArray[Any], values: NDArray[Any]) -> Difference:
    import numpy as np

    agree = int(np.count_nonzero(expected == values))
    largest: float | None = None
    farthest = None
    if expected.dtype.kind in "iu" and values.dtype.kind in "iu":
        largest = 0.0
        if agree < expected.size:
            errors = np.abs(expected.astype("float64") - values.astype("float64"))
            at = int(errors.argmax())
            largest = float(errors.reshape(-1)[at])
            farthest = _value_at(expected, values, at)
    return Difference(
        exact=agree == expected.size and expected.dtype == values.dtype,
        max_abs=largest,
        farthest=farthest,
        agree=agree,
        rows=expected.size,
    )


def _float_difference(kind: str, expected: NDArray[Any], values: NDArray[Any]) -> Difference:
    import numpy as np

    scale = _scale(expected)
    sums: list[Difference] = []
    farthest, largest, start = -1, 0.0, 0
    for right, got in zip(real_parts(expected), real_parts(values), strict=True):
        part, at = _part_difference(right, got, scale)
        sums.append(part)
        if part.max_abs is not None and largest < part.max_abs < math.inf:
            farthest, largest = start + at, part.max_abs
        start += right.size
    rows = agree = None
    if kind == "class" and expected.size:
        rows = expected.size // expected.shape[-1]
        agree = _agreeing_rows(expected, values)
    same_type = expected.dtype == values.dtype
    same_bits = same_type and np.array_equal(_bits(expected), _bits(values))
    return Difference(
        exact=same_bits,
        nonfinite=sum(part.nonfinite for part in sums),
        reference_nonfinite=sum(part.reference_nonfinite for part in sums),
        nan=sum(part.nan for part in sums),
        inf=sum(part.inf for part in sums),
        pairs=sum(part.pairs for part in sums),
        signal=math.fsum(part.signal for part in sums),
        power=math.fsum(part.power for part in sums),
        product=math.fsum(part.product for part in sums),
        noise=math.fsum(part.noise for part in sums),
        max_abs=_largest(part.max_abs for part in sums),
        max_reference=max((part.max_reference for part in sums), default=0.0),
        agree=agree,
        rows=rows,
        farthest=_value_at(expected, values, farthest)
        if farthest >= 0 and expected.dtype.kind == "f"
        else None,
    )


def nonfinite_values(values: NDArray[Any]) -> int:
    """Return the number of NaN and infinite values; 0 for values that can be neither."""
    import numpy as np

    if values.dtype.kind not in "fc":
        return 0
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def _value_at(expected: NDArray[Any], values: NDArray[Any], at: int) -> FarthestValue:
    """Both values at a place that is counted through an array of two equal shapes."""
    import numpy as np

    index = np.unravel_index(at, expected.shape)
    return FarthestValue(
        index=tuple(map(int, index)), value=float(values[index]), reference=float(expected[index])
    )


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _scale(expected: NDArray[Any]) -> float:
    """What to divide by before squaring, so that squares of doubles stay within their range."""
    import numpy as np

    if expected.dtype.itemsize < 8 or not expected.size:
        return 1.0
    sizes = np.abs(expected[np.isfinite(expected)])
    largest = float(sizes.max()) if sizes.size else 0.0
    return 1.0 if not largest or 1e-100 < largest < 1e100 else largest


def _part_difference(
    expected: NDArray[Any], values: NDArray[Any], scale: float
) -> tuple[Difference, int]:
    """The sums of some values in a row, and where the largest difference is; -1 without one."""
    import numpy as np

    right = expected.astype("float64")
    got = values.astype("float64")
    right_finite = np.isfinite(right)
    got_finite = np.isfinite(got)
    nonfinite = int(got.size - np.count_nonzero(got_finite))
    reference_nonfinite = int(right.size - np.count_nonzero(right_finite))
    nan = int(np.count_nonzero(np.isnan(got) & ~np.isnan(right)))
    inf = int(np.count_nonzero(np.isinf(got) & (got != right)))
    both = right_finite & got_finite
    places = None if both.all() else np.flatnonzero(both)
    if places is not None:
        right, got = right[both], got[both]
    if not right.size:
        empty = Difference(
            exact=False,
            nonfinite=nonfinite,
            reference_nonfinite=reference_nonfinite,
            nan=nan,
            inf=inf,
        )
        return empty, -1
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        error = right - got
        sizes = np.abs(error)
        at = int(sizes.argmax())
        largest, largest_right = float(sizes[at]), float(np.abs(right).max())
        if scale != 1.0:
            right, got, error = right / scale, got / scale, error / scale
        sums = Difference(
            exact=False,
            nonfinite=nonfinite,
            reference_nonfinite=reference_nonfinite,
            nan=nan,
            inf=inf,
            pairs=right.size,
            signal=float(np.dot(right, right)),
            power=float(np.dot(got, got)),
            product=float(np.dot(right, got)),
            noise=float(np.dot(error, error)),
            max_abs=largest,
            max_reference=largest_right,
        )
    return sums, at if places is None else int(places[at])


def _agreeing_rows(expected: NDArray[Any], values: NDArray[Any]) -> int:
    """Rows whose class is one that the reference ranks first (it may rank several first)."""
    import numpy as np

    right = expected.reshape(-1, expected.shape[-1])
    got = values.reshape(right.shape)
    # A row with NaN has no class; argmax would name the first NaN.
    valid = ~np.isnan(got).any(axis=-1)
    chosen = np.take_along_axis(right, got.argmax(axis=-1)[:, None], axis=-1)[:, 0]
    return int(np.count_nonzero(valid & (chosen == right.max(axis=-1))))


def _cosine(sample: Difference) -> float:
    if not sample.power:
        return 0.0
    cosine = sample.product / (math.sqrt(sample.signal) * math.sqrt(sample.power))
    return max(-1.0, min(1.0, cosine))


def _sqnr_db(samples: Sequence[Difference]) -> Iterable[float]:
    """10·log10(signal ÷ noise) of every sample that has noise.

    Where the reference of a sample is all zero, the mean signal of the other samples stands for it;
    where it is zero in all of them, noise is as good as signal (0 dB).
    """
    pairs = sum(sample.pairs for sample in samples if sample.signal)
    signal = math.fsum(sample.signal for sample in samples)
    for sample in samples:
        if not sample.noise:
            continue
        own = sample.signal or (signal / pairs * sample.pairs if pairs else sample.noise)
        ratio = own / sample.noise
        yield ratio_db(ratio)


def ratio_db(ratio: float) -> float:
    """Return a ratio of signal to noise in decibels, as far down as any differ."""
    return max(10 * math.log10(ratio), _WORST_DB) if ratio else _WORST_DB


def _unfit_db(samples: Sequence[Difference]) -> Iterable[float]:
    """0 dB for every sample that could not be compared and is zero or empty in the reference.

    There zeros in its place would have no noise, and what came out would pass.
    """
    return [0.0 for sample in samples if sample.mismatch and not sample.noise]


def _largest(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return max(known, default=None)


def _smallest(values: Iterable[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return min(known, default=None)
