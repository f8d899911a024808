"""What people see of requests: a table of their own, what ranks them, what a row holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.answers import ModelAnswer, answers
from pytest_ortbench.analysis.precisions import precision_blocks
from pytest_ortbench.analysis.sentences import sentences
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report.case_tables import CaseTable, case_tables
from pytest_ortbench.report.cells import ALL_COLUMNS, texts
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun, shown_run
from pytest_ortbench.report.html.page import build_page
from pytest_ortbench.report.legend import model_line
from tests.passes.generation.generated import make_generated, make_generating_case, make_request
from tests.results_factory import make_case, make_result, make_run


def generated(
    token_ms: float = 2.0,
    *,
    first_ms: float = 20.0,
    engine: str = "session",
    depth: int = 0,
    batch: int = 1,
) -> CaseResult:
    requests = [make_request((first_ms, token_ms, token_ms, token_ms))] * 5
    case = make_generating_case(engine=engine, depth=depth, batch=batch)
    return make_generated([requests] * 3, case=case)


def run_of(*results: CaseResult) -> Run:
    return make_run(results)


def keys(columns: Sequence[Column]) -> list[str]:
    return [column.key for column in columns]


def tables(run: Run) -> tuple[CaseTable, ...]:
    return case_tables(shown_run(run).entries)


def answer_of(run: Run) -> ModelAnswer:
    shown: ShownRun = shown_run(run)
    (answer,) = answers(run, shown.summaries)
    return answer


def test_requests_stand_in_a_table_of_their_own() -> None:
    """Whose labels leave out what columns say."""
    prefill = make_result(case=make_case(model="decoder", knobs={"workload": "prefill"}))
    inferences, requests = tables(run_of(generated(), prefill, generated(depth=256)))
    assert (inferences.name, requests.name) == ("", "requests")
    assert inferences.groups[0].labels == ("native/cpu/b1",)
    assert requests.groups[0].labels == ("native/cpu/b1", "native/cpu/b1")
    assert requests.groups[0].alike == ()
    cells = texts(requests.groups[0], requests.columns)
    assert [row["depth"] for row in cells] == ["0", "256"]
    assert (
        cells[0]
        | {
            "prompt": "16",
            "new": "4",
            "engine": "session",
            "ttft": "20.0 ms",
            "tpot": "2.000 ms",
            "decode": "500",
            "prefill": "800",
            "request": "26.00 ms",
        }
        == cells[0]
    )


def test_a_run_of_inferences_keeps_its_one_table() -> None:
    (table,) = tables(run_of(make_result()))
    assert table.name == ""
    assert "ttft" not in keys(table.columns)


def test_a_rate_of_the_batch_is_shown_where_there_is_one() -> None:
    (alone,) = tables(run_of(generated()))
    assert "decode-batch" not in keys(alone.columns)
    (several,) = tables(run_of(generated(), generated(batch=4)))
    assert "decode-batch" in keys(several.columns)


def test_what_all_rows_have_leaves_a_narrow_table_first() -> None:
    (table,) = tables(run_of(generated(), generated(depth=256)))
    ranks = {column.key: column.rank for column in table.columns}
    assert ranks["depth"] == 0
    assert ranks["engine"] == ranks["new"] == max(ranks.values())


def test_columns_of_requests_can_be_asked_for() -> None:
    assert {"ttft", "tpot", "itl-p99", "decode", "prompt", "engine"} <= set(ALL_COLUMNS)


def test_the_line_of_a_model_does_not_name_shapes_of_a_prefill() -> None:
    (table,) = tables(run_of(generated()))
    assert "[1, 3" not in model_line(table.groups[0])


def test_a_row_says_what_was_asked() -> None:
    (entry,) = shown_run(run_of(generated(depth=256))).entries
    asked = {name: entry.row[name] for name in ("engine", "prompt_tokens", "new_tokens", "depth")}
    assert asked == {"engine": "session", "prompt_tokens": 16, "new_tokens": 4, "depth": 256}
    assert entry.row["ttft_s"] == 0.02


def test_engines_are_ranked_by_their_time_per_token() -> None:
    """The first token is named beside it, even if another engine is sooner there."""
    answer = answer_of(
        run_of(generated(2.0, first_ms=20), generated(3.0, first_ms=10, engine="genai"))
    )
    assert answer.ranked == 2
    (fastest,) = answer.fastest
    assert (fastest.metric, fastest.quantity.value) == ("tpot", 0.002)
    (soonest,) = answer.soonest
    assert soonest.label == "native/cpu/b1/engine:genai"
    assert answer.throughput is not None
    assert answer.throughput.metric == "decode_rate_batch"
    assert answer.advice is not None
    assert answer.advice.variant == "native/cpu/engine:session"


def test_a_tiny_divergence_is_no_row_of_zeros() -> None:
    (entry,) = shown_run(run_of(generated())).entries
    quantity = Quantity(value=1.48e-12, unit="1")
    summary = replace(entry.summary, quantities={**entry.summary.quantities, "logits_kl": quantity})
    (table,) = case_tables([replace(entry, summary=summary)])
    (cells,) = texts(table.groups[0], table.columns)
    assert cells["kl"] == "1.48e-12"


def test_tokens_a_second_keep_one_unit() -> None:
    """As the column of the table: a prefix would hide what is counted."""
    (only,) = sentences(answer_of(run_of(generated(0.5))))
    assert "2000 tokens/s" in only


def test_other_lengths_are_never_ranked_together() -> None:
    run = run_of(generated(), generated(depth=256))
    assert [answer.ranked for answer in answers(run, shown_run(run).summaries)] == [1, 1]


def test_inferences_are_ranked_as_ever() -> None:
    answer = answer_of(run_of(make_result()))
    assert (answer.fastest[0].metric, answer.soonest) == ("latency_p50", ())


def test_precisions_are_compared_by_their_time_per_token() -> None:
    """A prompt that is read sooner does not make a slower token faster."""
    slow, fast = [make_request((90, 2, 2, 2))] * 5, [make_request((10, 3, 3, 3))] * 5
    run = run_of(
        make_generated([slow] * 3, case=make_generating_case(precision="fp32")),
        make_generated([fast] * 3, case=make_generating_case(precision="int8-dynamic")),
    )
    (block,) = precision_blocks(run, shown_run(run).summaries)
    ratio = block.rows[1].latency_ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(1.5)


def test_the_page_has_both_tables() -> None:
    page = build_page(shown_run(run_of(make_result(), generated())))
    assert [(table.name, len(table.rows)) for table in page.tables] == [("", 1), ("requests", 1)]
    (row,) = page.tables[1].rows
    values = {cell.column.key: cell.value for cell in row.cells}
    assert values["tpot"] == "0.002"
    assert values["depth"] == "0"


def test_every_unit_names_metrics_and_knobs_that_there_are() -> None:
    (owner,) = [entry for entry in PASSES if entry.unit is not None]
    assert owner.unit is not None
    named = {owner.unit.speed[0], owner.unit.first[0], owner.unit.rate}
    assert named <= set(owner.metric_names)
    assert set(owner.unit.knobs) == set(make_generating_case().knobs)
