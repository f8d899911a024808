"""The record of a run of several machines: that of a new one, or of one that is gone on with."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import OrtbenchError, UsageError, did_you_mean
from pytest_ortbench.fleet.hosts.facts import FleetRun, ShardedRun, new_tag
from pytest_ortbench.fleet.hosts.records import RECORDS, read_record

_Kept = TypeVar("_Kept", FleetRun, ShardedRun)

#: Folder of such runs below the results; each has one of its tag.
FOLDER = "fleet"
#: The step where nothing says what is measured.
_AT_THE_END = "Add the arguments of pytest at the end, after --, e.g. -- tests --ort-providers=all"
_RESULTS = "--ort-results"
#: Options of pytest that say where results lie, and what stands for them: on other machines, we do.
_INSTEAD = {
    _RESULTS: "To choose the folder on this machine, write --results={value} before the --",
    "--ort-resume": "To continue an earlier run of these machines, write --resume=latest before "
    "the --",
}


def _tag_of(named: str, parent: Path) -> str:
    """Return the tag of an earlier run that is named by a path in its folder, else the name.

    Args:
        named: As the user wrote it.
        parent: The folder of all runs.

    Raises:
        UsageError: if the folder is in other results.
    """
    path = Path(named).absolute()
    for folder in (path, *path.parents) if len(Path(named).parts) > 1 else ():
        if folder.parent.resolve() == parent.resolve():
            return folder.name
        if any((folder / record).is_file() for record in RECORDS.values()):
            results = in_shell([f"--results={folder.parent.parent}"])
            raise UsageError(
                f"{named!r} is not in the results folder {str(parent.parent)!r}",
                place="--resume",
                hint=f"Write --resume={folder.name} {results}",
            )
    return named


def _earlier(kind: type[_Kept], named: str, parent: Path, command: str, start_new: str) -> _Kept:
    """Return the record of an earlier run, which is called by the name of its folder.

    Args:
        kind: Of the record.
        named: The name, a path in the folder of the run, or ``latest``.
        parent: The folder of all of them.
        command: The command that makes such runs.
        start_new: The step that starts a new run instead.

    Raises:
        UsageError: if there is none, or it sent nothing to any machine.
    """
    tags = [path.parent.name for path in sorted(parent.glob(f"*/{RECORDS[kind]}"))[::-1]]
    if named != "latest":
        tag = _tag_of(named, parent)
        if tags and tag not in tags:
            raise UsageError(
                f"the folder {str(parent)!r} contains no run {tag!r} of 'ortbench {command}'",
                place="--resume",
                hint=_of_those_that_measured(kind, tag, tags, parent, start_new),
            )
        if tags:
            earlier = read_record(parent / tag, kind)
            if earlier.arguments:
                return replace(earlier, tag=tag)
            raise UsageError(
                f"the run {tag!r} was made by 'ortbench fleet collect', which measures nothing, so "
                "it can't be continued",
                place="--resume",
                hint=_of_those_that_measured(kind, tag, tags, parent, start_new),
            )
    for name in tags:
        earlier = read_record(parent / name, kind)
        if earlier.arguments:
            return replace(earlier, tag=name)
    raise UsageError(
        f"the folder {str(parent)!r} contains no earlier run of 'ortbench {command}'",
        place="--resume",
        hint=f"If the run is in another results folder, name it with --results=DIR. {start_new}",
    )


def _of_those_that_measured(
    kind: type[_Kept], tag: str, tags: Iterable[str], parent: Path, start_new: str
) -> str:
    """Return the next step where a tag names no run that can be continued."""
    others = []
    for name in tags:
        # A run whose record can't be read is not proposed. Documents that were collected have a
        # record, too, without arguments.
        with suppress(OrtbenchError):
            if read_record(parent / name, kind).arguments:
                others.append(name)
    return did_you_mean(tag, others, start_new) if others else start_new


def _refuse_own_place(arguments: tuple[str, ...], place: str) -> None:
    """Refuse arguments of pytest that say where results lie.

    Raises:
        UsageError: for the first.
    """
    for number, argument in enumerate(arguments):
        option, _, value = argument.partition("=")
        if option not in _INSTEAD:
            continue
        written = [argument]
        if argument == _RESULTS:
            written += arguments[number + 1 : number + 2]
            value = "".join(written[1:])
        shown, folder = in_shell(written), in_shell([value]) if value else "DIR"
        raise UsageError(
            f"'{shown}' can't be passed on, since each machine is given its own folder of results",
            place=place,
            hint=f"Leave '{shown}' out. {_INSTEAD[option].format(value=folder)}",
        )


def new_or_earlier(
    kind: type[_Kept], resume: str | None, arguments: tuple[str, ...], results: Path, *, place: str
) -> _Kept:
    """Return the record of a new run, or of an earlier one that is gone on with.

    Args:
        kind: Of the record.
        resume: Tag or folder of the earlier run, or ``latest``; ``None`` for a new one.
        arguments: Arguments of pytest; those of the earlier run, where there are none.
        results: The results folder.
        place: The command.

    Raises:
        UsageError: if a new run has no arguments, an earlier one other arguments, there is none, or
            an argument says where results lie.
    """
    _refuse_own_place(arguments, place)
    if not resume:
        if not arguments:
            raise UsageError(
                "the arguments of pytest are missing, so the machines have nothing to measure",
                place=place,
                hint=_AT_THE_END,
            )
        return kind(tag=new_tag(), arguments=arguments)
    start_new = "To start a new run, leave --resume out"
    if not arguments:
        start_new += f", and {_AT_THE_END[0].lower()}{_AT_THE_END[1:]}"
    earlier = _earlier(kind, resume, results / FOLDER, place, start_new)
    if arguments and arguments != earlier.arguments:
        raise UsageError(
            f"the run {earlier.tag} had the arguments '{in_shell(earlier.arguments)}', not "
            f"'{in_shell(arguments)}'",
            place="--resume",
            hint="To continue that run, leave out -- and what follows it. To start a new run, "
            "leave out --resume",
        )
    return earlier
