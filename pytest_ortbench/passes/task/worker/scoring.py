"""Accuracy of a task: labelled samples through a session, one score each, against the reference's.

Samples are paired: both sides answer the same ones, and only where they differ does it count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.errors import did_you_mean, first_line, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.passes.task.questions import ScoreTask, WriteOwnScores, WriteScores
from pytest_ortbench.passes.task.worker.boxes import BoxReader
from pytest_ortbench.passes.task.worker.complaint import array_words, bad_data
from pytest_ortbench.passes.task.worker.labelled import Batch, Metric, digest_of, open_dataset
from pytest_ortbench.worker.accuracy import fitting
from pytest_ortbench.worker.array_archive import write_arrays
from pytest_ortbench.worker.called import Declared, Session
from pytest_ortbench.worker.outputs import nonfinite_in
from pytest_ortbench.worker.reference import reference_label, reference_session

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_ortbench.worker.measured import MeasuredCase
    from pytest_ortbench.worker.state import WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one side scored.

    Attributes:
        metric: What the scores say.
        values: One score a sample, in order.
        digests: Digest of each batch that was fed.
        label: What was scored, for people.
        nonfinite: NaN and infinite values in all float outputs.
        nonfinite_inputs: Those in all float inputs.
        boxes: What was detected, for the host to compare; ``None`` where labels are scored.
    """

    metric: str
    values: tuple[float, ...]
    digests: tuple[str, ...]
    label: str = ""
    nonfinite: int = 0
    nonfinite_inputs: int = 0
    boxes: BoxReader | None = None


def score_task(question: ScoreTask, measured: MeasuredCase) -> TaskAccuracy:
    """Run labelled data through the measured session, and compare with the reference's scores.

    Raises:
        WorkerError: if the data can't be used.
    """
    measured.enter("task")
    scores = score(measured.for_any_input(), question.dataset, measured.case.batch)
    reference = Path(question.reference) if question.reference else None
    return hold_against_reference(scores, question.dataset, reference)


def write_reference_scores(question: WriteScores, state: WorkerState) -> None:
    """Run labelled data through the reference, and write its scores.

    Raises:
        WorkerError: if the data can't be used.
    """
    state.import_runtime()
    state.enter("task")
    case = question.case
    scores = score(reference_session(case), question.dataset, case.batch, reference_label(case))
    write_scores(Path(question.path), scores)


def write_own_scores(question: WriteOwnScores, measured: MeasuredCase) -> None:
    """Score labelled data on this side, and write the scores for the other one.

    Raises:
        WorkerError: if the data can't be used.
    """
    measured.enter("task")
    case = measured.case
    scores = score(measured.for_any_input(), question.dataset, case.batch, case.case_id)
    write_scores(Path(question.path), scores)


def score(session: Session, dataset: Dataset, batch: int, label: str = "") -> Scores:
    """Run all labelled samples through a session.

    Args:
        session: What is scored.
        dataset: The data.
        batch: Samples to feed at a time.
        label: What is scored, for people.

    Raises:
        WorkerError: if the data can't be used with this session, or a score is no finite number.
    """
    needed = [info.name for info in session.get_inputs() if not info.type.startswith("optional(")]
    labelled = open_dataset(dataset, needed, batch)
    names = [info.name for info in session.get_outputs()]
    values: list[float] = []
    digests: list[str] = []
    finite: dict[str, bool] = {}
    nonfinite = nonfinite_inputs = 0
    for given in labelled.batches:
        digests.append(digest_of(given.feeds))
        _note_finite(finite, given.feeds)
        outputs = _run(session, given, dataset, len(values))
        nonfinite += nonfinite_in(outputs, rows=given.samples)
        nonfinite_inputs += nonfinite_in(list(given.feeds.values()), rows=given.samples)
        named = dict(zip(names, outputs, strict=True))
        number = len(digests) - 1
        values += _scores(labelled.metric, named, given, number=number, before=len(values))
    if not values:
        raise bad_data(
            f"{dataset.label} returned no batch", "Return at least one batch of labelled samples"
        )
    broken = [name for name, some in finite.items() if not some]
    if broken:
        raise bad_data(
            f"all values for the input {broken[0]!r} from {dataset.label} are NaN or infinity",
            "Correct how these values are made: float16 holds numbers up to 65504 only"
            if _is_beyond_half(given.feeds.get(broken[0]))
            else "Correct how these values are made, e.g. where they are divided by a standard "
            "deviation of 0",
        )
    metric = labelled.name or str(getattr(labelled.metric, "name", ""))
    return Scores(
        metric=metric,
        values=tuple(values),
        digests=tuple(digests),
        label=label,
        nonfinite=nonfinite,
        nonfinite_inputs=nonfinite_inputs,
        boxes=labelled.metric if isinstance(labelled.metric, BoxReader) else None,
    )


