"""Reading a model file: what kind of file it is, why it can't be read, its digest and size.

Weights that lie in external files are never loaded: they are only checked, counted and hashed in
pieces, so that a model of many gigabytes costs a few megabytes here.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import ModelError, first_line, says, why_unreadable
from pytest_ortbench.core.file_digest import file_digest, stamp_of
from pytest_ortbench.core.lfs_pointer import POINTER, PULL
from pytest_ortbench.models.claims import MAKE_AGAIN, refuse_false_claims
from pytest_ortbench.models.external_data import ExternalFile, external_files
from pytest_ortbench.models.inspection import all_names

if TYPE_CHECKING:
    import onnx

#: A protobuf message can't be larger; a bigger model needs external data.
_PROTOBUF_LIMIT = 2**31 - 1

#: As protobuf, onnx.printer and JSON write a model.
_MODEL_AS_TEXT = re.compile(r"[\s<{\"]*ir_?version", re.IGNORECASE)

#: First bytes (with their offset) of files that often carry the wrong suffix, and what to do.
_SIGNATURES: tuple[tuple[int, bytes, str, str], ...] = (
    (
        0,
        b"PK\x03\x04",
        "is a zip archive, not an ONNX model",
        "If PyTorch saved it, export the model to ONNX with torch.onnx.export. If not, unpack the "
        "archive and name the .onnx file inside",
    ),
    (0, b"PK\x05\x06", "is an empty zip archive", "Download or pack the archive again"),
    (0, b"\x1f\x8b", "is gzip-compressed", "Unpack the file first (gunzip)"),
    (0, b"\x28\xb5\x2f\xfd", "is zstd-compressed", "Unpack the file first (unzstd)"),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        "is a 7z archive",
        "Unpack the archive and name the .onnx file inside",
    ),
    (257, b"ustar", "is a tar archive", "Unpack the archive and name the .onnx file inside"),
    (
        0,
        b"\x89HDF\r\n",
        "is an HDF5 file (Keras), not an ONNX model",
        "Convert the model with tf2onnx",
    ),
    (
        0,
        b"\x80\x02",
        "is a Python pickle (PyTorch), not an ONNX model",
        "Export the model to ONNX with torch.onnx.export",
    ),
    (4, b"TFL3", "is a TensorFlow Lite model, not an ONNX model", "Convert the model with tf2onnx"),
    (
        4,
        b"ORTM",
        "is in ONNX Runtime's own format, which needs the suffix .ort",
        "To measure that format, rename the file so that it ends in .ort. To measure the ONNX "
        "model, name its .onnx file",
    ),
    (
        0,
        POINTER,
        "is a Git LFS pointer: the model itself was not fetched",
        PULL,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model file that was read.

    Attributes:
        path: Absolute path, links not resolved (external data lies beside the link).
        proto: The parsed model; external weights not loaded.
        digest: SHA-256 of the file and its external data, see
            :func:`~pytest_ortbench.core.file_digest.file_digest`.
        size_bytes: File plus external files.
        external: External data files, in order of their location.
    """

    path: Path
    proto: onnx.ModelProto
    digest: str
    size_bytes: int
    external: tuple[ExternalFile, ...]


def read_model_file(path: Path) -> ModelFile:
    """Parse and check a model file.

    Raises:
        ModelError: if it is missing, no regular file, empty, truncated, something else than an
            ONNX model, larger than protobuf allows, or if its weights claim more than there is:
            inside of it, or in external data, which may also be missing or lie outside the model's
            folder. One line that starts with the path.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow a link away from its data
    size = regular_size(path)
    if not _is_utf_8(path):
        raise ModelError(
            "ONNX Runtime opens only paths that are written in UTF-8, and this one is not",
            place=str(path),
            hint="Rename the file or its folder",
        )
    stamp = stamp_of(path)
    proto = _parse(path, size)
    refuse_false_claims(proto, path)
    external = external_files(proto, path)
    digest = _digest(path, external)
    if stamp_of(path) != stamp:
        raise ModelError(
            "the file changed while it was read",
            place=str(path),
            hint="Run again when no program writes to the file any more",
        )
    total = size + sum(item.size_bytes for item in external)
    return ModelFile(path=path, proto=proto, digest=digest, size_bytes=total, external=external)


def _is_utf_8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _digest(path: Path, external: tuple[ExternalFile, ...]) -> str:
    try:
        return file_digest(path, tuple((item.location, item.path) for item in external))
    except OSError as error:
        raise _unreadable(error, Path(error.filename or path)) from None


def regular_size(path: Path) -> int:
    """Return the size of a regular file.

    Raises:
        ModelError: if it is missing, no regular file, or empty.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(error, path) from None
    except ValueError as error:
        raise ModelError(
            f"this can't be the path of a file ({says('Python', str(error))})",
            place=str(path),
            hint="Correct the path",
        ) from None
    if stat.S_ISDIR(status.st_mode):
        raise ModelError(
            "this is a folder, not a model file",
            place=str(path),
            hint="Name a model file in the folder",
        )
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(
            "this is a device or a pipe, not a file",
            place=str(path),
            hint="Save the model to a file, and name that file",
        )
    if status.st_size == 0:
        raise ModelError(
            "the file is empty (0 bytes)", place=str(path), hint="Fetch or export the model again"
        )
    return status.st_size


