"""The grammar of --ort-gate."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.gate.numbers.rules import (
    DEFAULTS,
    parse_rules,
    refuse_rules_of_sides,
    rules_for,
)

CASE = "resnet50/fp16/cuda/b8"


def read(*texts: str, case: str = CASE):
    return rules_for(case, parse_rules(texts, place="--ort-gate"))


def test_without_any_the_defaults_hold():
    rules = read()
    assert rules.margin is None
    assert rules.allowances == DEFAULTS
    assert rules.allowances["peak_rss"].of(10e6) == 2**20
    assert rules.allowances["peak_rss"].of(100e6) == 2e6
    assert rules.limits == ()


def test_times_of_requests_are_gated_where_both_sides_are_measured():
    texts = ("tpot:5%", "ttft:10%+1ms", "tpot:<=20ms")
    rules = parse_rules(texts, place="--ort-gate")
    allowances = rules_for(CASE, rules).allowances
    assert (allowances["tpot"].share, allowances["tpot"].chosen) == (0.05, True)
    assert (allowances["ttft"].share, allowances["ttft"].amount) == (0.1, pytest.approx(1e-3))
    for rule in rules[:2]:
        with pytest.raises(UsageError):
            refuse_rules_of_sides([rule], place="--limits")
    refuse_rules_of_sides(rules[2:], place="--limits")
    with pytest.raises(UsageError):
        parse_rules(["decode_rate:5%"], place="--ort-gate")


def test_the_example_of_the_guide():
    texts = "latency:3%", "peak_rss:2%+1MiB", "accuracy_cosine:>=0.999", "placement:>=95%"
    rules = read(*texts)
    assert rules.margin == 0.03
    allowance = rules.allowances["peak_rss"]
    assert (allowance.share, allowance.amount) == (0.02, 2**20)
    assert [(limit.metric.name, limit.op, limit.value) for limit in rules.limits] == [
        ("accuracy_cosine", ">=", 0.999),
        ("placement", ">=", pytest.approx(0.95)),
    ]


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("latency:2.5%", 0.025),
        ("latency 4%", 0.04),
        ("latency_p50:3%", 0.03),
        ("resnet*@latency:7%", 0.07),
        ("/fp16/@latency:7%", 0.07),
        ("bert*@latency:7%", None),
        ("/int8/@latency:7%", None),
    ],
)
def test_margins_and_patterns(text: str, margin: float | None):
    assert read(text).margin == margin


def test_a_pattern_wins_and_else_the_later_one():
    assert read("resnet50*@latency:7%", "latency:3%").margin == 0.07
    assert read("latency:7%", "latency:3%").margin == 0.03
    assert read("latency_p50:<=30ms", "latency:<=20ms").limits[-1].value == 0.02


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latency", "is not a limit of a gate"),
        ("latency:", "is not a limit of a gate"),
        ("lattency:3%", "Did you mean 'latency'"),
        ("latency:3ms", "is not a percentage"),
        ("latency:0%", "the margin in 'latency:0%' is 0"),
        ("latency:-3%", "latency:3%"),
        ("latency:1000%", "latency:3%"),
        ("latency_p99:5%", "can't have a limit relative to the baseline"),
        ("throughput:5%", "can't have a limit relative to the baseline"),
        ("peak_rss:2%+1lightyear", "has the unit 'lightyear'"),
        ("placement:>=95 MB", "which placement can't have. Write 95 %"),
    ],
)
def test_wrong_ones_name_value_place_and_rule(text: str, message: str):
    with pytest.raises(UsageError) as raised:
        parse_rules([text], place="ort_gate in pytest.ini")
    assert message in str(raised.value)
    assert raised.value.place.split()[::2] == ["ort_gate", "pytest.ini"]


def test_a_margin_below_0_is_no_share_of_an_amount() -> None:
    with pytest.raises(UsageError) as raised:
        parse_rules(["peak_rss:-1MiB"], place="--limits")
    assert "%" not in str(raised.value)
    assert "--limits='peak_rss:1MiB'" in raised.value.hint


def test_a_pattern_that_is_the_id_of_a_case_means_that_case_only():
    rules = parse_rules(["net/native/cpu/b1@latency:6%"], place="--ort-gate")
    both = ["net/native/cpu/b1", "net/native/cpu/b16"]
    assert [rules_for(case, rules, both).margin for case in both] == [0.06, None]
    # One that is none of them is a part of ids.
    assert rules_for(both[1], rules, both[1:]).margin == 0.06


@pytest.mark.parametrize(
    "text", ["sides_sqnr <= 40 dB", "sides_sqnr:40 dB", "sides_sqnr:3%", "sides_agreement:1%"]
)
def test_answers_of_two_sides_have_a_floor_and_nothing_else(text: str):
    with pytest.raises(UsageError, match="minimum"):
        parse_rules([text], place="--ort-gate")


def test_rules_of_two_sides_are_refused_for_a_stored_run():
    rules = parse_rules(["latency:3%", "x@sides_sqnr >= 40 dB"], place="p")
    with pytest.raises(UsageError, match="stored run"):
        refuse_rules_of_sides(rules, place="--limits")
    refuse_rules_of_sides(rules[:1], place="--limits")


def test_a_limit_of_two_sides_is_none_of_one_case():
    with pytest.raises(UsageError, match="--ort-gate='sides_sqnr"):
        parse_limit("sides_sqnr >= 40 dB", place="--ort-limits")


def test_a_margin_of_a_metric_without_a_baseline_is_kept_for_the_latency() -> None:
    with pytest.raises(UsageError) as raised:
        parse_rules(["latency_p99:7.5 %"], place="--ort-gate")
    assert "--ort-gate='latency:7.5 %'" in raised.value.hint


def test_a_rule_of_two_sides_is_written_as_pytest_takes_it() -> None:
    rules = parse_rules(["tpot:5%"], place="--limits")
    with pytest.raises(UsageError) as raised:
        refuse_rules_of_sides(rules, place="--limits")
    assert "--ort-against=git:main --ort-gate='tpot:5%'" in raised.value.hint