def write_scores(path: Path, scores: Scores) -> None:
    """Store scores; the file appears when it is complete."""
    import numpy as np

    draft = path.with_name(f"{path.name}.draft")
    arrays = {
        "values": np.asarray(scores.values, dtype=np.float64),
        "digests": np.asarray(scores.digests),
        "label": np.asarray(scores.label),
        "nonfinite": np.asarray([scores.nonfinite, scores.nonfinite_inputs]),
        **(_detected(scores.boxes) if scores.boxes is not None else {}),
    }
    write_arrays(draft, arrays)
    draft.replace(path)


def _detected(reader: BoxReader) -> dict[str, NDArray[Any]]:
    """What was detected, as arrays: one row a box."""
    import numpy as np

    found = reader.found
    return {
        "form": np.asarray(reader.form),
        "shapes": np.asarray(reader.shapes),
        "pictures": np.concatenate([np.full(len(part.boxes), part.row) for part in found]),
        "boxes": np.concatenate([part.boxes for part in found]),
        "box_scores": np.concatenate([part.scores for part in found]),
        "box_classes": np.concatenate([part.labels for part in found]),
    }


def hold_against_reference(
    scores: Scores, dataset: Dataset, reference: Path | None
) -> TaskAccuracy:
    """Compare scores with those of the reference, sample by sample.

    Raises:
        WorkerError: if the reference was scored on other data.
    """
    import numpy as np

    values = np.asarray(scores.values, dtype=np.float64)
    found = TaskAccuracy(
        dataset=dataset.label,
        metric=scores.metric,
        samples=len(values),
        score_sum=math.fsum(values),
        largest=float(np.abs(values).max()),
        nonfinite=scores.nonfinite,
        nonfinite_inputs=scores.nonfinite_inputs,
    )
    if reference is None:
        return found
    with np.load(reference, allow_pickle=False) as stored:
        before, digests, label = stored["values"], stored["digests"], str(stored["label"])
    if not before.any() and not (values < 0).any():
        raise bad_data(
            f"the reference ({label}) scores 0 on every sample of {dataset.label} "
            f"({counted(len(before), 'sample')}, {scores.metric})",
            "If your metric gives 0 for good answers, change it. If not, check the order of the "
            "labels and the scaling of the inputs"
            if dataset.function
            else "Check that classes are numbered from 0, that labels have the order of the "
            "samples, and that inputs are scaled as in training",
        )
    if len(before) != len(values) or tuple(digests.tolist()) != scores.digests:
        counts = (
            ""
            if len(before) == len(values)
            else f" ({counted(len(values), 'sample')}, but {len(before)} for the reference)"
        )
        raise bad_data(
            f"{dataset.label} gave other data for this case than for its reference{counts}",
            "Give the same samples in the same order each time, e.g. with a fixed seed"
            if dataset.function
            else "Run again, and leave the file unchanged meanwhile",
        )
    difference = values - before
    return replace(
        found,
        largest=max(found.largest, float(np.abs(before).max())),
        reference=label,
        reference_sum=math.fsum(before),
        difference_squares=math.fsum(difference**2),
        better=int(np.count_nonzero(difference > 0)),
        worse=int(np.count_nonzero(difference < 0)),
    )


