"""The machines of an Ansible inventory, with what its variables say of measuring on them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from pytest_ortbench.core.errors import UsageError, did_you_mean, says
from pytest_ortbench.fleet.hosts.facts import Host
from pytest_ortbench.fleet.hosts.returned import LONGEST_NAME, NAME

#: What variables of ours begin with.
PREFIX = "ortbench_"
_VARIABLES = tuple(entry.name for entry in fields(Host) if entry.name != "name")
#: A value of each, for messages.
_EXAMPLES = {
    "folder": "/data/ortbench",
    "python": "python3.12",
    "extra": "gpu",
    "machine": "lab-1",
    "runtime": "onnxruntime==1.20.1",
    "packages": "[numpy<2]",
}
#: A folder is written into command lines of the machine.
_FOLDER = re.compile(r"(~/|/)[A-Za-z0-9._/-]*[A-Za-z0-9_-]\Z")
_PYTHON = re.compile(r"[A-Za-z0-9._/~-]+\Z")
#: How a file ends that is written in YAML; most others are in the form of an ini file.
_YAML = (".yml", ".yaml", ".json")
_EXTRA = re.compile(r"[A-Za-z0-9][A-Za-z0-9,-]*\Z|\Z")


def program(name: str) -> str:
    """Return a program of ansible-core: that beside this Python, else the one on PATH.

    Raises:
        UsageError: if there is none.
    """
    if sys.platform == "win32":
        raise UsageError(
            "Ansible does not run on Windows",
            place="fleet",
            hint="Run this command on Linux or macOS, or in WSL",
        )
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise UsageError(
            f"the program {name!r} of ansible-core is not installed",
            place="fleet",
            hint="Run: pip install 'pytest-ortbench[fleet]'",
        )
    return path


def read_inventory(path: Path, pattern: str = "all") -> list[Host]:
    """Return the machines of an inventory, in its order.

    Args:
        path: File or folder, in any form that Ansible reads.
        pattern: Which of them, as Ansible's ``--limit`` takes it.

    Raises:
        UsageError: if it can't be read, has none, or a variable of ours says nothing sensible.
    """
    if not path.exists():
        raise UsageError(
            f"the file {str(path)!r} does not exist",
            place="--inventory",
            hint="If the path is wrong, correct it. If you have no such file, write an Ansible "
            "inventory: a file with the name of one machine in each line",
        )
    command = [program("ansible-inventory"), "-i", str(path), "--list", "--limit", pattern]
    done = subprocess.run(
        command,
        env={**os.environ, "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        hosts = hosts_of(json.loads(done.stdout), str(path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unread(path, done.stderr) from error
    if not hosts:
        raise UsageError(
            "the inventory contains no host"
            if pattern == "all"
            else f"no host of this inventory matches --limit={pattern}",
            place=str(path),
            hint="Add your machines to it"
            if pattern == "all"
            else "Write a host or a group of the inventory. To use all of its hosts, leave --limit "
            "out",
        )
    return hosts


def _unread(path: Path, printed: str) -> UsageError:
    """What to say of a path that Ansible can't read as an inventory."""
    if path.is_dir():
        return UsageError(
            "Ansible found no inventory in this folder",
            place=str(path),
            hint="Write one, e.g. "
            f"{path / 'hosts.ini'} with the name of one machine in each line, or name another "
            "file or folder",
        )
    reason = _reason_of_ansible(printed, _plugin_for(path))
    return UsageError(
        "Ansible can't read the file as an inventory"
        + (f". {says('Ansible', reason)}" if reason else ""),
        place=str(path),
        hint="Correct the file. To see all that Ansible says of it, run: "
        + shlex.join(("ansible-inventory", "-i", str(path), "--list")),
    )


def _plugin_for(path: Path) -> str:
    """The form that Ansible takes a file for, as it calls its plugin for it."""
    if path.suffix in _YAML:
        return "yaml"
    return "script" if os.access(path, os.X_OK) else "ini"


def _reason_of_ansible(printed: str, form: str) -> str:
    """Why a file is no inventory of its form: Ansible prints a reason for each that it tries."""
    reason = re.search(rf"with '?{form}'? plugin: (\S.*)", printed)
    return reason[1] if reason else ""


def hosts_of(content: Mapping[str, Any], place: str) -> list[Host]:
    """Return the machines of what ``ansible-inventory --list`` prints.

    Args:
        content: Groups by name, and ``_meta`` with the variables of each machine.
        place: The inventory, for messages.

    Raises:
        UsageError: if a variable of ours says nothing sensible, a machine has the name of a group,
            or two machines have one name in a comparison.
    """
    variables = content["_meta"]["hostvars"]
    hosts = [_host(name, variables.get(name, {}), place) for name in _names(content)]
    first: dict[str, Host] = {}
    for host in hosts:
        if host.name in content:
            raise UsageError(
                f"a group of the inventory is called {host.name!r}, too, but hosts and groups must "
                "have different names",
                place=f"{place}, host {host.name}",
                hint="Give the group another name",
            )
        other = first.setdefault(host.called, host)
        if other is not host:
            named, plain = (host, other) if host.machine else (other, host)
            raise UsageError(
                f"{PREFIX}machine is {named.called!r}, but the results of the host "
                f"{plain.name!r} have this name, too",
                place=f"{place}, host {named.name}",
                hint=f"Write another {PREFIX}machine for the host {named.name!r}"
                if not plain.machine
                else f"Set {PREFIX}machine for each host, not for a group, or leave it out",
            )
    return hosts


