"""Options of labelled data. Every start of pytest loads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.option import Keyword, option
from pytest_ortbench.core.placing import Place

if TYPE_CHECKING:
    from pytest_ortbench.core.dataset import Dataset


class TaskOptions:
    """What the user asks for of labelled data."""

    dataset: Dataset | None = option(
        None,
        flag="--ort-dataset",
        metavar="PATH",
        help="labelled data for the accuracy of a task: .npz with an array 'labels', "
        "FILE.py:FUNCTION that returns batches and a metric, a folder of photos or WAV files "
        "with --ort-labels, or coco:FILE.json with boxes on photos (default: none)",
        reader="pytest_ortbench.passes.task.planning:read_dataset",
        to="request.dataset",
        keyword=Keyword(
            help="labelled data, 'coco:labels.json'", takes="data", example="'coco:labels.json'"
        ),
        asks_for="task",
        place=Place(after="samples", rank=10),
    )
    labels: Path | None = option(
        None,
        flag="--ort-labels",
        kind="path",
        metavar="FILE",
        help="labels of the files of --ort-inputs or --ort-dataset: a CSV file with file name "
        "and label; for a text file, one label per line (default: none)",
        reader="pytest_ortbench.core.option_text:read_label_file",
        to="request.labels",
        keyword=Keyword(
            help="labels of the files, 'labels.csv'", takes="data", example="'labels.csv'"
        ),
        place=Place(after="samples", rank=11),
    )


OPTIONS = TaskOptions
