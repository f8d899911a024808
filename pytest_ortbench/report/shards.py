"""A run of several machines: what each of them measured, as lines for all kinds of reports."""

from __future__ import annotations

from collections import Counter

from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted
from pytest_ortbench.report.escape import one_line


def shard_lines(run: Run) -> tuple[str, ...]:
    """Say what each machine measured, where several did, and which attempts came to nothing."""
    cases = Counter(result.shard for result in run.cases)
    counts: Counter[str] = Counter()
    for shard in run.shards:
        if shard.state == "measured" and shard.machine is not None:
            counts[f"{shard.worker} ({shard.machine.host})"] += cases[shard.name]
    others = [
        f"{shard.worker}, {shard.state}: {', '.join(shard.models)}"
        + (f" ({shard.reason})" if shard.reason else "")
        for shard in run.shards
        if shard.state != "measured"
    ]
    measured = [f"{name}: {counted(count, 'case')}" for name, count in sorted(counts.items())]
    return tuple(one_line(line) for line in (*measured, *others))
