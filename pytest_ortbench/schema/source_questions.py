"""What the host asks about sources, from which models are exported."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.source import Exported
from pytest_ortbench.schema.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource(Question[Exported]):
    """Load a source, which runs its code, and export it into an empty folder.

    A worker that is asked shares the files of the host.

    Attributes:
        path: The Python file, or the framework's file or folder.
        function: The function in a Python file; empty for others.
        folder: Where the ONNX file goes.
        settings: What the user set for the exporter, by its own names.
    """

    path: str
    function: str
    folder: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledVersions:
    """Versions of distributions by their names, empty for those that are not there."""

    versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVersions(Question[InstalledVersions]):
    """Say which versions of distributions are installed, without importing any.

    Attributes:
        distributions: Their names.
    """

    distributions: tuple[str, ...]
