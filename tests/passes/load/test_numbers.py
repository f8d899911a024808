"""Metrics of a case under load: the first load's numbers, everybody's verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.rows import COLUMNS
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.judgement import Outcome
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import OutputCheck
from pytest_ortbench.passes.load.declaration import PASS
from pytest_ortbench.passes.load.facts import Load, LoadTest
from pytest_ortbench.passes.load.numbers.loads import broken_bounds, main_reason
from pytest_ortbench.passes.load.numbers.spec import parse_load, why_unfit
from tests.results_factory import make_case, make_result, make_run
from tests.summarised import row_of

GOOD = LoadTest(
    rate_per_s=50.0,
    valid=True,
    queries=700,
    requests=700,
    late=2,
    completed_per_s=49.5,
    percentiles_ns={"50": 3_000_000, "90": 5_000_000, "99": 12_000_000},
)
BAD = replace(
    GOOD,
    valid=False,
    rate_per_s=200.0,
    reasons=("Performance constraints satisfied: NO", "Reduce target QPS to improve latency."),
)


def load(text: str, *tests: LoadTest, answer: int | None = 0, **others: object) -> Load:
    spec = parse_load(text, place="")
    return Load(spec=spec, tests=tests, answer=answer if tests else None, **others)  # type: ignore[arg-type]  # fields by name


def summary(*loads: Load) -> Summary:
    return summarise(replace(make_result(), loads=loads))


def values(found: Summary) -> dict[str, float]:
    return {
        name: found.quantities[name].value for name in PASS.metric_names if name in found.quantities
    }


def test_numbers_of_a_valid_load() -> None:
    found = summary(load("server:50:20ms", GOOD))
    assert values(found) == {
        "load_valid": 1.0,
        "load_rate": 49.5,
        "load_p50": pytest.approx(0.003),
        "load_p90": pytest.approx(0.005),
        "load_p99": pytest.approx(0.012),
    }
    assert found.quantities["load_p99"].samples == 700
    assert "no search for the peak" in found.missing["load_peak"]
    assert {METRICS[name].unit for name in PASS.metric_names} == {"1", "1/s", "s"}


TOKENS = replace(
    GOOD,
    first_token_percentiles_ns={"50": 100_000_000, "90": 400_000_000, "99": 900_000_000},
    token_time_percentiles_ns={"50": 20_000_000, "90": 30_000_000, "99": 40_000_000},
    tokens_per_s=396.0,
)


def test_numbers_of_a_load_that_bounds_tokens() -> None:
    found = summary(load("server:50:ttft=1s:tpot=50ms", TOKENS))
    assert values(found) == pytest.approx(
        {
            "load_valid": 1.0,
            "load_rate": 49.5,
            "load_p50": 0.003,
            "load_p90": 0.005,
            "load_p99": 0.012,
            "load_ttft_p50": 0.1,
            "load_ttft_p90": 0.4,
            "load_ttft_p99": 0.9,
            "load_tpot_p50": 0.02,
            "load_tpot_p90": 0.03,
            "load_tpot_p99": 0.04,
            "load_token_rate": 396.0,
        }
    )
    assert set(values(summary(load("server:50:20ms", GOOD)))) == {
        "load_valid", "load_rate", "load_p50", "load_p90", "load_p99",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("server:50:ttft=1s:tpot=50ms", []),
        ("server:50:ttft=250ms:tpot=50ms", ["first"]),
        ("server:50:ttft=1s:tpot=20ms", ["later"]),
        ("server:50:ttft=250ms:tpot=20ms", ["first", "later"]),
        # The bound is that of p90 where nothing else is asked for.
        ("server:50:ttft=500ms:tpot=35ms", []),
        ("server:50:ttft=500ms:tpot=35ms:p99", ["first", "later"]),
        ("server:50:tpot=35ms:p99", ["later"]),
    ],
)
def test_which_bound_of_tokens_was_broken(text: str, broken: list[str]) -> None:
    names = {"first": "time to first token", "later": "time per output token"}
    sentences = broken_bounds(parse_load(text, place=""), TOKENS)
    assert len(sentences) == len(broken)
    assert all(names[name] in text for name, text in zip(broken, sentences, strict=True))


def test_a_broken_bound_says_by_how_much() -> None:
    spec = parse_load("server:50:ttft=250ms:tpot=25ms", place="")
    shares = [sentence.rpartition(": ")[2] for sentence in broken_bounds(spec, TOKENS)]
    assert shares == ["60.0 % over", "20.0 % over"]


def test_a_row_without_tokens_says_why_it_has_no_load_of_them() -> None:
    text = "server:2:ttft=2s:tpot=200ms"
    case = make_case(sampling=Sampling(loads=(text,)))
    found = summarise(make_result(case=case))
    assert found.missing["load_valid"] == why_unfit(parse_load(text, place=""), case)


def test_an_invalid_load_has_its_verdict_and_no_number() -> None:
    found = summary(load("server:200:20ms", BAD))
    assert values(found) == {"load_valid": 0.0}
    assert found.missing["load_p99"] == (
        "server:200:20ms: INVALID: Performance constraints satisfied: NO; "
        "Reduce target QPS to improve latency."
    )


def test_numbers_are_the_first_loads_and_the_verdict_is_everybodys() -> None:
    both = summary(load("server:50:20ms", GOOD), load("server:200:20ms", BAD))
    assert values(both)["load_valid"] == 0.0
    assert values(both)["load_rate"] == 49.5
    untested = load("offline", reason="absent")
    unknown = summary(load("server:50:20ms", GOOD), untested)
    assert unknown.missing["load_valid"] == "offline: absent"
    assert values(unknown)["load_rate"] == 49.5


def test_the_peak_lies_between_the_highest_valid_and_the_lowest_invalid_rate() -> None:
    peak = load("peak:p99:20ms", BAD, GOOD, answer=1, beyond_per_s=52.0)
    for loads in ((peak,), (load("offline", GOOD), peak)):
        found = summary(*loads).quantities["load_peak"]
        assert (found.value, found.low, found.high) == (50.0, 50.0, 52.0)
        assert found.samples == 2
    none = load("peak:p99:1ms", BAD, answer=None, reason="no rate was VALID down to 3.00/s")
    assert values(summary(none)) == {"load_valid": 0.0}
    assert summary(none).missing["load_peak"] == "no rate was VALID down to 3.00/s"
    assert "no rate was VALID" in summary(none).missing["load_rate"]


def test_offline_has_a_rate_and_no_latency() -> None:
    found = summary(load("offline", replace(GOOD, rate_per_s=None, late=None)))
    assert values(found) == {"load_valid": 1.0, "load_rate": 49.5}
    assert "show only the waiting" in found.missing["load_p99"]


def test_without_a_load_every_metric_says_so() -> None:
    found = summary()
    assert values(found) == {}
    assert {found.missing[name] for name in PASS.metric_names} == {"no load was requested"}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("load_p99 <= 20 ms", Outcome.GOOD),
        ("load_p99 <= 11 ms", Outcome.BAD),
        ("load_rate >= 49 /s", Outcome.GOOD),
        ("load_rate >= 50 /s", Outcome.BAD),
        ("load_valid >= 1", Outcome.GOOD),
        ("load_peak >= 10 /s", Outcome.UNJUDGED),
    ],
)
def test_limits_work_on_them(text: str, outcome: Outcome) -> None:
    limit = parse_limit(text, place="")
    (found,) = check_limits([limit], summary(load("server:50:20ms", GOOD)))
    assert found.judgement.outcome is outcome


def test_a_row_has_the_numbers_of_an_only_load() -> None:
    result = replace(make_result(), loads=(load("server:50:20ms", GOOD),))
    cells = row_of(result, make_run([result]))
    assert cells["load"] == "server:50:20ms"
    assert cells["load_valid"] == 1
    assert isinstance(cells["load_valid"], int)
    assert cells["load_rate_per_s"] == 49.5
    assert cells["load_p99_s"] == pytest.approx(0.012)
    assert {METRICS[name].column for name in PASS.metric_names} <= set(COLUMNS)


def test_numbers_of_several_loads_are_not_mixed_in_a_row() -> None:
    """Which load a number is of must be plain: the columns are empty, the list tells each."""
    peak = load("peak:p99:20ms", GOOD, BAD, beyond_per_s=200.0)
    result = replace(
        make_result(), loads=(load("server:50:20ms", GOOD), load("offline", BAD), peak)
    )
    cells = row_of(result, make_run([result]))
    assert cells["load"] == "server:50:20ms offline peak:p99:20ms"
    assert cells["load_valid"] == 0
    columns = {METRICS[name].column for name in PASS.metric_names} - {"load_valid"}
    assert {cells[column] for column in columns} == {None}
    first, second, third = json.loads(str(cells["loads"]))
    assert first == {
        "load": "server:50:20ms",
        "valid": True,
        "rate_per_s": 49.5,
        "p50_s": pytest.approx(0.003),
        "p90_s": pytest.approx(0.005),
        "p99_s": pytest.approx(0.012),
        **{f"{name}_p{n}_s": None for name in ("ttft", "tpot") for n in (50, 90, 99)},
        "tokens_per_s": None,
        "peak_per_s": None,
        "reason": None,
    }
    assert (second["load"], second["valid"], second["rate_per_s"]) == ("offline", False, None)
    assert second["reason"] == "Performance constraints satisfied: NO"
    assert third["peak_per_s"] == 50.0
    assert row_of(make_result(), make_run())["loads"] is None


def test_a_broken_limit_on_the_verdict_names_the_loads_and_their_main_reasons() -> None:
    late = replace(BAD, percentiles_ns={"99": 180_000_000})
    loads = (load("server:50:20ms", GOOD), load("server:200:20ms", late), load("offline", BAD))
    [outcome] = check_limits([parse_limit("load_valid >= 1", place="")], summary(*loads))
    assert outcome.judgement.is_bad
    assert outcome.judgement.reason == (
        "load_valid is 0, the limit is >= 1.00: server:200:20ms is INVALID: Performance "
        "constraints satisfied: NO (p99 is 180 ms, the limit is 20.0 ms: 9.0 times as long); "
        "offline is INVALID: Performance constraints satisfied: NO"
    )
    assert main_reason(loads[0]) == ""
    assert summary(load("server:50:20ms", GOOD)).notes == {}


@pytest.mark.parametrize("tests", [[GOOD], [GOOD, BAD]])
def test_no_load_of_a_case_that_gives_nan_is_valid(tests: list[LoadTest]) -> None:
    loads = tuple(load("server:50:20ms", test) for test in tests)
    nan = OutputCheck(run="first", nonfinite=3, constant=False, digest="d")
    measured = replace(make_result().measurements[0], output_checks=(nan,))
    result = replace(make_result(), loads=loads, measurements=(measured,))
    found = summarise(result)
    assert found.quantities["load_valid"].value == 0.0
    assert found.quantities["load_rate"].value == 49.5
    cells = row_of(result, make_run())
    assert [one["valid"] for one in json.loads(str(cells["loads"]))] == [False] * len(tests)
    (outcome,) = check_limits([parse_limit("load_valid >= 1", place="")], found)
    assert outcome.judgement.is_bad
