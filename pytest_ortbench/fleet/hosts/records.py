"""What is kept of a run of several machines beside its documents, so that it can go on."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from pytest_ortbench.core.errors import (
    DocumentError,
    UsageError,
    says,
    why_unreadable,
    why_unwritable,
)
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.fleet.hosts.facts import FleetRun, ShardedRun

_Kept = TypeVar("_Kept", FleetRun, ShardedRun)

#: Name of the file, in the folder of the run.
RECORDS: dict[type, str] = {FleetRun: "fleet.json", ShardedRun: "shards.json"}


def write_record(run: FleetRun | ShardedRun, folder: Path) -> None:
    """Write the record of a run.

    Raises:
        UsageError: if it can't be written.
    """
    path = folder / RECORDS[type(run)]
    has_begun = path.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(run), indent=1))
    except OSError as error:
        raise UsageError(
            f"the record of the run {why_unwritable(error, path)}",
            place=str(path),
            hint=f"Mend this, and run the command again with --resume={run.tag}"
            if has_begun
            else "Name a folder for the results that you may write to, on a disk with free space, "
            "e.g. --results ~/ortbench-results",
        ) from error


def read_record(folder: Path, kind: type[_Kept]) -> _Kept:
    """Read the record of a run.

    Raises:
        DocumentError: if there is none, or it is damaged.
    """
    path = folder / RECORDS[kind]
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        fault, _ = why_unreadable(error)
    except msgspec.MsgspecError as error:
        fault = f"is damaged ({says('its parser', str(error))})"
    raise DocumentError(
        f"the record of the earlier run {fault}",
        place=str(path),
        hint="Start a new run: in place of --resume, write -- and the arguments of pytest",
    )
