"""Two cases that are measured against each other, and whether that compares the same work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_ortbench.core.case import Case

BASELINE, CONTENDER = "baseline", "contender"

_NO_SPIN = {"session.force_spinning_stop": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two cases that are measured against each other; both prepared: their files exist."""

    baseline: Case
    contender: Case

    def side(self, name: str) -> Case:
        """Return the case of ``baseline`` or ``contender``."""
        return self.baseline if name == BASELINE else self.contender


def can_suspend(pair: Pair) -> bool:
    """Whether a signal reaches the worker itself, not only a shell or client in front of it."""
    runtimes = (pair.baseline.runtime, pair.contender.runtime)
    return all(runtime.shares_files and not runtime.through_shell for runtime in runtimes)


def without_spinning(pair: Pair) -> Pair:
    """Return a pair whose threads stop spinning after each run, where a side can't be suspended."""
    if can_suspend(pair):
        return pair
    sides = (
        replace(case, session=replace(case.session, entries={**case.session.entries, **_NO_SPIN}))
        for case in (pair.baseline, pair.contender)
    )
    return Pair(baseline=next(sides), contender=next(sides))


def input_difference(pair: Pair) -> str:
    """Say how what the two sides are fed differs; empty if it does not."""
    baseline_inputs, contender_inputs = (
        {spec.name: spec for spec in case.inputs} for case in (pair.baseline, pair.contender)
    )
    for name in dict.fromkeys([*baseline_inputs, *contender_inputs]):
        before, after = (
            f"{side[name].type} {list(side[name].shape)}" if name in side else "none"
            for side in (baseline_inputs, contender_inputs)
        )
        if before == after:
            before, after = (
                "from a file" if side[name].path else "random"
                for side in (baseline_inputs, contender_inputs)
            )
        if before != after:
            return f"input {name}: {before} → {after}"
    if pair.baseline.io != pair.contender.io:
        return f"io: {pair.baseline.io} → {pair.contender.io}"
    return ""