def _run(session: Session, batch: Batch, dataset: Dataset, first: int) -> Sequence[object]:
    known = [info.name for info in session.get_inputs()]
    unknown = [name for name in batch.feeds if name not in known]
    if unknown:
        unfed = [name for name in known if name not in batch.feeds]
        raise bad_data(
            f"{dataset.label} gives values for {unknown[0]!r}, which is not an input of the model",
            did_you_mean(unknown[0], unfed)
            if unfed
            else f"Leave {unknown[0]!r} out of the batches",
        )
    feeds, missing = fitting(session, batch.feeds)
    if missing:
        raise bad_data(
            f"{dataset.label} gives no values for the input {missing!r}",
            "Give values for every input of the model",
        )
    try:
        return session.run(None, feeds)
    except Exception as error:
        # Native errors have no common base class.
        said = says("The runtime", first_line(error))
        if all(
            _fits(info, feeds[info.name]) for info in session.get_inputs() if info.name in feeds
        ):
            raise bad_data(
                f"the model fails on the batch that begins with sample {first} of {dataset.label}. "
                f"{said}",
                f"Correct the values of this batch ({', '.join(feeds)}): their types and shapes "
                "fit the model",
            ) from error
        fed = ", ".join(f"{name} {array_words(value)}" for name, value in feeds.items())
        taken = ", ".join(
            f"{info.name} {info.type} {list(shape) if (shape := _shape(info)) else ''}".rstrip()
            for info in session.get_inputs()
        )
        raise bad_data(
            f"the model fails on the batch that begins with sample {first} of {dataset.label}. "
            f"The batch holds {fed}. {said}",
            f"Give arrays as the model takes them: {taken}",
        ) from error


def _fits(declared: Declared, value: object) -> bool:
    """Whether a value has the type and the shape of an input, as far as they are declared."""
    import numpy as np

    wanted, sizes = NUMPY_NAMES.get(declared.type[7:-1]), _shape(declared)
    if not isinstance(value, np.ndarray) or sizes is None or value.dtype.name != wanted:
        return False
    return value.ndim == len(sizes) and all(
        not isinstance(size, int) or size == found
        for size, found in zip(sizes, value.shape, strict=True)
    )


def _shape(declared: Declared) -> Sequence[int | str | None] | None:
    """The sizes of an input, where what runs the model tells them."""
    return getattr(declared, "shape", None)


def _note_finite(finite: dict[str, bool], feeds: Mapping[str, object]) -> None:
    """Note of each float input whether any value of it was a number so far."""
    import numpy as np

    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            finite[name] = finite.get(name, False) or bool(np.isfinite(value).any())


def _is_beyond_half(value: object) -> bool:
    """Whether numbers were too large for half precision."""
    import numpy as np

    if not isinstance(value, np.ndarray) or value.dtype != np.float16:
        return False
    return bool(np.isinf(value).any())


def _scores(
    metric: Metric, outputs: Mapping[str, object], batch: Batch, *, number: int, before: int
) -> list[float]:
    """One finite number a sample that counts.

    Args:
        metric: Scores the batch.
        outputs: What the model gave, by name.
        batch: The samples.
        number: Which batch it is, from 0 on.
        before: How many scores earlier batches have.
    """
    import numpy as np

    given = metric(outputs, batch.labels)
    if given is None:
        raise bad_data("the metric returned None", "Return one score for each sample of the batch")
    try:
        scores = np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise bad_data(
            f"the metric returned {type(given).__name__} {str(given)[:40]!r}, not one number per "
            "sample",
            "Return an array with one score for each sample of the batch",
        ) from error
    if batch.samples is not None:
        scores = scores[: batch.samples]
    if not scores.size:
        raise bad_data(
            f"the metric returned no score for batch {number}",
            "Return one score for each sample, and leave samples without a score out of the "
            "batches",
        )
    expected = _count(batch.labels)
    if batch.samples is None and expected is not None and scores.size not in (1, expected):
        raise bad_data(
            f"the metric returned {scores.size} scores for batch {number}, which has "
            f"{counted(expected, 'sample')}",
            f"Return {counted(expected, 'score')}"
            + (", or a single score for the whole batch" if expected > 1 else ""),
        )
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        of_sample = np.asarray(given, dtype=object).reshape(-1)[bad[0]]
        raise bad_data(
            f"the metric returned {of_sample} for sample {before + int(bad[0])}",
            "Return a finite number for each sample",
        )
    values: list[float] = scores.tolist()
    return values


def _count(labels: Any) -> int | None:
    """How many labels a batch has, where that can be told."""
    shape = getattr(labels, "shape", None)
    if shape is not None:
        return int(shape[0]) if shape else None
    return len(labels) if isinstance(labels, list | tuple) else None
