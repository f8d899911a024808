"""Energy as lines."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.energy.report import energy_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_result, make_run

WINDOW = EnergyWindow(
    source="nvml energy counter", device="GPU-0", duration_ns=5 * 10**9, inferences=100.0,
    energy_j=1000.0, idle_w=40.0, counter_j=1000.0, integral_j=980.0,
)  # fmt: skip


def test_gross_net_power_idle_and_the_check() -> None:
    other = replace(WINDOW, energy_j=1100.0, counter_j=1100.0, integral_j=1070.0)
    energy = Energy(
        windows=(WINDOW, other), note="2 of 4 trials were possible within the time limit"
    )
    result = replace(make_result(), energy=energy)
    blank, line = energy_lines(shown_run(make_run([result, make_result()])))
    assert blank == ""
    assert line == (
        f"energy of {result.case.case_id}: 10.5 J [9.09 J, 12.1 J] an inference, 8.50 J [7.11 J, "
        "10.1 J] of it above idle power, 210 W [182 W, 242 W] under load, 40.0 W [40.0 W, 40.0 W] "
        "idle (2 trials, nvml energy counter of GPU-0, +2.4 % compared with integrated power; 2 of "
        "4 trials were possible within the time limit)"
    )


def test_a_reason_is_no_line() -> None:
    result = replace(make_result(), energy=Energy(reason="no driver"))
    assert energy_lines(shown_run(make_run([result]))) == []
