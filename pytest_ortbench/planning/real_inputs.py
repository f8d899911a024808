"""Real inputs: which file holds which input, and the shapes in it, without loading the values.

Stored input sets for calibration are several of them: one file, or a folder of files.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pytest_ortbench.core.case import FURTHER_SET, Case, InputSpec
from pytest_ortbench.core.element_types import ELEMENT_TYPES
from pytest_ortbench.core.errors import UsageError, says, why_unreadable
from pytest_ortbench.core.file_digest import content_of
from pytest_ortbench.core.lfs_pointer import PULL, is_pointer
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.core.units import counted
from pytest_ortbench.planning.input_steps import (
    PB_NAME,
    additions,
    as_written,
    conversion,
    file_stem,
    in_a_row,
    is_lone,
    lone_file,
    renaming,
    suffixes_in,
)

if TYPE_CHECKING:
    import numpy as np

PLACE = "--ort-inputs"
#: Member of an archive that says how its arrays came about.
ABOUT = "prepared.json"
#: ONNX Runtime's spelling of types that numpy calls otherwise.
_NAMES = {"float32": "float", "float64": "double"}
#: Type of an array of single bytes that numpy gives no meaning, as ml_dtypes stores small types.
_BYTES = "tensor(void8)"

#: What reading a damaged archive raises; of an encrypted one, or one that is compressed in a way
#: that Python does not know, ``RuntimeError``.
_NO_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, EOFError, zlib.error, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInput:
    """One stored array.

    Attributes:
        path: File that holds it.
        member: Its name inside a file that holds several.
        type: As ONNX Runtime spells it.
        shape: One size an axis; ``None`` for a sequence, whose tensors differ.
    """

    path: Path
    member: str
    type: str
    shape: tuple[int, ...] | None


def stored_inputs(model: Model, path: Path) -> dict[str, StoredInput]:
    """Find the stored value of every input of a model.

    Args:
        model: The model.
        path: A ``.npz`` file with one array an input, a folder with one ``NAME.npy`` an input, or
            a folder ``test_data_set_N`` of ONNX with ``input_0.pb``, ``input_1.pb``, …. Arrays
            that are called as outputs are those that are expected.

    Returns:
        By input name.

    Raises:
        UsageError: if there is no such file, if it can't be read, or if names or types don't fit.
    """
    if not model.inputs:
        return {}
    held = _stored(model, path)
    outputs = [info.name for info in model.outputs]
    found = {name: stored for name, stored in held.items() if name not in outputs}
    _check_names(model, path, found, [name for name in outputs if name not in held])
    for info in model.inputs:
        if info.name in found:
            _check_type(info, found[info.name])
    return found


def expected_outputs(model: Model, inputs: Sequence[InputSpec]) -> tuple[InputSpec, ...]:
    """Return the outputs that lie beside the inputs as arrays of their names, in the model's order.

    None where some input comes from elsewhere: what is expected of other inputs says nothing.
    """
    paths = {Path(spec.path) for spec in inputs}
    archives = {path for path in paths if path.suffix.lower() == ".npz"}
    places = archives or {path.parent for path in paths if path.suffix.lower() == ".npy"}
    if not paths or len(places) != 1 or (archives and paths != archives):
        return ()
    if any(not spec.path for spec in inputs):
        return ()
    held = _stored(model, places.pop())
    return tuple(
        InputSpec(
            name=info.name,
            type=info.type if _holds(held[info.name].type, info.type) else held[info.name].type,
            shape=held[info.name].shape or (),
            hint=ValueHint(kind="normal"),
            path=str(held[info.name].path.absolute()),
            member=held[info.name].member,
        )
        for info in model.outputs
        if info.name in held
    )


def _stored(model: Model, path: Path) -> dict[str, StoredInput]:
    """What a file or folder holds, by name."""
    if path.is_dir():
        pb_files = {int(m[1]): item for item in path.iterdir() if (m := PB_NAME.match(item.name))}
        found = _from_pb(model, pb_files) if pb_files else _from_npy(model, path)
    elif path.suffix.lower() == ".npz":
        found = _from_npz(model, path)
    elif not path.exists():
        raise UsageError(f"{str(path)!r} does not exist", place=PLACE, hint="Correct the path")
    elif path.suffix.lower() == ".npy":
        found = _single(model, path)
    elif is_lone(path):
        raise lone_file(path, PLACE)
    else:
        raise UsageError(
            f"{str(path)!r} is not a kind of file that {PLACE} reads",
            place=PLACE,
            hint="Store the values with numpy.savez, as one array for each input "
            f"({in_a_row([info.name for info in model.inputs])}), and name that .npz file",
        )
    return found


def _from_npz(model: Model, path: Path) -> dict[str, StoredInput]:
    found: dict[str, StoredInput] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if entry.endswith(".npy") and not entry.startswith(FURTHER_SET):
                    name = entry.removesuffix(".npy")
                    with archive.open(entry) as stream:
                        kind, shape = _header(stream, name)
                    found[name] = StoredInput(path=path, member=name, type=kind, shape=shape)
    except _NO_ARCHIVE as error:
        raise _unreadable(path, error) from None
    if not found:
        raise UsageError(
            f"{str(path)!r} contains no array",
            place=PLACE,
            hint="Write the file again with numpy.savez, with one array for each input of the "
            f"model: {in_a_row([info.name for info in model.inputs])}",
        )
    return found


def _from_npy(model: Model, folder: Path) -> dict[str, StoredInput]:
    files = sorted(folder.glob("*.npy"))
    if not files:
        others = suffixes_in(folder)
        raise UsageError(
            f"the folder {str(folder)!r} contains "
            + (
                f"only {in_a_row(others)} files, which are not read" if others else "no input files"
            ),
            place=PLACE,
            hint=conversion(others)
            or f"Store the values there, as one array for each input: {_array_files(model)}"
            if others
            else f"Put one array for each input there: {_array_files(model)}. If the model takes "
            "images or sounds, put image files or WAV files there instead",
        )
    declared = (*model.outputs, *model.inputs)
    names = {file_stem(info.name): info.name for info in declared}
    return {names.get(file.stem, file.stem): _read_npy(file) for file in files}


#: Inputs whose files are named.
_NAMED = 6


def _single(model: Model, path: Path) -> dict[str, StoredInput]:
    if len(model.inputs) != 1:
        raise UsageError(
            f"{str(path)!r} is one array, but model {model.name!r} has {len(model.inputs)} inputs",
            place=PLACE,
            hint=f"Name a folder with an array for each input: {_array_files(model)}",
        )
    return {model.inputs[0].name: _read_npy(path)}


def _array_files(model: Model) -> str:
    """Name the files that a folder of arrays has for a model; of many inputs, the first ones."""
    named = ", ".join(f"{file_stem(info.name)}.npy" for info in model.inputs[:_NAMED])
    return f"{named}, …" if len(model.inputs) > _NAMED else named


def _read_npy(path: Path) -> StoredInput:
    try:
        with path.open("rb") as stream:
            kind, shape = _header(stream)
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, error) from None
    return StoredInput(path=path, member="", type=kind, shape=shape)


def _header(stream: IO[bytes], name: str = "") -> tuple[str, tuple[int, ...]]:
    """Read type and shape of a ``.npy`` stream, and nothing more; never unpickles.

    Args:
        stream: The array.
        name: What it is called in its archive; empty where it is a file of its own.
    """
    import numpy as np

    version = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise _PickledError(name, is_array=bool(shape))
    return _type_name(dtype), tuple(int(size) for size in shape)


def _type_name(dtype: np.dtype[np.generic]) -> str:
    if dtype.kind in "US":
        return "tensor(string)"
    if dtype.kind == "V":
        return "tensor(bfloat16)" if dtype.itemsize == 2 else f"tensor({dtype.name})"
    plain = dtype.newbyteorder("=").name
    return f"tensor({_NAMES.get(plain, plain)})"


def _from_pb(model: Model, files: dict[int, Path]) -> dict[str, StoredInput]:
    from pytest_ortbench.models.tensor_file import read_tensor_header

    found: dict[str, StoredInput] = {}
    for number, file in sorted(files.items()):
        if number >= len(model.inputs):
            free = next((index for index in range(len(model.inputs)) if index not in files), None)
            raise UsageError(
                f"{str(file)!r} is for input number {number + 1}, since the files are counted "
                f"from input_0.pb, but model {model.name!r} has "
                f"{counted(len(model.inputs), 'input')}",
                place=PLACE,
                hint="Remove the file, or move it to another folder"
                if free is None
                else f"Rename it to input_{free}.pb, for the input {model.inputs[free].name!r}",
            )
        info = model.inputs[number]
        if not info.type.startswith("tensor("):
            # Sequences and optionals carry no shape of their own; the worker reads them.
            found[info.name] = StoredInput(path=file, member="", type=info.type, shape=None)
            continue
        try:
            header = read_tensor_header(file)
        except (OSError, ValueError) as error:
            raise _unreadable(file, error) from None
        found[info.name] = StoredInput(path=file, member="", type=header.type, shape=header.shape)
    return found


def _check_names(
    model: Model, path: Path, found: dict[str, StoredInput], outputs: Sequence[str]
) -> None:
    declared = [info.name for info in model.inputs]
    unknown = [name for name in found if name not in declared]
    missing = [] if is_prepared(path) else list(_missing(model.inputs, found))
    if unknown:
        kind = "file" if path.is_dir() else "array"
        several = len(unknown) > 1
        raise UsageError(
            f"{str(path)!r} contains the {kind}{'s' if several else ''} "
            f"{in_a_row(as_written(path, unknown))}, but model {model.name!r} has no input or "
            f"output of {'these names' if several else 'this name'}",
            place=PLACE,
            hint=renaming(path, unknown, missing, outputs),
        )
    if missing:
        raise UsageError(
            f"{str(path)!r} has no array for {in_a_row([repr(name) for name in missing])}, which "
            f"model {model.name!r} needs as {'an input' if len(missing) == 1 else 'inputs'}",
            place=PLACE,
            hint=additions(model, path, missing),
        )


def is_prepared(path: Path) -> bool:
    """Whether an archive was made of photos, sounds or texts: its other inputs are drawn."""
    try:
        with zipfile.ZipFile(path) as archive:
            return ABOUT in archive.namelist()
    except _NO_ARCHIVE:
        return False


def _missing(inputs: Sequence[TensorInfo], found: dict[str, StoredInput]) -> Iterator[str]:
    """Inputs that must be in the file: not optional ones, nor maps, which no file here can hold."""
    for info in inputs:
        if info.name not in found and not info.optional and "map(" not in info.type:
            yield info.name


def _check_type(info: TensorInfo, stored: StoredInput) -> None:
    wanted = info.type.removeprefix("optional(").removesuffix(")" if info.optional else "")
    if not _holds(stored.type, wanted) and stored.shape is not None:
        raise UsageError(
            f"input {info.name!r} is {wanted}, but {str(stored.path)!r} contains {stored.type}",
            place=PLACE,
            hint=_conversion(wanted),
        )


def _conversion(wanted: str) -> str:
    """The next step for an array of another type."""
    element = ELEMENT_TYPES.get(wanted.removeprefix("tensor(").removesuffix(")"))
    name = "" if element is None else element.numpy_name or element.stand_in
    if not name:
        return f"Store the array as {wanted}"
    # NumPy's objects would be pickled.
    shown = {"object": "str"}.get(name, name)
    return f"Convert the array, e.g. with array.astype({shown!r}), and save it again"


def _holds(stored: str, wanted: str) -> bool:
    """Whether an array of one type holds values of another: itself, its bytes or its stand-in."""
    if stored == wanted:
        return True
    element = ELEMENT_TYPES.get(wanted.removeprefix("tensor(").removesuffix(")"))
    if element is None or not element.stand_in:
        return False
    stand_in = f"tensor({_NAMES.get(element.stand_in, element.stand_in)})"
    return stored == stand_in or (stored == _BYTES and element.bits <= 8)


class _PickledError(ValueError):
    """An array holds objects of Python, which only unpickling could read.

    Args:
        name: What it is called in its archive; empty where it is a file of its own.
        is_array: Whether they are several, not a single one.
    """

    def __init__(self, name: str, *, is_array: bool) -> None:
        super().__init__(name)
        self.is_array = is_array


def _unreadable(path: Path, error: Exception) -> UsageError:
    kind = path.suffix.lower()
    if isinstance(error, _PickledError):
        return UsageError(
            (f"the array {str(error)!r} in " if str(error) else "")
            + f"{str(path)!r} contains "
            + ("pickled Python objects, which are" if error.is_array else _ONE_OBJECT)
            + " not loaded",
            place=PLACE,
            hint="Convert the array, e.g. with array.astype('float32') or, for text, "
            "array.astype('U'), and save it again"
            if error.is_array
            else "Save the array by itself, not inside of a dictionary or list. For several "
            "arrays, use numpy.savez",
        )
    if isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError):
        what, hint = why_unreadable(error)
        return UsageError(f"{str(path)!r} {what}", place=PLACE, hint=hint)
    if is_pointer(path):
        return UsageError(
            f"{str(path)!r} is a Git LFS pointer: the file itself was not fetched",
            place=PLACE,
            hint=PULL,
        )
    return UsageError(
        f"{str(path)!r} can't be read as {_WRITERS.get(kind, _WRITERS['.pb'])[0]} "
        f"({says('Python', str(error))})",
        place=PLACE,
        hint="If the file was copied or downloaded, fetch it again. If not, write it again with "
        f"{_WRITERS.get(kind, _WRITERS['.pb'])[1]}",
    )


#: What such a file holds where it is no array.
_ONE_OBJECT = "a pickled Python object (not an array), which is"
#: What each kind of file is, and what writes it.
_WRITERS = {
    ".npz": ("an archive of NumPy", "numpy.savez"),
    ".npy": ("an array of NumPy", "numpy.save"),
    ".pb": ("a tensor of ONNX", "onnx.save_tensor"),
}


def stored_sets(model: Model, path: Path) -> tuple[tuple[InputSpec, ...], ...]:
    """Find the input sets of a model, without loading their values.

    Args:
        model: The model.
        path: A ``.npz`` file (one set), a folder of ``.npz`` files (one set each), a folder with
            ``test_data_set_N`` or other folders in it that hold one set each, or a folder that is
            one set itself (``.npy`` or ``input_0.pb``).

    Returns:
        One entry a set, in the order of their names; empty for an empty folder.

    Raises:
        UsageError: if there is nothing at ``path``, or if names or types don't fit the model.
    """
    return tuple(_specs_of_set(model, place) for place in _places_of_sets(path))


def _places_of_sets(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    archives = sorted(item for item in path.iterdir() if item.suffix.lower() == ".npz")
    if archives:
        return archives
    if any(item.suffix.lower() in (".npy", ".pb") for item in path.iterdir()):
        return [path]
    return sorted(item for item in path.iterdir() if item.is_dir())


def _specs_of_set(model: Model, place: Path) -> tuple[InputSpec, ...]:
    found = stored_inputs(model, place)
    return tuple(
        InputSpec(
            name=info.name,
            type=info.type,
            shape=found[info.name].shape or (),
            hint=info.hint or ValueHint(kind="normal"),
            path=str(found[info.name].path.absolute()),
            member=found[info.name].member,
        )
        for info in model.inputs
        if info.name in found
    )


def with_contents(case: Case) -> Case:
    """Return the case with what its further files hold now, expected outputs among them."""
    contents = {path: held for path in case.further_files() if (held := content_of(path))}
    expected = expected_outputs(case.model, case.inputs)
    if (contents, expected) == (case.file_contents, case.expected):
        return case
    return replace(case, file_contents=contents, expected=expected)
