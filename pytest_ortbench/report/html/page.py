"""What stands on the page, as plain data that the template only lays out."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.core.run import Run
from pytest_ortbench.gate.report import lines as gate
from pytest_ortbench.gate.report.lines import GateRow
from pytest_ortbench.report import legend
from pytest_ortbench.report.answers import inaccurate_lines, unjudged_lines
from pytest_ortbench.report.blocks import pass_sections, pass_sentences, pass_tables
from pytest_ortbench.report.cards.answer_cards import answer_card
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.case_tables import CaseTable, case_tables
from pytest_ortbench.report.cells import texts
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import Entry, ModelGroup, ShownRun
from pytest_ortbench.report.escape import lines, one_line
from pytest_ortbench.report.figures import DESCRIPTIONS, figures, render
from pytest_ortbench.report.figures.slo import Slo
from pytest_ortbench.report.flag_notes import FlagNote, flag_notes
from pytest_ortbench.report.html.details import Facts, environment, log_tail, origin
from pytest_ortbench.report.page_section import PageSection
from pytest_ortbench.report.pass_table import PassTable
from pytest_ortbench.report.precisions import HEADINGS, PrecisionTable, precision_tables
from pytest_ortbench.report.weights import weight_lines

#: Models whose answer is open; the others unfold.
ANSWERS_OPEN = 6
#: Characters of a native log that are shown; the end says most.
LOG_CHARACTERS = 4000
#: Failures that look different, each with its log; more make a page that no browser likes.
FAILURES = 200
#: Cases named for one flag.
FLAG_CASES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell: the text, and the value to sort by in SI units (empty: by the text)."""

    column: Column
    text: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One case; ``failure`` is the anchor of its reason, empty if it was measured."""

    model: str
    provider: str
    precision: str
    status: str
    cells: tuple[TableCell, ...]
    flags: tuple[str, ...]
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """Cases that time the same unit, whose name is empty for inferences."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureBlock:
    """Cases of one model that failed alike."""

    anchor: str
    model: str
    status: str
    cases: str
    sentence: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagBlock:
    """One flag with its advice, and the cases that carry it with their details."""

    note: FlagNote
    cases: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure as a data address."""

    name: str
    description: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything on the page, in reading order."""

    title: str
    subtitle: tuple[str, ...]
    answers: tuple[AnswerCard, ...]
    answers_open: int
    remarks: tuple[str, ...]
    gate_headings: tuple[str, ...]
    gate: tuple[GateRow, ...]
    gate_counts: tuple[str, ...]
    precision_headings: tuple[str, ...]
    precisions: tuple[PrecisionTable, ...]
    passes: tuple[PassTable, ...]
    pass_sentences: tuple[str, ...]
    sections: tuple[PageSection, ...]
    tables: tuple[PageTable, ...]
    columns: tuple[Column, ...]
    models: tuple[tuple[str, str], ...]
    choices: Mapping[str, tuple[str, ...]]
    pictures: tuple[Picture, ...]
    failures: tuple[FailureBlock, ...]
    failures_left_out: int
    flags: tuple[FlagBlock, ...]
    includes: tuple[str, ...]
    origins: tuple[tuple[str, tuple[str, ...]], ...]
    environment: tuple[tuple[str, Facts], ...]
    skips: tuple[str, ...]
    footer: str


def build_page(page: ShownRun, *, slo: Slo | None = None) -> Page:
    """Gather everything that the page of a run shows; arguments as of ``render_html``."""
    run, shown = page.run, page.entries
    tables = case_tables(shown)
    groups = [group for table in tables for group in table.groups]
    failures, anchors = _failures(groups)
    cases = [entry.result.case for entry in shown]
    flags = tuple(_flag(note, shown) for note in flag_notes(shown))
    flagged = {flag.note.kind.name for flag in flags}
    return Page(
        title=one_line(f"ONNX models on {run.machine.host}"),
        subtitle=_subtitle(run, shown),
        answers=tuple(answer_card(answer, flagged) for answer in answers(run, page.summaries)),
        answers_open=ANSWERS_OPEN,
        remarks=(*weight_lines(page), *inaccurate_lines(page), *unjudged_lines(page)),
        gate_headings=gate.HEADINGS,
        gate=_gate_rows(run),
        gate_counts=tuple(gate.count_lines(run.gate, gate.runtimes_of(run))),
        precision_headings=HEADINGS,
        precisions=precision_tables(page),
        passes=pass_tables(page),
        pass_sentences=pass_sentences(page),
        sections=pass_sections(shown),
        tables=tuple(
            PageTable(
                name=table.name,
                columns=_status_early(table.columns),
                rows=tuple(row for group in table.groups for row in _rows(group, table, anchors)),
            )
            for table in tables
        ),
        columns=tuple(
            {
                column.key: column for table in tables for column in _status_early(table.columns)
            }.values()
        ),
        models=tuple(
            (one_line(group.model.name + (f" ({table.name})" if table.name else "")), about)
            for table in tables
            for group in table.groups
            if (about := legend.model_line(group))
        ),
        choices={
            "model": _distinct(case.model.name for case in cases),
            "provider": _distinct(case.provider.described for case in cases),
            "precision": _distinct(case.variant.precision for case in cases),
            "status": _distinct(entry.result.status for entry in shown),
        },
        pictures=tuple(_pictures(shown, slo)),
        failures=failures[:FAILURES],
        failures_left_out=max(0, len(failures) - FAILURES),
        flags=flags,
        includes=legend.includes(shown),
        origins=tuple(
            (one_line(f"{entry.result.case.model.name}/{entry.label}"), origin(entry))
            for entry in shown
            if entry.result.measurements
        ),
        environment=environment(run),
        skips=legend.skip_lines(run),
        footer=one_line(
            f"pytest-ortbench {run.ortbench_version} · run {run.run_id} · "
            f"document version {run.schema_version}"
        ),
    )


