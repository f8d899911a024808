"""Labelled data: an ``.npz`` file, or a function of the user's that gives batches and a metric.

::

    def validation(batch):
        def right(outputs, labels):          # one score a sample, more being better
            return outputs["logits"].argmax(axis=1) == labels

        batches = (({"x": images[i : i + batch]}, labels[i : i + batch]) for i in …)
        return batches, right
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dataset import PLACEMENT, SHARED, TRUTH, Dataset
from pytest_ortbench.core.errors import (
    first_line,
    nearest,
    says,
    why_unreadable,
)
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.task.worker.boxes import BoxReader, ImageTable
from pytest_ortbench.passes.task.worker.complaint import array_words, bad_data
from pytest_ortbench.passes.task.worker.own_function import own_function
from pytest_ortbench.worker.user_code import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Takes outputs by name and the labels of one batch; gives one score a sample, more being better.
Metric = Callable[[Mapping[str, object], Any], object]

#: Name of the array of labels; ``labels:OUTPUT`` says which output they belong to.
LABELS = "labels"
#: A label that stands for no class, as frameworks for training use it.
IGNORED = -100

_ENTRY_POINT = (
    "write a Python function that returns batches and a metric: --ort-dataset=FILE.py:FUNCTION"
)
#: What a function of the user's gives.
_FORM = (
    "Return batches and metric: each batch is a pair ({input: array}, labels), and "
    "metric(outputs, labels) returns its scores"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some labelled samples.

    Attributes:
        feeds: Values by name of the input.
        labels: What the metric takes with them.
        samples: Leading rows that count, the rest being filling; ``None`` where all do.
    """

    feeds: Mapping[str, object]
    labels: Any
    samples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labelled data, ready to be run through.

    Attributes:
        batches: In order; to be used once.
        metric: Scores a batch; reads boxes, which are scored later.
        name: What the scores say; empty where only the metric finds out.
    """

    batches: Iterable[Batch]
    metric: Metric
    name: str


def open_dataset(dataset: Dataset, inputs: Sequence[str], batch: int) -> Labelled:
    """Open labelled data.

    Args:
        dataset: What was asked for.
        inputs: Names of the inputs that must be fed.
        batch: Samples to feed at a time.

    Raises:
        WorkerError: if it can't be read, or lacks something; one clear message.
    """
    if dataset.function:
        return _call_entry_point(dataset, batch)
    if dataset.boxes is not None:
        return _with_boxes(dataset, inputs, batch)
    return _from_npz(Path(dataset.path), inputs, batch)


def digest_of(feeds: Mapping[str, object]) -> str:
    """Digest over the values of one batch, by which two runs through the data are seen to agree."""
    import numpy as np

    hasher = hashlib.sha256()
    for name in sorted(feeds):
        array = np.asarray(feeds[name])
        hasher.update(f"{name} {array.dtype} {array.shape}".encode())
        text = array.dtype == object or array.dtype.kind in "US"
        hasher.update(
            repr(array.tolist()).encode() if text else np.ascontiguousarray(array).tobytes()
        )
    return hasher.hexdigest()


def _from_npz(path: Path, inputs: Sequence[str], batch: int) -> Labelled:
    arrays = _read(path)
    labels, output = _labels(arrays, path)
    shared = _taken_shared(arrays)
    fed = _fed(arrays, [name for name in inputs if name not in shared], path)
    for name, array in fed.items():
        if not array.ndim:
            raise bad_data(
                f"the array {name!r} in {path.name} is a single value, not one for each label",
                f"Name it '{SHARED}{name}' in the file, so that every batch is fed with it",
            )
        if len(array) != len(labels):
            raise bad_data(
                f"{path.name} has {counted(len(labels), 'label')}, but "
                f"{counted(len(array), 'row')} in the array {name!r}",
                f"Store one row (first axis) of {name!r} for each label",
            )
    if not len(labels):
        raise bad_data(
            f"the arrays in {path.name} have no rows", "Store at least one sample with its label"
        )
    return Labelled(
        batches=_pieces(fed, shared, labels, batch),
        metric=LabelScores(output),
        name="",
    )


def _with_boxes(dataset: Dataset, inputs: Sequence[str], batch: int) -> Labelled:
    """Pictures with boxes: the label of each is its row."""
    import json
    import zipfile

    import numpy as np

    assert dataset.boxes is not None
    path = Path(dataset.path)
    arrays = _read(path)
    with zipfile.ZipFile(path) as archive:
        truth = json.loads(archive.read(TRUTH))
    table = ImageTable(
        placement=arrays.pop(PLACEMENT),
        size=tuple(truth["size"]),
        classes=truth["class_count"],
    )
    shared = _taken_shared(arrays)
    fed = _fed(arrays, [name for name in inputs if name not in shared], path)
    return Labelled(
        batches=_pieces(fed, shared, np.arange(len(table.placement)), batch),
        metric=BoxReader(dataset.boxes, table),
        name="",
    )


def _fed(
    arrays: Mapping[str, NDArray[Any]], inputs: Sequence[str], path: Path
) -> dict[str, NDArray[Any]]:
    """The samples of each input."""
    missing = [name for name in inputs if name not in arrays]
    if missing:
        raise bad_data(
            f"{path.name} has no array for the input {missing[0]!r}. Its arrays are: "
            f"{', '.join(arrays) or 'none'}",
            f"Store the values of this input in an array named {missing[0]!r}",
        )
    return {name: arrays[name] for name in inputs}


def _taken_shared(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Take the values that are fed beside every batch, by name of the input."""
    names = [name for name in arrays if name.startswith(SHARED)]
    return {name.removeprefix(SHARED): arrays.pop(name) for name in names}


