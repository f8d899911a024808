"""A function of the user's that gives labelled batches and a metric.

::

    def validation(batch):
        def right(outputs, labels):          # one score a sample, more being better
            return outputs["logits"].argmax(axis=1) == labels

        batches = (({"x": images[i : i + batch]}, labels[i : i + batch]) for i in …)
        return batches, right
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import did_you_mean
from pytest_ortbench.core.task import Dataset
from pytest_ortbench.worker.data_error import bad_data
from pytest_ortbench.worker.labelled import Batch, Labelled
from pytest_ortbench.worker.user_code import call, load_file

_FORM = "Return (batches, metric): pairs ({input: array}, labels), and metric(outputs, labels)"


def call_entry_point(dataset: Dataset, batch: int) -> Labelled:
    """Load the file, call its function with the batch size, and check what it returns.

    Raises:
        WorkerError: if the file or the function raises, or returns something else.
    """
    path = Path(dataset.path)
    module = load_file(path)
    function = getattr(module, dataset.function, None)
    if not callable(function):
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise bad_data(
            f"{path.name} has no function {dataset.function!r}",
            did_you_mean(dataset.function, known),
        )
    returned = call(path, dataset.function, function, *([batch] if _takes_one(function) else []))
    if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
        raise bad_data(f"{dataset.label} returned {_kind(returned)}, not a pair", _FORM)
    batches, metric = returned
    if not isinstance(batches, Iterable):
        raise bad_data(f"the batches of {dataset.label} are {_kind(batches)}", _FORM)
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
        if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], Mapping):
            raise bad_data(f"batch {number} of {label} is {_kind(item)}, not a pair", _FORM)
        yield Batch(feeds={str(name): value for name, value in item[0].items()}, labels=item[1])
        number += 1


def _kind(value: object) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return type(value).__name__
