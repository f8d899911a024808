"""Files for a worker that does not see the host's: sent in chunks over the channel, checked there.

Whatever starts the worker (``ssh``, a container) carries the channel, so nothing else has to be
set up for files: no mount, no second connection. They go to a temporary folder of the worker's,
which it removes when it ends.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Protocol, TypeVar

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import why_unreadable
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.schema.file_questions import FetchChunk, StoreChunk
from pytest_ortbench.schema.question import FileMark, Question, files_in

A = TypeVar("A")
Q = TypeVar("Q", bound=Question[Any])

#: One chunk in base64 is a line of 1.4 MB: few round trips for a large model, and little memory.
_CHUNK = 1 << 20


class Ask(Protocol):
    """Asks the worker one question; raises WorkerError."""

    def __call__(self, question: Question[A], /) -> A: ...


class Files(Protocol):
    """How one worker gets at the host's files. What can't be sent raises WorkerError."""

    def case(self, case: Case) -> Case:
        """Return a case to be measured, with the worker's paths."""

    def source(self, case: Case) -> Case:
        """Return a case whose reference is to be computed, with the worker's paths."""

    def send(self, path: Path, name: str) -> str:
        """Return the worker's path of a host file."""

    def labelled(self, dataset: Dataset) -> Dataset:
        """Return labelled data with the worker's path."""

    def place_of(self, path: Path) -> str:
        """Return where the worker is to write what will be the host's ``path``."""

    def fetch(self, written: str, path: Path) -> None:
        """Bring what the worker wrote there to the host's ``path``."""


class SharedFiles:
    """The worker sees the host's files under their own paths."""

    def case(self, case: Case) -> Case:
        """Return the case as it is."""
        return case

    def source(self, case: Case) -> Case:
        """Return the case as it is."""
        return case

    def send(self, path: Path, name: str) -> str:  # noqa: ARG002 - nothing is copied
        """Return the same path."""
        return str(path)

    def labelled(self, dataset: Dataset) -> Dataset:
        """Return the data as they are."""
        return dataset

    def place_of(self, path: Path) -> str:
        """Return the same path."""
        return str(path)

    def fetch(self, written: str, path: Path) -> None:
        """Nothing to do: it is there."""


