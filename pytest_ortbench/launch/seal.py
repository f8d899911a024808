"""Compares files that a worker reads with what they were when the case was planned.

A result stands under the digests of its case. So the files are looked at before a session is made
of them and after every answer; what was measured on another file fails, and is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import content_of, file_digest
from pytest_ortbench.core.outcome import CHANGED_FILE
from pytest_ortbench.core.recipe import Conversion
from pytest_ortbench.schema.question import FileMark, Question, files_in

_RESTORE = "Restore the file, and run again"
_WAIT = "Run again when no program writes to the file any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelFile:
    """A model file with its external data, and the digest that it had."""

    path: Path
    external: tuple[str, ...]
    digest: str

    def now(self) -> str:
        """The digest that it has.

        Raises:
            OSError: if it can't be read.
        """
        return file_digest(
            self.path, tuple((name, self.path.parent / name) for name in sorted(self.external))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The files of one case.

    Attributes:
        models: Model files.
        contents: What further files held, by path.
    """

    models: tuple[_ModelFile, ...] = ()
    contents: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Compare every file with what it was; where nothing was touched this reads no file.

        Raises:
            WorkerError: for the first one that is gone or has another content.
        """
        for model in self.models:
            try:
                now = model.now()
            except FileNotFoundError as error:
                raise _removed(Path(error.filename or model.path)) from error
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                said = says("The system", reason or str(error))
                raise _broken(f"{model.path} can't be read any more. {said}", _RESTORE) from error
            if now != model.digest:
                raise _changed(model.path, _told(model.digest, now, bool(model.external)))
        for path, before in self.contents:
            now = content_of(path)
            if now != before:
                raise _changed(Path(path), _told(before, now)) if now else _removed(Path(path))


def measured(case: Case) -> Seal:
    """Return the seal of a case that is measured: its variant, inputs, libraries, stages, data."""
    variant, model = case.variant, case.model
    external = variant.external_files or (
        model.external_files if variant.path == model.path else ()
    )
    seal = _seal(variant.path, external, variant.digest, case)
    return Seal(models=(*seal.models, *_beside(case)), contents=seal.contents)


def _beside(case: Case) -> list[_ModelFile]:
    """Files of other models that the requests of a case run as well."""
    encoder, first = case.model.encoder, case.model.first_step
    files = (encoder if case.encoder_inputs else None, first if case.generation else None)
    return [
        _ModelFile(path=Path(file.path), external=file.external_files, digest=file.digest)
        for file in files
        if file is not None
    ]


def source(case: Case) -> Seal:
    """Return the seal of a case whose reference is computed: the model as the user named it."""
    model = case.model
    seal = _seal(model.path, model.external_files, model.digest, case)
    if model.first_step is None:
        return seal
    return Seal(models=(*seal.models, *_beside(case)), contents=seal.contents)


def converted(conversion: Conversion) -> Seal:
    """Return the seal of what a variant is made from."""
    return _seal(conversion.source, conversion.external_files, conversion.digest, None)


def of_question(question: Question[Any]) -> list[Seal]:
    """Return the seals of the models that a question names."""
    makers: dict[FileMark, Callable[[Any], Seal]] = {
        FileMark.MEASURED: measured,
        FileMark.REFERENCE: source,
        FileMark.CONVERTED: converted,
    }
    return [
        makers[mark](getattr(question, name))
        for name, mark in files_in(type(question)).items()
        if mark in makers
    ]


def _seal(path: str, external: Sequence[str], digest: str, case: Case | None) -> Seal:
    model = _ModelFile(path=Path(path), external=tuple(external), digest=digest)
    contents = () if case is None else tuple(case.file_contents.items())
    # A stand-in that nothing is known of has no digest.
    return Seal(models=(model,) if digest else (), contents=contents)


def _told(before: str, now: str, external: bool = False) -> str:
    where = " (external data included)" if external else ""
    return f"has other content{where}: {_short(now)}, but it was {_short(before)}"


def _short(content: str) -> str:
    return content if " " in content else f"SHA-256 {content[:12]}…"


def _broken(message: str, hint: str) -> WorkerError:
    return case_error(message, hint, kind="error", phase=CHANGED_FILE)


def _removed(path: Path) -> WorkerError:
    return _broken(f"{path} was removed after pytest collected it", _RESTORE)


def _changed(path: Path, how: str) -> WorkerError:
    return _broken(f"{path} has changed since pytest collected it ({how})", _WAIT)