def _gate_rows(run: Run) -> tuple[GateRow, ...]:
    return tuple(
        replace(
            row,
            cells=tuple(one_line(cell) for cell in row.cells),
            reasons=tuple(one_line(reason) for reason in row.reasons),
        )
        for row in gate.gate_rows(run)
    )


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(name) for name in names))


def _subtitle(run: Run, shown: Sequence[Entry]) -> tuple[str, ...]:
    measured = sum(entry.measured for entry in shown)
    parts = [
        re.sub(r"(?<=\d)T(?=\d)", " ", re.sub(r"(Z|\+00:00)$", " UTC", run.started_at)),
        f"{measured} of {len(shown)} cases measured",
        *(
            legend.runtime_line(label, info, run.machine.host)
            for label, info in run.runtimes.items()
        ),
        *legend.engine_lines(shown),
        *legend.chain_lines(shown),
        *legend.fixed_lines(shown),
    ]
    if run.expected > len(shown):
        parts.append(f"interrupted: {run.expected - len(shown)} planned cases were not reached")
    if run.commit is not None:
        parts.append(f"commit {run.commit.revision[:12]}{'+' * run.commit.dirty}")
    return tuple(one_line(part) for part in parts)


def _status_early(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Put the status behind the name, where a narrow window shows it."""
    case, *others = columns
    status = [column for column in others if column.key == "status"]
    return (case, *status, *(column for column in others if column.key != "status"))


def _rows(group: ModelGroup, table: CaseTable, anchors: Mapping[int, str]) -> list[TableRow]:
    return [
        TableRow(
            model=one_line(group.model.name),
            provider=one_line(entry.result.case.provider.described),
            precision=one_line(entry.result.case.variant.precision),
            status=entry.result.status,
            cells=tuple(
                TableCell(column=column, text=cells[column.key], value=_value(entry, column))
                for column in _status_early(table.columns)
            ),
            flags=entry.flags if entry.measured else (),
            failure=anchors.get(id(entry), ""),
        )
        for entry, cells in zip(
            group.entries, texts(group, table.columns, table.groups), strict=True
        )
    ]


def _value(entry: Entry, column: Column) -> str:
    """Return what a column is sorted by; an exact output is better than any ratio."""
    value = entry.row[column.row] if column.row else None
    if not column.metric:
        return repr(value) if isinstance(value, int) else ""
    if column.key == "accuracy" and entry.summary.exact:
        return "Infinity"
    return "" if value is None else repr(value)


def _failures(
    groups: Sequence[ModelGroup],
) -> tuple[tuple[FailureBlock, ...], dict[int, str]]:
    blocks: list[FailureBlock] = []
    anchors: dict[int, str] = {}
    for group in groups:
        for failure in legend.failure_groups(group.entries):
            anchor = f"failure-{len(blocks) + 1}"
            log = next(filter(None, (log_tail(entry.result) for entry in failure.entries)), "")
            blocks.append(
                FailureBlock(
                    anchor=anchor,
                    model=one_line(group.model.name),
                    status=failure.status,
                    cases=one_line(
                        legend.named([entry.label for entry in failure.entries], limit=20)
                    ),
                    sentence=failure.sentence,
                    log="\n".join(lines(log[-LOG_CHARACTERS:])),
                )
            )
            if len(blocks) <= FAILURES:
                anchors |= {id(entry): anchor for entry in failure.entries}
    return tuple(blocks), anchors


def _flag(note: FlagNote, shown: Sequence[Entry]) -> FlagBlock:
    details = [
        one_line(f"{entry.result.case.model.name}/{entry.label}: {flag.detail or 'no detail'}")
        for entry in shown
        for flag in entry.result.flags
        if flag.name == note.kind.name
    ]
    return FlagBlock(
        note=replace(note, detail=""),  # it stands below, with its case
        cases=tuple(details[:FLAG_CASES]),
        more=max(0, len(details) - FLAG_CASES),
    )


def _pictures(shown: Sequence[Entry], slo: Slo | None) -> Iterable[Picture]:
    for name, figure in figures(shown, slo=slo):
        # Transparent, so that the page's own background shows in both of its themes.
        encoded = base64.b64encode(render(figure, "svg", transparent=True)).decode()
        yield Picture(
            name=name,
            description=DESCRIPTIONS[name],
            source=f"data:image/svg+xml;base64,{encoded}",
        )
