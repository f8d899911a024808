"""The table of models that were compiled ahead."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.compilation import WAYS, Compilation
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.blocks import compiled_tables
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_result, make_run

MADE = Compilation(
    file="model.onnx",
    digest="c" * 64,
    size_bytes=3_000_000,
    way=WAYS[0],
    compile_ns=250_000_000,
    compiled_nodes=1,
    other_nodes=0,
    made_at="2026-03-04T05:06:07+00:00",
    source="/m.onnx",
    source_digest="d" * 64,
    source_bytes=2_000_000,
)


def result(ahead: str) -> CaseResult:
    plain = make_result()
    case = replace(plain.case, knobs={"compiled": ahead}, compiled=ahead == "on")
    if case.compiled:
        case = replace(case, variant=replace(case.variant, size_bytes=3_000_000, compilation=MADE))
    return replace(plain, case=case)


def rows(*results: CaseResult) -> list[list[str]]:
    [table] = compiled_tables(shown_run(make_run(results)))
    assert len(table.headings) == len(table.rows[0])
    return [list(row[1:]) for row in table.rows]


def test_a_run_without_one_has_no_table() -> None:
    assert compiled_tables(shown_run(make_run([result("off")]))) == ()


def test_what_compiling_took_stands_beside_both_sessions() -> None:
    [(compile_, create, plain, size, size_plain)] = rows(result("off"), result("on"))
    assert compile_ == "250 ms"
    assert create == plain != "-"
    assert (size, size_plain) == ("3.00 MB", "2.00 MB")


def test_without_a_plain_row_nothing_stands_in_its_place() -> None:
    [(_, create, plain, _, _)] = rows(result("on"))
    assert create != "-"
    assert plain == "-"


def test_compiling_is_a_metric_of_the_case() -> None:
    plain, ahead = shown_run(make_run([result("off"), result("on")])).entries
    assert ahead.summary.quantities["compile_time"].value == 0.25
    assert ahead.summary.quantities["compiled_size"].value == 3_000_000
    assert {"compile_time", "compiled_size"} <= plain.summary.missing.keys()
    assert not {"compile_time", "compiled_size"} & ahead.summary.missing.keys()
