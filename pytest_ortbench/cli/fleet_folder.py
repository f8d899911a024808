"""Where runs of several machines are kept, and how an earlier one is found."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_ortbench.core.errors import UsageError

#: Folder of such runs below the results; each has one of its tag.
FOLDER = "fleet"
_TAG = re.compile(r"[0-9A-Za-z-]+\Z")


def earlier_folder(tag: str, results: Path, record: str) -> Path:
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
                f"{str(parent)!r} holds no run of a fleet", place="--resume", hint="Leave it out"
            )
        tag = tags[-1]
    if not _TAG.match(tag):
        raise UsageError(
            f"{tag!r} is no tag", place="--resume", hint=f"One is a folder of {parent}"
        )
    return parent / tag


def refuse_other_arguments(tag: str, earlier: tuple[str, ...], now: tuple[str, ...]) -> None:
    """Refuse to go on with a run under other arguments of pytest; none are the same.

    Raises:
        UsageError: if they differ.
    """
    if now and now != earlier:
        raise UsageError(
            f"{tag} ran with other arguments: {' '.join(earlier)}",
            place="--resume",
            hint="Leave them out, or start a new run without --resume",
        )
