"""One execution of a plan, as it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.certificate import Certificate
from pytest_ortbench.core.gate import GateResult, UnnamedModel
from pytest_ortbench.core.outcome import CaseResult, RuntimeInfo

#: Version of the run document.
#:
#: History:
#:   1  first release
#:   2  what decides is a field of its own: whether a pass was interrupted
SCHEMA_VERSION = 4

#: What stands for ``virtualisation`` and ``cpu_quota`` of a machine that has neither.
NO_HYPERVISOR, NO_QUOTA = "none seen", "none"

#: What became of a shard: its cases are in the run; its machine was lost while it measured, so that
#: another one did; or it ended without a document that can be read.
SHARD_STATES = ("measured", "interrupted", "failed")

#: What the newest finished run of a results folder is called.
LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine: stable facts decide whether two runs compare, volatile ones are only stored.

    Attributes:
        host: Host name.
        stable: Facts that must agree for two runs to compare (CPU model, cores, memory, …).
        volatile: Facts that only inform (load, frequency, governor, …).
    """

    host: str
    stable: dict[str, str] = field(default_factory=dict)
    volatile: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """State of the git working tree that pytest ran in."""

    revision: str
    branch: str = ""
    dirty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A pinned builtin model measured along with every stored run; not a case.

    Attributes:
        model: Name and builder version of the model.
        durations_ns: Its durations in order.
        reason: Why it was not measured; empty otherwise.
    """

    model: str
    durations_ns: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A combination that is not a case, and why.

    Attributes:
        what: ``azure``, ``resnet50 × int4``, ….
        reason: In plain words.
        runtime: Label of the runtime, empty where it does not matter.
    """

    what: str
    reason: str
    runtime: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What one machine of several measured of a run, or began to measure.

    Attributes:
        name: What :attr:`CaseResult.shard` calls it.
        state: One of :data:`SHARD_STATES`.
        worker: What the cluster calls the machine's worker.
        models: Its models, or the tests that make theirs.
        started_at: UTC, ISO 8601.
        machine: As its own document has it; ``None`` if none came back.
        canary: The pinned model there, if it was measured.
        reason: Why none of its cases is in the run; empty otherwise.
    """

    name: str
    state: str
    worker: str
    models: tuple[str, ...] = ()
    started_at: str = ""
    machine: Machine | None = None
    canary: Canary | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run document.

    Attributes:
        schema_version: :data:`SCHEMA_VERSION` when it was written.
        run_id: ``<UTC>-<host>-<4 hex>``; also the folder's name.
        ortbench_version: Version of this package.
        started_at: UTC, ISO 8601.
        finished_at: UTC; ``None`` while it runs and after it was killed.
        command: The command line.
        options: Options in force, as text.
        machine: Where it ran.
        commit: Working tree state, if there is one.
        runtimes: Observed interpreters by label.
        canary: The pinned model, if it was measured.
        cases: Results in the order of measuring.
        skips: What was left out, with reasons.
        expected: Number of cases in the plan.
        plan: Fingerprint of the plan: runs that share it would measure the same; empty if unknown.
        resumed: How many of the cases were taken from interrupted runs of the same plan instead of
            being measured in this one.
        gate: Verdicts of the cases against their baselines, if a gate was asked for.
        certificates: What ``ortbench selfcheck`` found out before about the providers of its cases,
            on the same machine, with the same versions.
        unnamed: Models that a baseline of the gate has and that this run names nowhere.
        shards: What each machine measured, where several did; ``machine`` is then one of them, and
            all are alike in its stable facts.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    ortbench_version: str
    started_at: str
    finished_at: str | None = None
    command: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    machine: Machine
    commit: Commit | None = None
    runtimes: dict[str, RuntimeInfo] = field(default_factory=dict)
    canary: Canary | None = None
    cases: tuple[CaseResult, ...] = ()
    skips: tuple[Skip, ...] = ()
    expected: int = 0
    plan: str = ""
    gate: tuple[GateResult, ...] = ()
    resumed: int = 0
    certificates: tuple[Certificate, ...] = ()
    unnamed: tuple[UnnamedModel, ...] = ()
    shards: tuple[Shard, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of all machines that measured, each once."""
        others = (shard.machine.host for shard in self.shards if shard.machine is not None)
        return tuple(dict.fromkeys((self.machine.host, *others)))

    def host_of(self, result: CaseResult) -> str:
        """Return the name of the machine that measured a case."""
        for shard in self.shards:
            if shard.name == result.shard and shard.machine is not None:
                return shard.machine.host
        return self.machine.host
