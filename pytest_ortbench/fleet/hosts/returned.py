"""What a machine sent back, or left in a folder: data, which is read and starts nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError, UsageError, why_unreadable
from pytest_ortbench.core.secrets import masked_text
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.fleet.hosts.facts import FleetRun, HostOutcome, KeptFile
from pytest_ortbench.store.documents import read
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL

#: Longest reason that is kept: a machine may say anything.
LONGEST_REASON = 500
#: A larger file is no document of a run: one of 2,000 cases has about 40 MB.
MOST_BYTES = 512 << 20
#: What is taken as the name of a machine, and of a folder here, beside the record of the run.
LONGEST_NAME = 200
NAME = re.compile(
    rf"(?!(?i:fleet|shards)[.]json\Z)[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}\Z"
)
_KEPT: tuple[KeptFile, KeptFile] = ("run.json", "journal.jsonl")
_NOT_HERE = f"Move it out of this folder, or put the {DOCUMENT} of the machine in its place"
#: How deep a document may lie below the folder of its machine: results/RUN/run.json.
_DEEPEST = 3


def short_reason(text: str, most: int = LONGEST_REASON) -> str:
    """Return a reason as it may be kept: in one line, without secrets, and of limited length.

    Of a longer one, its beginning and its end stay.
    """
    text = " ".join(masked_text(text).encode("utf-8", "replace").decode("utf-8").split())
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def outcome_of(folder: Path, failed: HostOutcome) -> HostOutcome:
    """Say what became of a machine, by the document in its folder.

    Args:
        folder: The machine's folder.
        failed: What became of it if there is none.
    """
    best = failed
    for file in _KEPT:
        path = folder / file
        if best.state == "measured" or not path.exists():
            continue
        try:
            _refuse_large(path)
            run = read(path).run
        except DocumentError as error:
            failed = replace(failed, stage="read", reason=short_reason(str(error)))
            best = replace(best, stage=failed.stage, reason=failed.reason)
            continue
        ended = file == DOCUMENT and run.finished_at is not None
        complete = ended and len(run.cases) >= run.expected
        # A run that was gone on with and killed has more in its journal than in a document before.
        if best.run_id and len(run.cases) <= best.cases:
            continue
        best = replace(
            failed,
            state="measured" if complete else "partial",
            stage=None if complete else failed.stage,
            reason="" if complete else failed.reason,
            cases=len(run.cases),
            expected=run.expected,
            run_id=run.run_id,
            file=file,
        )
    return best


def fail_shared(run: FleetRun) -> None:
    """Fail machines that came with one document: nobody can say whose numbers it has."""
    owners: dict[str, list[str]] = {}
    for name, outcome in run.outcomes.items():
        if outcome.run_id:
            owners.setdefault(outcome.run_id, []).append(name)
    for run_id, names in owners.items():
        for name in names if len(names) > 1 else ():
            others = ", ".join(other for other in names if other != name)
            run.outcomes[name] = replace(
                run.outcomes[name],
                state="failed",
                stage="read",
                reason=f"its document, {run_id}, is that of {others}, too"[:LONGEST_REASON],
                cases=0,
                expected=0,
                run_id="",
            )


def _refuse_large(path: Path) -> None:
    """Refuse a file that is too large for a document, before it is read.

    Raises:
        DocumentError: if it is.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise DocumentError(
            f"the file has {size >> 20} MiB, but the {DOCUMENT} of a run has at most "
            f"{MOST_BYTES >> 20} MiB",
            place=str(path),
            hint=_NOT_HERE,
        )


def collect(folder: Path, destination: Path, run: FleetRun) -> None:
    """Take the documents of machines out of a folder, and say what became of each.

    ``NAME.json``, ``NAME.jsonl``, and the newest document or journal below ``NAME/`` are those of
    NAME. Links are not followed.

    Args:
        folder: A folder that anybody may have filled.
        destination: Where the document of NAME goes: ``destination/NAME/``.
        run: What became of the machines is written into its outcomes.

    Raises:
        UsageError: if the folder can't be read, or holds nothing that could be one.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        # lab-1.json, or lab-1/run.json
        holder = folder.parent.parent if folder.name in (DOCUMENT, JOURNAL) else folder.parent
        raise UsageError(
            "this is a file, not a folder"
            if folder.is_file()
            else f"the folder {why_unreadable(error)[0]}",
            place=str(folder),
            hint=f"Name the folder that holds the documents of the machines: {holder}"
            if folder.is_file()
            else "Name the folder that holds the documents of the machines",
        ) from error
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            name, source = entry.name, _newest_below(path)
        elif entry.is_dir():
            name, source = entry.name, path  # a link, which can't be opened
        else:
            name, source = path.stem, path if path.suffix in _SUFFIXES else None
        if source is None or name in run.outcomes:
            continue
        run.outcomes[name] = _taken(name, source, destination)
    fail_shared(run)
    if not run.outcomes:
        raise UsageError(
            f"the folder {str(folder)!r} contains no run document",
            place="fleet collect",
            hint=f"Put the {DOCUMENT} of each machine there, named after the machine, e.g. "
            f"lab-1.json, or in a folder named after the machine, e.g. lab-1/{DOCUMENT}",
        )


_SUFFIXES = tuple(Path(name).suffix for name in (DOCUMENT, JOURNAL))


def _taken(name: str, source: Path, destination: Path) -> HostOutcome:
    """Copy a document into a folder of ours, and say what became of its machine."""
    failed = HostOutcome(host=name[:LONGEST_REASON], state="failed", stage="read")
    if not NAME.match(name):
        return replace(failed, reason="its name can't be that of a folder")
    kind = JOURNAL if source.suffix == Path(JOURNAL).suffix else DOCUMENT
    try:
        content = _content_of(source)
    except (OSError, DocumentError) as error:
        return replace(failed, reason=short_reason(str(error)))
    (destination / name).mkdir(parents=True, exist_ok=True)
    replace_file(destination / name / kind, content)
    return outcome_of(destination / name, failed)


def _content_of(path: Path) -> bytes:
    """Return the content of a plain file, which is no link, no pipe, and not too large.

    Raises:
        OSError: if it can't be opened, as a link can't.
        DocumentError: if it is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DocumentError(
                f"this is a device or a pipe, not the {DOCUMENT} of a machine",
                place=str(path),
                hint=_NOT_HERE,
            )
        _refuse_large(path)
        return stream.read(MOST_BYTES)


def _newest_below(folder: Path) -> Path | None:
    """Return the newest document below a folder, else the newest journal."""
    for name in (DOCUMENT, JOURNAL):
        found = [path for path in _plain_files(folder, _DEEPEST) if path.name == name]
        if found:
            return max(found, key=lambda path: path.lstat().st_mtime_ns)
    return None


def _plain_files(folder: Path, depth: int) -> Iterator[Path]:
    """Yield what lies in a folder and in those below it, without following a link."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                if depth > 1:
                    yield from _plain_files(Path(entry.path), depth - 1)
            else:
                yield Path(entry.path)
