"""Options of labelled data. Every start of pytest loads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place

if TYPE_CHECKING:
    from pytest_ortbench.core.dataset import Dataset


class TaskOptions:
    """What the user asks for of labelled data."""

    dataset: Dataset | None = option(
        None,
        flag="--ort-dataset",
        kind="str",
        metavar="PATH",
        help="labelled data for the accuracy of a task: .npz with an array 'labels', or "
        "FILE.py:FUNCTION that gives batches and a metric (default: none)",
        reader="pytest_ortbench.passes.task.planning:read_dataset",
        to="request.dataset",
        asks_for="task",
        place=Place(after="samples", rank=10),
    )


OPTIONS = TaskOptions
