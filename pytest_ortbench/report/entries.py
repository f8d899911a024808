"""What every report shows of a run: each case with its row, and the cases by model.

All reports take their numbers from here, and here they come from :mod:`pytest_ortbench.analysis`;
so the terminal, HTML, CSV, Markdown and JUnit can't disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.judgements import is_barred
from pytest_ortbench.analysis.rows import Cell, row
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.ids import model_part
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.registry import PASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One case as reports show it.

    Attributes:
        result: The raw facts.
        label: The case without its model: ``fp16/cuda:1/b8/seq:128``.
        summary: Its numbers, and why the others are missing.
        row: The same as a flat row, in SI units.
    """

    result: CaseResult
    label: str
    summary: Summary
    row: dict[str, Cell]

    @property
    def measured(self) -> bool:
        """Whether there is a number."""
        return self.result.status == "measured"

    @property
    def failed_as(self) -> str:
        """The kind of its failure; ``budget`` where the time of the run, not its own, was over."""
        share, status = self.result.budget, self.result.status
        is_of_run = share is not None and (share.ended or not share.given_s)
        return "budget" if is_of_run and status == "timeout" else status

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of its validity flags, those first that say most: a narrow cell cuts the others.

        An earlier version may have stored them in another order.
        """
        names = [flag.name for flag in self.result.flags]
        order = list(FLAGS)
        return tuple(
            sorted(names, key=lambda name: order.index(name) if name in FLAGS else len(order))
        )

    @property
    def barred(self) -> bool:
        """Whether a flag keeps it out of every ranking."""
        return is_barred(self.result, self.summary.judgements)

    def quantity(self, metric: str) -> Quantity | None:
        """Return the number of a metric, ``None`` where it was not measured."""
        return self.summary.quantities.get(METRICS[metric].name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """The cases of one model, in the order of the plan.

    Attributes:
        model: The model.
        entries: Its cases, at least one.
        labels: What each is called in a table: its label without what is alike in all.
        alike: That which is: ``seq:128``, ``threads:4``.
    """

    model: Model
    entries: tuple[Entry, ...]
    labels: tuple[str, ...]
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """A run as reports show it: its cases are summarised once, for all of them.

    Attributes:
        run: The run.
        entries: Its cases, each with what the cases of a run share.
        name_of: Names a case by its id, by its runtime where there are several, and by what it is
            if it is no execution provider.
    """

    run: Run
    entries: tuple[Entry, ...]
    name_of: Callable[[Case], str]

    @property
    def summaries(self) -> list[Summary]:
        """The summary of each case, in their order."""
        return [entry.summary for entry in self.entries]


def shown_run(run: Run, summaries: Sequence[Summary] | None = None) -> ShownRun:
    """Return a run with the numbers of its cases, for all that is shown of it.

    Args:
        run: Any run.
        summaries: One for each of its cases, in their order, where the caller has them already.
    """
    if summaries is None:
        summaries = [summarise(result) for result in run.cases]
    shared = run
    for entry in PASSES:
        if entry.share:
            shared = entry.load(entry.share)(shared)
    several = _several_runtimes(run)
    entries = tuple(
        _entry(result, summary, shared, runtime=several)
        for result, summary in zip(shared.cases, summaries, strict=True)
    )
    return ShownRun(run=run, entries=entries, name_of=_naming(run))


def _entry(result: CaseResult, summary: Summary, run: Run, *, runtime: bool) -> Entry:
    return Entry(
        result=result,
        label=case_label(result.case, runtime=runtime),
        summary=summary,
        row=row(result, run, summary),
    )


def by_model(shown: Sequence[Entry], *, apart: Collection[str] = ()) -> tuple[ModelGroup, ...]:
    """Group cases by their model, both in the order in which they first appear.

    Args:
        shown: The cases.
        apart: Knobs that are shown elsewhere, and in no label.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in shown:
        groups.setdefault(entry.result.case.model.name, []).append(entry)
    return tuple(_group(members, apart) for members in groups.values())


def _group(members: Sequence[Entry], apart: Collection[str]) -> ModelGroup:
    """Leave out of the labels the sizes, settings and runtime that all cases of a model have."""
    cases = [entry.result.case for entry in members]
    first = cases[0]
    dims = {name for name in first.dims if len({case.dims.get(name) for case in cases}) == 1}
    knobs = {name for name in first.knobs if len({case.knobs.get(name) for case in cases}) == 1}
    unlabelled = knobs.union(apart)
    several = len({case.runtime.label for case in cases}) > 1
    return ModelGroup(
        model=first.model,
        entries=tuple(members),
        labels=tuple(
            case_label(
                replace(
                    case,
                    dims={name: size for name, size in case.dims.items() if name not in dims},
                    knobs={
                        name: value for name, value in case.knobs.items() if name not in unlabelled
                    },
                ),
                runtime=several,
            )
            for case in cases
        ),
        alike=(
            *(f"{name}:{size}" for name, size in first.dims.items() if name in dims),
            *(
                f"{name}:{value}"
                for name, value in first.knobs.items()
                if name in knobs and name not in apart
            ),
        ),
    )


def _naming(run: Run) -> Callable[[Case], str]:
    """Return what names a case of a run: its id, its runtime where there are several, its role."""
    several = _several_runtimes(run)
    return lambda case: (
        case.case_id + (f"+{case.runtime.label}" if several else "") + case.provider.role_note
    )


def _several_runtimes(run: Run) -> bool:
    return len({result.case.runtime.label for result in run.cases}) > 1


def case_label(case: Case, *, runtime: bool) -> str:
    """Name a case within its model: the rest of its id, so that it can be given to ``-k``.

    Behind it stands what it is if it is no execution provider: ``native/tract/b1 (engine)``.

    Args:
        case: The case.
        runtime: Whether to name the runtime too (where a run has several).
    """
    label = case.case_id.removeprefix(f"{model_part(case.model.name)}/")
    where = f"+{case.runtime.label}" if runtime else ""
    return label + where + case.provider.role_note