def _read(path: Path) -> dict[str, NDArray[Any]]:
    import zipfile
    import zlib

    import numpy as np

    try:
        # Without pickle: a data file must not be able to run code.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        what, hint = why_unreadable(error)
        raise bad_data(f"{path} {what}", hint) from error
    except (
        ValueError,
        EOFError,
        AttributeError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,  # it is encrypted, or compressed in a way that Python does not know
    ) as error:
        raise bad_data(
            f"{path} can't be read as an .npz file ({says('numpy', first_line(error))})",
            "If a script made the file, write it with numpy.savez from arrays of numbers or of "
            "text, not of Python objects. If it was fetched or copied, do so again",
        ) from error


def _labels(arrays: Mapping[str, NDArray[Any]], path: Path) -> tuple[NDArray[Any], str]:
    """The labels, and the name of the output that they belong to if the file says so."""
    names = [name for name in arrays if name == LABELS or name.startswith(f"{LABELS}:")]
    if len(names) != 1:
        raise bad_data(
            f"{path.name} has no array named {LABELS!r}. Its arrays are: "
            f"{', '.join(arrays) or 'none'}"
            if not names
            else f"{path.name} has {len(names)} arrays of labels, but only one can be used: "
            f"{', '.join(names)}",
            "Keep the array with the labels of the output that you want to score, e.g. "
            f"{names[0]}, and remove the other from the file"
            if len(names) == 2
            else "Keep the array with the labels of the output that you want to score, e.g. "
            f"{names[0]}, and remove the others from the file"
            if names
            else f"Name the array of labels {LABELS!r}. If the model has several outputs, name it "
            f"'{LABELS}:OUTPUT', with the name of the output that the labels are for",
        )
    labels = arrays[names[0]]
    if not labels.ndim:
        raise bad_data(
            f"the array {names[0]!r} in {path.name} is a single number, not one label per sample",
            "Store the labels as an array with one axis, e.g. numpy.array([3, 5])",
        )
    return labels, names[0].partition(":")[2]


