"""Right or wrong: an output against stored labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_ortbench.passes.task.worker.data_error import bad_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Name of the array of labels; ``labels:OUTPUT`` says which output they belong to.
LABELS = "labels"
#: A label that stands for no class, as frameworks for training use it.
IGNORED = -100

_ENTRY_POINT = "Write an entry point with a metric of your own: --ort-dataset=FILE.py:FUNCTION"


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
        self.name = ""

    def __call__(self, outputs: Mapping[str, object], labels: Any) -> NDArray[Any]:
        """Return one score a sample."""
        import numpy as np

        wanted = np.asarray(labels)
        name, found, by_class = self._choose(outputs, wanted)
        counted = np.ones(wanted.shape, dtype=bool)
        if by_class:
            counted = wanted != IGNORED
            _check_range(wanted[counted], found.shape[-1], name)
            # A row with NaN has no class; argmax would name the first NaN.
            right = (found.argmax(axis=-1) == wanted) & ~np.isnan(found).any(axis=-1)
        else:
            right = found == wanted
        self.name = f"top-1 of {name!r}" if by_class else f"{name!r} equal to the label"
        rows = (len(wanted), -1)
        counted, right = (
            counted.reshape(rows),
            np.asarray(right).reshape(rows) & counted.reshape(rows),
        )
        if not counted.any(axis=1).all():
            raise bad_data(f"a sample has no label but {IGNORED}, so it can't be scored")
        shares: NDArray[Any] = right.sum(axis=1) / counted.sum(axis=1)
        return shares

    def _choose(
        self, outputs: Mapping[str, object], labels: NDArray[Any]
    ) -> tuple[str, NDArray[Any], bool]:
        """The output that the labels belong to, and whether its last axis stands for classes."""
        import numpy as np

        if self._output and self._output not in outputs:
            raise bad_data(
                f"{LABELS}:{self._output} names no output of the model; it has {', '.join(outputs)}"
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
        shapes = ", ".join(f"{name} {_described(outputs[name])}" for name in names)
        raise bad_data(
            f"labels {labels.dtype} {list(labels.shape)} fit no output as classes: {shapes}",
            _ENTRY_POINT,
        )


def _check_range(labels: NDArray[Any], classes: int, name: str) -> None:
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        bad = int(labels.min() if labels.min() < 0 else labels.max())
        raise bad_data(
            f"the label {bad} is no class of {name!r}, which has {classes} (0 to {classes - 1})",
            f"Count classes from 0; {IGNORED} marks what is not to be counted",
        )


def _described(value: object) -> str:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{dtype} {list(shape)}"
