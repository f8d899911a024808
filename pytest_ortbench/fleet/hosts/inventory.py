"""The machines of an Ansible inventory, with what its variables say of measuring on them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.fleet.hosts.facts import Host
from pytest_ortbench.fleet.hosts.returned import NAME

#: What variables of ours begin with.
PREFIX = "ortbench_"
_VARIABLES = tuple(entry.name for entry in fields(Host) if entry.name != "name")
#: A folder is written into command lines of the machine.
_FOLDER = re.compile(r"(~/|/)[A-Za-z0-9._/-]*[A-Za-z0-9_-]\Z")
_PYTHON = re.compile(r"[A-Za-z0-9._/~-]+\Z")
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
            hint="Name a file that lists your machines in the form of an Ansible inventory",
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
        # Ansible gives a reason for each form that it tries, and the last is of another form.
        raise UsageError(
            "Ansible can't read the file as an inventory",
            place=str(path),
            hint=f"To see why, run 'ansible-inventory -i {path} --list'. It prints a reason for "
            "each form that it tries (yaml, ini): correct the one of your file's form",
        ) from error
    if not hosts:
        raise UsageError(
            f"no machine of this inventory matches {pattern!r}",
            place=str(path),
            hint="Add the machine to the file, or name another one with --limit",
        )
    return hosts


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
                f"{host.name!r} is the name of a host and of a group, and would mean the group",
                place=f"{place}, host {host.name}",
                hint="Give the host or the group another name",
            )
        other = first.setdefault(host.called, host)
        if other is not host:
            raise UsageError(
                f"the hosts {other.name} and {host.name} both have the name {host.called!r} for "
                "comparisons, so their results could not be told apart",
                place=f"{place}, host {host.name}",
                hint=f"Write another {PREFIX}machine for one of the two, or leave it out",
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


def _host(name: str, variables: Mapping[str, Any], place: str) -> Host:
    place = f"{place}, host {name}"
    if not NAME.match(name):
        raise UsageError(
            f"the host {name!r} has a character in its name other than letters, digits, dots, "
            "dashes and underscores",
            place=place,
            hint="Give the host another name, and write its address as ansible_host",
        )
    own = {key.removeprefix(PREFIX): value for key, value in variables.items() if key[:9] == PREFIX}
    for key in own:
        if key not in _VARIABLES:
            raise UsageError(
                f"{PREFIX + key!r} is not a known variable",
                place=place,
                hint=did_you_mean(PREFIX + key, (PREFIX + known for known in _VARIABLES)),
            )
    packages = own.pop("packages", [])
    if isinstance(packages, str):
        packages = packages.split()
    if not isinstance(packages, list) or not all(isinstance(text, str) for text in packages):
        raise UsageError(
            f"{PREFIX}packages is {packages!r}, not a list",
            place=place,
            hint=f"Write e.g. '{PREFIX}packages: [numpy<2]'",
        )
    for key, value in own.items():
        if not isinstance(value, str):
            raise UsageError(
                f"{PREFIX}{key} is {value!r}, which is not text",
                place=place,
                hint=f"Put the value in quotes, e.g. {PREFIX}{key}: '{value}'",
            )
    host = Host(name=name, packages=tuple(packages), **own)
    _check(host, place)
    return host


def _check(host: Host, place: str) -> None:
    for key, value, form, meaning, example in (
        ("folder", host.folder, _FOLDER, "the path of a folder", "/data/ortbench"),
        ("python", host.python, _PYTHON, "the name or path of a Python", "python3.12"),
        ("extra", host.extra, _EXTRA, "the name of an extra of pytest-ortbench", "gpu"),
    ):
        if not form.match(value):
            raise UsageError(
                f"{PREFIX}{key} is {value!r}, not {meaning}",
                place=place,
                hint=f"Write e.g. '{PREFIX}{key}: {example}'",
            )
    if host.machine and not NAME.match(host.machine):
        raise UsageError(
            f"{PREFIX}machine is {host.machine!r}, which has a character other than letters, "
            "digits, dots, dashes and underscores",
            place=place,
            hint=f"Write e.g. '{PREFIX}machine: lab-1'",
        )
    for text in (host.runtime, *host.packages):
        try:
            if text:
                Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                f"pip can't read {text!r} as a package and a version",
                place=place,
                hint=f"Write e.g. '{PREFIX}runtime: onnxruntime==1.20.1'",
            ) from error
