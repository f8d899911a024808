"""File of input sets with the outputs that a reference gave for them: one ``.npz``, no pickle.

Every array is a member of its own, and ``meta`` says in JSON how feeds and outputs are put together
from them: strings as their UTF-8 bytes with lengths, lists of maps as one table. It is written
sample by sample, so that a large model needs memory for one of them only.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.errors import WorkerError, first_line, says
from pytest_ortbench.core.failures import case_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One input set and what came out.

    Attributes:
        magnitude: Factor that its drawn float inputs have.
        feeds: Value of every input by name.
        outputs: Value of every output in order.
    """

    magnitude: float
    feeds: dict[str, object]
    outputs: list[object]


@dataclass(slots=True)
class SampleWriter:
    """Writes the file; it appears under its name when all is written, or not at all.

    Args:
        path: Where it goes.
        reference: What gave the outputs, for people.
        names: Names of the outputs in order.
        note: What a reader of the comparison must know.
    """

    path: Path
    reference: str
    names: tuple[str, ...]
    note: str = ""
    bytes_written: int = 0
    _archive: zipfile.ZipFile | None = None
    _samples: list[dict[str, object]] = field(default_factory=list)
    _arrays: int = 0

    def __enter__(self) -> SampleWriter:
        self._archive = zipfile.ZipFile(self._draft, "w", zipfile.ZIP_STORED)
        return self

    def add(self, sample: Sample) -> None:
        """Append one sample."""
        self._samples.append(
            {
                "magnitude": sample.magnitude,
                "feeds": {name: self._encode(value) for name, value in sample.feeds.items()},
                "outputs": [self._encode(value) for value in sample.outputs],
            }
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._archive is not None
        if kind is None:
            meta = {
                "version": _VERSION,
                "reference": self.reference,
                "names": list(self.names),
                "note": self.note,
                "samples": self._samples,
            }
            self._archive.writestr("meta.json", json.dumps(meta))
        self._archive.close()
        if kind is None:
            self._draft.replace(self.path)
        else:
            self._draft.unlink(missing_ok=True)

    @property
    def _draft(self) -> Path:
        return self.path.with_name(f"{self.path.name}.{os.getpid()}.draft")

    def _encode(self, value: object) -> object:
        import numpy as np

        if value is None:
            return {"none": True}
        if isinstance(value, dict):
            keys = list(value)
            return {"map": keys, "values": [self._encode(value[key]) for key in keys]}
        if isinstance(value, list | tuple):
            table = _as_table(value)
            if table is not None:
                return {"rows": table[0], "values": self._encode(table[1])}
            return {"list": [self._encode(element) for element in value]}
        if isinstance(value, str | int | float | bool | np.generic):
            return {"scalar": self._encode(np.asarray(value))}
        array = np.asarray(value)
        if array.dtype.kind in "OU":
            coded = [str(text).encode("utf-8", "surrogatepass") for text in array.reshape(-1)]
            return {
                "strings": self._store(np.frombuffer(b"".join(coded), dtype=np.uint8)),
                "lengths": self._store(np.array([len(text) for text in coded], dtype=np.int64)),
                "shape": list(array.shape),
            }
        return {"array": self._store(array)}

    def _store(self, array: NDArray[Any]) -> str:
        import numpy as np

        assert self._archive is not None
        name = f"a{self._arrays}"
        self._arrays += 1
        self.bytes_written += array.nbytes
        with self._archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, array, allow_pickle=False)
        return name


@dataclass(slots=True)
class SampleFile:
    """Reads the file, one sample at a time.

    Attributes:
        path: The file.
        reference: What gave the outputs.
        names: Names of the outputs in order.
        note: What a reader of the comparison must know.
    """

    path: Path
    reference: str
    names: tuple[str, ...]
    note: str
    _entries: list[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self._entries)

    def samples(self) -> Iterator[Sample]:
        """Yield every sample.

        Raises:
            WorkerError: if the file is damaged.
        """
        import numpy as np

        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                for entry in self._entries:
                    yield Sample(
                        magnitude=float(entry["magnitude"]),
                        feeds={k: _decode(v, arrays) for k, v in entry["feeds"].items()},
                        outputs=[_decode(value, arrays) for value in entry["outputs"]],
                    )
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise _damaged(self.path, error) from error