def _pieces(
    arrays: Mapping[str, NDArray[Any]],
    shared: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    size: int,
) -> Iterator[Batch]:
    """Batches of ``size``, the last one filled up with its last sample: a file may allow no other.

    What fills is run and not counted.

    Args:
        arrays: Samples by name of the input.
        shared: Values beside every batch.
        labels: One a sample.
        size: Samples of a batch.
    """
    import numpy as np

    count = len(labels)
    for start in range(0, count, size):
        taken = min(size, count - start)
        rows = np.minimum(np.arange(start, start + size), count - 1)
        feeds: dict[str, object] = dict(shared)
        for name, array in arrays.items():
            part = array[rows]
            feeds[name] = part.astype(object) if part.dtype.kind in "US" else part
        yield Batch(feeds=feeds, labels=labels[rows], samples=taken)


def _call_entry_point(dataset: Dataset, batch: int) -> Labelled:
    """Load the file, call its function with the batch size, and check what it returns.

    Raises:
        WorkerError: if the file or the function raises, or returns something else.
    """
    path = Path(dataset.path)
    function = own_function(path, dataset.function)
    returned = call(path, dataset.function, function, *([batch] if _takes_one(function) else []))
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise bad_data(
            f"{dataset.label} returned {_kind(returned)}, not a pair of batches and a metric", _FORM
        )
    batches, metric = returned
    if not isinstance(batches, Iterable) or isinstance(batches, Mapping | str):
        raise bad_data(
            f"the first value that {dataset.label} returned is {_kind(batches)}, not a list or an "
            "iterator of batches",
            _FORM,
        )
    if not callable(metric):
        raise bad_data(
            f"the second value that {dataset.label} returned is {_kind(metric)}, not a function "
            "that scores a batch (metric)",
            _FORM,
        )
    name = str(getattr(metric, "__name__", type(metric).__name__))

    def score(outputs: Mapping[str, object], labels: Any) -> object:
        return call(path, f"the metric {name}", metric, outputs, labels)

    return Labelled(batches=_checked(batches, dataset.label, path), metric=score, name=name)


