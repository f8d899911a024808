"""JUnit properties: finite SI values that read back equal, text that XML allows."""

from __future__ import annotations

import math

from pytest_ortbench.report.junit import PREFIX
from tests.report import sample_runs
from tests.summarised import properties_of, row_of


def test_values_are_those_of_the_row() -> None:
    run = sample_runs.ten_cases()
    for result in run.cases:
        wanted = row_of(result, run)
        for name, value in properties_of(result):
            assert name.startswith(PREFIX)
            assert value == str(wanted[name.removeprefix(PREFIX)])


def test_a_measured_case_has_its_numbers() -> None:
    found = dict(properties_of(sample_runs.one_case().cases[0]))
    assert found["ortbench.case_id"] == "mobilenet_v2/native/cpu/b1"
    assert found["ortbench.status"] == "measured"
    assert math.isclose(float(found["ortbench.latency_p50_s"]), 0.0123, rel_tol=0.02)
    assert float(found["ortbench.latency_p50_low_s"]) < float(found["ortbench.latency_p50_s"])
    assert "ortbench.power_w" not in found


def test_a_failed_case_has_its_reason_and_no_time() -> None:
    found = dict(properties_of(sample_runs.failed(sample_runs.case(), "crash")))
    assert found["ortbench.status"] == "crash"
    assert found["ortbench.message"] == "the worker died"
    assert not any("latency" in name for name in found)


def test_text_holds_no_control_character() -> None:
    for result in sample_runs.hostile().cases:
        for _, value in properties_of(result):
            assert value.isprintable()
