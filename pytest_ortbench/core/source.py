"""What a model is exported from: a function of the user's, or a file of a framework."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What an ONNX file was exported from, and by what.

    Attributes:
        path: Absolute path of the Python file, or of the framework's file or folder.
        function: The function in a Python file that returns the model; empty for others.
        digest: SHA-256 over what is read of it: code, modules beside it, weights that it names.
        framework: Alias of the framework whose model it is (``torch``).
        exporter: What exported it, for people (``skl2onnx``).
        versions: Version of each package that decides on the export, by distribution.
        files: Absolute paths of everything that ``digest`` is over.
        example: Path of a ``.npz`` file with the example inputs by the names that the ONNX file
            gives them; empty where inputs are drawn.
        library: What loads it for the framework: ``transformers``; empty for the framework itself.
    """

    path: str
    function: str = ""
    digest: str = ""
    framework: str = ""
    exporter: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    example: str = ""
    library: str = ""

    @property
    def text(self) -> str:
        """As it is written: ``PATH``, or ``PATH:FUNCTION``."""
        return f"{self.path}:{self.function}" if self.function else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What a worker exported into a folder, which also is the record that is kept beside it.

    Attributes:
        file: Name of the ONNX file.
        digest: SHA-256 over it and its external data, hexadecimal.
        external_files: External data files, relative to the folder.
        framework: As of a source.
        exporter: As of a source.
        versions: As of a source.
        contents: SHA-256 of everything that was read of the source, by its absolute path.
        example: Name of the file of example inputs, empty for none.
        example_digest: Its SHA-256.
        notes: What a reader should know of the export.
    """

    file: str
    digest: str
    external_files: tuple[str, ...] = ()
    framework: str
    exporter: str
    versions: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    example: str = ""
    example_digest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptExport:
    """An export as it lies on the disk.

    Attributes:
        path: The ONNX file.
        source: What it was exported from.
        notes: What a reader should know of the export.
    """

    path: Path
    source: Source
    notes: tuple[str, ...] = ()
