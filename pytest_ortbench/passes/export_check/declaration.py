"""What the export check says of itself: its questions, its judgement, its flag and its metric."""

from __future__ import annotations

from pytest_ortbench.core.flag_kind import flag_kind
from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, Phase

_METRICS = (
    metric(
        "export_sqnr",
        "export_sqnr_db",
        "dB",
        "higher",
        "Smallest signal to noise ratio of the exported file's outputs against those of its "
        "source in its framework, over inputs of several sizes.",
        is_of_files=True,
    ),
)

PASS = Pass(
    name="export_check",
    result_field="export_check",
    left_out_by="write --ort-export-check=off",
    measure=".run:measure",
    lacking=".facts:ExportCheck",
    own_cases=".planning:has_source",
    looks_at_failed=True,
    phase=Phase(name="export-check", doing="comparing the export with its source", rank=70),
    questions=(
        (".questions:AskFile", ".worker.file:ask_file"),
        (".questions:AskSource", ".worker.source:ask_source"),
        (".questions:FindFirstDifference", ".worker.first_difference:find_first_difference"),
    ),
    bounds=".checks:BOUNDS",
    relations=".checks:RELATIONS",
    offers=((Place(after="judgements"), ".fixture:export_judgement"),),
    judge=".numbers.verdict:judge_export",
    judgement="export",
    flags=(
        (
            Place(after="INACCURATE"),
            flag_kind(
                "WRONG-EXPORT",
                "bars",
                "the exported file answers something else than the source it was made from",
                "Its speed is that of another model. Fix the export, which the last lines name.",
            ),
        ),
    ),
    flag_rules=(("WRONG-EXPORT", ".numbers.verdict:wrong_export"),),
    add_numbers=".numbers.verdict:add_export",
    metrics=_METRICS,
    metrics_place=Place(rank=12),
    shipped_test="test_export",
    columns=((Place(after="session_create_warm_s", rank=25), tuple(m.column for m in _METRICS)),),
    shown_columns=".report:COLUMNS",
    lines=".report:export_lines",
    facts_of_case=".report:export_facts",
    report_rank=5,
)
