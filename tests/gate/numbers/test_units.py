"""First token and time per token in a gate: a request is one sample, a launch one number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest, Generation
from pytest_ortbench.gate.numbers.metrics import MetricSide, judge_metrics, medians_of_units
from pytest_ortbench.gate.numbers.rules import parse_rules, rules_for
from tests.results_factory import make_case, make_result

ASKED = Generation(engine="session", prompt_tokens=4, new_tokens=3)


def request(first_ms: float, *later_ms: float) -> GeneratedRequest:
    steps = tuple(int(1e6 * step) for step in (first_ms, *later_ms))
    return GeneratedRequest(
        steps_ns=steps, wall_ns=sum(steps), prompt_tokens=4, new_tokens=len(steps)
    )


def asked_case() -> Case:
    return replace(make_case(), generation=ASKED)


def test_a_launch_is_the_median_of_its_requests() -> None:
    requests = [request(5, 1, 3), request(9, 2, 2), request(6, 100, 100)]
    assert medians_of_units(asked_case(), requests) == {
        "ttft": pytest.approx(6e-3),
        "tpot": pytest.approx(2e-3),
    }
    # A long text is no heavier than a short one.
    long = [request(5, *[7] * 50), request(5, 1), request(5, 1)]
    assert medians_of_units(asked_case(), long)["tpot"] == pytest.approx(1e-3)
    assert medians_of_units(asked_case(), []) == {}
    assert medians_of_units(make_case(), requests) == {}


@pytest.mark.parametrize("steps", [(), (5,), (5, 0), (0, 5), (0, 0)])
def test_a_request_without_its_times_has_no_number(steps: tuple[int, ...]) -> None:
    cut = GeneratedRequest(steps_ns=steps, wall_ns=5, prompt_tokens=4, new_tokens=1)
    assert medians_of_units(asked_case(), [cut]) == {}
    assert medians_of_units(asked_case(), [cut, request(5, 1)]) == {
        "ttft": pytest.approx(5e-3),
        "tpot": pytest.approx(1e-3),
    }


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((), (), "incomparable"),
        ((), (1.0,), "incomparable"),
        ((1.0,), (), "worse"),
        ((1.0,), (float("nan"),), "worse"),
        ((float("nan"),), (1.0,), "incomparable"),
    ],
)
def test_times_of_requests_that_were_asked_for_are_not_lost_in_silence(
    before: tuple[float, ...], after: tuple[float, ...], verdict: str
) -> None:
    result = make_result(case=asked_case())
    baseline, contender = (
        replace(MetricSide.of(result), by_worker={"tpot": values}) for values in (before, after)
    )
    rules = rules_for("m", parse_rules(["tpot:5%"], place="--ort-gate"))
    (tpot,) = [item for item in judge_metrics(baseline, contender, rules) if item.metric == "tpot"]
    assert tpot.verdict == verdict
    assert tpot.reason
    # A case of inferences has no such times to lose.
    single = replace(MetricSide.of(make_result()), by_worker={"tpot": ()})
    assert "tpot" not in {item.metric for item in judge_metrics(single, single, rules)}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((10, 10.2, 10.1), (11.0, 11.2, 11.1), "worse"),
        # One launch that is as fast as any decides for sameness.
        ((10, 10.2, 10.1), (11.0, 10.2, 11.1), "same"),
        ((10, 10.2, 10.1), (10.4, 10.5, 10.6), "same"),
        ((11.0, 11.2, 11.1), (10, 10.2, 10.1), "better"),
    ],
)
def test_every_launch_must_be_slower(
    before: tuple[float, ...], after: tuple[float, ...], verdict: str
) -> None:
    baseline, contender = (
        replace(MetricSide.of(make_result()), by_worker={"tpot": values})
        for values in (before, after)
    )
    rules = rules_for("m", parse_rules(["tpot:5%"], place="--ort-gate"))
    verdicts = {item.metric: item.verdict for item in judge_metrics(baseline, contender, rules)}
    assert verdicts["tpot"] == verdict
    assert "tpot" not in {
        item.metric for item in judge_metrics(baseline, contender, rules_for("m", ()))
    }
