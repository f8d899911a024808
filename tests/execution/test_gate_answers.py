"""The gate on workers whose answers are known."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.outcome import Accuracy, Failure, Flag, OutputAccuracy
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.measuring.answers import looser_floor
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.numbers.metrics import MetricSide
from pytest_ortbench.gate.numbers.rules import parse_rules, rules_for
from pytest_ortbench.gate.numbers.sentences import verdict_line
from pytest_ortbench.schema.side_questions import CompareSides, WriteOutputs
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.results_factory import make_case, make_result

SHARED = Machine(host="h", stable={"virtualisation": "KVM", "cpu_quota": "none"})
PAIR = Pair(baseline=make_case(model="old"), contender=make_case(model="new"))
SAME_FILES = Pair(
    baseline=PAIR.baseline,
    contender=dataclasses.replace(PAIR.contender, variant=PAIR.baseline.variant),
)


def launcher(ratio: float = 1.0, **answers) -> FakeLauncher:
    made = FakeLauncher(lambda case, _: 3e6 * (1.0 if case.model.name == "old" else ratio))
    for name, answer in answers.items():
        setattr(made, name, answer)
    return made


def judged(launcher: FakeLauncher, *rules: str, pair: Pair = PAIR, **how) -> GateResult:
    standard = how.pop("standard", None)
    gate = Gate(launcher=launcher, machine=SHARED, cases=1, scratch=Path("unused"), seed=0, **how)
    held = rules_for("new/native/cpu/b1", parse_rules(rules, place="p"))
    return gate.judge(pair, held, baseline="model:old.onnx", standard=standard)


def apart(ratio: float):
    output = OutputAccuracy(name="y", kind="float", finite=True, sqnr_db=ratio, compared=80)
    return lambda *_: Accuracy(samples=8, outputs=(output,))


def test_other_answers_are_less_accurate_whatever_the_times_say():
    result = judged(launcher(difference_of=apart(-39.9)))
    assert (result.verdict, result.latency, result.latency_verdict) == (
        "less accurate",
        "same",
        "same",
    )
    (finding,) = result.findings
    assert (finding.about, finding.fails) == ("answers", True)
    assert re.findall(r"(-?[\d.]+) dB", result.failures[0])[:2] == ["-39.9", "60"]
    # To let pass what is further apart than the values are large is no advice.
    assert "--ort-gate" not in result.failures[0]
    assert result.answers.compared.outputs[0].sqnr_db == -39.9
    assert "-39.9 dB" in verdict_line(result)


def test_a_slower_contender_with_other_answers_fails_for_both():
    result = judged(launcher(1.2, difference_of=apart(3.0)))
    assert (result.verdict, result.latency) == ("less accurate", "slower")
    assert [finding.about for finding in result.findings] == ["answers", "latency"]


def test_answers_that_agree_leave_the_verdict_to_the_times():
    result = judged(launcher())
    assert (result.verdict, result.latency, result.failures) == ("same", "", ())
    assert [one.verdict for one in result.metrics if one.metric == "sides_sqnr"] == ["same"]


@pytest.mark.live
@pytest.mark.parametrize("rule", ["sides_sqnr >= -40 dB", "new*@sides_sqnr >= -200 dB"])
def test_a_floor_of_the_pair_lets_retrained_weights_pass(rule: str):
    assert judged(launcher(difference_of=apart(-39.9)), rule).failures == ()


def test_outputs_are_asked_for_once_a_gate_and_after_the_blocks():
    made = launcher()
    result = judged(made)
    assert len(result.launches) == 8
    assert len(made.wrote) == 1


class Broken(FakeLauncher):
    """Workers of the contender die when they are asked for their outputs."""

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        def die(*_: object, **__: object) -> None:
            raise WorkerError(Failure(kind="crash", phase="accuracy", message="it died"))

        opened = super().open(case, worker=worker, deadline=deadline)
        if case.model.name == "old":
            return opened
        return opened.answering({WriteOutputs: die, CompareSides: die})


def test_a_side_that_dies_over_it_leaves_the_answers_unjudged_and_the_times_measured():
    result = judged(Broken(lambda *_: 3e6))
    assert (result.verdict, result.latency) == ("unjudged", "same")
    assert len(result.launches) == 8
    assert [finding.about for finding in result.findings if finding.fails] == ["answers"]
    assert judged(Broken(lambda *_: 3e6), "sides_sqnr >= -200 dB").failures == ()


def test_random_numbers_are_said_and_fail_nothing():
    sides = (
        dataclasses.replace(
            case, model=dataclasses.replace(case.model, random_ops=("RandomNormalLike",))
        )
        for case in (PAIR.baseline, PAIR.contender)
    )
    pair = Pair(baseline=next(sides), contender=next(sides))
    made = launcher()
    result = judged(made, pair=pair)
    assert (result.verdict, result.failures, made.wrote) == ("same", (), [])
    assert "(RandomNormalLike)" in verdict_line(result)


def test_the_floor_is_that_of_the_looser_precision():
    int8 = Pair(baseline=PAIR.baseline, contender=make_case(precision="int8-dynamic"))
    for pair in (int8, Pair(baseline=int8.contender, contender=int8.baseline)):
        assert looser_floor(pair).sqnr_db == 15.0
        assert looser_floor(pair).agreement == 0.9


# Identical sides.


def test_identical_sides_are_the_same_without_a_launch():
    made = launcher(1.5)
    result = judged(made, pair=SAME_FILES, spares_identical=True)
    assert (result.verdict, result.identical, result.failures) == ("same", True, ())
    assert made.opened == []
    assert verdict_line(result) == "same (identical files)"


def test_identical_sides_are_measured_unless_they_may_be_spared():
    made = launcher(1.5)
    result = judged(made, pair=SAME_FILES)
    assert (result.verdict, result.identical) == ("slower", False)
    assert made.opened


def test_absolute_limits_hold_for_identical_sides():
    standard = make_result(case=SAME_FILES.contender)
    result = judged(
        launcher(),
        "latency:<=1ns",
        pair=SAME_FILES,
        spares_identical=True,
        standard=MetricSide.of(standard),
    )
    assert result.identical
    assert [finding.about for finding in result.findings] == ["latency_p50"]


def test_nan_on_both_sides_is_no_sameness_though_the_files_are_identical():
    def both_nan(*_: Case) -> Accuracy:
        output = OutputAccuracy(
            name="y", kind="float", finite=True, exact=True, nonfinite=80, reference_nonfinite=80
        )
        return Accuracy(samples=8, outputs=(output,))

    standard = dataclasses.replace(
        make_result(case=SAME_FILES.contender), flags=(Flag(name="NONFINITE"),)
    )
    result = judged(
        launcher(difference_of=both_nan),
        pair=SAME_FILES,
        spares_identical=True,
        standard=MetricSide.of(standard),
    )
    assert (result.verdict, result.identical) == ("unjudged", False)
    assert result.failures
