"""Several runs as one: the shards of a suite that were measured apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from pytest_ortbench.core.certificate import Certificate
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult, RuntimeInfo
from pytest_ortbench.core.run import Commit, Run, Shard
from pytest_ortbench.store.folder import new_run_id

_COMPARE = "To compare the two runs instead, name both to 'ortbench compare'"


def merge_runs(runs: Sequence[Run], *, now: datetime | None = None, any_host: bool = False) -> Run:
    """Return one run with the cases of all; a case that several hold counts as the newest has it.

    So does the verdict on a case against the same baseline.

    Args:
        runs: Runs of one machine and one commit. Their runtimes may differ where their labels do:
            cases are told apart by them.
        now: Time of merging, for the new run's id.
        any_host: Whether host names may differ, as those of containers of one machine do.

    Returns:
        A run with a new id, the earliest start and the latest end; it is unfinished if any is.

    Raises:
        DocumentError: if there is no run, or they differ in one of those facts.
    """
    if not runs:
        raise DocumentError(
            "no run is named that could be merged",
            hint="Name the run.json of each run, e.g. 'ortbench merge a/run.json b/run.json "
            "--output=all.json'",
        )
    ordered = sorted(runs, key=lambda run: run.started_at)
    newest = ordered[-1]
    for run in ordered:
        _check_alike(newest, run, any_host=any_host)
    cases: dict[tuple[str, str], CaseResult] = {}
    for run in ordered:
        cases |= {result.case.key: result for result in run.cases}
    gate = {
        (verdict.case_id, verdict.runtime, verdict.baseline): verdict
        for run in ordered
        for verdict in run.gate
        # What one shard leaves out did not vanish if another one measured it.
        if not verdict.removed or (verdict.case_id, verdict.runtime) not in cases
    }
    ends = [run.finished_at for run in ordered]
    return replace(
        newest,
        run_id=new_run_id(newest.machine.host, now or datetime.now(timezone.utc)),
        started_at=ordered[0].started_at,
        finished_at=None if None in ends else max(end for end in ends if end is not None),
        command=("ortbench", "merge", *(run.run_id for run in runs)),
        options=_joined(run.options for run in ordered),
        runtimes={label: info for run in ordered for label, info in run.runtimes.items()},
        canary=next((run.canary for run in reversed(ordered) if run.canary is not None), None),
        cases=tuple(cases.values()),
        gate=tuple(gate.values()),
        certificates=_certificates(ordered),
        skips=tuple(dict.fromkeys(skip for run in ordered for skip in run.skips)),
        expected=len(cases) + _missing(ordered),
        plan="",
        shards=tuple(shard for run in ordered for shard in run.shards),
    )


def merge_shards(
    runs: Mapping[str, Run], shards: Sequence[Shard], *, expected: int, arguments: Sequence[str]
) -> Run:
    """Return one run of what several machines measured of one plan.

    Args:
        runs: The document of each shard that has one, by the shard's name.
        shards: All attempts; machine and canary of those with a document are taken from that.
        expected: Cases of the plan.
        arguments: Of pytest.

    Raises:
        DocumentError: if they are of machines, commits or runtimes that differ.
    """
    named = [
        replace(run, cases=tuple(replace(result, shard=name) for result in run.cases))
        for name, run in runs.items()
    ]
    merged = merge_runs(named, any_host=True)
    known = tuple(
        replace(shard, machine=run.machine, canary=run.canary)
        if (run := runs.get(shard.name)) is not None
        else shard
        for shard in shards
    )
    return replace(
        merged,
        command=("pytest", *arguments),
        expected=max(expected, len(merged.cases)),
        finished_at=merged.finished_at if len(merged.cases) >= expected else None,
        shards=known,
    )


def mergeable_kinds(runs: Mapping[str, Run]) -> list[list[str]]:
    """Return the names of runs by what can be merged, the most of one kind first."""
    kinds: list[list[str]] = []
    for name, run in runs.items():
        for kind in kinds:
            try:
                _check_alike(runs[kind[0]], run, any_host=True)
            except DocumentError:
                continue
            kind.append(name)
            break
        else:
            kinds.append([name])
    return sorted(kinds, key=len, reverse=True)


def _certificates(runs: Sequence[Run]) -> tuple[Certificate, ...]:
    """Those of all runs: of two about the same provider, that which the newer run has."""
    newest = {
        (certificate.provider, certificate.runtime): certificate
        for run in runs
        for certificate in run.certificates
    }
    return tuple(newest.values())


def _missing(runs: Sequence[Run]) -> int:
    """Cases of a plan that none of its runs has: an interrupted one may have been run again."""
    expected: dict[str, int] = {}
    finished: dict[str, set[tuple[str, str]]] = {}
    for run in runs:
        plan = run.plan or run.run_id
        expected[plan] = max(expected.get(plan, 0), run.expected)
        finished.setdefault(plan, set()).update(result.case.key for result in run.cases)
    return sum(max(0, count - len(finished[plan])) for plan, count in expected.items())


def _check_alike(run: Run, other: Run, *, any_host: bool) -> None:
    machines: list[tuple[str, object, object]] = [
        (f"machine.{fact}", run.machine.stable.get(fact), other.machine.stable.get(fact))
        for fact in sorted({*run.machine.stable, *other.machine.stable})
    ]
    if not any_host:
        machines.append(("machine.host", run.machine.host, other.machine.host))
    commits: list[tuple[str, object, object]] = [
        ("commit", _commit(run.commit), _commit(other.commit))
    ]
    runtimes: list[tuple[str, object, object]] = [
        (f"runtimes.{label}", _identity(run.runtimes[label]), _identity(other.runtimes[label]))
        for label in sorted({*run.runtimes} & {*other.runtimes})
    ]
    for field, value, other_value in (*machines, *commits, *runtimes):
        if value == other_value:
            continue
        shared = {result.case.key for result in run.cases} & {
            result.case.key for result in other.cases
        }
        hint = _COMPARE if shared else f"Measure both where {field} is the same"
        if field == "machine.host":
            hint = f"If both hosts are containers of one machine, add --any-host. {hint}"
        raise DocumentError(
            f"{other.run_id} and {run.run_id} can't be merged, since they differ in {field}: "
            f"{_beside(other_value, value)} and {_beside(value, other_value)}",
            hint=hint,
        )


def _commit(commit: Commit | None) -> str:
    if commit is None:
        return "none"
    return f"{commit.revision[:12]}{' with changes' if commit.dirty else ''}"


def _identity(info: RuntimeInfo) -> tuple[str, ...]:
    versions = (f"{name} {version}" for name, version in sorted(info.distributions.items()))
    said = (f"ONNX Runtime {info.version}", f"Python {info.python}", f"numpy {info.numpy}")
    return (*versions, *said)


def _beside(value: object, other: object) -> str:
    """Return a fact of one run as text; of several values, those that the other run lacks."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        return ", ".join(str(part) for part in value if part not in other) or "none of these"
    return "nothing recorded" if value is None else repr(value)


def _joined(options: Iterable[dict[str, str]]) -> dict[str, str]:
    """Options of all runs; where they differ, every value, in the order of the runs."""
    values: dict[str, dict[str, None]] = {}
    for of_run in options:
        for name, value in of_run.items():
            values.setdefault(name, {})[value] = None
    return {name: " | ".join(different) for name, different in values.items()}
