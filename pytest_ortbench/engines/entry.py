"""What a source gives when it is loaded, and what an exporter makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Keys of the dictionary that every entry function may return as its third value, and what each
#: means. A framework adds its own (``EngineKind.entry_keys``).
ENTRY_KEYS: dict[str, str] = {
    "names": "names of the inputs in the ONNX file, in order",
    "outputs": "names of the outputs, in order",
    "dynamic": "dimensions that stay open: {input: {axis: name}}",
    "files": "files that the function reads, such as weights: the export is made again when one "
    "of them changes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSource:
    """A source that was loaded: what an entry function returned, or a file of a framework held.

    Attributes:
        path: The source.
        model: An object of the framework.
        example: Example inputs as the framework takes them; ``None`` for none.
        settings: The dictionary of the entry function, checked for misspelt keys.
        function: The function that returned it; empty for a file of the framework.
    """

    path: Path
    model: Any
    example: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    function: str = ""

    @property
    def names(self) -> list[str] | None:
        """Names of the inputs that the user gives, ``None`` for the exporter's own."""
        names = self.settings.get("names")
        return None if names is None else [str(name) for name in names]

    @property
    def outputs(self) -> list[str] | None:
        """Names of the outputs that the user gives, ``None`` for the exporter's own."""
        names = self.settings.get("outputs")
        return None if names is None else [str(name) for name in names]

    @property
    def dynamic(self) -> dict[str, dict[int, str]] | None:
        """Dimensions that stay open, by input; ``None`` where the user does not say."""
        given = self.settings.get("dynamic")
        if given is None:
            return None
        return {
            str(name): {int(axis): str(symbol) for axis, symbol in dict(axes).items()}
            for name, axes in dict(given).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What an exporter did.

    Attributes:
        exporter: Its name, for people.
        versions: Version of each package that decides on the file, by distribution.
        feeds: Example inputs as arrays of numpy, by the names in the ONNX file, if the model is to
            be fed these; empty to have inputs drawn.
        files: Files that it read beside those of the source.
        notes: What a reader should know.
    """

    exporter: str
    versions: dict[str, str] = field(default_factory=dict)
    feeds: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
