"""The run of ``--ort-baseline``: found once, and what it has of the cases of this run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ortbench.analysis.gate.rules import CaseRules
    from pytest_ortbench.bench import Bench
    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.core.run import Run
    from pytest_ortbench.plan.matrix import Planned

Key = tuple[str, str]


class StoredBaseline:
    """Judges cases against the stored run, if there is one yet.

    Args:
        bench: The run.

    Attributes:
        notes: What a reader must know of which run it is.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.notes: list[str] = []

    @cached_property
    def run(self) -> Run | None:
        """The stored run; ``None`` where none was recorded yet.

        Raises:
            OrtbenchError: if a certain one is meant and is not there, or can't be read.
        """
        from pytest_ortbench.store.baseline import find_baseline
        from pytest_ortbench.store.documents import load

        options = self._bench.options
        place = options.places.get("baseline", "--ort-baseline")
        found = find_baseline(
            options.baseline, options.results, base=self._bench.collection.root, place=place
        )
        if found.passed_over:
            self.notes.append(
                f"gate: passed over, since they failed a gate: {listed(found.passed_over)}; if "
                "what they measured is meant, run once without --ort-baseline or name the run"
            )
        if found.path is None:
            self.notes.append(
                f"gate: there is no baseline yet at {options.baseline!r}; this run is recorded and "
                "passes, the next one is held against it"
            )
            return None
        return load(found.path)

    def vanished(self, planned: Collection[Key], carried: Iterable[Key]) -> dict[Key, GateResult]:
        """Verdicts on cases that it has and the plan has not; new ones are noted.

        Args:
            planned: All cases of the plan, selected or not.
            carried: Those that will be judged.
        """
        from pytest_ortbench.analysis.gate.stored import vanished

        if self.run is None:
            return {}
        known = {result.case.key for result in self.run.cases}
        new = [key[0] for key in carried if key not in known]
        if new:
            self.notes.append(f"gate: new against {self.run.run_id}: {listed(new)}")
        gone = (result.case.key for result in self.run.cases)
        return {key: vanished(key, self.run.run_id) for key in gone if key not in planned}

    def result(self, key: Key) -> CaseResult | None:
        """What it has of a case."""
        if self.run is None:
            return None
        return next((result for result in self.run.cases if result.case.key == key), None)

    def judge(self, planned: Planned, rules: CaseRules) -> GateResult | None:
        """The verdict on a case; ``None`` for one that it has not."""
        from pytest_ortbench.analysis.gate.stored import gate_case

        stored = self.result(planned.case.key)
        if stored is None or self.run is None:
            return None
        return gate_case(
            stored,
            self._bench.result(planned),
            rules,
            baseline=self.run,
            machine=self._bench.engine.header.machine,
            canary=self._canary_ratio,
        )

    @cached_property
    def _canary_ratio(self) -> float | None:
        """How the pinned model fares against the baseline's run, where that decides anything."""
        from pytest_ortbench.analysis.gate.stored import canary_ratio
        from pytest_ortbench.analysis.gate.verdict import profile_of
        from pytest_ortbench.engine.canary import measure_canary

        baseline, header = self.run, self._bench.engine.header
        if baseline is None or baseline.canary is None:
            return None
        if profile_of(header.machine).name == "shared":
            return None  # the latency only informs there
        canary = measure_canary(self._bench.engine.launcher)
        return canary_ratio(baseline, replace(header, canary=canary))


def listed(ids: Sequence[str]) -> str:
    """Spell out five and count the rest."""
    shown = ", ".join(ids[:5])
    return shown + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
