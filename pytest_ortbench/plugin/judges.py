"""All that the cases of a pytest run are held to: limits that were asked for, and the gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.plugin.budgeting import admit, budget_of, in_order
from pytest_ortbench.plugin.expected_time import countdown_of, refuse_endless
from pytest_ortbench.plugin.judging import AskedLimits, ExpectedOutputs, Judging
from pytest_ortbench.plugin.own_tests import planned_of

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Key
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.gating import Gating
    from pytest_ortbench.plugin.marker import MarkerValues

_JUDGES = pytest.StashKey["Judges"]()


class Judges:
    """The judges of one pytest run; :meth:`of` makes them at the first call.

    Args:
        bench: The run.

    Attributes:
        asked_limits: Limits of option and ini key.
        gating: Judges cases against their baselines; ``None`` where no option asks for it.
        judging: Has each case held to what was asked for it.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        options = bench.options
        written = (str(text).partition("=")[0] for text in bench.config.invocation_params.args)
        self.asked_limits = AskedLimits(
            bench,
            options.limits,
            place=options.place_of("limits"),
            insisting="--ort-limits" in written,
        )
        self.gating = _gating(bench)
        gates = () if self.gating is None else (self.gating,)
        bench.collection.fed = None if self.gating is None else self.gating.fed
        bench.endings += [gate.close for gate in gates]
        self.judging = Judging(bench, (self.asked_limits, ExpectedOutputs(bench), *gates))

    @classmethod
    def of(cls, bench: Bench) -> Judges:
        """Return the judges of a run."""
        stash = bench.config.stash
        if _JUDGES not in stash:
            stash[_JUDGES] = cls(bench)
        return stash[_JUDGES]

    def select(self, items: Sequence[pytest.Item]) -> None:
        """Note the cases of the tests that will run, and what those tests need of them.

        Raises:
            OrtbenchError: for a pattern that fits no case, a margin that can't be resolved, an
                option that nothing can come of, or cases for more than a day.
        """
        bench = self._bench
        bench.collection.refuse_unused_options()
        ours = [(item, planned) for item in items if (planned := planned_of(item)) is not None]
        bench.making = tuple(item.nodeid for item in items if bench.collection.makes_models(item))
        more = bool(bench.making)
        self.asked_limits.assign([planned.case for _, planned in ours], more_to_come=more)
        if self.gating is not None:
            self.gating.assign(ours, more_to_come=more)
        self.judging.assign(ours)
        for item, planned in ours:
            gated = () if self.gating is None else self.gating.limits_of(planned)
            marked = bench.collection.limits_of(item)
            bench.misplaced.check_axes(item)
            bench.note_limits(item, planned, marked, self.asked_limits.of(planned), gated)
        bench.collection.check_cases([entry.case for entry in bench.planned.values()])
        if (bench.planned or more) and not bench.config.option.collectonly:
            if bench.options.budget_s is None:
                refuse_endless(bench)
            bench.prepare()
        bench.countdown = countdown_of(bench)
        if self.gating is not None:
            self.gating.prepare(items)
        self._set_budget(ours)

    def ordered(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """Return the tests that will run in their order; a budget has one of its own."""
        return in_order(self._bench.budget, items)

    def _set_budget(self, ours: Sequence[tuple[pytest.Item, Planned]]) -> None:
        """Divide the time of the run, where it has a budget.

        Raises:
            UsageError: if what was asked for can't fit into it.
        """
        bench = self._bench
        if bench.options.budget_s is None or not (bench.planned or bench.making):
            return
        held = {
            planned.case.key
            for item, planned in ours
            if bench.collection.limits_of(item) or self.judging.owes(planned)
        }
        limited = {
            planned.case.key
            for item, planned in ours
            if bench.collection.limits_of(item) or self._limits_of(planned)
        }
        bench.budget = budget_of(bench, held, self._gated(held), self._settled(held, limited))

    def _limits_of(self, planned: Planned) -> tuple[Limit, ...]:
        """Limits that are held against the numbers of a case itself, but for those of a marker."""
        gated = () if self.gating is None else self.gating.limits_of(planned)
        return (*self.asked_limits.of(planned), *gated)

    def _gated(self, keys: Iterable[Key]) -> set[Key]:
        """Those cases that are measured in turns with another side."""
        return {key for key in keys if self.gating is not None and self.gating.launches(key)}

    def _settled(self, keys: Iterable[Key], limited: Collection[Key]) -> set[Key]:
        """Those cases whose own numbers decide nothing: a gate alone does, and needs none of them.

        Args:
            keys: The cases.
            limited: Those of them that limits are held against.
        """
        gating = self.gating
        if gating is None:
            return set()
        return {
            key
            for key in keys
            if gating.settles(key) or (key not in limited and gating.decides_in_turns(key))
        }

    def admit(
        self, item: pytest.Item, request: PlanRequest, plan: Plan, values: MarkerValues
    ) -> None:
        """Have the cases of a model that a test made held to all that the run asks for.

        Args:
            item: The test.
            request: What it asks for.
            plan: The cases of it.
            values: Limits of its own, and of its gate.

        Raises:
            OrtbenchError: for an option that does not go with them.
        """
        bench = self._bench
        fresh = [entry for entry in plan.entries if entry.case.key not in bench.planned]
        bench.collection.check_cases([entry.case for entry in plan.entries])
        if fresh:
            self.asked_limits.admit([entry.case for entry in fresh])
            if self.gating is not None:
                self.gating.admit(request, plan, values.gate)
            self.judging.assign((item, entry) for entry in fresh)
        for entry in plan.entries:
            gated = () if self.gating is None else self.gating.limits_of(entry)
            asked = self.asked_limits.of(entry)
            bench.note_limits(item, entry, values.limits, asked, gated)
        if bench.budget is not None:
            held = {entry.case.key for entry in fresh if values.limits or self.judging.owes(entry)}
            cases = [entry.case for entry in fresh if entry.refusal is None]
            limited = {entry.case.key for entry in fresh if values.limits or self._limits_of(entry)}
            admit(
                bench.budget,
                item.nodeid,
                cases,
                held=held,
                gated=self._gated(held),
                settled=self._settled(held, limited),
            )

    def properties_of(self, planned: Planned) -> list[tuple[str, str]]:
        """Return metrics of a measured case and verdicts on it, for JUnit."""
        properties = self._bench.properties_of(planned)
        judged = [] if self.gating is None else self.gating.results_of(planned)
        if judged:
            from pytest_ortbench.gate.report.lines import gate_properties

            for name, verdict in zip(("gate", "gate_stored"), judged, strict=False):
                properties += gate_properties(verdict, name)
        return properties


def _gating(bench: Bench) -> Gating | None:
    if not bench.options.against and not bench.options.baseline:
        return None
    # A run without a gate does not wait for its rooms to load.
    from pytest_ortbench.plugin.gating import Gating

    return Gating(bench)
