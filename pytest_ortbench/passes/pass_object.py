"""What a pass says of itself; everything that iterates over passes reads it here.

A name that starts with dots is relative to the folder of the pass, as in an import:
``.run:measure`` is the function ``measure`` in its module ``run``. That module is imported when
the function is called, so that no start of a worker pays for it. The option rows of a pass are the
class ``OPTIONS`` of its module ``options``, if it has one; a start of pytest loads these, and not
this. Standard library only: this travels to workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import resolve_name
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.flag_kind import FlagKind
from pytest_ortbench.core.metric import Metric
from pytest_ortbench.core.placing import Place

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFigure:
    """A figure of what a pass measured.

    Attributes:
        name: Of its file.
        description: What it shows, for readers who can't see it.
        draw: ``(shown)``, of entries, to a figure; to ``None`` where there is nothing to draw.
        place: Where it stands among all figures.
    """

    name: str
    description: str
    draw: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCommand:
    """A command of ``ortbench`` that is called like its pass, and lies in its module ``command``.

    Attributes:
        help: Its line in the list of commands.
        place: Where it stands among all commands.
    """

    help: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedUnit:
    """What cases time that time no inference, and how people read their numbers.

    Attributes:
        name: What it is called where there are many: ``requests``.
        case_field: Field of a case that says what is asked of one; ``None`` in all other cases.
        knobs: Knobs of the id that say it, too: columns show them, or what all rows have.
        speed: Metric by which its cases are ranked, and what sentences call it.
        first: Metric of which the best is named beside that, likewise.
        rate: Metric of how much is done a second.
        columns: ``(entries)`` to the columns of a table of its cases.
        about: ``(cases)`` to a sentence that says what the numbers include.
        gated: Metrics that a gate compares when it is asked to, and what gives each of one unit.
        is_timed: ``(unit)`` to whether one holds the times that these need; empty where all do.
    """

    name: str
    case_field: str
    knobs: tuple[str, ...]
    speed: tuple[str, str]
    first: tuple[str, str]
    rate: str
    columns: str
    about: str
    gated: tuple[tuple[str, str], ...] = ()
    is_timed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a worker is doing, for messages.

    Attributes:
        name: As failures store it.
        doing: As it stands after "while".
        rank: Order among the phases of passes; the default comes last.
    """

    name: str
    doing: str
    rank: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Pass:
    """One way of measuring a case beside the standard one, in workers of its own.

    Attributes:
        name: As options and tests ask for it; also the name of its folder.
        result_field: Field of :class:`~pytest_ortbench.core.outcome.CaseResult` that holds what it
            found.
        measure: ``(result, means)`` to the value of that field; it may raise a ``WorkerError``.
        lacking: ``(*, reason, interrupted)`` to the value of that field where there is nothing, and
            why; mostly the type of its facts. A pass whose facts say more of what was asked for
            takes ``(result, argument)`` in front.
        lacking_takes_result: Whether it does.
        phase: What a worker of it is doing, ``None`` where the words of the standard pass say it.
        bounds: What single values of its facts may be, beside what their units say; empty for none.
        relations: How the fields of its facts hang together; empty for none.
        requested: Types among its facts that say what was asked for.
        place_in_case: ``(case, asked)``, of the values that its options have, to the case with what
            is for it; empty for a pass that asks the same of all cases.
        check_cases: ``(options, cases)`` that refuses what goes with no case of a run; empty for
            none.
        check_plan: ``(request, models)`` that refuses settings that no model fits; empty for none.
        announce: Tells before the measuring what it will take, in lines; it takes options by the
            names of their fields. Empty for none.
        takes: ``(case, worker_s)`` to about how many seconds it takes for a case, of which a worker
            that starts and warms up takes so many; empty for one worker and little more.
        takes_as_inferences: Whether it has as many workers and timed seconds as inferences have.
        varied_dims: ``(case)`` to the names of dimensions of its model that the pass feeds at other
            sizes than the case has; empty for none.
        is_over: ``(result, argument)`` to whether it was carried out; empty where that is what the
            field says: something is there, and not all of it was interrupted.
        why_not: ``(provider)`` in a worker to why the pass can't be carried out there, empty if it
            can; then no worker is started for it. Empty where nothing says so beforehand.
        questions: What it asks a worker: the class of each question, and the function that answers.
        shipped_test: Name of the shipped test of a pass that takes long; it is collected only where
            something asks for the pass; that of a pass with a unit, for cases that time it, and
            only for these. Empty where there is none, or it is always collected.
        own_cases: ``(case)`` to whether a pass that is for some cases only is for this one: these
            ask for it by themselves, and its shipped test is collected for them. Empty for a pass
            that is for all, or whose unit says so.
        looks_at_failed: Whether it is carried out for a case that failed, too.
        is_asked_by_metrics: Whether a test that names one of its metrics asks for it.
        asked_by: Further names by which a test asks for it: what it calls of the fixture.
        offers: ``(ortbench, …)`` that the fixture offers to tests by the function's own name, and
            where each stands among what the fixture offers.
        shown_to_tests: Classes of what these return beside views of metrics, each with its name for
            people.
        fault: ``(result)`` to what fails every test of a case, empty if nothing is wrong; empty for
            none.
        view: Method of the fixture that shows its metrics; empty for none.
        add_numbers: ``(collector, result)`` that adds its metrics; empty for a pass without any.
        judge: ``(result)`` to a judgement of a case, ``None`` where none is due; empty for none.
        judgement: What that is of: ``of`` of the judgement. It is one of what a case answers.
        workers: ``(result)`` to how many workers finished, where it starts as many as the standard
            pass; empty for none.
        keeps_numbers: Whether its metrics stand if the case failed elsewhere.
        flags: Flags that only this pass can tell, and where they stand.
        flag_rules: ``(result)`` to the detail of a flag, empty where it does not apply, by the name
            of any flag.
        metrics: Its metrics.
        metrics_place: Where they stand among all.
        self_checks: The lines that it has in certificates of self-checks, as objects ``Check`` in a
            tuple; empty for none.
        lines: ``(shown, *, encoding)``, of a ``ShownRun``, to lines, one a case; empty for none.
        tables: ``(shown)`` likewise to tables; empty for none.
        columns: Columns of flat rows, and where they stand; if none are named, those of its metrics
            at the end.
        shown_columns: Columns that people may ask tables for, each with its place; empty for none.
        figures: What it draws.
        for_fleet: ``(result, summary)`` to fields of a ``CaseFacts``: what a comparison of many
            runs keeps of it beside its metrics; empty for none.
        markdown: ``(shown)`` to a section of the summary of a CI job; empty for none.
        cells: ``(result)`` to the values of columns that are no metrics; empty for none.
        details: ``(shown, *, width, encoding)`` to lines about each case, which stand below all
            tables; empty for none.
        section: ``(entries)`` to a section of the page, ``None`` where it has nothing to say of a
            run; empty for none.
        share: ``(run)`` to the run, each of whose cases has what all of them found; empty for none.
        beside_accuracy: ``(result)`` to words that stand behind the accuracy of a case; empty for
            none.
        about_answers: ``(result)`` to a sentence about its answers, which may be empty; empty for
            a pass that looks at none.
        unit: What its cases time instead of inferences, ``None`` where they time these. Such cases
            ask for the pass by themselves.
        left_out_by: How a user leaves it out, e.g. ``write --ort-generate=off``; empty where that
            is to leave out the option that asks for it.
        report_rank: Order of lines and tables among those of other passes; the default comes last.
        facts_of_case: ``(result)`` to sentences about how one case was measured; empty for none.
        command: Its command of ``ortbench``, ``None`` without one.
        explain_change: ``(case, before, after, launcher)`` to lines that say what accounts for a
            change between two runtimes; empty for none.
        judge_labels: ``(facts)``, which may be ``None``, to a judgement of the answers by labels;
            empty for a pass without labels.
        misses: ``(result, floor)`` to how its answers miss the floor of their precision, empty
            where they keep it, and to why that can't be told, likewise; empty for a pass that holds
            none against a reference.
        nonfinite: ``(result)`` to how many values of its answers are NaN or infinite, in words,
            and to how many such values it was fed; empty for a pass that counts none.
        compare_sides: ``(baseline, contender, launcher, scratch)`` of two cases to the facts of the
            contender with the baseline as the reference; empty for none.
    """

    name: str
    result_field: str
    measure: str
    lacking: str
    lacking_takes_result: bool = False
    phase: Phase | None = None
    bounds: str = ""
    relations: str = ""
    requested: tuple[str, ...] = ()
    place_in_case: str = ""
    check_cases: str = ""
    check_plan: str = ""
    announce: str = ""
    takes: str = ""
    takes_as_inferences: bool = False
    varied_dims: str = ""
    is_over: str = ""
    why_not: str = ""
    questions: tuple[tuple[str, str], ...] = ()
    shipped_test: str = ""
    own_cases: str = ""
    looks_at_failed: bool = False
    is_asked_by_metrics: bool = False
    asked_by: tuple[str, ...] = ()
    offers: tuple[tuple[Place, str], ...] = ()
    shown_to_tests: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    view: str = ""
    add_numbers: str = ""
    judge: str = ""
    judgement: str = ""
    workers: str = ""
    keeps_numbers: bool = False
    flags: tuple[tuple[Place, FlagKind], ...] = ()
    flag_rules: tuple[tuple[str, str], ...] = ()
    metrics: tuple[Metric, ...] = ()
    metrics_place: Place = field(default_factory=Place)
    self_checks: str = ""
    lines: str = ""
    tables: str = ""
    columns: tuple[tuple[Place, tuple[str, ...]], ...] = ()
    shown_columns: str = ""
    figures: tuple[PassFigure, ...] = ()
    for_fleet: str = ""
    markdown: str = ""
    cells: str = ""
    details: str = ""
    section: str = ""
    share: str = ""
    beside_accuracy: str = ""
    about_answers: str = ""
    unit: TimedUnit | None = None
    left_out_by: str = ""
    report_rank: int = 1000
    facts_of_case: str = ""
    command: PassCommand | None = None
    explain_change: str = ""
    judge_labels: str = ""
    misses: str = ""
    nonfinite: str = ""
    compare_sides: str = ""

    @property
    def has_own_cases(self) -> bool:
        """Whether it is for some cases only, which ask for it by themselves."""
        return self.unit is not None or bool(self.own_cases)

    def is_for(self, case: Case) -> bool:
        """Whether a case is one of its own; none is of a pass that is for all."""
        if self.unit is not None:
            return getattr(case, self.unit.case_field) is not None
        return bool(self.own_cases) and bool(self.load(self.own_cases)(case))

    @property
    def folder(self) -> str:
        """Dotted name of its folder."""
        return f"{__package__}.{self.name}"

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of its metrics."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def placed_columns(self) -> tuple[tuple[Place, tuple[str, ...]], ...]:
        """Its columns of flat rows, and where they stand."""
        return self.columns or ((Place(), tuple(metric.column for metric in self.metrics)),)

    def load(self, name: str) -> Any:
        """Import and return what a name of this pass stands for."""
        module, _, attribute = self.full_name(name).partition(":")
        return getattr(import_module(module), attribute)

    def full_name(self, name: str) -> str:
        """Return the dotted name that a name of this pass is short for."""
        module, _, attribute = name.partition(":")
        return f"{resolve_name(module, self.folder)}:{attribute}"
