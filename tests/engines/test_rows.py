"""Rows of engines and frameworks: their labels, their numbers, and what is judged of them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.gate.numbers.metrics import MetricSide, allowances_between, judge_metrics
from pytest_ortbench.gate.numbers.rules import Allowance, rules_for
from pytest_ortbench.passes.energy.worker.meter_choice import why_no_meter
from pytest_ortbench.passes.profile.run import why_no_profile
from pytest_ortbench.report.csv import render_csv
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.junit import properties
from pytest_ortbench.report.legend import engine_lines
from pytest_ortbench.report.prometheus import render_prometheus
from pytest_ortbench.worker.warm_up import least_seconds
from tests.results_factory import (
    make_engine_result,
    make_measurement,
    make_result,
    make_run,
    make_samples,
)

ENGINE = Provider(alias="tract", name="tract", role="engine")
ON_GPU = Provider(alias="torch", name="PyTorch", device="cuda", role="framework")


def on_cpu_share(cpu_share: float, *, device: str = "") -> CaseResult:
    workers = [
        make_measurement(samples=make_samples(cpu_share=cpu_share), worker=index)
        for index in range(3)
    ]
    return make_engine_result(device=device, measurements=workers)


def test_a_name_says_what_it_is() -> None:
    shown = shown_run(make_run([make_result(), make_engine_result()]))
    assert [entry.label for entry in shown.entries] == ["native/cpu/b1", "native/tract/b1 (engine)"]
    assert ON_GPU.described == "torch:cuda (framework)"
    assert [line.split()[-1] for line in engine_lines(shown.entries)] == ["0.23.9"]


def test_a_flat_row_says_role_and_version_of_the_engine() -> None:
    run = make_run([make_result(), make_engine_result(), make_engine_result(status="unsupported")])
    entries = shown_run(run).entries
    rows = list(csv.DictReader(io.StringIO(render_csv([entry.row for entry in entries]))))
    assert [row["role"] for row in rows] == ["provider", "engine", "engine"]
    assert [row["engine_version"] for row in rows] == ["", "0.23.9", ""]
    assert [row["runtime_version"] for row in rows] == ["1.32.0", "", ""]


def test_other_documents_say_the_role() -> None:
    result = make_engine_result()
    assert ("ortbench.role", "engine") in properties(result, summarise(result))
    families = text_string_to_metric_families(render_prometheus(shown_run(make_run([result]))))
    roles = {sample.labels.get("role") for family in families for sample in family.samples}
    assert roles == {"engine", None}


def test_a_start_has_all_its_parts() -> None:
    quantities = summarise(make_engine_result()).quantities
    parts = ("import_time", "compile_time", "session_create", "first_inference")
    assert [round(quantities[name].value, 4) for name in parts] == [0.09, 0.04, 0.026, 0.007]
    assert quantities["ready_time"].value == pytest.approx(0.163, abs=1e-6)
    assert quantities["compiled_size"].value == 9_000_000
    assert quantities["process_peak_rss"].value > quantities["peak_rss"].value


def test_nothing_compiled_has_no_time_and_no_size() -> None:
    summary = summarise(make_engine_result(compile_ns=None, compiled_bytes=None))
    assert {"compile_time", "compiled_size"} <= summary.missing.keys()
    assert summary.quantities["ready_time"].value == pytest.approx(0.123, abs=1e-6)


def test_a_framework_builds_its_model_in_each_start() -> None:
    result = make_engine_result()
    assert "build_time" in summarise(result).missing
    cold, *rest = result.measurements
    workers = [replace(m, startup=replace(m.startup, build_ns=30_000_000)) for m in (cold, *rest)]
    built = summarise(replace(result, measurements=tuple(workers))).quantities
    assert built["build_time"].value == pytest.approx(0.03)
    assert built["ready_time"].value == pytest.approx(0.193, abs=1e-6)


def test_workers_that_found_something_compiled_are_no_cold_start() -> None:
    cold, *rest = make_engine_result().measurements
    warm = [replace(m, startup=replace(m.startup, cache="warm", compile_ns=1_000)) for m in rest]
    first = replace(cold, startup=replace(cold.startup, cache="cold"))
    summary = summarise(replace(make_engine_result(), measurements=(first, *warm)))
    assert summary.quantities["compile_time"].value == pytest.approx(0.04)
    assert summary.quantities["compile_time"].samples == 1
    assert summary.quantities["ready_time"].samples == 1
    assert summary.quantities["import_time"].samples == 3


def test_no_placement_bars_no_engine() -> None:
    result = make_engine_result()
    assert not any(flag.name in ("UNJUDGED", "PARTIAL") for flag in flags_of(result))
    summary = summarise(result)
    assert not any(judgement.is_unjudged for judgement in summary.judgements)
    assert "placement" in summary.missing


@pytest.mark.parametrize(
    ("result", "is_flagged"),
    [
        (on_cpu_share(0.5), True),
        (on_cpu_share(0.99), False),
        (on_cpu_share(0.5, device="cpu"), True),
        (on_cpu_share(0.5, device="cuda"), False),
    ],
)
def test_what_computes_on_the_host_needs_a_whole_core(result: CaseResult, is_flagged: bool) -> None:
    assert any(flag.name == "CPU-SHARE" for flag in flags_of(result)) == is_flagged


def test_what_computes_on_the_host_is_warmed_up_and_metered_as_the_cpu_is() -> None:
    cpu = Provider(alias="cpu", name="CPUExecutionProvider")
    assert least_seconds(ENGINE) == least_seconds(cpu) < least_seconds(ON_GPU)
    assert why_no_meter(ENGINE) == why_no_meter(cpu) != why_no_meter(ON_GPU)


def test_a_limit_on_placement_says_nothing_of_an_engine() -> None:
    limits = [
        parse_limit(text, place="here") for text in ("placement >= 95 %", "latency_p50 < 1 s")
    ]
    held = check_limits(limits, summarise(make_engine_result()))
    assert [outcome.limit.metric.name for outcome in held] == ["latency_p50"]
    assert len(check_limits(limits, summarise(make_result()))) == 2


CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CHOSEN = Allowance(share=0.1, chosen=True)


@pytest.mark.parametrize(
    ("baseline", "contender", "metrics"),
    [
        (CPU, CPU, {"placement", "peak_rss", "model_size"}),
        (ENGINE, CPU, {"process_peak_rss", "model_size"}),
        (CPU, ENGINE, {"process_peak_rss", "model_size"}),
        (ENGINE, ON_GPU, {"process_peak_rss", "model_size"}),
        (ENGINE, ENGINE, {"peak_rss", "model_size"}),
    ],
)
def test_a_gate_compares_what_both_sides_have(
    baseline: Provider, contender: Provider, metrics: set[str]
) -> None:
    allowances = {name: Allowance() for name in ("placement", "peak_rss", "model_size")}
    assert allowances_between(allowances, baseline, contender).keys() == metrics


def test_a_gate_keeps_what_the_user_chose() -> None:
    chosen = {"placement": CHOSEN, "peak_rss": CHOSEN}
    assert allowances_between(chosen, CPU, ENGINE) == chosen


def test_sides_of_different_roles_are_judged_in_full() -> None:
    sides = [MetricSide.of(result) for result in (make_engine_result(), make_result())]
    verdicts = {
        verdict.metric: verdict.verdict for verdict in judge_metrics(*sides, rules_for("any", []))
    }
    assert verdicts["process_peak_rss"] == "same"
    assert not {"placement", "peak_rss"} & verdicts.keys()
    assert "incomparable" not in verdicts.values()


def test_only_sessions_of_onnx_runtime_are_profiled() -> None:
    assert [bool(why_no_profile(provider)) for provider in (CPU, ENGINE, ON_GPU)] == [
        False,
        True,
        True,
    ]