def _names(content: Mapping[str, Any]) -> list[str]:
    """Return the machines of all groups, each once, in the order of the groups."""
    names: dict[str, None] = {}
    waiting = ["all"]
    while waiting:
        group = content.get(waiting.pop(0), {})
        names.update(dict.fromkeys(group.get("hosts", ())))
        waiting += group.get("children", ())
    return list(names)


def _with_address(name: str) -> str:
    """How a host gets a name that a folder can have, too."""
    user, at, address = name.partition("@")
    if at:
        return (
            f"Give the host another name, with {address!r} as ansible_host and {user!r} as "
            "ansible_user"
        )
    return "Give the host another name, and write its address as ansible_host"


def _fault_of_name(name: str) -> str:
    """Say why a text is no name of a machine: behind ``which``."""
    strange = next((letter for letter in name if not re.match(r"[A-Za-z0-9._-]", letter)), "")
    if strange:
        return f"contains {strange!r}, but may have letters, digits, '.', '-' and '_' only"
    if name[:1] in (".", "-", "_"):
        return f"begins with {name[0]!r}, but must begin with a letter or a digit"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, but may have {LONGEST_NAME} only"
    return "is a name that pytest-ortbench uses for files of its own" if name else "is empty"


def _host(name: str, variables: Mapping[str, Any], place: str) -> Host:
    place = f"{place}, host {name}"
    if not NAME.match(name):
        raise UsageError(
            f"the name of the host is {name!r}, which {_fault_of_name(name)}",
            place=place,
            hint=_with_address(name),
        )
    own = {key.removeprefix(PREFIX): value for key, value in variables.items() if key[:9] == PREFIX}
    for key in own:
        if key not in _VARIABLES:
            raise UsageError(
                f"{PREFIX + key!r} is not a known variable",
                place=place,
                hint=did_you_mean(
                    PREFIX + key,
                    (PREFIX + known for known in _VARIABLES),
                    f"If the variable is your own, its name may not begin with {PREFIX}",
                ),
            )
    packages = own.pop("packages", [])
    if isinstance(packages, str):
        packages = packages.split()
    if not isinstance(packages, list) or not all(isinstance(text, str) for text in packages):
        raise UsageError(
            f"{PREFIX}packages is {packages!r}, not a list of packages",
            place=place,
            hint=_written_as("packages"),
        )
    for key, value in own.items():
        if not isinstance(value, str):
            raise UsageError(
                f"{PREFIX}{key} is {value!r}, which is not text",
                place=place,
                hint=_written_as(key),
            )
    host = Host(name=name, packages=tuple(packages), **own)
    _check(host, place)
    return host


def _written_as(key: str) -> str:
    """How a variable is written, in both forms of an inventory."""
    value = _EXAMPLES[key]
    in_a_line = shlex.quote(value.strip("[]"))
    return f"Write e.g. {PREFIX}{key}: {value} in YAML, or {PREFIX}{key}={in_a_line} in an ini file"


def _check(host: Host, place: str) -> None:
    for key, value, form, meaning in (
        ("folder", host.folder, _FOLDER, "the absolute path of a folder"),
        ("python", host.python, _PYTHON, "the name or path of a Python"),
        ("extra", host.extra, _EXTRA, "the name of an extra of pytest-ortbench"),
    ):
        if not form.match(value):
            raise UsageError(
                f"{PREFIX}{key} is {value!r}, not {meaning}",
                place=place,
                hint=_written_as(key),
            )
    if host.machine and not NAME.match(host.machine):
        raise UsageError(
            f"{PREFIX}machine is {host.machine!r}, which {_fault_of_name(host.machine)}",
            place=place,
            hint=_written_as("machine"),
        )
    named = [("runtime", host.runtime), *(("packages", text) for text in host.packages)]
    for key, text in named:
        try:
            if text:
                Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                f"{PREFIX}{key} has {text!r}, "
                + (
                    "an option of pip, but only packages can be given"
                    if text[:1] == "-"
                    else "which pip does not take as a package"
                ),
                place=place,
                hint="Leave it out. For a prerelease, write its version, e.g. "
                "onnxruntime==1.21.0rc1"
                if text == "--pre"
                else "Leave it out"
                if text[:1] == "-"
                else _written_as(key),
            ) from error
