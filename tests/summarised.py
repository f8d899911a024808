"""Rows, answers and other results of a run whose cases nobody has summarised yet."""

from __future__ import annotations

from pytest_ortbench.analysis.answers import ModelAnswer, answers
from pytest_ortbench.analysis.precisions import PrecisionBlock, precision_blocks
from pytest_ortbench.analysis.rows import Cell, row
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.junit import properties


def answers_of(run: Run) -> list[ModelAnswer]:
    return answers(run, [summarise(result) for result in run.cases])


def blocks_of(run: Run) -> list[PrecisionBlock]:
    return precision_blocks(run, [summarise(result) for result in run.cases])


def rows_of(run: Run) -> list[dict[str, Cell]]:
    return [row_of(result, run) for result in run.cases]


def row_of(result: CaseResult, run: Run) -> dict[str, Cell]:
    return row(result, run, summarise(result))


def properties_of(result: CaseResult) -> list[tuple[str, str]]:
    return properties(result, summarise(result))