class StagedFiles:
    """The worker has copies of host files; each file is sent once.

    Args:
        ask: Asks the worker.
        runtime: Label of its runtime.
    """

    def __init__(self, ask: Ask, runtime: str) -> None:
        self._ask = ask
        self._runtime = runtime
        self._paths: dict[Path, str] = {}
        self._model = ""

    def case(self, case: Case) -> Case:
        """Send what a case needs to be measured; return it with the worker's paths."""
        variant, model = case.variant, case.model
        external = variant.external_files or (
            model.external_files if variant.path == model.path else ()
        )
        path = self._send_model(Path(variant.path), external)
        return replace(self._with_inputs(case), variant=replace(variant, path=path))

    def source(self, case: Case) -> Case:
        """Send what a case's reference needs: the model as the user named it."""
        model = case.model
        path = self._send_model(Path(model.path), model.external_files)
        return replace(self._with_inputs(case), model=replace(model, path=path))

    def send(self, path: Path, name: str) -> str:
        """Send a file and return its path on the worker's side.

        Args:
            path: The host's file.
            name: Where it goes in the worker's folder, with ``/`` between parts.

        Raises:
            WorkerError: if the file can't be read, or arrived damaged.
        """
        if path not in self._paths:
            try:
                for chunk in _chunks(path, name):
                    self._paths[path] = self._ask(chunk).path
            except OSError as error:
                what, hint = why_unreadable(error)
                raise case_error(
                    f"the file {path} {what}",
                    hint,
                    kind="error",
                    phase="files",
                ) from error
        return self._paths[path]

    def labelled(self, dataset: Dataset) -> Dataset:
        """Send labelled data and return them with the worker's path.

        Raises:
            WorkerError: if an entry point would run where its files are not.
        """
        if dataset.user_code:
            raise case_error(
                f"the runtime {self._runtime!r} measures in a container or on another machine, "
                f"where the files of the data set {dataset.label} do not exist",
                "Store samples and labels in an .npz file, and name this file in --ort-dataset. "
                "Each run sends it there",
                kind="error",
                phase="files",
            )
        path = Path(dataset.path)
        return replace(dataset, path=self.send(path, f"data/{path.name}"))

    def place_of(self, path: Path) -> str:
        """Return a path in the worker's folder, beside the model that was sent."""
        return f"{self._model}.{path.name}"

    def fetch(self, written: str, path: Path) -> None:
        """Copy a file of the worker's folder to ``path``; it appears when it is complete.

        Raises:
            WorkerError: if it can't be read, or arrived damaged.
            OSError: if it can't be written.
        """
        draft = path.with_name(f"{path.name}.draft")
        digest = hashlib.sha256()
        received = 0
        try:
            with draft.open("wb") as file:
                while True:
                    fetched = self._ask(FetchChunk(path=written, offset=received))
                    data = base64.b64decode(fetched.data)
                    file.write(data)
                    digest.update(data)
                    received += len(data)
                    if fetched.digest or not data:
                        break
            if fetched.digest != digest.hexdigest():
                raise case_error(f"{written} arrived damaged", kind="error", phase="files")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _send_model(self, path: Path, external: tuple[str, ...]) -> str:
        """Send a model with its external data, which it finds relative to its own folder."""
        for name in external:
            self.send(path.parent / name, f"model/{PurePath(name).as_posix()}")
        self._model = self.send(path, f"model/model{path.suffix}")
        return self._model

    def _with_inputs(self, case: Case) -> Case:
        """Send input files and custom operator libraries.

        A library that is not among the host's files is one of the worker's.
        """
        inputs, expected = (
            tuple(
                replace(spec, path=self._send_numbered(Path(spec.path))) if spec.path else spec
                for spec in specs
            )
            for specs in (case.inputs, case.expected)
        )
        libraries = [
            self._send_numbered(Path(library)) if Path(library).is_file() else library
            for library in case.session.custom_ops
        ]
        session = replace(case.session, custom_ops=tuple(libraries))
        return replace(case, inputs=inputs, expected=expected, session=session)

    def _send_numbered(self, path: Path) -> str:
        return self.send(path, f"file-{len(self._paths)}/{path.name}")


def travelling(question: Q, files: Files) -> tuple[Q, list[tuple[str, Path]]]:
    """Send the files that a question names.

    Returns:
        The question with the worker's paths; where the worker writes what, and where that belongs
        on the host.

    Raises:
        WorkerError: if a file can't be sent.
    """
    senders: dict[FileMark, Callable[[Any], object]] = {
        FileMark.READ: lambda path: path and files.send(Path(path), Path(path).name),
        FileMark.LABELLED: files.labelled,
        FileMark.MEASURED: files.case,
        FileMark.REFERENCE: files.source,
    }
    marked = files_in(type(question)).items()
    places: dict[str, object] = {
        name: senders[mark](getattr(question, name)) for name, mark in marked if mark in senders
    }
    written: list[tuple[str, Path]] = []
    # A place for them lies beside what was sent.
    for name, mark in marked:
        path = getattr(question, name)
        if mark is FileMark.WRITTEN and path:
            place = files.place_of(Path(path))
            places[name] = place
            written.append((place, Path(path)))
    asked: Q = replace(question, **places)  # type: ignore[type-var]  # each is a dataclass
    return asked, written


def _chunks(path: Path, name: str) -> Iterator[StoreChunk]:
    """The pieces of a file in order; one empty piece of an empty file."""
    with path.open("rb") as file:
        hashed = hashlib.sha256()
        while data := file.read(_CHUNK):
            hashed.update(data)
        digest, size = hashed.hexdigest(), file.tell()
        file.seek(0)
        for start in range(0, max(size, 1), _CHUNK):
            # Not beyond what was hashed: the file may grow meanwhile.
            data = file.read(min(_CHUNK, size - start))
            text = base64.b64encode(data).decode("ascii")
            yield StoreChunk(name=name, data=text, size_bytes=size, digest=digest)
