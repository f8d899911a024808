"""The load to measure before buying: a command that can be carried out as it is printed."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.fleet.numbers.facts import CaseFacts, reduce_run
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.load_advice import load_words
from pytest_ortbench.fleet.procurement.machines import PERCENTS, PricedMachine, Terms
from pytest_ortbench.fleet.procurement.ranking import tenders
from pytest_ortbench.passes.load.numbers.plan import LoadPlan, plan_load
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.passes.registry import PASSES
from tests import results_factory as factory

TERMS = Terms(
    rate_per_s=20,
    limit_s=2,
    percent=95,
    machines=(PricedMachine(name="small", host="small", price=900),),
)


def measured(milliseconds: int) -> CaseFacts:
    """A case as its document is reduced, whose inferences all take as long."""
    samples = factory.make_samples([milliseconds * 1_000_000] * 40)
    result = factory.make_result(
        measurements=[factory.make_measurement(samples=samples, worker=w) for w in range(3)]
    )
    (fact,) = reduce_run(factory.make_run([result]), percentiles=True, service=True).cases
    return replace(fact, model_file="segment.onnx", knobs=(("threads", "1"),), time_s=30.0, cpus=1)


def offered(fact: CaseFacts, terms: Terms = TERMS) -> Economics:
    """What that case comes to on the one machine of the table."""
    run = reduce_run(factory.make_run([]))
    (tender,) = tenders([replace(run, host="small", cases=(fact,))], terms)
    return tender.variants[0]


def options(fact: CaseFacts, terms: Terms = TERMS) -> dict[str, str]:
    words = shlex.split(load_words(offered(fact, terms), terms))
    assert words[:2] == ["pytest", "segment.onnx"]
    return {name: value for name, _, value in (word.partition("=") for word in words[2:])}


def test_the_command_has_the_settings_of_the_case_and_the_limit_that_was_asked_for() -> None:
    assert options(measured(500)) == {
        "--ort-providers": "cpu",
        "--ort-threads": "1",
        "--ort-time": "30",
        "--ort-load": "peak:p95:2s",
        "--ort-timeout": options(measured(500))["--ort-timeout"],
    }
    short = replace(TERMS, limit_s=0.5, percent=99)
    assert options(measured(10), short)["--ort-load"] == "peak:p99:500ms"


@pytest.mark.parametrize("milliseconds", [1, 10, 100, 600])
@pytest.mark.parametrize("percent", PERCENTS.values())
def test_the_timeout_is_enough_even_at_the_lower_end_of_the_throughput(
    milliseconds: int, percent: float
) -> None:
    terms = replace(TERMS, percent=percent, limit_s=60)
    fact = measured(milliseconds)
    asked = options(fact, terms)
    low = fact.quantities["throughput"].low
    assert low is not None
    timeout_s = float(asked.get("--ort-timeout", Sampling().timeout_s))
    plan = plan_load(
        parse_load(asked["--ort-load"], place="t"),
        capacity_per_s=low,
        timeout_s=timeout_s,
        official=False,
    )
    assert isinstance(plan, LoadPlan)
    assert plan.expected_s <= timeout_s / 2
    # A short search needs no option for it.
    assert (plan.expected_s > Sampling().timeout_s / 2) == ("--ort-timeout" in asked)


def test_the_percentiles_of_bills_are_those_whose_searches_are_known() -> None:
    assert [search.percent for search in measured(10).searches] == sorted(PERCENTS.values())
    assert any(entry.for_fleet and entry.result_field == "loads" for entry in PASSES)


def test_callers_stand_for_the_processes_of_an_offer() -> None:
    fact = measured(10)
    several = replace(offered(fact), case=replace(fact, processes=2))
    words = shlex.split(load_words(several, TERMS))
    assert "--ort-concurrency=2" in words


@pytest.mark.parametrize(
    "other",
    [
        {"knobs": (("graph_opt", "basic"),)},
        {"dims": (("seq", 128),)},
        {"model_file": ""},
    ],
)
def test_a_case_that_options_can_not_say_is_that_of_its_run(other: dict[str, object]) -> None:
    words = load_words(offered(replace(measured(10), **other)), TERMS)
    assert "pytest" not in words
    assert "--ort-load=peak:p95:2s" in words


def test_a_file_of_somebody_else_is_one_word_and_no_option() -> None:
    fact = replace(measured(10), model_file="-p evil; rm x.onnx")
    assert shlex.split(load_words(offered(fact), TERMS))[1] == "./-p evil; rm x.onnx"


def test_what_a_search_takes_is_by_the_throughput() -> None:
    slow = {search.percent: search for search in measured(500).searches}
    # 140 queries at 0.7 of 2 a second: 100 s a test, and ten of them.
    assert slow[95].takes_s == pytest.approx(1000)
    assert slow[95].most_s >= slow[95].takes_s
    assert math.isclose(measured(1).searches[0].takes_s, 100)
