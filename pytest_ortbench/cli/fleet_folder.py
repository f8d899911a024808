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
#: Options of pytest that say where results lie: on other machines, we do.
_OURS = ("--ort-results", "--ort-resume")


def _earlier(kind: type[_Kept], tag: str, parent: Path) -> _Kept:
    """Return the record of an earlier run, which is called by the name of its folder.

    Args:
        kind: Of the record.
        tag: The name, or ``latest``.
        parent: The folder of all of them.

    Raises:
        UsageError: if there is none, or it sent nothing to any machine.
    """
    if tag != "latest" and not _TAG.match(tag):
        raise UsageError(
            f"{tag!r} can't be the name of an earlier run",
            place="--resume",
            hint=f"Write the name of a folder in {parent}, or 'latest'",
        )
    tags = [tag] if tag != "latest" else [path.name for path in sorted(parent.glob("*"))[::-1]]
    for name in tags:
        folder = parent / name
        # Documents that were collected out of a folder have a record, too, without arguments.
        if tag == "latest" and not (folder / RECORDS[kind]).exists():
            continue
        earlier = read_record(folder, kind)
        if earlier.arguments:
            return replace(earlier, tag=name)
    raise UsageError(
        f"the folder {str(parent)!r} contains no earlier run"
        if tag == "latest"
        else f"{tag!r} only gathers results that were measured elsewhere, so there is nothing to "
        "go on with",
        place="--resume",
        hint="To start a new run, leave --resume out",
    )


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
        UsageError: if a new run has no arguments, an earlier one other arguments, there is none, or
            an argument says where results lie.
    """
    for argument in arguments:
        if argument.partition("=")[0] in _OURS:
            raise UsageError(
                f"{argument!r} can't be passed on, since each machine is given its own folder of "
                "results",
                place=place,
                hint=f"Leave {argument!r} out. To name a folder for the results here, write "
                "--results=DIR before the --",
            )
    if not resume:
        if not arguments:
            raise UsageError(
                "the arguments of pytest are missing, so the machines have nothing to measure",
                place=place,
                hint="Add the arguments of pytest after --, e.g. '-- tests --ort-providers=all'",
            )
        return kind(tag=new_tag(), arguments=arguments)
    earlier = _earlier(kind, resume, results / FOLDER)
    if arguments and arguments != earlier.arguments:
        raise UsageError(
            f"{earlier.tag} ran with other arguments: {' '.join(earlier.arguments)}",
            place="--resume",
            hint="To go on with that run, leave out the arguments after --. To start a new run, "
            "leave out --resume",
        )
    return earlier