def _takes_one(function: Callable[..., object]) -> bool:
    try:
        return bool(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return True


def _checked(batches: Iterable[object], label: str, path: Path) -> Iterator[Batch]:
    iterator = call(path, "the batches", iter, batches)
    assert isinstance(iterator, Iterator)
    number = 0
    while True:
        item = call(path, f"batch {number}", next, iterator, None)
        if item is None:
            return
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise bad_data(
                f"batch {number} of {label} is {_kind(item)}, not a pair of inputs and labels",
                _FORM,
            )
        if not isinstance(item[0], Mapping):
            raise bad_data(
                f"the inputs in batch {number} of {label} are {_kind(item[0])}, not a dictionary "
                "with an array for each input",
                _FORM,
            )
        yield Batch(feeds={str(name): value for name, value in item[0].items()}, labels=item[1])
        number += 1


def _kind(value: object) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a value of type {type(value).__name__}"


class LabelScores:
    """Scores 1 for each sample whose class is its label.

    - Labels of shape ``[n, …]`` and an output ``[n, …, classes]`` of floats: the class is the
      largest entry of the last axis. Labels of -100 are no class and don't count.
    - An output of the labels' own shape that holds integers or texts: equality.

    Where a sample has several labels (tokens), its score is the share that is right.

    Args:
        output: Name of the output; empty for the first one that fits.

    Attributes:
        name: What the scores say, known after the first batch.
    """

    def __init__(self, output: str) -> None:
        self._output = output
        self._seen = 0
        self.name = ""

    def __call__(self, outputs: Mapping[str, object], labels: Any) -> NDArray[Any]:
        """Return one score a sample."""
        import numpy as np

        wanted = np.asarray(labels)
        name, found, by_class = self._choose(outputs, wanted)
        counted = np.ones(wanted.shape, dtype=bool)
        if by_class:
            counted = wanted != IGNORED
            self._check_range(wanted, counted, found.shape[-1], name)
            # A row with NaN has no class; argmax would name the first NaN.
            right = (found.argmax(axis=-1) == wanted) & ~np.isnan(found).any(axis=-1)
        else:
            right = found == wanted
        self.name = f"top-1 of {name!r}" if by_class else f"share of {name!r} equal to the label"
        rows = (len(wanted), -1)
        counted, right = (
            counted.reshape(rows),
            np.asarray(right).reshape(rows) & counted.reshape(rows),
        )
        has_label = counted.any(axis=1)
        if not has_label.all():
            raise bad_data(
                f"all labels of sample {self._seen + int(has_label.argmin())} are {IGNORED} (not "
                "counted), so it has no score",
                "Leave the sample out",
            )
        self._seen += len(wanted)
        shares: NDArray[Any] = right.sum(axis=1) / counted.sum(axis=1)
        return shares

    def _choose(
        self, outputs: Mapping[str, object], labels: NDArray[Any]
    ) -> tuple[str, NDArray[Any], bool]:
        """The output that the labels belong to, and whether its last axis stands for classes."""
        import numpy as np

        if self._output and self._output not in outputs:
            example = nearest(self._output, outputs, cutoff=0)
            raise bad_data(
                f"the array '{LABELS}:{self._output}' of the data is for an output "
                f"{self._output!r}, which the model does not have",
                f"Name the array after an output of the model, e.g. '{LABELS}:{example}'. The "
                f"outputs are: {', '.join(outputs)}",
            )
        names = [self._output] if self._output else list(outputs)
        tensors = {name: value for name in names if isinstance(value := outputs[name], np.ndarray)}
        text = labels.dtype.kind in "USO"
        for name, value in tensors.items():
            if value.dtype.kind == "f" and value.shape[:-1] == labels.shape and value.ndim:
                if labels.dtype.kind not in "iu" or value.shape[-1] < 2:
                    continue
                return name, value, True
            same_kind = (value.dtype.kind in "USO") == text and value.dtype.kind != "f"
            if value.shape == labels.shape and same_kind:
                return name, value, False
        shapes = ", ".join(f"{name} {array_words(outputs[name])}" for name in names)
        if any(_is_one_hot(labels, value) for value in tensors.values()):
            raise bad_data(
                f"the labels (one batch: {array_words(labels)}) have a number for each class, but "
                "the index of the class is needed",
                "Store labels.argmax(axis=-1) in their place",
            )
        if labels.dtype.kind == "f":
            whole = np.array_equal(labels, np.round(labels))
            raise bad_data(
                f"the labels are {labels.dtype} numbers, but only classes and texts can be scored "
                "from an .npz file",
                "If they are classes, store them as integers, e.g. labels.astype('int64'). If "
                f"not, {_ENTRY_POINT}"
                if whole
                else f"For a regression, {_ENTRY_POINT}",
            )
        raise bad_data(
            f"labels of type {labels.dtype} and shape {list(labels.shape)} (of one batch) fit no "
            f"output of the model: {shapes}",
            "For a classifier, store the index of the class of each sample. For other labels, "
            f"{_ENTRY_POINT}",
        )

    def _check_range(
        self, labels: NDArray[Any], counted: NDArray[Any], classes: int, name: str
    ) -> None:
        """Refuse the first label that counts and is no class of an output."""
        wrong = (counted & ((labels < 0) | (labels >= classes))).reshape(len(labels), -1)
        if wrong.any():
            row = int(wrong.any(axis=1).argmax())
            bad = labels.reshape(len(labels), -1)[row, wrong[row].argmax()]
            raise bad_data(
                f"the label {bad} of sample {self._seen + row} is not a class of the output "
                f"{name!r}, which has classes 0 to {classes - 1}",
                f"Write a class from 0 to {classes - 1}"
                + (
                    ". If your classes are numbered from 1, subtract 1"
                    if bad == classes
                    else f", or {IGNORED} for a label that is not counted"
                    if labels.ndim > 1
                    else ""
                ),
            )


def _is_one_hot(labels: NDArray[Any], scores: NDArray[Any]) -> bool:
    """Whether labels have a 1 for the class of each sample, and 0 for all others."""
    fits = labels.shape == scores.shape and labels.ndim > 1 and labels.dtype.kind in "biuf"
    return bool(fits and ((labels == 0) | (labels == 1)).all() and (labels.sum(axis=-1) == 1).all())
