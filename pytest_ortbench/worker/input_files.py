"""Real inputs: an array of a ``.npy``, ``.npz`` or ONNX ``.pb`` file, checked against the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import STAND_INS
from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.worker.element_bits import from_bits, from_codes, represented
from pytest_ortbench.worker.element_types import (
    ValueType,
    input_error,
    numpy_name,
    parse_type,
    unreadable_input,
)
from pytest_ortbench.worker.tensor_proto import read_tensor, read_tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Origins of sizes that the user can set.
_SETTABLE = frozenset({"batch", "dims", "default", "catalogue", "builder"})


def read_input(spec: InputSpec) -> object:
    """Read the value of ``spec`` from its file.

    Raises:
        WorkerError: if the file can't be read, or its type or shape is not that of the input.
    """
    path = Path(spec.path)
    wanted = parse_type(spec.type, name=spec.name)
    shape: tuple[int, ...] | None = spec.shape
    if wanted.kind == "optional" and wanted.inner is not None:
        wanted, shape = wanted.inner, None  # its sizes stand in no plan
    if wanted.kind == "tensor":
        array = (
            read_tensor(path)
            if path.suffix.lower() == ".pb"
            else _read_numpy(path, spec.member or spec.name)
        )
        return _fitting(array, wanted, spec, shape=shape)
    if wanted.kind == "seq" and wanted.inner is not None and wanted.inner.kind == "tensor":
        if path.suffix.lower() != ".pb":
            raise input_error(
                f"input {spec.name!r} is a sequence of tensors, which {path} can't hold",
                hint="Store the sequence as a SequenceProto of ONNX in a .pb file",
            )
        inner = wanted.inner
        return [_fitting(array, inner, spec, shape=None) for array in read_tensors(path)]
    raise case_error(
        f"input {spec.name!r} has the type {spec.type!r}, which can't be read from a file",
        hint=f"Leave {spec.name!r} out of --ort-inputs. Random values are then fed",
    )


def _read_numpy(path: Path, member: str) -> NDArray[Any]:
    import zipfile
    import zlib

    try:
        # Opened here, since numpy leaves a file open that turns out to be damaged.
        with path.open("rb") as stream:
            return _loaded(stream, path, member)
    except OSError as error:
        raise unreadable_input(path, error) from error
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise input_error(
            f"the input file {path} is damaged, or neither .npy nor .npz. "
            f"{says('numpy', first_line(error))}",
            "If the file was copied or fetched, copy or fetch it again. If not, write it again "
            "with numpy.save or numpy.savez",
        ) from error
    except (ValueError, RuntimeError) as error:
        # RuntimeError: it is encrypted, or compressed in a way that Python does not know.
        hint = f"Write it again with numpy.{'savez' if path.suffix == '.npz' else 'save'}"
        if "allow_pickle" in str(error):
            hint += ". Store text as an array of dtype str, and no Python objects"
        elif isinstance(error, ValueError):
            hint = f"If the file was copied, copy it again. If not, {hint[0].lower()}{hint[1:]}"
        raise input_error(
            f"the input file {path} can't be read. {says('numpy', first_line(error))}", hint
        ) from error


def _loaded(stream: BinaryIO, path: Path, member: str) -> NDArray[Any]:
    import numpy as np

    # Without pickle: an input file must not be able to run code.
    loaded = np.load(stream, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        names: Sequence[str] = loaded.files
        if member not in names:
            raise input_error(
                f"the input file {path} has no array {member!r}",
                hint=f"Store the array under this name. The names in the file are: "
                f"{', '.join(names)}"
                if names
                else "Store the array under this name. The file contains no array",
            )
        array: NDArray[Any] = loaded[member]
        return array


def _fitting(
    array: NDArray[Any], wanted: ValueType, spec: InputSpec, *, shape: tuple[int, ...] | None
) -> NDArray[Any]:
    """``array`` in the wanted type, or an error that names both types and both shapes."""
    import numpy as np

    name = numpy_name(wanted.element, name=spec.name)
    dtype = array.dtype
    if name == "object" and dtype.kind in "SU":
        texts = (
            array.astype(str) if dtype.kind == "U" else np.char.decode(array, "utf-8", "replace")
        )
        array = texts.astype(object)
    elif dtype.kind not in "OV":
        array = array.astype(dtype.newbyteorder("="), copy=False)
    place = f"{spec.path}:{spec.member}" if spec.member else spec.path
    if wanted.element in STAND_INS:
        array = _stand_in(array, wanted.element, spec, place)
    if spec.stored_type and array.dtype != np.dtype(name):
        array = _rounded(array, name, spec, place)
    if array.dtype != np.dtype(name):
        raise input_error(
            f"input {spec.name!r} needs {spec.type}, but {place} contains {dtype}",
            hint=f"Convert the array to {'text' if name == 'object' else name}",
        )
    if shape is not None and array.shape != shape:
        differs_in_batch = bool(shape) and array.shape[1:] == shape[1:]
        raise input_error(
            f"input {spec.name!r} needs the shape {list(shape)}, but {place} has "
            f"{list(array.shape)}",
            hint=_batch_hint(shape[0], array.shape[0])
            if differs_in_batch
            else _sizes_hint(spec, shape, array.shape),
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def _batch_hint(wanted: int, held: int) -> str:
    hint = f"Write --ort-batch-sizes={held}"
    if wanted > held:
        return f"{hint}, or store {wanted} examples there"
    return f"{hint}, or store only {wanted} of the examples there: array[:{wanted}]"


def _sizes_hint(spec: InputSpec, shape: tuple[int, ...], held: tuple[int, ...]) -> str:
    options = size_options(spec, shape, held)
    return f"Write {options}" if options else f"Store an array of the shape {list(shape)} there"


def size_options(spec: InputSpec, shape: tuple[int, ...], held: tuple[int, ...]) -> str:
    """Return the options that set other sizes; empty unless each that differs can be set.

    Args:
        spec: An input of a case.
        shape: Its shape.
        held: The shape that it is to have.
    """
    if len(shape) != len(held):
        return ""
    options = []
    for wanted in dict.fromkeys(shape):
        sizes = {size for before, size in zip(shape, held, strict=True) if before == wanted}
        if sizes == {wanted}:
            continue
        symbols = [
            known
            for known in spec.resolved
            if known.size == wanted and known.symbol and known.origin in _SETTABLE
        ]
        size = sizes.pop()
        # Where axes of one size are not all of dimensions with a name, nobody knows which are.
        if sizes or not size or len(symbols) != shape.count(wanted):
            return ""
        options += [
            f"--ort-batch-sizes={size}"
            if known.origin == "batch"
            else f"--ort-dims={known.symbol}:{size}"
            for known in symbols
        ]
    return " ".join(options)


def _stand_in(array: NDArray[Any], element: str, spec: InputSpec, place: str) -> NDArray[Any]:
    """Numbers of a type that numpy lacks: from the bytes of ml_dtypes, or as they are."""
    import numpy as np

    if array.dtype.kind == "V":
        flat = np.ascontiguousarray(array).reshape(-1)
        if element == "bfloat16":
            return from_bits(flat.view(np.uint8), element, array.shape)
        return from_codes(flat.view(np.uint8), element).reshape(array.shape)
    if array.dtype != np.dtype(STAND_INS[element]):
        return array
    held = represented(array, element)
    if not np.array_equal(held, array, equal_nan=array.dtype.kind == "f"):
        raise input_error(
            f"input {spec.name!r} needs {spec.type}, but {place} contains numbers that {element} "
            "can't represent",
            hint=f"Round the numbers to {element} before you store them. Inputs are never rounded "
            "silently",
        )
    return held


def _rounded(array: NDArray[Any], name: str, spec: InputSpec, place: str) -> NDArray[Any]:
    """Values of the model's own float type in the one that its variant declares."""
    import numpy as np

    stored = parse_type(spec.stored_type, name=spec.name)
    if array.dtype != np.dtype(numpy_name(stored.element, name=spec.name)):
        return array
    with np.errstate(over="ignore"):
        rounded = array.astype(name)
    if bool((np.isinf(rounded) & np.isfinite(array)).any()):
        most = float(np.abs(array[np.isfinite(array)]).max())
        raise input_error(
            f"input {spec.name!r} needs {spec.type}, but {place} contains values up to {most:g}, "
            f"more than {name} can hold ({float(np.finfo(name).max):g})",
            hint="Scale the values to this range. If you defined the precision in pyproject.toml, "
            "you can leave keep_io_types = false out instead. If you exported the file yourself, "
            "you can export it with float inputs instead",
        )
    return rounded
