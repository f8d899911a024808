"""The one place that runs things: a planned case goes in, its result comes out, once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import REPORT_IT, DocumentError, WorkerError
from pytest_ortbench.core.extent import Extent
from pytest_ortbench.core.failures import case_error, case_failure
from pytest_ortbench.core.outcome import Accuracy, CaseResult, Failure, Placement, RuntimeInfo
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.run import Canary, Run
from pytest_ortbench.execution.budget import Budget
from pytest_ortbench.execution.default_retry import DefaultRetry
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.pace import BudgetPace
from pytest_ortbench.execution.passes import carry_out, due, without
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.execution.turns import carried_out_in_turn, measured_in_turn
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.launch.machine_lock import MachineLock
from pytest_ortbench.launch.reference import release_reference
from pytest_ortbench.launch.turn import TURN
from pytest_ortbench.models.extent import extent_of
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.schema.meaning import faults_of
from pytest_ortbench.store.certificates import certified
from pytest_ortbench.store.resume import taken_over

_NO_SENSE = "the results contradict each other"

#: What stands with a pass that Ctrl-C or another plugin ended.
_INTERRUPTED = "interrupted before it ended"


class Listener(Protocol):
    """Hears what an execution does; nothing that it does may take long."""

    def begin(self, case: Case) -> None:
        """A case starts."""

    def end(self, result: CaseResult) -> None:
        """A case is over."""

    def warn(self, text: str) -> None:
        """Something went wrong that does not stop the run."""


class ResultStore(Protocol):
    """Keeps each result as soon as it exists."""

    def append(self, result: CaseResult) -> None:
        """Store one result durably."""


@dataclass(slots=True)
class Execution:
    """Measures planned cases lazily, each once, one at a time; other threads wait their turn.

    Attributes:
        launcher: Starts the workers.
        variants: Makes the files of precisions.
        header: The run document without its cases.
        listener: Hears what happens.
        journal: Keeps each result at once; ``None`` keeps them in memory only.
        finished: Results of an interrupted run of the same plan, used instead of measuring. Of
            their cases nothing is started, loaded or read: the planned ones take their place.
        min_samples: Samples that the tests of a case need (368 for a limit on p99), by its key.
        passes: Passes besides the standard one that the tests of a case need, by its key.
        planned: All cases of the run, for passes that take further shapes from them.
        counted: Whether nodes, parameters and multiply-accumulates of each file are counted, which
            takes about as long as starting a worker: where several variants are compared.
        resumed: How many results were taken from ``finished`` so far.
        machine: The machine's turn, taken before the first case is measured; ``None`` takes none.
        budget: The time that the run has; ``None`` sets no limit.
        retry: Tries other default sizes, and remembers what was taken.
    """

    launcher: Launcher
    variants: Variants
    header: Run
    listener: Listener
    journal: ResultStore | None = None
    finished: Mapping[Key, CaseResult] = field(default_factory=dict)
    min_samples: Mapping[Key, int] = field(default_factory=dict)
    passes: Mapping[Key, Collection[str]] = field(default_factory=dict)
    planned: Mapping[Key, Planned] = field(default_factory=dict)
    counted: bool = False
    resumed: int = 0
    machine: MachineLock | None = None
    budget: Budget | None = None
    _results: dict[Key, CaseResult] = field(default_factory=dict)
    _scratch: OwnFolder | None = None
    _extents: dict[tuple[object, ...], Extent] = field(default_factory=dict)
    _taken: set[Key] = field(default_factory=set)
    retry: DefaultRetry = field(init=False)

    def __post_init__(self) -> None:
        self.retry = DefaultRetry(launcher=self.launcher)

    def result(self, planned: Planned, *passes: str) -> CaseResult:
        """Return the case's result, measuring it if this is the first time it is asked for.

        Args:
            planned: The case.
            passes: Passes that only turned out to be needed now.
        """
        with TURN:
            return self._measured(planned, passes)

    def _measured(self, planned: Planned, passes: Iterable[str]) -> CaseResult:
        key = planned.case.key
        known = self._results.get(key)
        wanted = {*self.passes.get(key, ()), *passes}
        if known is not None and not due(known, wanted):
            return known
        self.listener.begin(planned.case)
        # Known from here on, even if storing it fails: nothing is measured twice.
        self._results[key] = self._obtain(planned) if known is None else known
        try:
            if key in self._taken and due(self._results[key], wanted):
                self._results[key] = self._with_file(self._results[key], planned)
                self._taken.discard(key)
            for name in due(self._results[key], wanted):
                self._results[key] = self._with_pass(name, key)
        except WorkerError as error:
            result = self._results[key]
            reason = f"{error.failure.kind}: {error.failure.told}"
            self._results[key] = without(result, due(result, wanted), reason)
        except BaseException as error:
            # What is missing now was asked for: the tables say so. Behind a time limit of another
            # plugin the next test goes on, and must not begin it again.
            result = self._results[key]
            stopped = isinstance(error, KeyboardInterrupt)
            self._results[key] = without(
                result, due(result, wanted), _INTERRUPTED, interrupted=stopped
            )
            raise
        finally:
            # An interrupt in a later pass costs nothing of an earlier one.
            self._results[key] = sound(self._results[key])
            self._store(self._results[key])
        if self._scratch is not None:
            left = (entry.case for key, entry in self.planned.items() if key not in self._results)
            release_reference(self._results[key].case, left, self._scratch.path)
        self.listener.end(self._results[key])
        return self._results[key]

    def _with_pass(self, name: str, key: Key) -> CaseResult:
        """The result of a case with a further pass, if the budget has time for it."""
        means = Means(
            launcher=self.launcher,
            others=self._others(key),
            results=tuple(self._results.values()),
            prepare=self._prepared,
            reference=lambda case: self.launcher.reference(case, self._scratch_folder()),
        )

        def keep(part: CaseResult) -> None:
            # A pass may have had a case with a shorter timeout.
            self._results[key] = replace(part, case=self._results[key].case)

        def carried(result: CaseResult) -> CaseResult:
            return carry_out(name, result, means, keep=keep)

        if self.budget is None:
            return carried(self._results[key])
        return carried_out_in_turn(self.budget, name, self._results[key], carried)

    def _prepared(self, case: Case) -> Case:
        """Another case of the plan with its file.

        Raises:
            WorkerError: if it is refused, or can't be made.
        """
        planned = self.planned[case.key]
        if planned.refusal is not None:
            raise WorkerError(planned.refusal)
        return self.prepare(planned)

    def _others(self, key: Key) -> list[Case]:
        return [entry.case for other, entry in self.planned.items() if other != key]

    def _store(self, result: CaseResult) -> None:
        if self.journal is None:
            return
        try:
            self.journal.append(result)
        except DocumentError as error:
            # A full disk costs no measurement: the journal writes this line along with the next.
            self.listener.warn(str(error))

    def _obtain(self, planned: Planned) -> CaseResult:
        if planned.refusal is not None:
            return refused(planned.case, planned.refusal)
        earlier = self.finished.get(planned.case.key)
        earlier = None if earlier is None else taken_over(earlier, planned.case)
        if earlier is not None:
            self.resumed += 1
            self._taken.add(planned.case.key)
            return earlier
        if self.budget is None:
            return self._prepared_and_measured(planned, None)
        if self.machine is not None:
            self.machine.take()  # waiting for another run is no part of the budget
        return measured_in_turn(
            self.budget,
            planned.case,
            lambda case, pace: self._prepared_and_measured(replace(planned, case=case), pace),
        )

    def _prepared_and_measured(self, planned: Planned, pace: BudgetPace | None) -> CaseResult:
        try:
            case = self.prepare(planned)
        except WorkerError as error:
            return refused(planned.case, error.failure)
        case = self._counted(case) if self.counted else case
        least = self.min_samples.get(case.key, 0)
        if least > case.sampling.min_samples:
            case = replace(case, sampling=replace(case.sampling, min_samples=least))
        if self.machine is None:
            return self._at_fitting_sizes(case, pace)
        self.machine.take()
        other = self.machine.other()
        result = self._at_fitting_sizes(case, pace)
        other = other or self.machine.other()
        if not other:
            return result
        result = replace(result, other_run=other)
        return replace(result, flags=flags_of(result))

    def _at_fitting_sizes(self, case: Case, pace: BudgetPace | None) -> CaseResult:
        """Measure a case, at other default sizes if its graph refuses the first ones."""
        result = self._at_pace(self.retry.known(case), pace)
        other = self.retry.other(result)
        return other if isinstance(other, CaseResult) else self._at_pace(other, pace)

    def _at_pace(self, case: Case, pace: BudgetPace | None) -> CaseResult:
        if pace is not None:
            pace.case = case
        return measure(case, self.launcher, self._scratch_folder(), pace)

    def _with_file(self, earlier: CaseResult, planned: Planned) -> CaseResult:
        """The result of an earlier run with the file that its case has now, for a pass.

        Raises:
            WorkerError: if the file can't be had, or is another one than was timed.
        """
        case, timed = self.prepare(planned), earlier.case.variant
        if case.variant.digest != timed.digest:
            raise case_error(
                f"the {timed.precision} file that the earlier run timed is gone, and a new "
                f"conversion gives another file (SHA-256 {case.variant.digest[:12]}…, not "
                f"{timed.digest[:12]}…)",
                "Leave --ort-resume out, so that every case is measured again",
                kind="error",
                phase="convert",
            )
        return replace(earlier, case=self._counted(case) if self.counted else case)

    def _counted(self, case: Case) -> Case:
        """The case with the extent of its file, counted once for each set of shapes."""
        variant = case.variant
        sizes = {spec.name: spec.shape for spec in case.inputs}
        key = (variant.counted_path, variant.digest, tuple(sizes.items()))
        if key not in self._extents:
            self._extents[key] = extent_of(Path(variant.counted_path), sizes)
        return replace(case, variant=replace(variant, extent=self._extents[key]))

    def prepare(self, planned: Planned) -> Case:
        """Return the case with the file of its variant, made if it is not there yet.

        Raises:
            WorkerError: if it can't be made.
        """
        return self.retry.prepare(planned, self.variants)

    def prepare_pair(self, baseline: Planned, contender: Planned) -> tuple[Case, Case]:
        """Return two cases that are compared, at the sizes that either of their models took.

        Raises:
            WorkerError: if a file can't be made.
        """
        after = self.prepare(contender)
        self.retry.follow(baseline.case.model.path, contender.case.model.path)
        before = self.prepare(baseline)
        if self.retry.follow(contender.case.model.path, baseline.case.model.path):
            after = self.prepare(contender)
        return before, after

    def give_up(self, planned: Planned, reason: str) -> None:
        """Keep a failure of a case that was ended from outside, so that no test begins it again."""
        if planned.case.key not in self._results:
            failure = case_failure(
                f"the measurement was stopped before it was complete: {reason!r}",
                "If a time limit did this, raise it, e.g. --timeout=600 of pytest-timeout: the "
                "first test of a case takes as long as its whole measurement. To measure for a "
                "shorter time instead, write e.g. --ort-time=1s",
                kind="error",
                phase="measure",
            )
            self._results[planned.case.key] = result = refused(planned.case, failure)
            if self.budget is not None:
                self.budget.forget(planned.case.key)
            self._store(result)
            self.listener.end(result)

    def known(self, planned: Planned) -> CaseResult | None:
        """Return the case's result if it exists already."""
        return self._results.get(planned.case.key)

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """Results so far, in the order of measuring."""
        return tuple(self._results.values())

    def run(self, *, canary: Canary | None = None, interrupted: bool = False) -> Run:
        """Return the run document as it stands now.

        Args:
            canary: The pinned model, if it was measured.
            interrupted: Whether the run was stopped before its end; it then counts as unfinished.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return certified(
            replace(
                self.header,
                finished_at=None if interrupted else now,
                cases=self.results,
                resumed=self.resumed,
                canary=canary,
                runtimes=_observed(self.results),
            )
        )

    def close(self) -> None:
        """Remove the scratch folder; whoever made the launcher closes it."""
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def _scratch_folder(self) -> Path:
        if self._scratch is None:
            self._scratch = OwnFolder("scratch")
        return self._scratch.path


def refused(case: Case, failure: Failure) -> CaseResult:
    """Return the result of a case that was refused before anything ran."""
    return CaseResult(
        case=case,
        status=failure.kind,
        failure=failure,
        started_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def sound(result: CaseResult) -> CaseResult:
    """Return the result without what no reader of the document could believe.

    One such number would make the whole document unreadable, and with it all other cases. What was
    found out behind the timed blocks is dropped alone, with its reason; a duration or a fact of the
    case itself makes a failure of the result.
    """
    dropped: set[str] = set()
    while True:
        fault = next(faults_of(result), None)
        if fault is None:
            return replace(result, flags=flags_of(result)) if dropped else result
        part = re.split(r"[.\[]", fault.path)[1]
        lesser = None if part in dropped else _dropping(result, part, f"{_NO_SENSE}: {fault}")
        if lesser is None:
            break
        dropped.add(part)
        result = lesser
    return CaseResult(
        case=result.case,
        status="error",
        failure=case_failure(
            f"{_NO_SENSE}: {fault}",
            REPORT_IT,
            kind="error",
            phase="measure",
        ),
        started_at=result.started_at,
        wall_s=result.wall_s,
    )


def _dropping(result: CaseResult, part: str, reason: str) -> CaseResult | None:
    """The result with a reason in place of one of its parts; ``None`` if it can't be without it."""
    if part == "placement":
        missing = Placement(provider=result.case.provider.name, executed={}, reason=reason)
        return replace(result, placement=missing)
    if part == "accuracy":
        return replace(result, accuracy=Accuracy(reason=reason))
    entry = next((entry for entry in PASSES if entry.result_field == part), None)
    if entry is None:
        return None
    if isinstance(getattr(result, part), tuple):
        facts: dict[str, Any] = {part: ()}
        return replace(result, **facts)
    return without(result, [entry.name], reason)


def _observed(results: Iterable[CaseResult]) -> dict[str, RuntimeInfo]:
    """The interpreters that really measured, by label."""
    runtimes: dict[str, RuntimeInfo] = {}
    for result in results:
        for measurement in result.measurements:
            runtimes.setdefault(result.case.runtime.label, measurement.runtime)
    return runtimes
