"""What one pytest run knows of its matrix: plans, their execution, limits, and where it is stored.

Nothing here exists until a test of ours is collected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.stop_signals import (
    GAVE_UP_WAITING,
    GaveUpWaiting,
    StoppedWaiting,
    StopSignals,
)
from pytest_ortbench.plugin.complaints import Complaints
from pytest_ortbench.plugin.foreign_logs import without_foreign_logs
from pytest_ortbench.plugin.interrupts import Shield
from pytest_ortbench.plugin.progress import Progress

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.core.run import Canary, Machine, Run
    from pytest_ortbench.execution.budget import Budget
    from pytest_ortbench.execution.execution import Execution
    from pytest_ortbench.gate.numbers.metrics import MetricSide
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.plugin.collection import Collection
    from pytest_ortbench.plugin.countdown import Countdown
    from pytest_ortbench.plugin.options import Options
    from pytest_ortbench.report.entries import ShownRun
    from pytest_ortbench.session import Session
    from pytest_ortbench.store.folder import RunFolder
    from pytest_ortbench.store.resume import Resumable

#: What shipped tests are about that are collected for every model.
_METRICS_OF_TESTS: dict[str, tuple[str, ...]] = {
    "test_accuracy": ("accuracy_sqnr",),
    "test_latency": ("latency_p50", "latency_p90", "latency_p99"),
    "test_memory": ("peak_rss",),
    "test_placement": ("placement",),
    "test_startup": ("session_create", "first_inference"),
    "test_throughput": ("throughput",),
}


class Bench:
    """State of one pytest run."""

    def __init__(self, config: pytest.Config) -> None:
        from pytest_ortbench.plugin.marked_tests import (
            MarkedLimits,
            MisplacedMarkers,
            Outcomes,
            ToldFailures,
        )
        from pytest_ortbench.plugin.option_sources import read_options

        self.config = config
        self.options: Options = read_options(config)
        self.planned: dict[tuple[str, str], Planned] = {}
        self.requests: dict[str, tuple[PlanRequest, Plan]] = {}
        self.needs: dict[tuple[str, str], int] = {}
        self.limits: list[Limit] = []
        self.passes: dict[tuple[str, str], set[str]] = {}
        self.finished: Run | None = None
        self.files: list[tuple[str, Path]] = []
        self.left_out: list[str] = []
        self.out_of_time: list[str] = []
        self.shield = Shield()
        self.signals = StopSignals()
        self.errors: list[str] = []
        self.remarks: list[str] = []
        self.notes: list[str] = []
        self.outcomes = Outcomes()
        self.complaints = Complaints(config.rootpath, self.name_of)
        self.told_failures = ToldFailures(self.outcomes)
        self.misplaced = MisplacedMarkers()
        self.marked_limits = MarkedLimits()
        self.ran = False
        self.endings: list[Callable[[], None]] = []
        self.making: tuple[str, ...] = ()
        self.countdown: Countdown | None = None
        self.budget: Budget | None = None
        self._ended: set[tuple[str, str]] = set()
        self._made: set[tuple[str, str]] = set()
        self._numbers = count()
        self._tests: set[str] = set()

    @cached_property
    def progress(self) -> Progress:
        """Shows what is measured now."""
        # Not when the state is made: that may be before pytest has its reporter.
        plugins = self.config.pluginmanager
        return Progress(
            plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
        )

    @property
    def skipped_files(self) -> list[str]:
        """Modules that were skipped as a whole and name the fixture, so that cases are missing."""
        return self.outcomes.skipped_of_ours(self.config.rootpath)

    @property
    def why_no_case(self) -> str:
        """Why there is no case to measure, if there is none."""
        if self.collection.empty and self.skipped_files:
            return f"skipped as a whole: {', '.join(self.skipped_files)}"
        return self.collection.why_no_case

    @cached_property
    def collection(self) -> Collection:
        """The matrices of the collected tests."""
        from pytest_ortbench.plugin.collection import Collection

        return Collection(
            self.config, self.options, self.session, self.notes, on_plan=self.note_plan
        )

    def note_plan(self, request: PlanRequest, plan: Plan) -> None:
        """Remember what a collected test measures: what is deselected later did not vanish."""
        self.requests.setdefault(repr(request), (request, plan))

    def note_limits(
        self,
        item: pytest.Item,
        planned: Planned,
        marked: Sequence[Limit],
        asked: Sequence[Limit],
        gated: Sequence[Limit],
    ) -> None:
        """Note a test that will run: its case, and what the test needs of it.

        Args:
            item: The test.
            planned: Its case.
            marked: What the test itself limits of the case.
            asked: What option and ini key limit of the case.
            gated: What the gate limits of it.
        """
        from pytest_ortbench.analysis.limits import samples_for_limits
        from pytest_ortbench.plugin.marker import passes_of

        key = planned.case.key
        asked = () if key in self.planned else tuple(asked)
        self.planned.setdefault(key, planned)
        self._tests.add(getattr(item, "originalname", item.name))
        self.marked_limits.note(item.nodeid, marked)
        limits = (*marked, *asked)
        self.limits += limits
        limits += tuple(gated)
        least = samples_for_limits(limits)
        if least:
            self.needs[key] = max(least, self.needs.get(key, 0))
        self.passes.setdefault(key, set()).update(passes_of(item, planned, limits, self.options))

    @property
    def read_files(self) -> set[Path]:
        """Files that the cases read: nothing may be written over them."""
        cases = [planned.case for planned in self.planned.values()]
        models = {file for case in cases for file in case.model.files}
        return models | {Path(name) for case in cases for name in case.further_files()}

    def prepare(self) -> None:
        """Refuse what can't be written to, and say what passes will take.

        Raises:
            UsageError: for a file or folder of the user's choice that nothing can be written to.
        """
        from pytest_ortbench.passes.registry import PASSES
        from pytest_ortbench.plugin.destinations import begin_summary, refuse_unwritable

        # Now, since what can't be written is better known before the measuring.
        _ = self._header
        _ = self.folder
        refuse_unwritable(self.options, self.read_files)
        begin_summary(self.options)
        for entry in PASSES:
            if entry.announce:
                announce = entry.load(entry.announce)
                fields = inspect.signature(announce).parameters
                for line in announce(**{name: getattr(self.options, name) for name in fields}):
                    self.progress.say(line)

    def expect(self, entries: Sequence[Planned]) -> None:
        """Have the cases of a model measured that a test made just now, beside those of the plan.

        They were noted with :meth:`note_limits`.

        Raises:
            DocumentError: if the journal can't tell of them; they are measured all the same.
        """
        execution = self.execution
        fresh = [entry for entry in entries if entry.case.key not in self._made]
        self._made.update(entry.case.key for entry in fresh)
        for entry in fresh:
            is_due = entry.refusal is None and entry.case.key not in execution.finished
            if is_due and self.countdown is not None:
                self.countdown.add(entry.case, self.passes.get(entry.case.key, ()))
        execution.counted = (
            execution.counted or len({e.case.variant.precision for e in entries}) > 1
        )
        execution.header = replace(
            execution.header, expected=execution.header.expected + len(fresh)
        )
        if self.folder is not None and fresh:
            self.folder.update(execution.header)

    def folder_of_made(self) -> Path:
        """Return a new folder for what a test hands over that is no file; it lasts as the run."""
        folder = self._scratch / str(next(self._numbers))
        folder.mkdir()
        return folder

    @cached_property
    def _scratch(self) -> Path:
        from pytest_ortbench.core.own_folder import OwnFolder

        folder = OwnFolder("made")
        self.endings.append(folder.close)
        return folder.path

    def name_of(self, planned: Planned) -> str:
        """The case in messages: as in the tables, where each runtime of several is named."""
        return self.collection.name_of(planned)

    def properties_of(self, planned: Planned) -> list[tuple[str, str]]:
        """Return metrics of a measured case for JUnit; nothing for one that was not tried."""
        from pytest_ortbench.report.junit import properties

        result = self.known(planned)
        return [] if result is None else properties(result, self.session.summary_of(result))

    @cached_property
    def shown(self) -> ShownRun:
        """The finished run with the numbers of its cases, for all that is drawn and printed."""
        from pytest_ortbench.report.entries import shown_run

        assert self.finished is not None
        summaries = [self.session.summary_of(result) for result in self.finished.cases]
        return shown_run(self.finished, summaries)

    def measure_canary(self) -> Canary | None:
        """Measure the pinned model along with a stored run."""
        from pytest_ortbench.execution.canary import measure_canary

        return None if self.folder is None else measure_canary(self.execution.launcher)

    @property
    def started(self) -> bool:
        """Whether any case was asked for."""
        return "execution" in self.__dict__

    def close(self) -> None:
        """End whatever may still run."""
        with self.shield.held(), without_foreign_logs():
            if "session" in self.__dict__:
                self.session.close()
            for end in self.endings:
                end()
        self.shield.down()
        self.signals.close()

    def known(self, planned: Planned) -> CaseResult | None:
        """Return the result of one case if it was measured already."""
        return self.execution.known(planned) if self.started else None

    def result(self, planned: Planned, *passes: str) -> CaseResult:
        """Return the result of one case, measuring it at the first call."""
        from pytest_ortbench.core.errors import OrtbenchError, class_and_line
        from pytest_ortbench.launch.turn import TURN

        try:
            # The execution, too, is made by one thread only.
            with TURN, without_foreign_logs():
                return self.execution.result(planned, *passes)
        except GaveUpWaiting as error:
            self.progress.rest()
            pytest.exit(
                f"{self.options.place_of('wait_s')}: {error}. Run it again later, allow a longer "
                "time, or measure beside the other run with --ort-no-lock",
                returncode=GAVE_UP_WAITING,
            )
        except StoppedWaiting as error:
            self.progress.rest()
            pytest.exit(str(error), returncode=pytest.ExitCode.INTERRUPTED)
        except BaseException as error:
            # Whatever ends it, Ctrl-C above all: the status must not stay on the screen.
            self.progress.rest()
            ends_run = (KeyboardInterrupt, SystemExit, OrtbenchError, pytest.exit.Exception)
            if self.started and not isinstance(error, ends_run):
                self.execution.give_up(planned, class_and_line(error))
            if isinstance(error, pytest.fail.Exception):
                # Of a time limit above all: where it struck in our own code is nothing to look at.
                error.pytrace = False
            raise

    def side_of(self, result: CaseResult) -> MetricSide:
        """Return a result with its numbers, for a gate."""
        from pytest_ortbench.gate.numbers.metrics import MetricSide

        return MetricSide(result=result, summary=self.session.summary_of(result))

    @cached_property
    def session(self) -> Session:
        """Plans, prepares and measures; ends what it started."""
        from pytest_ortbench.plugin.collection import named_from
        from pytest_ortbench.session import Session

        longest_s = self.options.wait_s
        return Session(
            self.config.invocation_params.dir,
            named_from=named_from(self.config),
            runtimes=self.options.runtimes,
            place=self.options.place_of("runtimes"),
            notify=self.notes.append,
            announce=self.progress.say,
            on_phase=self.progress.phase,
            memory_bytes=self.options.memory_limit,
            waits=not self.options.no_lock,
            how_not_to_wait="; --ort-no-lock measures without waiting"
            + (", --ort-wait=10m gives up after 10 minutes" if longest_s is None else ""),
            longest_wait_s=longest_s,
        )

    @cached_property
    def execution(self) -> Execution:
        """Measures cases and keeps their results."""
        return self.session.start(
            self._header,
            self,
            self.planned,
            journal=self.folder,
            finished=self.resumable.results if self.resumable is not None else {},
            min_samples=self.needs,
            passes=self.passes,
            budget=self.budget,
        )

    @cached_property
    def resumable(self) -> Resumable | None:
        """What interrupted runs of this plan left; ``None`` without ``--ort-resume``."""
        if not self.options.resume:
            return None
        from pytest_ortbench.store.resume import resumable

        cases = [planned.case for planned in self.planned.values()]
        return resumable(
            self.options.results,
            self._header.plan,
            cases,
            others=bool(self.making),
            with_less=self.options.budget_s is not None,
        )

    @cached_property
    def folder(self) -> RunFolder | None:
        """Where the run is stored; ``None`` with ``--ort-no-results``."""
        if self.options.no_results:
            return None
        from pytest_ortbench.store.folder import RunFolder

        return RunFolder.create(self.options.results, self._header)

    @cached_property
    def _header(self) -> Run:
        """The run document as far as it is known before the first case."""
        from pytest_ortbench.plugin.run_header import header_of

        return header_of(
            self.config,
            self.options,
            self.planned.values(),
            root=self.session.root,
            skips=tuple(self.collection.skips),
            making=self.making,
        )

    @property
    def wanted(self) -> frozenset[str]:
        """Metrics that the run is about: those of limits, and of shipped tests that were chosen."""
        of_limits = {limit.metric.name for limit in self.limits}
        chosen = self._tests & _METRICS_OF_TESTS.keys()
        if len(chosen) == len(_METRICS_OF_TESTS):
            return frozenset(of_limits)  # nobody chose
        return frozenset(of_limits.union(*(_METRICS_OF_TESTS[name] for name in chosen)))

    @property
    def machine(self) -> Machine:
        """Where it runs."""
        return self._header.machine

    # The listener of the execution ------------------------------------------------------------

    def begin(self, case: Case) -> None:
        """A case starts."""
        self.progress.expect(len(self.planned), self.budget or self.countdown)
        if self.countdown is not None:
            self.countdown.begin(case)
        countdown = self.budget or self.countdown
        self.session.machine.expect(0.0 if countdown is None else countdown.left_s)
        self.progress.begin(case)

    def end(self, result: CaseResult) -> None:
        """A case is over, or got a further pass."""
        if result.case.key in self._ended:
            self.progress.rest()
        else:
            self._ended.add(result.case.key)
            if self.countdown is not None:
                self.countdown.end(result)
            self.progress.end()
        self.config.hook.pytest_ortbench_case_measured(config=self.config, result=result)

    def warn(self, text: str) -> None:
        """Something went wrong that does not stop the run; it is said at the end."""
        if text not in self.errors:
            self.errors.append(text)
