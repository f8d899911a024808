"""A source is exported to ONNX in a process of its own, with which all that it loaded ends."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.source import Exported
from pytest_ortbench.engines.entry import Made
from pytest_ortbench.schema.source_questions import ExportSource, InstalledVersions, ReadVersions
from pytest_ortbench.worker.array_archive import write_arrays
from pytest_ortbench.worker.entry import export_error, exported_by, files_read, load_named
from pytest_ortbench.worker.state import WorkerState

#: Names of what is made.
MODEL, EXAMPLE = "model.onnx", "example.npz"
#: Stands among the versions of distributions for that of the interpreter.
PYTHON = "python"


def export_source(question: ExportSource, state: WorkerState) -> Exported:
    """Load a source and export it into the asked folder.

    Raises:
        WorkerError: with what went wrong and where, on one line.
    """
    state.enter("export")
    folder = Path(question.folder)
    loaded, kind = load_named(Path(question.path), question.function)
    contents = {str(path): file_digest(path) for path in files_read(loaded)}
    target = folder / MODEL
    made = exported_by(kind, loaded, target, question.settings)
    if not isinstance(made, Made) or not target.is_file():
        what = "wrote no file" if isinstance(made, Made) else f"returned no {Made.__name__}"
        raise export_error(f"the exporter of {kind.title} {what}")
    contents.update((str(path), file_digest(path)) for path in made.files)
    beside = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path != target
    )
    if made.feeds:
        write_arrays(folder / EXAMPLE, made.feeds)
    return Exported(
        file=MODEL,
        digest=file_digest(target, tuple((name, folder / name) for name in beside)),
        external_files=tuple(beside),
        framework=kind.alias,
        exporter=made.exporter,
        versions={**made.versions, PYTHON: platform.python_version()},
        contents=contents,
        example=EXAMPLE if made.feeds else "",
        example_digest=file_digest(folder / EXAMPLE) if made.feeds else "",
        notes=made.notes,
    )


def read_versions(question: ReadVersions, state: WorkerState) -> InstalledVersions:
    """Return the versions of installed distributions."""
    state.enter("export")
    return InstalledVersions(versions=versions_of(question.distributions))


def versions_of(distributions: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of distributions in this interpreter, empty for those not there."""
    versions = {}
    for name in distributions:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = platform.python_version() if name == PYTHON else ""
    return versions
