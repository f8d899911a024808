"""Rows of a table, as an estimator takes them and as the ONNX file that was made of it does.

An estimator takes a frame with named columns, a matrix, or a list of texts; its ONNX file takes a
tensor for each column, or one for the matrix. Numbers become ``float``, which is what converters
compute in (*seen*: with whole numbers in one column, skl2onnx 1.20 rounds those of another one),
unless the entry function says otherwise under ``types``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.errors import did_you_mean
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import EngineRefusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

FRAME, MATRIX, TEXTS = "frame", "matrix", "texts"
#: Types of elements that a column may have, and numpy's name of each.
TYPES = {"float": "float32", "double": "float64", "int64": "int64", "bool": "bool", "string": "str"}
#: What the one input is called that a matrix or a list of texts becomes.
INPUT = "X"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """How an estimator takes its rows.

    Attributes:
        kind: ``frame``, ``matrix`` or ``texts``.
        types: A key of :data:`TYPES` for each input of the ONNX file, in order.
        width: Number of columns of a matrix; 1 for others.
        make: Makes a frame of a dictionary of columns; ``None`` for others.
    """

    kind: str
    types: dict[str, str]
    width: int = 1
    make: Callable[[Mapping[str, Any]], Any] | None = None

    def feeds(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return rows as the ONNX file takes them.

        Args:
            rows: As the estimator takes them.
        """
        import numpy as np

        if self.kind == FRAME:
            columns = {name: np.asarray(rows[name]) for name in self.types}
        else:
            columns = {name: np.asarray(rows) for name in self.types}
        return {
            name: columns[name].astype(TYPES[kind]).reshape(-1, self.width)
            for name, kind in self.types.items()
        }

    def rows(self, feeds: Mapping[str, NDArray[Any]]) -> Any:
        """Return what the ONNX file is fed as the estimator takes it.

        Args:
            feeds: By the names of the inputs.

        Raises:
            ValueError: for a column that is wider than one.
        """
        if self.make is not None:
            return self.make({name: feeds[name].reshape(len(feeds[name])) for name in self.types})
        (name,) = self.types
        return feeds[name] if self.kind == MATRIX else feeds[name].reshape(len(feeds[name]))


def table_form(loaded: LoadedSource, *, matrix: bool = False) -> TableForm:
    """Return how an estimator takes its rows, as its example rows show it.

    Args:
        loaded: The estimator and its example rows.
        matrix: Whether its ONNX file takes one tensor even where the rows are a frame.

    Raises:
        EngineRefusal: if the example rows can't be understood, or there are none and the estimator
            does not say what it takes.
    """
    import numpy as np

    rows = loaded.example
    if rows is None:
        return _without_rows(loaded)
    columns = getattr(rows, "columns", None)
    if columns is not None and not matrix:
        names = [str(name) for name in columns]
        if loaded.names is not None and loaded.names != names:
            raise EngineRefusal(
                "'names' is given, but the columns of the example rows already name the inputs",
                kind="error",
                hint="Leave 'names' out of the returned dictionary",
            )
        types = {name: _type_of(np.asarray(rows[name])) for name in columns}
        return TableForm(kind=FRAME, types=_chosen(types, loaded), make=type(rows))
    array = np.asarray(rows)
    (name,) = loaded.names or [INPUT]
    types = _chosen({name: _type_of(array)}, loaded)
    if array.ndim == 1 and types[name] == "string":
        return TableForm(kind=TEXTS, types=types)
    if array.ndim != 2:
        raise EngineRefusal(
            f"the example rows have {counted(array.ndim, 'dimension')}, but a table has 2",
            kind="error",
            hint="Return rows as the model's predict takes them: an array of rows and columns",
        )
    if matrix and types[name] == "string":
        row, column = _first_text(array)
        label = column if columns is None else repr(columns[column])
        raise EngineRefusal(
            f"column {label} of the example rows contains {str(array[row, column])!r}, but this "
            "model can be exported with numbers only",
            hint="Train the model on rows in which this column is encoded as numbers, and return "
            "such example rows",
        )
    return TableForm(kind=MATRIX, types=types, width=array.shape[1])


def _first_text(table: NDArray[Any]) -> tuple[int, int]:
    """Return row and column of the first value that is no number."""
    for row, values in enumerate(table):
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                return row, column
    return 0, 0  # numbers, written as text


def _without_rows(loaded: LoadedSource) -> TableForm:
    width = getattr(loaded.model, "n_features_in_", None)
    if not isinstance(width, int) or hasattr(loaded.model, "feature_names_in_"):
        raise EngineRefusal(
            "the function returned a model without example rows, from which the names and types "
            "of the inputs are taken",
            kind="error",
            hint="End the function with 'return model, rows', where rows are a few rows of data as "
            "the model's predict takes them",
        )
    (name,) = loaded.names or [INPUT]
    return TableForm(kind=MATRIX, types=_chosen({name: "float"}, loaded), width=width)


def _type_of(array: NDArray[Any]) -> str:
    return "float" if array.dtype.kind in "biuf" else "string"


def _chosen(types: dict[str, str], loaded: LoadedSource) -> dict[str, str]:
    for name, kind in dict(loaded.settings.get("types", {})).items():
        if name not in types:
            raise EngineRefusal(
                f"'types' of the returned dictionary names {name!r}, which is not an input",
                kind="error",
                hint=did_you_mean(str(name), types),
            )
        if kind not in TYPES:
            raise EngineRefusal(
                f"'types' of the returned dictionary gives {name!r} the unknown type {kind!r}",
                kind="error",
                hint=did_you_mean(str(kind), TYPES),
            )
        types[name] = kind
    return types
