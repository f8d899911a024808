"""Carry out a suite on the machines of an inventory by Ansible, and keep what comes back.

What a machine sends is data: it is read as every document is, and written into its folder only.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.stop_signals import leave_terminal
from pytest_ortbench.fleet.hosts import returned
from pytest_ortbench.fleet.hosts.facts import LATEST_S, FleetRun, Host, HostOutcome, Stage
from pytest_ortbench.fleet.hosts.inventory import program
from pytest_ortbench.fleet.hosts.parcel import Parcel
from pytest_ortbench.fleet.hosts.play import STAGE_OF, PlayStep, write_clean, write_play, write_stop
from pytest_ortbench.fleet.hosts.records import write_record
from pytest_ortbench.fleet.hosts.returned import (
    fail_shared,
    outcome_of,
    short_reason,
)

#: Most connections at a time; each is a process of Ansible.
_MOST_FORKS = 50
_SSH = (
    "-C -o ControlMaster=auto -o ControlPersist=60s -o BatchMode=yes -o StrictHostKeyChecking=yes "
    "-o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)

#: Of processes on Windows; others have smaller ones.
_LARGEST_CODE = 1 << 32
#: Told what a machine has come to: its name and a line about it.
Tell = Callable[[str, str], None]


class Fleet:
    """The machines of one run, and what Ansible says of them.

    Attributes:
        run: What became of each machine so far.
        folder: Where everything of the run is kept; that of a machine lies in it.

    Args:
        run: The run; with outcomes where it goes on.
        hosts: The machines that are measured now.
        inventory: The inventory that Ansible reads.
        folder: The run's folder.
        tell: Told of progress.
        poll_s: Seconds between two looks at a machine.
    """

    def __init__(
        self,
        run: FleetRun,
        hosts: Sequence[Host],
        *,
        inventory: Path,
        folder: Path,
        tell: Tell,
        poll_s: float,
    ) -> None:
        self.run = run
        self.folder = folder
        self._hosts = {host.name: host for host in hosts}
        self._inventory = inventory
        self._tell = tell
        self._poll_s = poll_s
        self._reached: dict[str, Stage] = {}
        self._reasons: dict[str, str] = {}
        self._clocks: dict[str, float] = {}
        self._collected: dict[str, Mapping[str, Any]] = {}
        self._shown: dict[str, str] = {}

    def measure(self, parcel: Parcel) -> None:
        """Send the suite to every machine, wait for all of them, and keep what comes back.

        Interrupted, it ends the runs on the machines first. Killed, it can be gone on with.
        """
        write_record(self.run, self.folder)
        with OwnFolder("fleet") as private:
            project = private / "project"
            playbook = write_play(
                project, tag=self.run.tag, destination=self.folder, poll_s=self._poll_s
            )
            variables = _variables(parcel, self._hosts, private)
            with _files_bounded(returned.MOST_BYTES + parcel.size):
                finished = self._carried_out(private, playbook, variables)
            if not finished:
                stop = write_stop(project, tag=self.run.tag)
                self._carried_out(private, stop, variables)
        self._settle()
        if not finished:
            raise KeyboardInterrupt

    def clean(self) -> dict[str, str]:
        """Remove what is kept on every machine; return why it could not be removed, by machine."""
        with OwnFolder("fleet") as private:
            playbook = write_clean(private / "project")
            folders = {"fleet": {"hosts": _places(self._hosts)}}
            self._carried_out(private, playbook, folders)
        return dict(self._reasons)

    def _carried_out(self, private: Path, playbook: str, variables: Mapping[str, Any]) -> bool:
        """Have Ansible carry out a playbook; return whether nobody interrupted it."""
        try:
            import ansible_runner  # an extra
        except ImportError as error:
            raise UsageError(
                "the package ansible-runner is not installed",
                place="fleet",
                hint="Run: pip install 'pytest-ortbench[fleet]'",
            ) from error
        binaries = str(Path(program("ansible-playbook")).parent)
        # In a file, since thousands of names are longer than an argument may be.
        limit = private / "limit"
        limit.write_text("\n".join(self._hosts), encoding="utf-8")
        with _searched_first(binaries), _handlers_kept():
            # While it runs, Ctrl-C and SIGTERM end its playbook, and its status says so.
            runner = ansible_runner.run(
                private_data_dir=str(private),
                playbook=playbook,
                inventory=str(self._inventory.absolute()),
                limit=f"@{limit}",
                forks=min(len(self._hosts), _MOST_FORKS),
                extravars=dict(variables),
                event_handler=self._on_event,
                quiet=True,
                suppress_env_files=True,
                envvars={
                    **_configuration(Path.cwd()),
                    "ANSIBLE_HOME": str(private / "home"),
                    "ANSIBLE_SSH_ARGS": _SSH,
                    # A module goes with the call that runs it, so that a step is one call over ssh.
                    "ANSIBLE_PIPELINING": "1",
                    "ANSIBLE_SSH_RETRIES": "3",
                    "ANSIBLE_SSH_CONTROL_PATH_DIR": str(private / "cp"),
                    "ANSIBLE_RETRY_FILES_ENABLED": "0",
                    "ANSIBLE_NOCOLOR": "1",
                },
            )
            self._ended_early(runner)
        return bool(runner.status != "canceled")

    def _ended_early(self, runner: Any) -> None:
        """Give machines that nobody spoke of any more the last words of Ansible as their reason."""
        unheard = [name for name in self._hosts if name not in {*self._reasons, *self._collected}]
        if not unheard:
            return
        with runner.stdout as output:
            lines = [line.strip() for line in output.read().splitlines() if line.strip()]
        code = "" if runner.rc is None else f", exit status {runner.rc}"
        status = f"Ansible ended ({runner.status}{code})"
        reason = ": ".join([status, " ".join(lines[-3:])])
        self._reasons.update(dict.fromkeys(unheard, reason))

    def _on_event(self, event: Mapping[str, Any]) -> bool:
        """Take what Ansible says of one step on one machine; its own copy is not kept."""
        data = event.get("event_data", {})
        name, kind = data.get("host"), event.get("event")
        step = _STEPS.get(str(data.get("task")))
        if not isinstance(name, str) or name not in self._hosts or step is None:
            return False
        result = data.get("res")
        result = result if isinstance(result, dict) else {}
        if name not in self._reasons:
            self._reached[name] = STAGE_OF[step]
        if kind in ("runner_on_ok", "runner_retry"):
            self._on_answer(name, step, _answer(result))
        elif kind == "runner_on_unreachable":
            if step is PlayStep.LOOK:
                self._reached[name] = "connect"
            self._fail(name, result)
        elif kind == "runner_on_failed" and not data.get("ignore_errors"):
            self._fail(name, result)
        return False

    def _on_answer(self, name: str, step: PlayStep, answer: Mapping[str, Any]) -> None:
        if step is PlayStep.LOOK:
            clock = answer.get("clock")
            if isinstance(clock, int | float) and abs(clock) < LATEST_S:
                self._clocks[name] = float(clock) - time.time()
        elif step is PlayStep.STATUS:
            self._show(name, _progress(answer))
        elif step is PlayStep.COLLECT:
            self._collected[name] = answer
            if answer.get("output"):
                self._reached[name] = "measure"
                self._reasons[name] = _ending(answer)
        elif step is PlayStep.CLEAN:
            self._collected[name] = answer
            if answer.get("left"):
                self._reasons[name] = short_reason(f"what is not ours stays: {answer['left']}")
        if step in _SHOWN:
            self._show(name, _SHOWN[step])

    def _fail(self, name: str, result: Mapping[str, Any]) -> None:
        self._reasons[name] = _reason(result)
        self._show(name, f"ends at the stage {self._reached[name]}: {self._reasons[name]}")

    def _show(self, name: str, text: str) -> None:
        text = short_reason(text)
        if self._shown.get(name) != text:
            self._shown[name] = text
            self._tell(name, text)

    def _settle(self) -> None:
        for name in self._hosts:
            self.run.outcomes[name] = self._outcome(name)
        fail_shared(self.run)
        write_record(self.run, self.folder)

    def _outcome(self, name: str) -> HostOutcome:
        """Say what became of a machine, by what is in its folder."""
        failed = HostOutcome(
            host=name,
            state="failed",
            stage=self._reached.get(name, "connect"),
            reason=short_reason(self._reasons.get(name, "")),
            code=_code(self._collected.get(name, {})),
            clock_s=self._clocks.get(name),
        )
        outcome = outcome_of(self.folder / name, failed)
        if outcome.state == "measured" and outcome.code is None:
            reason = "how its pytest ended is not known"
            return replace(outcome, state="partial", stage="measure", reason=reason)
        return outcome


_STEPS = {step.value: step for step in PlayStep}
#: What is said of a machine once a step is done.
_SHOWN = {
    PlayStep.LOOK: "is reached",
    PlayStep.SEND: "gets its files",
    PlayStep.ENVIRONMENT: "has its environment",
    PlayStep.START: "measures",
    PlayStep.DOCUMENT: "has sent its document",
}


def _places(hosts: Mapping[str, Host]) -> dict[str, dict[str, str]]:
    return {name: {"python": host.python, "folder": host.folder} for name, host in hosts.items()}


def _variables(parcel: Parcel, hosts: Mapping[str, Host], private: Path) -> dict[str, Any]:
    """Write what is sent into files, and return what the play knows of it."""
    parcels = private / "parcels"
    parcels.mkdir(exist_ok=True)
    for name, host in hosts.items():
        (parcels / f"{name}.json").write_text(parcel.instructions(host), encoding="utf-8")
    pack = private / "pack.tar"
    pack.write_bytes(parcel.pack())
    return {
        "fleet": {
            "hosts": _places(hosts),
            "parcels": str(parcels),
            "pack": str(pack),
            "large": {digest: str(path.absolute()) for digest, path in parcel.large().items()},
        }
    }


def _ending(answer: Mapping[str, Any]) -> str:
    """Say how a run ended that left no document."""
    code, output = _code(answer), answer.get("output")
    if code is not None and code < 0:
        return f"pytest was killed by signal {-code}; before, it printed: {output}"
    return f"pytest ended with exit status {code}: {output}"


def _code(answer: Mapping[str, Any]) -> int | None:
    """Return the exit status in an answer, ``None`` if that holds no number that is one."""
    code = answer.get("code")
    return code if isinstance(code, int) and abs(code) <= _LARGEST_CODE else None


def _progress(answer: Mapping[str, Any]) -> str:
    """Say how many cases are done; before the first one, what pytest prints."""
    if answer.get("expected"):
        return f"{answer.get('cases')} of {answer.get('expected')} cases"
    return f"says: {answer.get('output') or 'nothing yet'}"


def _answer(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what our program on a machine printed, empty if it is none of it."""
    lines = str(result.get("stdout", "")).strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else {}
        json.dumps(answer, ensure_ascii=False).encode("utf-8")  # half a character is no text
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _reason(result: Mapping[str, Any]) -> str:
    """Return why a step failed: what our program says, else the words of ssh or Ansible."""
    own = _answer(result).get("reason")
    for text in (own, result.get("stderr"), result.get("module_stderr"), result.get("msg")):
        lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
        if lines:
            return " ".join(lines)
    return "Ansible gave no reason"


def _configuration(folder: Path) -> dict[str, str]:
    """Name the ``ansible.cfg`` of a folder, which Ansible reads where it is started.

    As Ansible does, leave it out where everybody may write to the folder.
    """
    path = folder / "ansible.cfg"
    if "ANSIBLE_CONFIG" in os.environ or not path.is_file():
        return {}
    return {} if folder.stat().st_mode & stat.S_IWOTH else {"ANSIBLE_CONFIG": str(path)}


@contextmanager
def _files_bounded(most_bytes: int) -> Iterator[None]:
    """Let no file of Ansible's be larger: a machine may say one size and send another."""
    import resource  # not on Windows, where Ansible does not run either

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_FSIZE, (min([most_bytes, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _searched_first(folder: str) -> Iterator[None]:
    """Let programs of a folder be found first, as ansible-runner starts them by name."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join((folder, before))
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """Handle a terminal that closes as ansible-runner handles SIGTERM."""
    leave_terminal()
    signal.raise_signal(signal.SIGTERM)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Put back the handlers of signals that ansible-runner replaces, and let SIGHUP be one."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    if handlers[signal.SIGHUP] is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminated)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