def _parse(path: Path, size: int) -> onnx.ModelProto:
    import onnx  # takes 100 ms and more: only when a model is read
    from google.protobuf.message import (  # type: ignore[import-untyped, unused-ignore]
        DecodeError,
    )

    try:
        with path.open("rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise _unreadable(error, path) from None
    _refuse_other_formats(path, head)
    truncated = _truncation(path, size)
    if truncated:
        raise ModelError(
            f"the file is truncated: {truncated}",
            place=str(path),
            hint=MAKE_AGAIN,
        )
    if size > _PROTOBUF_LIMIT:
        raise ModelError(
            f"the file has {size / 2**30:.1f} GiB, but an ONNX file without external data has at "
            "most 2 GiB",
            place=str(path),
            hint="Export the model again with its weights as external data, e.g. with "
            "torch.onnx.export(…, external_data=True)",
        )
    try:
        proto = onnx.load(str(path), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"the file is not an ONNX model ({says('protobuf', first_line(error))})",
            place=str(path),
            hint=MAKE_AGAIN,
        ) from None
    except OSError as error:
        raise _unreadable(error, path) from None
    if not proto.HasField("graph"):
        raise ModelError(
            "the file contains no field 'graph', so it is not a complete ONNX model",
            place=str(path),
            hint="If you fetched or copied the model, do that again. If a script made it, save the "
            "whole model, e.g. with onnx.save(model, path)",
        )
    damaged = _damaged_name(proto)
    if damaged is not None:
        raise ModelError(
            f"a name in the file is not valid UTF-8 ({damaged[:40]!r})",
            place=str(path),
            hint=MAKE_AGAIN,
        )
    if not proto.opset_import and proto.ir_version >= 3:
        raise ModelError(
            "the file names no operator set (opset_import), so it is not a complete ONNX model",
            place=str(path),
            hint="If you fetched or copied the model, do that again. If a script made it, name the "
            "operator set there, e.g. with: model.opset_import.add(domain='', version=17)",
        )
    return proto


def _damaged_name(proto: onnx.ModelProto) -> bytes | None:
    """The first name that is not UTF-8 (the parser hands those over as bytes)."""
    for name in all_names(proto):
        if isinstance(name, bytes):
            return name
    return None


def _refuse_other_formats(path: Path, head: bytes) -> None:
    for offset, signature, reason, hint in _SIGNATURES:
        if head[offset : offset + len(signature)] == signature:
            raise ModelError(f"the file {reason}", place=str(path), hint=hint)
    text = _as_text(head)
    if text is None:
        return
    if text.lstrip().lower().startswith(("<!doctype", "<html")):
        raise ModelError(
            "this is an HTML page, not an ONNX model",
            place=str(path),
            hint="Open it in a browser to see why. Correct the link or log in, and download again "
            "(at Hugging Face, write /resolve/ in the link in place of /blob/)",
        )
    shown = " ".join(text.split())[:40]
    if _MODEL_AS_TEXT.match(text):
        raise ModelError(
            f"this is an ONNX model as text (it begins with {shown!r}), not in binary form",
            place=str(path),
            hint=f"In the script that made it, write it with onnx.save(model, {path.name!r})",
        )
    raise ModelError(
        f"this is a text file, not an ONNX model (it begins with {shown!r})",
        place=str(path),
        hint="If you downloaded it, this is the answer of the server: correct the link, and "
        "download again. If not, name an .onnx file that an exporter wrote",
    )


def _as_text(head: bytes) -> str | None:
    """Return ``head`` as text if it is nothing but text; a protobuf has control bytes at once."""
    if any(byte < 32 and byte not in b"\t\n\r\f" for byte in head):
        return None
    for cut in range(4):  # the piece may end inside a character
        try:
            return head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
    return None


def _truncation(path: Path, size: int) -> str:
    """Walk the outermost protobuf fields; say where one reaches past the end of the file."""
    with path.open("rb") as stream:
        position = 0
        while position < size:
            key = _varint(stream.read(10))
            if key is None:
                return f"it ends at byte {position:,}, in the middle of a value"
            tag, used = key
            kind = tag & 7
            position += used
            stream.seek(position)
            if kind == 2:
                length = _varint(stream.read(10))
                if length is None:
                    return f"it ends at byte {position:,}, in the middle of a value"
                position += length[1] + length[0]
            elif kind == 0:
                value = _varint(stream.read(10))
                if value is None:
                    return f"it ends at byte {position:,}, in the middle of a value"
                position += value[1]
            elif kind in (1, 5):
                position += 8 if kind == 1 else 4
            else:
                return ""  # no protobuf at all: the parser says so
            if position > size:
                if tag >> 3 > 100:
                    return ""  # no field of a model; likewise
                return f"it has {size:,} bytes, but the model needs at least {position:,}"
            stream.seek(position)
    return ""


def _varint(data: bytes) -> tuple[int, int] | None:
    """Decode a protobuf varint; returns (value, bytes used), ``None`` if it does not end."""
    value = 0
    for index, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    return None


def _unreadable(error: OSError, path: Path) -> ModelError:
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return ModelError(
            f"this is a link to {str(path.readlink())!r}, which does not exist",
            place=str(path),
            hint="Put the file there, or correct the link",
        )
    why, step = why_unreadable(error)
    return ModelError(f"the file {why}", place=str(path), hint=step)
