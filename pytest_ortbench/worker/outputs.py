"""Outputs of a run: brought into arrays, and looked at outside the timed region."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.measurement import OutputCheck

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Values looked at a time, so that checking a large output costs little memory.
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One array of an output; a plain tensor output has exactly one.

    Attributes:
        label: ``output``; ``output[2]`` for an element of a sequence.
        values: The array, strings as objects. A list of maps with equal keys (ZipMap) is one table:
            a row for each map, a column for each key.
        keys: Keys of the columns in order, for maps.
    """

    label: str
    values: NDArray[Any]
    keys: tuple[object, ...] | None = None


def flatten(outputs: Sequence[object], names: Sequence[str] = ()) -> list[Leaf]:
    """Bring what ``InferenceSession.run`` returned into arrays.

    Args:
        outputs: Arrays, lists of arrays, dicts, lists of dicts, and ``None`` for an optional value
            that is absent, which gives no leaf.
        names: Names of the outputs; without them their numbers.

    Raises:
        WorkerError: ``unsupported`` for a value of any other kind (a sparse tensor).
    """
    leaves: list[Leaf] = []
    for number, value in enumerate(outputs):
        label = names[number] if number < len(names) else str(number)
        leaves += _leaves(value, label)
    return leaves


def check(
    run: str, outputs: Sequence[object], feeds: Mapping[str, object] | None = None
) -> OutputCheck:
    """Look at the outputs of one run of the measured loop, and at what was fed.

    Args:
        run: ``first``, ``middle`` or ``last``.
        outputs: What the run returned.
        feeds: What it was given, by name of the input.
    """
    leaves = flatten(outputs)
    nonfinite = subnormal = floats = 0
    squares = 0.0
    constant: list[bool] = []
    for leaf in leaves:
        if leaf.values.dtype.kind not in "fc":
            continue
        floats += leaf.values.size
        if leaf.values.size > 1:
            constant.append(bool((leaf.values == leaf.values.reshape(-1)[0]).all()))
        for part in real_parts(leaf.values):
            bad, small, power = _look(part)
            nonfinite += bad
            subnormal += small
            squares += power
    return OutputCheck(
        run=run,
        nonfinite=nonfinite,
        constant=bool(constant) and all(constant),
        digest=digest(leaves),
        norm=math.sqrt(squares) if floats and math.isfinite(squares) else None,
        subnormal=subnormal,
        nonfinite_inputs=_nonfinite_inputs(feeds or {}),
        empty=all(leaf.values.size == 0 for leaf in leaves),
    )


def _nonfinite_inputs(feeds: Mapping[str, object]) -> int:
    """NaN and infinite values of the inputs that are arrays, or lists of them."""
    return nonfinite_in(list(feeds.values()))


def nonfinite_in(values: Sequence[object], rows: int | None = None) -> int:
    """Count NaN and infinite values; what is no array, list or map has none that can be seen.

    Args:
        values: Outputs or inputs, as ``InferenceSession.run`` gives or takes them.
        rows: How many leading rows of an array count, the rest being filling; ``None`` for all.
    """
    import numpy as np

    seen = [value for value in values if isinstance(value, np.ndarray | list | dict)]
    floats = [leaf.values for leaf in flatten(seen) if leaf.values.dtype.kind in "fc"]
    counted = [array[:rows] if array.ndim else array for array in floats]
    return sum(_look(part)[0] for array in counted for part in real_parts(array))


def digest(leaves: Sequence[Leaf]) -> str:
    """SHA-256 over labels, types, shapes and bits of all leaves, hexadecimal."""
    import numpy as np

    total = hashlib.sha256()
    for leaf in leaves:
        values = leaf.values
        head = f"{leaf.label}|{values.dtype.str}|{values.shape}|{leaf.keys}|"
        total.update(head.encode("utf-8", "surrogatepass"))
        if values.dtype == object:
            for text in values.reshape(-1):
                coded = str(text).encode("utf-8", "surrogatepass")
                total.update(len(coded).to_bytes(8, "little") + coded)
        else:
            total.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def real_parts(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield all values in order as rows of limited length; a complex one as two real ones."""
    import numpy as np

    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK]


def _look(part: NDArray[Any]) -> tuple[int, int, float]:
    """Number of non-finite values, of subnormal ones, and the sum of squares of the finite ones."""
    import numpy as np

    finite = np.isfinite(part)
    kept = part if finite.all() else part[finite]
    wide = kept.astype("float64")
    smallest = np.finfo(part.dtype).tiny
    small = int(np.count_nonzero((np.abs(kept) < smallest) & (kept != 0)))
    with np.errstate(over="ignore"):
        power = float(np.dot(wide, wide))
    return int(part.size - kept.size), small, power


def _leaves(value: object, label: str) -> list[Leaf]:
    import numpy as np

    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return [Leaf(label=label, values=_plain(value))]
    if isinstance(value, str | int | float | bool | np.generic):
        return [Leaf(label=label, values=_plain(np.asarray(value)))]
    if isinstance(value, dict):
        return _table([value], label, squeeze=True)
    if isinstance(value, list | tuple):
        if value and all(isinstance(row, dict) for row in value):
            return _table(value, label)
        return [
            leaf
            for number, element in enumerate(value)
            for leaf in _leaves(element, f"{label}[{number}]")
        ]
    raise case_error(
        f"output {label!r} is of the Python class {type(value).__name__!r}, which can't be "
        "compared",
        "Export the model with outputs that are tensors",
        phase="accuracy",
    )


def _table(
    rows: Sequence[dict[object, object]], label: str, *, squeeze: bool = False
) -> list[Leaf]:
    """One table of maps with equal scalar keys; one leaf a row or a key where that can't be."""
    import numpy as np

    keys = tuple(sorted(rows[0], key=lambda key: (type(key).__name__, key)))
    scalar = all(isinstance(value, str | int | float | np.generic) for value in rows[0].values())
    if scalar and all(row.keys() == rows[0].keys() for row in rows):
        table = np.array([[row[key] for key in keys] for row in rows])
        table = table.reshape(len(rows), len(keys))
        return [Leaf(label=label, values=_plain(table[0] if squeeze else table), keys=keys)]
    if squeeze:
        return [leaf for key in keys for leaf in _leaves(rows[0][key], f"{label}[{key!r}]")]
    return [
        leaf
        for number, row in enumerate(rows)
        for leaf in _table([row], f"{label}[{number}]", squeeze=True)
    ]


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Strings as objects, everything else as it is."""
    if values.dtype.kind == "U":
        return values.astype(object)
    return values
