"""The play that Ansible carries out on every machine, as the data of a playbook.

A step is called by what it does, and belongs to a stage, so that an event of Ansible says how far a
machine came. YAML reads JSON, so a playbook is written as that. What differs between machines
stands in the variable ``fleet``, by their names in the inventory.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from pytest_ortbench.fleet.hosts import returned
from pytest_ortbench.fleet.hosts.facts import Stage


class PlayStep(Enum):
    """A step of the play, by its name in events of Ansible."""

    LOOK = "look"
    SEND = "send"
    MISSING = "missing"
    PACK = "pack"
    LARGE = "large"
    ENVIRONMENT = "environment"
    START = "start"
    ROUND = "round"
    STATUS = "status"
    NEXT = "next"
    COLLECT = "collect"
    WEIGH = "weigh"
    JOURNAL = "journal"
    DOCUMENT = "document"
    STOP = "stop"
    CLEAN = "clean"


#: How far a machine came that is at a step.
STAGE_OF: dict[PlayStep, Stage] = {
    PlayStep.LOOK: "look",
    PlayStep.SEND: "send",
    PlayStep.MISSING: "space",
    PlayStep.PACK: "send",
    PlayStep.LARGE: "send",
    PlayStep.ENVIRONMENT: "environment",
    PlayStep.START: "start",
    PlayStep.ROUND: "measure",
    PlayStep.STATUS: "measure",
    PlayStep.NEXT: "measure",
    PlayStep.COLLECT: "fetch",
    PlayStep.WEIGH: "fetch",
    PlayStep.JOURNAL: "fetch",
    PlayStep.DOCUMENT: "fetch",
    PlayStep.STOP: "measure",
    PlayStep.CLEAN: "look",
}
#: Ten days; what takes longer is a matrix for several machines.
_LONGEST_S = 864_000
#: The journal is fetched after 6, 12, 18, … looks, so that hours of measuring take few rounds.
_LOOKS = 6
#: As long as the largest document takes over 1 Mbit/s; an answer or a file that does not end is
#: given up then. Files that are sent and environments may take longer.
_ANSWER_S = 4500
_LONGER = (PlayStep.ENVIRONMENT, PlayStep.START)
_HOST = Path(__file__).with_name("host.py")
_PYTHON = "{{ fleet.hosts[inventory_hostname].python }}"
_FOLDER = "{{ fleet.hosts[inventory_hostname].folder }}"
_PROGRAM = _PYTHON + " {{ place.folder }}/host.py"


def write_play(folder: Path, *, tag: str, destination: Path, poll_s: float) -> str:
    """Write the playbook and what it includes; return its file name.

    Args:
        folder: The folder of projects of ansible-runner.
        tag: Name of the run's folder on the machines.
        destination: Where files of machine NAME go: ``destination/NAME/``.
        poll_s: Seconds between two looks at a run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "poll.json").write_text(json.dumps(_poll(tag, destination, poll_s)))
    plays = [_play(_measuring(tag, destination))]
    (folder / "fleet.json").write_text(json.dumps(plays))
    return "fleet.json"


def write_stop(folder: Path, *, tag: str) -> str:
    """Write the playbook that ends a run on every machine; return its file name."""
    (folder / "stop.json").write_text(
        json.dumps([_play([_look(tag), _call(PlayStep.STOP, f"stop {_where(tag)}")])])
    )
    return "stop.json"


