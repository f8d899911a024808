"""What is known of the machines of a fleet: how each is measured, and what became of it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

from pytest_ortbench.core.run import Shard

#: How far a machine came; the last ones are about what it sent back.
Stage = Literal[
    "connect", "look", "space", "send", "environment", "start", "measure", "fetch", "read"
]
#: ``measured``: its document is there; ``partial``: a journal is; ``failed``: neither.
State = Literal["measured", "partial", "failed"]
#: No time of a machine is later: datetime has no year 10000.
LATEST_S = 2.5e11
#: What is kept of a machine's run.
KeptFile = Literal["run.json", "journal.jsonl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of an inventory.

    Attributes:
        name: As the inventory has it.
        python: Interpreter that makes the environment, as a shell on the machine takes it.
        extra: Extra of this package that brings ONNX Runtime; empty with a runtime.
        runtime: Requirement in place of the extra, such as ``onnxruntime==1.20.1``.
        packages: Further requirements.
        folder: Folder on the machine that everything stays in.
        machine: Name in a comparison and in the table of prices; empty: its own name.
    """

    name: str
    python: str = "python3"
    extra: str = "cpu"
    runtime: str = ""
    packages: tuple[str, ...] = ()
    folder: str = "~/.ortbench-fleet"
    machine: str = ""

    @property
    def called(self) -> str:
        """Name in a comparison."""
        return self.machine or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOutcome:
    """What became of one machine.

    Attributes:
        host: Its name in the inventory.
        state: Whether its numbers are here.
        stage: How far it came, if it was not measured to the end.
        reason: Why it went no further, in the words of ssh, Ansible, the machine, or ours.
        cases: Cases in what came back.
        expected: Cases of its plan; 0 if unknown.
        run_id: Id of its run; empty if nothing came back.
        code: Exit status of its pytest; ``None`` if that did not end.
        clock_s: Seconds by which its clock was ahead of ours; ``None`` if unknown.
        file: What of it is compared, in its folder.
    """

    host: str
    state: State
    stage: Stage | None = None
    reason: str = ""
    cases: int = 0
    expected: int = 0
    run_id: str = ""
    code: int | None = None
    clock_s: float | None = None
    file: KeptFile = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """A suite that was sent to the machines of an inventory, as stored in ``fleet.json``.

    Attributes:
        tag: Name of its folder, here and on the machines.
        arguments: Arguments of pytest.
        outcomes: What became of each machine, by its name.
    """

    tag: str
    arguments: tuple[str, ...]
    outcomes: dict[str, HostOutcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedRun:
    """A suite that was divided over the workers of a cluster, as stored in ``shards.json``.

    Attributes:
        tag: Name of its folder, here and on the machines.
        arguments: Arguments of pytest.
        project: Digest of what was sent.
        models: How many cases each model has, by its name.
        shards: All attempts so far.
        codes: Exit status of pytest in each attempt that was answered; ``None`` if unknown.
    """

    tag: str
    arguments: tuple[str, ...]
    project: str = ""
    models: dict[str, int] = field(default_factory=dict)
    shards: tuple[Shard, ...] = ()
    codes: dict[str, int | None] = field(default_factory=dict)


def new_tag() -> str:
    """Return a name for a run of several machines: its time, and something random."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{now}-{secrets.token_hex(2)}"
