"""The folder of one run: ``journal.jsonl`` while it runs, ``run.json`` once it is over.

Both stand there while plots and pages are made of the document.

Nothing is made on disk before there is something to keep: a run in which no case was finished
leaves no folder, unless its document is asked for with :meth:`RunFolder.finish` (it then holds the
reasons why nothing was measured).
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError, says
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.whole_file import make_folder, replace_file
from pytest_ortbench.schema.document import encode_header, encode_result, encode_run
from pytest_ortbench.store.journal import Journal

DOCUMENT = "run.json"
JOURNAL = "journal.jsonl"

#: As pytest's own cache folder: version control passes over what is in a results folder. Nothing
#: tells backups to do so, since results are no cache.
_IGNORED = b"# Created by pytest-ortbench automatically.\n*\n"

_CANT_WRITE = "the run document can't be written"
_ELSEWHERE = "Choose another folder with --ort-results=DIR, or write nothing with --ort-no-results"


def new_run_id(host: str, started: datetime) -> str:
    """Return ``<UTC>-<host>-<4 hex>``, fit for a folder's name whatever the host is called.

    Args:
        host: Host name.
        started: When the run started, with its time zone.
    """
    utc = started.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{utc}-{folder_part(host)}-{secrets.token_hex(2)}"


def folder_part(host: str) -> str:
    """Return ``host`` as part of a folder's name: letters, digits, dots, dashes, 40 at most."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", host)[:40].strip("-.")
    # ".." means the folder above wherever it stands alone, so dots never follow each other.
    return re.sub(r"\.{2,}", ".", plain) or "host"


class RunFolder:
    """Keeps the results of one run as they come in.

    Attributes:
        path: The folder; it need not exist yet.
    """

    def __init__(self, path: Path, header: Run) -> None:
        self.path = path
        self._header = header
        self._journal = Journal(path / JOURNAL)
        self._results = 0
        self._safe = 0
        self._written = False

    @classmethod
    def create(cls, root: Path, run: Run) -> RunFolder:
        """Prepare the folder of ``run`` below ``root``; nothing is made on disk yet.

        Args:
            root: The results folder.
            run: The run as far as it is known; its cases do not matter.

        Raises:
            DocumentError: if it is plain already that nothing can be written there, or that the
                run holds what no document can.
        """
        path = root / run.run_id
        if path.parent != root or run.run_id in ("", ".", ".."):
            raise DocumentError(
                f"run_id is {run.run_id!r}, but must be the name of a folder",
                place=str(root),
                hint="The stored run was changed by hand. Copy the original again. If there is "
                "none, measure again",
            )
        if path.exists():
            raise DocumentError(
                "a run with this name already exists",
                place=str(path),
                hint="Run again, which makes a new name",
            )
        check_writable(root)
        encode_header(run)
        return cls(path, run)

    @property
    def document(self) -> Path:
        """Where the document lies once the run is over."""
        return self.path / DOCUMENT

    def append(self, result: CaseResult) -> None:
        """Store one result; it is on the disk when this returns.

        Raises:
            DocumentError: if it can't be stored. Earlier results stay readable, and this one is
                written along with the next one or with the document.
        """
        lines = [encode_result(result)]
        if not self._journal.made and not self._journal.pending:
            lines.insert(0, encode_header(self._header))
        self._results += 1
        self._write(f"the result of {result.case.case_id} can't be stored", *lines)

    def update(self, run: Run) -> None:
        """Store what became known about the run as a whole: runtimes, canary, skips.

        Before the first result this only changes what will be written.

        Raises:
            DocumentError: as :meth:`append`.
        """
        self._header = run
        if self._journal.made:
            self._write("what is known of the run can't be stored", encode_header(run))

    def finish(self, run: Run) -> Path:
        """Write the document; the journal stays until :meth:`settle`.

        Args:
            run: The run with all its cases.

        Returns:
            The document's path.

        Raises:
            DocumentError: if it can't be written; the journal stays then, and is as readable.
        """
        try:
            self._make_results()
            replace_file(self.document, encode_run(run))
        except OSError as error:
            with suppress(OSError):  # what is reported next counts what is safe
                self._journal.flush()
                self._safe = self._results
            hint = _ELSEWHERE
            if self._safe:
                hint = (
                    f"{self._journal.path} keeps {self._safe} of {len(run.cases)} results: name "
                    "it in place of the run"
                )
            raise _refused(self.document, _CANT_WRITE, error, hint) from error
        self._written = True
        return self.document

    def settle(self) -> None:
        """Remove the journal: the document is written, and all that is made of it.

        A journal beside a finished document tells that the run died before that.
        """
        if self._written:
            self._journal.remove()

    def keep(self, run: Run) -> None:
        """Write the document as far as it is known; the journal stays until :meth:`finish`.

        Raises:
            DocumentError: if it can't be written.
        """
        try:
            self._make_results()
            replace_file(self.document, encode_run(run))
        except OSError as error:
            raise _refused(self.document, _CANT_WRITE, error, _ELSEWHERE) from error

    def _make_results(self) -> None:
        """Make the results folder; one that is there stays as its owner made it."""
        root = self.path.parent
        if not root.exists():
            make_folder(root)
            replace_file(root / ".gitignore", _IGNORED)

    def _write(self, problem: str, *lines: bytes) -> None:
        try:
            self._make_results()
            self._journal.write(*lines)
        except OSError as error:
            kept = counted(self._safe, "earlier result")
            hint = f"The file keeps {kept}" if self._safe else _ELSEWHERE
            raise _refused(self._journal.path, problem, error, hint) from error
        self._safe = self._results


def write_document(run: Run, path: Path) -> None:
    """Write a run document to a place of the user's choice.

    Raises:
        DocumentError: if it can't be written; an older file there is untouched.
    """
    try:
        replace_file(path, encode_run(run))
    except OSError as error:
        raise _refused(path, _CANT_WRITE, error, "Choose another file") from error


def check_writable(root: Path) -> None:
    """Find out before anything is measured that a folder can't be used.

    By making a folder in it, or in the nearest one above it that is there, and removing it:
    permissions tell little (root may write to folders that take no file).

    Raises:
        DocumentError: with the folder that refuses and its reason.
    """
    folders = (root, *root.absolute().parents)
    # Unlike Path.exists, this does not raise where a folder above may not be entered. A link is
    # there, also one that leads nowhere, and no folder can be made in its place.
    nearest = next(
        (folder for folder in folders if os.access(folder, os.F_OK) or _is_link(folder)), root
    )
    if not os.access(nearest, os.F_OK) and _is_link(nearest):
        leads = f"{str(nearest)!r} is a link to {str(nearest.readlink())!r}, which does not exist"
        raise DocumentError(leads, place=str(root), hint=_ELSEWHERE)
    if not nearest.is_dir():
        raise DocumentError(
            f"{str(nearest)!r} is a file, not a folder", place=str(root), hint=_ELSEWHERE
        )
    try:
        Path(tempfile.mkdtemp(prefix=".ortbench-", dir=nearest)).rmdir()
    except OSError as error:
        raise _refused(root, f"{str(nearest)!r} can't be written to", error, _ELSEWHERE) from error


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # it may not be looked at
        return False


def _refused(path: Path, problem: str, error: OSError, hint: str) -> DocumentError:
    message = f"{problem}. {says('The system', error.strerror or str(error))}"
    return DocumentError(message, place=str(path), hint=hint)
