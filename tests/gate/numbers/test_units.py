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