def write_clean(folder: Path) -> str:
    """Write the playbook that removes what is kept on every machine; return its file name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clean.json").write_text(json.dumps([_play([_carried(PlayStep.CLEAN, "-")])]))
    return "clean.json"


def _play(tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "hosts": "all",
        "strategy": "free",
        "gather_facts": False,
        "vars": {
            "place": "{{ looked.stdout_lines[-1] | from_json }}",
            "ansible_remote_tmp": _FOLDER + "/tmp",
            "ansible_async_dir": _FOLDER + "/tmp/jobs",
            "ansible_python_interpreter": _PYTHON,
            # With a terminal, what is printed and what is wrong would come as one.
            "ansible_ssh_use_tty": False,
        },
        "tasks": list(tasks),
    }


def _measuring(tag: str, destination: Path) -> list[dict[str, Any]]:
    run = f"{{{{ place.folder }}}}/runs/{_run(tag)}"
    return [
        _look(tag),
        _copy(
            PlayStep.SEND,
            "{{ fleet.parcels }}/{{ inventory_hostname }}.json",
            f"{run}/parcel.json",
        ),
        _call(PlayStep.MISSING, f"missing {_where(tag)}", register="missing"),
        {
            **_copy(PlayStep.PACK, "{{ fleet.pack }}", f"{run}/pack.tar"),
            "when": "(missing.stdout_lines[-1] | from_json).pack",
        },
        {
            **_copy(
                PlayStep.LARGE,
                "{{ fleet.large[item] }}",
                "{{ place.folder }}/blobs/{{ item }}",
            ),
            "loop": "{{ (missing.stdout_lines[-1] | from_json).large }}",
        },
        _call(PlayStep.ENVIRONMENT, f"prepare {_where(tag)}"),
        {**_call(PlayStep.START, f"run {_where(tag)}"), "async": _LONGEST_S, "poll": 0},
        {
            "name": PlayStep.NEXT.value,
            "ansible.builtin.include_tasks": "poll.json",
        },
        _call(PlayStep.COLLECT, f"collect {_where(tag)}", register="collected"),
        *_fetched(PlayStep.DOCUMENT, "run.json", "collected", tag, destination, required=True),
        *_fetched(PlayStep.JOURNAL, "journal.jsonl", "collected", tag, destination, required=True),
    ]


def _poll(tag: str, destination: Path, poll_s: float) -> list[dict[str, Any]]:
    """Return the tasks of one round: some looks, the journal, and the next round."""
    return [
        {
            "name": PlayStep.ROUND.value,
            "ansible.builtin.set_fact": {"round": "{{ (round | default(0) | int) + 1 }}"},
        },
        {
            **_call(PlayStep.STATUS, f"status {_where(tag)} {poll_s:g}", register="looked_at"),
            "until": "(looked_at.stdout_lines[-1] | from_json).state != 'running'",
            "retries": f"{{{{ {_LOOKS} * (round | int) }}}}",
            "delay": 0,
            "ignore_errors": True,
        },
        *_fetched(PlayStep.JOURNAL, "journal.jsonl", "looked_at", tag, destination),
        {
            "name": PlayStep.NEXT.value,
            "ansible.builtin.include_tasks": "poll.json",
            "when": "(looked_at.stdout_lines[-1] | from_json).state == 'running'",
        },
    ]


def _run(tag: str) -> str:
    """Return what a machine calls its run, which others may have in the same folder."""
    return f"{tag}.{{{{ inventory_hostname }}}}"


def _where(tag: str) -> str:
    return f"{{{{ place.folder }}}} {_run(tag)}"


def _look(tag: str) -> dict[str, Any]:
    """Return the first step."""
    return {**_carried(PlayStep.LOOK, _run(tag)), "register": "looked"}


def _carried(step: PlayStep, run: str) -> dict[str, Any]:
    """Return a step that brings our program along, and needs a shell and a Python only."""
    source = base64.b64encode(_HOST.read_bytes()).decode("ascii")
    program = (
        f"import base64,sys;text=base64.b64decode('{source}').decode();"
        "names={'__name__':'host'};exec(text,names);sys.exit(names['main'](sys.argv[1:],text))"
    )
    return {
        "name": step.value,
        "ansible.builtin.raw": f'{_PYTHON} -c "{program}" {step.value} {_FOLDER} {run}',
    }


def _call(name: PlayStep, arguments: str, *, register: str = "") -> dict[str, Any]:
    """Return a step that calls our program, without a module of Ansible's where that can be."""
    module = "command" if name is PlayStep.START else "raw"  # that can't go on by itself
    step: dict[str, Any] = {
        "name": name.value,
        f"ansible.builtin.{module}": f"{_PROGRAM} {arguments}",
        "changed_when": False,
    }
    if name not in _LONGER:
        step["timeout"] = _ANSWER_S
    return {**step, "register": register} if register else step


def _copy(name: PlayStep, source: str, target: str) -> dict[str, Any]:
    return {
        "name": name.value,
        "ansible.builtin.copy": {"src": source, "dest": target, "mode": "0600"},
    }


def _fetched(
    step: PlayStep,
    name: str,
    answer: str,
    tag: str,
    destination: Path,
    *,
    required: bool = False,
) -> list[dict[str, Any]]:
    """Return the steps that fetch a file which an answer names; its place here is ours alone.

    The machine may name anything: only a plain file in the results of this run comes, up to a size.

    Args:
        step: The file, as the answer calls it.
        name: Name of the file, there and here.
        answer: Where the answer is registered.
        tag: Name of the run's folder on the machines.
        destination: Where files of machine NAME go: ``destination/NAME/``.
        required: Whether another file ends the measuring of the machine, or is left there.
    """
    path = f"({answer}.stdout_lines[-1] | from_json).{step.value}"
    is_named = f"{path} != ''"
    pattern = name.replace(".", "[.]")
    results = f"(place.folder ~ '/runs/{tag}.' ~ inventory_hostname ~ '/results/')"
    below = f"[A-Za-z0-9][A-Za-z0-9._-]*/{pattern}"
    fitting = [
        f"{path} is regex(({results} | regex_escape) ~ '{below}', match_type='fullmatch')",
        "weighed.stat.isreg | default(false) | bool",
        f"weighed.stat.size | int <= {returned.MOST_BYTES}",
    ]
    weigh = {
        "name": PlayStep.WEIGH.value,
        # Sizes and kinds are those of the path itself: a link is no plain file.
        "ansible.builtin.stat": {
            "path": f"{{{{ {path} }}}}",
            "follow": False,
            "get_checksum": False,
            "get_mime": False,
            "get_attributes": False,
        },
        "register": "weighed",
        "when": is_named,
    }
    refuse = {
        "name": PlayStep.WEIGH.value,
        "ansible.builtin.assert": {
            "that": fitting,
            "fail_msg": f"it names {{{{ {path} }}}} "
            "({{ weighed.stat.size | default('no') }} bytes); only a plain file of at most "
            f"{returned.MOST_BYTES >> 20} MiB is fetched, out of the results of this run. Look at "
            "it there",
        },
        "when": is_named,
    }
    fetch = {
        "name": step.value,
        "ansible.builtin.fetch": {
            "src": f"{{{{ {path} }}}}",
            "dest": f"{destination}/{{{{ inventory_hostname }}}}/{name}",
            "flat": True,
            # A journal grows while it is fetched, and is gone once the run has its document.
            "validate_checksum": required,
            "fail_on_missing": required,
        },
        "timeout": _ANSWER_S,
        "when": [is_named, *fitting],
    }
    return [weigh, refuse, fetch] if required else [weigh, fetch]
