"""Energy of a case under load, with idle time before."""

from __future__ import annotations

from pytest_ortbench.core.flag_kind import flag_kind
from pytest_ortbench.core.metric import ANY, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, PassFigure, Phase

_METRICS = (
    metric("power", "power_w", "W", "lower", "Gross mean power of the device under load."),
    metric(
        "energy_per_inference",
        "energy_per_inference_j",
        "J",
        "lower",
        "Gross energy of the device per inference.",
    ),
    metric(
        "idle_power",
        "idle_power_w",
        "W",
        "lower",
        "Power of the device before the load, with the session open.",
    ),
    metric(
        "energy_net_per_inference",
        "energy_net_per_inference_j",
        "J",
        "lower",
        "Energy of the device per inference, above its idle consumption.",
        reach=ANY,
    ),
    metric(
        "energy_per_token",
        "energy_per_token_j",
        "J",
        "lower",
        "Gross energy of the device per token that a language model writes: the energy of "
        "requests, reading their prompts included, divided by the new tokens of all "
        "sequences.",
    ),
)

_FLAGS = (
    (
        Place(after="WARM-UP"),
        flag_kind(
            "CLOCK", "notes", "clock frequency changed by more than 5 %", "Fix the frequency."
        ),
    ),
    (
        Place(after="FEWER-WORKERS"),
        flag_kind(
            "ENERGY-DISAGREE",
            "notes",
            "energy counter and integrated power differ by more than 10 %",
            "Rely on neither of them: power and energy of the case are not ranked.",
        ),
    ),
)

PASS = Pass(
    name="energy",
    result_field="energy",
    measure=".run:measure",
    lacking=".facts:Energy",
    takes=".planning:energy_takes_s",
    why_not=".worker.meter_choice:why_no_meter",
    questions=(
        (".questions:MeasureEnergy", ".worker.energy_pass:measure_energy"),
        (".questions:PollMeter", ".worker.meter_ticks:poll_meter"),
    ),
    self_checks=".selfcheck:CHECKS",
    bounds=".checks:BOUNDS",
    phase=Phase(name="energy", doing="measuring energy", rank=20),
    shipped_test="test_energy",
    is_asked_by_metrics=True,
    asked_by=("energy",),
    offers=((Place(after="memory", rank=10), ".fixture:energy"),),
    view="energy",
    add_numbers=".numbers:add_energy",
    flags=_FLAGS,
    flag_rules=(
        ("THROTTLED", ".numbers:slowed_down"),
        ("CLOCK", ".numbers:clock_changed"),
        ("ENERGY-DISAGREE", ".numbers:meters_disagree"),
    ),
    metrics=_METRICS,
    metrics_place=Place(after="cpu_per_inference"),
    columns=(
        (Place(after="cpu_s_per_inference"), ("power_w", "energy_per_inference_j")),
        (
            Place(after="run_id"),
            ("idle_power_w", "energy_net_per_inference_j", "energy_per_token_j"),
        ),
    ),
    shown_columns=".report:COLUMNS",
    figures=(
        PassFigure(
            name="energy",
            description="Energy of one inference of each case, by model",
            draw=".figures:draw_energy",
            place=Place(after="memory"),
        ),
    ),
    for_fleet=".fleet:power",
    lines=".report:energy_lines",
)