def open_samples(path: Path) -> SampleFile:
    """Open a file that :class:`SampleWriter` wrote.

    Raises:
        WorkerError: if it can't be read or is of another version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read("meta.json"))
        if meta["version"] != _VERSION:
            raise ValueError(f"its version is {meta['version']}, known is {_VERSION}")
        return SampleFile(
            path=path,
            reference=meta["reference"],
            names=tuple(meta["names"]),
            note=meta["note"],
            _entries=meta["samples"],
        )
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise _damaged(path, error) from error


def reference_outputs(
    path: Path, feeds: Mapping[str, Any], names: Sequence[str]
) -> list[object] | None:
    """Return what a reference gave for the inputs that are timed, the first set of its file.

    Args:
        path: The file.
        feeds: These inputs.
        names: Names of the outputs that are wanted, in order.

    Returns:
        ``None`` if the file was written for other inputs, or lacks an output.

    Raises:
        WorkerError: if the file can't be read.
    """
    import numpy as np

    stored = open_samples(path)
    sample = next(stored.samples(), None)
    if sample is None or sample.feeds.keys() != feeds.keys():
        return None
    stored_feeds: Mapping[str, Any] = sample.feeds
    if not all(np.array_equal(stored_feeds[name], value) for name, value in feeds.items()):
        return None
    outputs = dict(zip(stored.names, sample.outputs, strict=True))
    if not outputs.keys() >= set(names):
        return None
    return [outputs[name] for name in names]


def _as_table(rows: Sequence[object]) -> tuple[list[object], NDArray[Any]] | None:
    """Keys and a column for each, if all rows are maps with the same keys and plain numbers."""
    import numpy as np

    first = rows[0] if rows else None
    if not isinstance(first, dict) or not first:
        return None
    keys = list(first)
    kind = type(first[keys[0]])
    if kind not in (float, int):
        return None
    table = []
    for row in rows:
        if not isinstance(row, dict) or list(row) != keys:
            return None
        if not all(type(value) is kind for value in row.values()):
            return None
        table.append(list(row.values()))
    return keys, np.array(table, dtype=np.float64 if kind is float else np.int64)


def _decode(coded: Mapping[str, Any], arrays: Mapping[str, Any]) -> object:
    import numpy as np

    if "array" in coded:
        return arrays[coded["array"]]
    if "strings" in coded:
        blob = arrays[coded["strings"]].tobytes()
        texts, start = [], 0
        for length in arrays[coded["lengths"]].tolist():
            texts.append(blob[start : start + length].decode("utf-8", "surrogatepass"))
            start += length
        flat = np.empty(len(texts), dtype=object)
        flat[:] = texts
        return flat.reshape(coded["shape"])
    if "scalar" in coded:
        decoded: Any = _decode(coded["scalar"], arrays)
        return decoded.item()
    if "rows" in coded:
        table: Any = _decode(coded["values"], arrays)
        return [dict(zip(coded["rows"], row, strict=True)) for row in table.tolist()]
    if "map" in coded:
        values = [_decode(value, arrays) for value in coded["values"]]
        return dict(zip(coded["map"], values, strict=True))
    if "list" in coded:
        return [_decode(element, arrays) for element in coded["list"]]
    return None


def _damaged(path: Path, error: Exception) -> WorkerError:
    return case_error(
        f"the reference outputs in {path} can't be read. {says('Python', first_line(error))}",
        "Delete the file. The next run writes it again"
        if path.exists()
        else "Run again. This writes the file again",
        kind="error",
        phase="accuracy",
    )
