"""What the ratios of stored runs to a yardstick say; on shared machines they only inform."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import pytest

from pytest_ortbench.analysis.relative_latency import RelativeLatency, relative_latency
from pytest_ortbench.core.gate import ContrastVerdict, GateResult
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.run import Machine
from pytest_ortbench.core.yardstick import Yardstick, YardstickTurns
from pytest_ortbench.gate.numbers.metrics import MetricSide
from pytest_ortbench.gate.numbers.rules import CaseRules, parse_rules, rules_for
from pytest_ortbench.gate.numbers.same_models import models_of, twins
from pytest_ortbench.gate.numbers.stored import gate_case
from pytest_ortbench.gate.numbers.stored_relative import (
    SPREAD,
    RunSpread,
    relative_contrast,
    student,
)
from tests.results_factory import (
    make_measurement,
    make_result,
    make_run,
    make_turns,
    make_turns_in_state,
)
from tests.results_factory import make_yardstick as of_yardstick

CLOUD = Machine(host="vm", stable={"cpu": "Example CPU", "virtualisation": "KVM"})
TWO = of_yardstick("parallel", threads=2)
PLAIN = rules_for("", ())
#: What the self-test of a machine found, on which such verdicts were right.
TRIED = {"lows": RunSpread(deviation=0.01, degrees=100, decides=True)}


@cache
def any_ratio() -> RelativeLatency:
    estimate = relative_latency(make_result(workers=1, turns=[make_turns(spread=0.0)]))
    assert isinstance(estimate, RelativeLatency)
    return estimate


def ratio(value: float, *, estimator: str = "blocks", launches: int = 3) -> RelativeLatency:
    """A ratio whose launches agree."""
    return dataclasses.replace(
        any_ratio(), value=value, ratios=(value,) * launches, estimator=estimator
    )


def result_of(
    median_ns: int = 3_000_000,
    *,
    flags: Sequence[Flag] = (),
    yardstick: Yardstick | None = None,
    cpus: float = 1.0,
) -> CaseResult:
    """A case of three workers that took turns with a yardstick on a machine that wanders."""
    made = [
        make_turns(median_ns, seed=seed, slower=(1.0, 1.6, 1.2), yardstick=yardstick, cpus=cpus)
        for seed in range(3)
    ]
    return make_result(median_ns=4_000_000, turns=made, flags=flags)


def judged(
    before: CaseResult,
    after: CaseResult,
    *,
    earlier: Machine = CLOUD,
    history: Sequence[CaseResult] = (),
    rules: CaseRules = PLAIN,
    machine: Machine = CLOUD,
    spreads: Mapping[str, RunSpread] = MappingProxyType({}),
) -> GateResult:
    run = make_run([before], machine=earlier)
    return gate_case(
        MetricSide.of(before),
        MetricSide.of(after),
        rules,
        baseline=run,
        machine=machine,
        spreads=spreads,
        twin=twins(models_of(run).values(), [after.case.model]).earlier[after.case.model.name],
        history=[(make_run([result], machine=CLOUD), result) for result in history],
    )


@pytest.mark.parametrize(
    ("after_ns", "verdict"), [(3_000_000, "same"), (3_900_000, "slower"), (2_250_000, "faster")]
)
def test_on_a_shared_machine_the_ratio_is_told_and_fails_nothing(
    after_ns: int, verdict: str
) -> None:
    result = judged(result_of(), result_of(after_ns))
    assert (result.verdict, result.cause) == ("incomparable", "shared")
    assert (result.decided_by, result.failures, result.warnings) == ("", (), ())
    (contrast,) = result.contrasts
    assert contrast.verdict == verdict
    assert contrast.effect == pytest.approx(after_ns / 3_000_000 - 1, abs=0.01)


@pytest.mark.parametrize(
    ("after_ns", "verdict"), [(3_000_000, "same"), (3_300_000, "slower"), (2_700_000, "faster")]
)
def test_where_such_verdicts_were_seen_to_be_right_the_ratio_decides(
    after_ns: int, verdict: str
) -> None:
    result = judged(result_of(), result_of(after_ns), spreads=TRIED)
    assert (result.verdict, result.cause, result.decided_by) == (verdict, "", "relative")
    fails = [finding.about for finding in result.findings if finding.fails]
    assert fails == ["latency"] * (verdict == "slower")
    assert result.warnings == ()


def test_ratios_of_another_estimator_decide_nothing_and_flags_leave_it_open() -> None:
    slower = result_of(3_600_000)
    other = {"blocks": TRIED["lows"]}
    assert judged(result_of(), slower, spreads=other).verdict == "incomparable"
    unproven = {"lows": dataclasses.replace(TRIED["lows"], decides=False)}
    assert judged(result_of(), slower, spreads=unproven).verdict == "incomparable"
    told = {"UNSTEADY": "inconclusive", "SPREAD": "inconclusive", "FAR-CPUS": "slower"}
    for name, verdict in told.items():
        flagged = result_of(3_600_000, flags=[Flag(name=name)])
        assert judged(result_of(), flagged, spreads=TRIED).verdict == verdict


def test_on_a_machine_of_its_own_the_median_decides_as_ever() -> None:
    own = dataclasses.replace(
        CLOUD, stable={"cpu": "C", "virtualisation": "none seen", "cpu_quota": "none"}
    )
    result = judged(result_of(), result_of(3_600_000), earlier=own, machine=own, spreads=TRIED)
    assert (result.verdict, result.cause) == ("incomparable", "canary")


def without(turns: YardstickTurns | None) -> CaseResult:
    return make_result(measurements=[make_measurement(yardstick=turns)])


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (result_of(flags=[Flag(name="CPU-SHARE")]), "CPU-SHARE"),
        (result_of(yardstick=of_yardstick(version="0.3.29")), "yardstick"),
        (result_of(cpus=0.8), "model_cpus"),
        (without(None), "without a yardstick"),
        (without(YardstickTurns(absence="failed")), "its process failed"),
    ],
    ids=["lacked CPUs", "another yardstick", "fewer CPUs", "older", "failed"],
)
def test_what_does_not_compare_is_incomparable_with_its_field(
    after: CaseResult, named: str
) -> None:
    for result in (judged(result_of(), after), judged(after, result_of())):
        assert (result.verdict, result.cause) == ("incomparable", "yardstick")
        assert named in result.reason
        assert result.failures == ()


def test_other_threads_are_incomparable() -> None:
    one = make_result(
        measurements=[make_measurement(threads=1, yardstick=make_turns()) for _ in range(3)]
    )
    result = judged(one, result_of())
    assert (result.verdict, result.cause) == ("incomparable", "yardstick")


def test_another_machine_is_incomparable() -> None:
    other = dataclasses.replace(CLOUD, stable={**CLOUD.stable, "cpu": "Other CPU"})
    result = judged(result_of(), result_of(3_600_000), earlier=other)
    assert (result.verdict, result.cause) == ("incomparable", "machine")


def test_a_margin_that_was_asked_for_is_never_widened() -> None:
    rules = rules_for("", parse_rules(["latency:1%"], place="--ort-gate"))
    (contrast,) = judged(result_of(), result_of(), rules=rules).contrasts
    assert (contrast.verdict, contrast.margin) == ("inconclusive", 0.01)


def test_without_one_the_margin_is_what_the_runs_resolve() -> None:
    narrow = relative_contrast([ratio(6.0)], ratio(6.0), 0.05, asked=False)
    wide = relative_contrast(
        [ratio(6.0, estimator="lows")], ratio(6.0, estimator="lows"), 0.05, asked=False
    )
    assert narrow.verdict == wide.verdict == "same"
    # 3.168 + 1.036 deviations of 1 % and of 2.8 %, times the root of 2.
    assert narrow.margin == pytest.approx(math.expm1(4.204 * 0.01 * math.sqrt(2)), rel=0.001)
    assert wide.margin == pytest.approx(math.expm1(4.204 * 0.028 * math.sqrt(2)), rel=0.001)


def test_ten_runs_say_more_than_one() -> None:
    draw = random.Random(0)
    history = [ratio(6.0 * math.exp(0.01 * draw.gauss(0, 1))) for _ in range(10)]
    one = relative_contrast(history[:1], ratio(6.0), 0.05, asked=False)
    ten = relative_contrast(history, ratio(6.0), 0.05, asked=False)
    assert ten.high is not None
    assert one.high is not None
    assert ten.high - ten.effect < 0.8 * (one.high - one.effect)


def test_a_history_that_wanders_resolves_less() -> None:
    calm = [ratio(6.0)] * 6
    wild = [ratio(value) for value in (5.4, 6.6, 5.5, 6.4, 6.0, 6.1)]
    assert relative_contrast(calm, ratio(6.6), 0.05, asked=False).verdict == "slower"
    assert relative_contrast(wild, ratio(6.6), 0.05, asked=False).verdict == "inconclusive"


def test_one_launch_resolves_less_than_three() -> None:
    three = relative_contrast([ratio(6.0)], ratio(6.0), 0.05, asked=False)
    one = relative_contrast([ratio(6.0)], ratio(6.0, launches=1), 0.05, asked=False)
    assert one.high is not None
    assert three.high is not None
    assert one.high > 1.5 * three.high
    # It does not widen what it is held to.
    assert (three.verdict, one.verdict) == ("same", "inconclusive")


def test_launches_that_differ_resolve_less() -> None:
    apart = dataclasses.replace(ratio(6.6), ratios=(5.9, 6.6, 7.4))
    assert relative_contrast([ratio(6.0)], ratio(6.6), 0.05, asked=False).verdict == "slower"
    assert relative_contrast([ratio(6.0)], apart, 0.05, asked=False).verdict == "inconclusive"


def in_state(state: int, *, slower: float = 1.0) -> RelativeLatency:
    turns = [make_turns_in_state(state, passes=2.5, slower=slower)] * 3
    estimate = relative_latency(make_result(turns=turns, workers=3))
    assert isinstance(estimate, RelativeLatency)
    return estimate


def test_a_history_in_several_states_tells_the_machine_from_the_code() -> None:
    """The model goes over memory more than most do, and the machine gets slower at that."""

    def contrast(*states: int, slower: float = 1.0) -> ContrastVerdict:
        history = [in_state(state) for state in states]
        return relative_contrast(history, in_state(1, slower=slower), 0.05, asked=False)

    assert contrast(0, 0, 1, 0, 1, 0).effect == pytest.approx(0, abs=1e-3)
    assert contrast(0, 0, 1, 0, 1, 0, slower=1.1).verdict == "slower"
    # One state shows nothing of that, and the usual passes are too few for this model.
    assert contrast(0, 0, 0, 0, 0, 0).effect > 0.03


def test_older_runs_of_another_model_or_work_are_no_history() -> None:
    other = result_of(9_000_000)
    other_file = dataclasses.replace(
        other,
        case=dataclasses.replace(
            other.case, model=dataclasses.replace(other.case.model, digest="other")
        ),
    )
    other_work = dataclasses.replace(other, case=dataclasses.replace(other.case, seed=5))
    alone = judged(result_of(), result_of())
    beside = judged(result_of(), result_of(), history=[other_file, other_work])
    assert beside.contrasts == alone.contrasts
    assert judged(result_of(), result_of(), history=[result_of()]).contrasts != alone.contrasts
    # Nor are runs whose flags would leave a gate without a verdict.
    flagged = result_of(9_000_000, flags=[Flag(name="DRIFT")])
    assert judged(result_of(), result_of(), history=[flagged]).contrasts == alone.contrasts


@pytest.mark.parametrize(("estimator", "slowdown"), [("blocks", 0.10), ("lows", 0.20)])
@pytest.mark.parametrize("runs", [1, 10])
def test_error_rates_of_drawn_runs(estimator: str, slowdown: float, runs: int) -> None:
    """Runs that differ as the spread says: 2,000 comparisons each, drawn with a fixed seed."""
    draw = random.Random(1)

    def run(factor: float = 1.0) -> RelativeLatency:
        return ratio(
            6.0 * factor * math.exp(SPREAD[estimator] * draw.gauss(0, 1)), estimator=estimator
        )

    def verdicts(factor: float) -> Counter[str]:
        return Counter(
            relative_contrast([run() for _ in range(runs)], run(factor), 0.05, asked=False).verdict
            for _ in range(2000)
        )

    equal, slower = verdicts(1.0), verdicts(1 + slowdown)
    assert equal["slower"] <= 10
    assert equal["same"] >= 1600
    assert slower["slower"] >= 1800
    assert slower["same"] == 0


@pytest.mark.parametrize(("degrees", "quantile"), [(10, 3.16927), (15, 2.94671), (30, 2.74999)])
def test_quantiles_of_student(degrees: int, quantile: float) -> None:
    """From tables of the distribution, for one half of a per cent."""
    assert student(0.995, degrees) == pytest.approx(quantile, rel=0.001)
