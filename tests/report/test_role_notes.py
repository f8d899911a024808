"""Engines and frameworks are called so wherever a case is named; execution providers are not."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.history import histories, series_names
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Canary, Run
from pytest_ortbench.fleet.numbers.facts import RunFacts, reduce_run
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.mix import parse_mix
from pytest_ortbench.fleet.report.csv import render_comparison_csv
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.markdown import render_comparison_markdown
from pytest_ortbench.fleet.report.procurement import procure, render_procurement_csv
from pytest_ortbench.fleet.report.table import render_comparison_table
from pytest_ortbench.fleet.report.view import ComparisonView, build_view
from pytest_ortbench.gate.numbers.stored import gate_runs
from pytest_ortbench.gate.report.lines import gate_lines, gate_rows
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.report.badge import case_badge
from pytest_ortbench.report.blocks import pass_sentences
from pytest_ortbench.report.ci.run_verdict import gate_complaints, verdict_of
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.entries import shown_run
from tests.report.page_reader import html_without_figures, read_page
from tests.results_factory import (
    draw_durations,
    make_case,
    make_engine_result,
    make_machine,
    make_result,
    make_run,
)

ENGINE, FRAMEWORK = "native/tract/b1 (engine)", "native/torch/b1 (framework)"
TITLES = {"tract": "tract", "torch": "PyTorch"}


def results(runtime: str = "current", factor: int = 1) -> list[CaseResult]:
    case = make_case(runtime=runtime)
    return [
        make_result(case=case, median_ns=3_000_000 * factor),
        make_engine_result(case=case, median_ns=6_000_000 * factor),
        make_engine_result(
            case=case, alias="torch", title="PyTorch", role="framework", compile_ns=None,
            compiled_bytes=None, median_ns=9_000_000 * factor,
        ),
    ]  # fmt: skip


def run_of(host: str, *, runtimes: tuple[str, ...] = ("current",)) -> Run:
    factor = 2 if host == "edge" else 1
    cases = [result for runtime in runtimes for result in results(runtime, factor)]
    run = make_run(cases, run_id=f"20260102T030405Z-{host}-0a1b", machine=make_machine(host))
    canary = Canary(model="builtin:mlp@1", durations_ns=draw_durations(200, median_ns=100_000))
    return replace(run, canary=canary)


def facts(*hosts: str, runtimes: tuple[str, ...] = ("current",)) -> list[RunFacts]:
    return [reduce_run(run_of(host, runtimes=runtimes), service=True) for host in hosts]


def renderings(view: ComparisonView) -> list[str]:
    return [
        render_comparison_table(view, width=300, color=False),
        render_comparison_markdown(view),
        read_page(render_comparison_html(view)).text,
        render_comparison_csv(view),
    ]


def test_rows_of_a_comparison() -> None:
    view = build_view(facts("desk", "edge"))
    for text in renderings(view):
        assert ENGINE in text
        assert FRAMEWORK in text
        assert "native/cpu/b1 (" not in text
    several = build_view(facts("desk", "edge", runtimes=("current", "nightly")))
    for text in renderings(several):
        assert "native/tract/b1+nightly (engine)" in text


def test_sides_of_a_comparison_and_its_baseline() -> None:
    for named in ("tract", "tract (engine)"):
        view = build_view(facts("desk"), axis="provider", baseline=named)
        assert view.baseline == "tract (engine)"
        assert [side.label for side in view.main.sides] == [
            "cpu",
            "tract (engine)",
            "torch (framework)",
        ]
        for text in renderings(view):
            assert "torch (framework)" in text
            assert "native/torch (framework)" not in text
            assert "()" not in text
    with pytest.raises(UsageError) as caught:
        build_view(facts("desk"), axis="provider", baseline="tracts")
    assert "tract" in str(caught.value.hint)


def test_the_best_variant_of_a_side() -> None:
    slow = [reduce_run(replace(run_of(host), cases=tuple(results()[1:]))) for host in "ab"]
    hosts = [replace(run, host=host, run_id=host) for run, host in zip(slow, "ab", strict=True)]
    best = build_view(hosts).sections[0].matrix
    assert {cell.variant for row in best.rows for cell in row.cells} == {"native/tract (engine)"}


def test_roles_are_a_column_of_the_csv_of_a_comparison() -> None:
    lines = list(csv.DictReader(io.StringIO(render_comparison_csv(build_view(facts("a", "edge"))))))
    roles = {line["case_id"].split("/")[2]: line["role"] for line in lines}
    assert roles == {"cpu": "provider", "tract": "engine", "torch": "framework"}
    assert list(lines[0])[-1] == "role"


def test_variants_that_are_bought() -> None:
    machine = PricedMachine(name="desk", host="desk", price=1000, power_price=0.5, idle_power_w=5)
    terms = Terms(currency="EUR", years=2, machines=(machine,))
    lines = csv.DictReader(io.StringIO(render_procurement_csv(procure(facts("desk"), terms))))
    variants = {line["variant"]: line["role"] for line in lines}
    assert variants == {
        "native/cpu": "provider",
        "native/tract (engine)": "engine",
        "native/torch (framework)": "framework",
    }
    mixed = replace(terms, mix=parse_mix("mobilenet_v2:5/s", "--mix"), limit_s=1.0)
    engines = [reduce_run(replace(run_of("desk"), cases=tuple(results()[1:])), service=True)]
    lines = csv.DictReader(io.StringIO(render_procurement_csv(procure(engines, mixed))))
    assert [(line["variant"], line["role"]) for line in lines] == [
        ("native/tract (engine)", "engine")
    ]


def test_series_of_a_trend() -> None:
    assert series_names(histories([run_of("desk")])) == [
        "mobilenet_v2/native/cpu/b1 on desk",
        f"mobilenet_v2/{ENGINE} on desk",
        f"mobilenet_v2/{FRAMEWORK} on desk",
    ]


def gated() -> Run:
    run = run_of("desk")
    return replace(run, gate=gate_runs(run, replace(run, run_id="later"), ()))


def test_verdicts_of_a_gate() -> None:
    run = gated()
    texts = [
        "\n".join(gate_lines(run)),
        run_summary(shown_run(run), gate_complaints(run)),
        read_page(html_without_figures(run)).text,
    ]
    for text in texts:
        assert f"mobilenet_v2/{ENGINE}" in text
        assert f"mobilenet_v2/{FRAMEWORK}" in text
    assert next(row.cells[0] for row in gate_rows(run)) == "mobilenet_v2/native/cpu/b1"


def test_the_verdict_on_a_run_names_the_other_side() -> None:
    run = run_of("desk")
    asked = [result.case for result in run.cases]
    judged = GateResult.undecided(asked[0], baseline="provider:torch", before=asked[2])
    shown = verdict_of(replace(run, gate=(replace(judged, verdict="faster"),)), ())
    assert "no worse than provider:torch (framework)" in shown.headline
    failing = replace(GateResult.undecided(asked[1], baseline="x"), failures=("slower",))
    complaints = gate_complaints(replace(run, gate=(failing,)))
    assert [complaint.case for complaint in complaints] == [f"mobilenet_v2/{ENGINE}"]


def test_a_case_that_is_gone_is_still_an_engine() -> None:
    run = run_of("desk")
    gone = gate_runs(run, replace(run, run_id="later", cases=run.cases[:1]), ())
    assert [verdict.role for verdict in gone if verdict.removed] == ["engine", "framework"]
    names = [row.cells[0] for row in gate_rows(replace(run, gate=gone))]
    assert names[1:] == [f"mobilenet_v2/{ENGINE}", f"mobilenet_v2/{FRAMEWORK}"]


@pytest.mark.parametrize(
    ("contender", "baseline", "case", "against"),
    [
        ("cpu", "torch", "", "provider:torch (framework)"),
        ("torch", "cpu", " (framework)", "provider:cpu"),
        ("tract", "torch", " (engine)", "provider:torch (framework)"),
        ("tract", "tract", " (engine)", "model:old.onnx"),
        ("cpu", "cpu", "", "provider:cpu"),
    ],
)
def test_sides_of_a_gate(contender: str, baseline: str, case: str, against: str) -> None:
    asked = {result.case.provider.alias: result.case for result in results()}
    named = against.partition(" (")[0]
    verdict = GateResult.undecided(asked[contender], baseline=named, before=asked[baseline])
    assert (verdict.role_note, verdict.against) == (case, against)


def test_badges_and_tables_of_passes() -> None:
    run = run_of("desk")
    soaked = tuple(
        replace(result, soak=Soak(seconds=60.0, reason="nobody waited")) for result in run.cases
    )
    shown = shown_run(replace(run, cases=soaked))
    sentences = "\n".join(pass_sentences(shown))
    assert f"mobilenet_v2/{ENGINE}" in sentences
    badge = case_badge(run, "mobilenet_v2/native/tract/b1", "latency_p50")
    assert badge.label.startswith(f"mobilenet_v2/{ENGINE}")
