"""The record of a run of several machines: that of a new one, or of one that is gone on with."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import FleetRun, ShardedRun, new_tag
from pytest_ortbench.fleet.hosts.records import RECORDS, read_record

_Kept = TypeVar("_Kept", FleetRun, ShardedRun)

#: Folder of such runs below the results; each has one of its tag.
FOLDER = "fleet"
_TAG = re.compile(r"[0-9A-Za-z-]+\Z")


def _earlier_folder(tag: str, results: Path, record: str) -> Path:
    """Return the folder of an earlier run.

    Args:
        tag: Its tag, or ``latest``.
        results: The results folder.
        record: Name of the file that each of them has.

    Raises:
        UsageError: if there is none.
    """
    parent = results / FOLDER
    if tag == "latest":
        tags = sorted(path.parent.name for path in parent.glob(f"*/{record}"))
        if not tags:
            raise UsageError(
                f"the folder {str(parent)!r} contains no earlier run",
                place="--resume",
                hint="Start a new run: leave --resume out",
            )
        tag = tags[-1]
    if not _TAG.match(tag):
        raise UsageError(
            f"{tag!r} can't be the name of an earlier run",
            place="--resume",
            hint=f"Write the name of a folder in {parent}, or 'latest'",
        )
    return parent / tag


def new_or_earlier(
    kind: type[_Kept], resume: str | None, arguments: tuple[str, ...], results: Path, *, place: str
) -> _Kept:
    """Return the record of a new run, or of an earlier one that is gone on with.

    Args:
        kind: Of the record.
        resume: Tag of the earlier run, or ``latest``; ``None`` for a new one.
        arguments: Arguments of pytest; those of the earlier run, where there are none.
        results: The results folder.
        place: The command.

    Raises:
        UsageError: if a new run has no arguments, an earlier one other arguments, or there is none.
    """
    if not resume:
        if not arguments:
            raise UsageError(
                "no arguments of pytest are given",
                place=place,
                hint=f"Write them after --, e.g. '{place} -- suites --ort-providers=all'",
            )
        return kind(tag=new_tag(), arguments=arguments)
    folder = _earlier_folder(resume, results, RECORDS[kind])
    earlier = read_record(folder, kind)
    if arguments and arguments != earlier.arguments:
        raise UsageError(
            f"{folder.name} ran with other arguments: {' '.join(earlier.arguments)}",
            place="--resume",
            hint="Leave the arguments after -- out, or start a new run without --resume",
        )
    return replace(earlier, tag=folder.name)
