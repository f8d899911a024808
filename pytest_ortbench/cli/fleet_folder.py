"""The record of a run of several machines: that of a new one, or of one that is gone on with."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import FleetRun, ShardedRun, new_tag
from pytest_ortbench.fleet.hosts.records import RECORDS, read_record

_Kept = TypeVar("_Kept", FleetRun, ShardedRun)

#: Folder of such runs below the results; each has one of its tag.
FOLDER = "fleet"
_TAG = re.compile(r"[0-9A-Za-z-]+\Z")
#: Options of pytest that say where results lie, and what stands for them: on other machines, we do.
_INSTEAD = {
    "--ort-results": "To choose the folder on this machine, write --results=DIR before the --",
    "--ort-resume": "To continue an earlier run of these machines, write --resume=latest before "
    "the --",
}


def _earlier(kind: type[_Kept], tag: str, parent: Path, command: str) -> _Kept:
    """Return the record of an earlier run, which is called by the name of its folder.

    Args:
        kind: Of the record.
        tag: The name, or ``latest``.
        parent: The folder of all of them.
        command: The command that makes such runs.

    Raises:
        UsageError: if there is none, or it sent nothing to any machine.
    """
    if tag != "latest" and not _TAG.match(tag):
        raise UsageError(
            f"{tag!r} can't be the name of an earlier run, which has only letters, digits and '-'",
            place="--resume",
            hint=f"Write --resume=latest, or name a folder in {parent}",
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
        f"the folder {str(parent)!r} contains no earlier run of 'ortbench {command}'"
        if tag == "latest"
        else f"the run {tag!r} was made by 'ortbench fleet collect', which measures nothing, so it "
        "can't be continued",
        place="--resume",
        hint="To start a new run, leave --resume out. If the run to continue is in another "
        "results folder, name that folder with --results=DIR",
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
        option = argument.partition("=")[0]
        if option in _INSTEAD:
            raise UsageError(
                f"{argument!r} can't be passed on, since each machine is given its own folder of "
                "results",
                place=place,
                hint=f"Leave {argument!r} out. {_INSTEAD[option]}",
            )
    if not resume:
        if not arguments:
            raise UsageError(
                "the arguments of pytest are missing, so the machines have nothing to measure",
                place=place,
                hint="Add the arguments of pytest after --, e.g. '-- tests --ort-providers=all'",
            )
        return kind(tag=new_tag(), arguments=arguments)
    earlier = _earlier(kind, resume, results / FOLDER, place)
    if arguments and arguments != earlier.arguments:
        raise UsageError(
            f"the run {earlier.tag} had the arguments '{in_shell(earlier.arguments)}', not "
            f"'{in_shell(arguments)}'",
            place="--resume",
            hint="To continue that run, leave out -- and what follows it. To start a new run, "
            "leave out --resume",
        )
    return earlier
