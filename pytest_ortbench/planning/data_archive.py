"""Archives of a user's own data as arrays: what is fed, what calibrates, and what is scored."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import FURTHER_SET, PreparationStep
from pytest_ortbench.core.dataset import LABELLED, PLACEMENT, SHARED, TRUTH
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.free_memory import available
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.planning.example_reader import Example, ExampleReader
from pytest_ortbench.planning.real_inputs import ABOUT
from pytest_ortbench.worker.array_archive import write_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Examples that calibrate at most.
_CALIBRATING = 64
#: Bytes of all arrays of one model at most: they lie in the cache.
_MOST_BYTES = 16 * 2**30
#: So many labelled examples tell a difference in nearly all cases.
_USUALLY_ENOUGH = 1000
#: Of the memory that is free, they take this part at most: a worker reads them whole, beside the
#: model and its outputs.
_SHARE = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives:
    """What is written of own data.

    Attributes:
        reader: Reads an example.
        examples: All of them.
        labels: The label of each labelled example, by its name; ``None`` without labels.
        truth: What is on each picture, and how classes are counted; ``None`` without boxes.
        steps: How values came about.
        batch: Examples of one inference.
    """

    reader: ExampleReader
    examples: Sequence[Example]
    labels: Mapping[str, int | str] | None
    truth: Mapping[str, Any] | None
    steps: Sequence[PreparationStep]
    batch: int

    def write(self, folder: Path, name: str, labelled_name: str) -> None:
        """Write all archives into a folder that is there whole, or not at all.

        Args:
            folder: The folder to make.
            name: Name of the archive that is fed.
            labelled_name: Name of that which is scored.
        """
        folder.parent.mkdir(parents=True, exist_ok=True)
        wanted = max(self.batch, min(len(self.examples), _CALIBRATING))
        arrays = [self.reader.read(content) for _, content in self.examples[:wanted]]
        scored = self._scored()
        _check_size(arrays[0], len(scored), boxed=self.truth is not None)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as made:
            place = Path(made) / "data"
            (place / "calibration").mkdir(parents=True)
            fed: dict[str, NDArray[Any]] = {}
            for number, rows in enumerate(self._batches(arrays)):
                together = self._together(rows)
                self._archive(place / "calibration" / f"{number:04}.npz", together)
                mark = f"{FURTHER_SET}{number}:" if number else ""
                fed |= {f"{mark}{input_name}": array for input_name, array in together.items()}
            self._archive(place / name, fed)
            if scored:
                (place / LABELLED).mkdir()
                self._archive(place / LABELLED / labelled_name, self._labelled(scored), self.truth)
            try:
                place.replace(folder)
            except OSError:
                if not folder.is_dir():
                    raise
                shutil.rmtree(place, ignore_errors=True)  # another run has made the same

    @property
    def sets(self) -> int:
        """How many input sets are fed."""
        return max(1, min(len(self.examples), _CALIBRATING) // self.batch)

    def _scored(self) -> list[Path | str]:
        """The examples that are scored."""
        if self.truth is not None:
            return [content for _, content in self.examples]
        known = self.labels or {}
        return [content for name, content in self.examples if name in known]

    def _labelled(self, scored: Sequence[Path | str]) -> dict[str, NDArray[Any]]:
        import numpy as np

        made: dict[str, NDArray[Any]] = {}
        for index, content in enumerate(scored):
            for input_name, array in self.reader.read(content).items():
                rows = made.setdefault(
                    input_name, np.empty((len(scored), *array.shape), array.dtype)
                )
                rows[index] = array
        made |= {f"{SHARED}{name}": value for name, value in self.reader.shared.items()}
        if self.truth is None:
            return {**made, "labels": np.asarray(list((self.labels or {}).values()))}
        placed = [
            self.reader.placed[content].row for content in scored if isinstance(content, Path)
        ]
        return {**made, PLACEMENT: np.asarray(placed)}

    def _batches(
        self, arrays: Sequence[dict[str, NDArray[Any]]]
    ) -> Iterator[list[dict[str, NDArray[Any]]]]:
        """Examples in batches; of fewer than one batch they are taken again from the first."""
        for number in range(self.sets):
            first = number * self.batch
            yield [arrays[(first + row) % len(arrays)] for row in range(self.batch)]

    def _together(self, rows: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        import numpy as np

        has_batch = self.reader.has_batch
        values = {
            name: np.stack([row[name] for row in rows]) if has_batch[name] else rows[0][name]
            for name in rows[0]
        }
        return {**values, **self.reader.shared}

    def _archive(
        self,
        path: Path,
        arrays: Mapping[str, NDArray[Any]],
        truth: Mapping[str, Any] | None = None,
    ) -> None:
        about = json.dumps([asdict(step) for step in self.steps], sort_keys=True)
        write_arrays(path, arrays)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(zipfile.ZipInfo(ABOUT), about)
            if truth is not None:
                archive.writestr(zipfile.ZipInfo(TRUTH), json.dumps(truth))


def _check_size(arrays: Mapping[str, NDArray[Any]], count: int, *, boxed: bool) -> None:
    total = sum(array.nbytes for array in arrays.values()) * count
    free = available()
    most = _MOST_BYTES if free is None else min(_MOST_BYTES, int(_SHARE * free))
    if total > most:
        fitting = int(count * most / total)
        what = "picture" if boxed else "example"
        raise UsageError(
            f"{counted(count, f'labelled {what}')} would take {format_amount(total, 'bytes')} of "
            f"memory, but only {format_amount(most, 'bytes')} may be used, enough for {fitting}"
            if fitting
            else f"one labelled {what} would take {format_amount(total / count, 'bytes')} of "
            f"memory, but only {format_amount(most, 'bytes')} may be used",
            place="--ort-dataset" if boxed else "--ort-labels",
            hint=f"Shorten the file of {'boxes' if boxed else 'labels'} to "
            + (
                f"{_USUALLY_ENOUGH} {what}s, which are usually enough"
                if fitting >= _USUALLY_ENOUGH
                else counted(fitting, what)
            )
            if fitting
            else "Free memory, or use a machine with more",
        )
