"""The start-up pass of each case as a table."""

from __future__ import annotations

from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.startup.facts import StartUps
from pytest_ortbench.passes.startup.numbers import StartCondition, conditions, shape_times
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import PassTable

_HEADINGS = (
    "model's files",
    "processes",
    "import",
    "create",
    "range of create",
    "first inference",
    "next one",
)
#: Of a framework, which builds its model.
_BUILT = (*_HEADINGS[:3], "build", "create", "range of build + create", *_HEADINGS[-2:])
_FILES = {"cold": "from disk", "warm": "in the page cache"}
_ENGINES = {"none": "", "cold": ", engines built", "warm": ", engines cached"}


def start_up_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return a table for each case that has been started again, in their order."""
    return tuple(
        _table(result.start_ups, shown.name_of(result.case))
        for result in shown.run.cases
        if result.start_ups is not None and result.failure is None
    )


def _table(start_ups: StartUps, case: str) -> PassTable:
    title = one_line(f"start-up of {case}")
    if not start_ups.trials:
        return PassTable(title=title, remarks=(one_line(start_ups.reason),))
    reasons = dict.fromkeys(trial.reason for trial in start_ups.trials if trial.reason)
    shapes = [
        f"{label}: first inference {format_amount(first, 's')}, "
        f"next one {format_amount(again, 's')}"
        for label, (first, again, _) in shape_times(start_ups).items()
    ]
    failed = {
        shape.label: shape.reason
        for trial in start_ups.trials
        for shape in trial.shapes
        if shape.reason
    }
    built = any(trial.build_ns is not None for trial in start_ups.trials)
    return PassTable(
        title=f"{title} in fresh processes, medians",
        headings=_BUILT if built else _HEADINGS,
        rows=tuple(_row(condition, built=built) for condition in conditions(start_ups)),
        remarks=tuple(
            one_line(text)
            for text in (
                *shapes,
                *(f"{label}: no first inference: {reason}" for label, reason in failed.items()),
                *(f"not from disk: {reason}" for reason in reasons),
            )
        ),
    )


def _row(condition: StartCondition, *, built: bool) -> tuple[str, ...]:
    create, _, _ = condition.spread(lambda trial: trial.session_create_ns)
    build, _, _ = condition.spread(lambda trial: trial.build_ns or 0)
    _, low, high = condition.spread(lambda trial: trial.create_ns)
    imported, _, _ = condition.spread(lambda trial: trial.import_ns)
    first, _, _ = condition.spread(lambda trial: trial.first_inference_ns)
    again, _, _ = condition.spread(lambda trial: trial.again_ns)
    return (
        _FILES[condition.page_cache] + _ENGINES.get(condition.engines, ""),
        str(len(condition.trials)),
        format_amount(imported, "s"),
        *([format_amount(build, "s")] if built else []),
        format_amount(create, "s"),
        f"[{format_amount(low, 's')}, {format_amount(high, 's')}]",
        format_amount(first, "s"),
        format_amount(again, "s"),
    )
