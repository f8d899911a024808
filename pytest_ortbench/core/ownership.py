"""Who else decides about a file or a folder: what is started and loaded must be one's own."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

#: May change everything anyway.
_ROOT = 0


def other_writers(folder: Path) -> str:
    """Say who else decides about a file, or what lies in a folder, behind its name; else nothing.

    Where the system has no owners of this kind (Windows), the user's own folders are taken as such.

    Args:
        folder: It need not exist: then whoever makes it owns it.
    """
    if not hasattr(os, "geteuid"):
        return ""
    try:
        status = folder.stat()
    except OSError:
        return ""
    if status.st_uid not in (os.geteuid(), _ROOT):
        return f"belongs to another user ({_name(status.st_uid)})"
    # With the sticky bit others can't replace what is there already; what they add is their own.
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return "may be written to by every user"
    return ""


def others_in(*folders: Path) -> str:
    """Return the first of some folders that others decide about, and who; empty if there is none.

    Args:
        folders: They need not exist.
    """
    told = ((folder, other_writers(folder)) for folder in folders)
    return next((f"{folder} {others}" for folder, others in told if others), "")


def advice_on_writers(*folders: Path) -> str:
    """Return the next step where other users may write to one of some folders.

    Args:
        folders: As :func:`others_in` takes them.
    """
    other = "name a folder of your own in the environment variable ORTBENCH_CACHE"
    open_one = next((folder for folder in folders if other_writers(folder)), None)
    if open_one is None or open_one.stat().st_uid != os.geteuid():
        if open_one is not None and open_one.is_file() and os.access(open_one.parent, os.W_OK):
            name, copy = shlex.quote(open_one.name), shlex.quote(f"{open_one.name}.own")
            return (
                "If you trust the file, replace it with a copy of your own. Run: "
                f"cd {shlex.quote(str(open_one.parent))} && cp {name} {copy} && mv -f {copy} {name}"
            )
        return other[0].upper() + other[1:]
    return f"If you trust what it holds, run 'chmod o-w {open_one}'. If not, {other}"


def _name(user: int) -> str:
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
