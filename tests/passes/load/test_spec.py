"""How a load is written, and what is said of one that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.passes.load.numbers.spec import fitting_loads, parse_load, why_unfit
from tests.results_factory import make_case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("single-stream", ("single-stream", 90.0, None, None)),
        ("single-stream:p99", ("single-stream", 99.0, None, None)),
        ("multi-stream", ("multi-stream", 99.0, None, None)),
        ("offline", ("offline", 90.0, None, None)),
        ("server:100:20ms", ("server", 99.0, 100.0, 0.02)),
        ("server:1.5/s:2s:p90", ("server", 90.0, 1.5, 2.0)),
        (" server : 100 : 500us ", ("server", 99.0, 100.0, 0.0005)),
        ("peak:p99:20ms", ("peak", 99.0, None, 0.02)),
        ("peak:P99.9:1min", ("peak", 99.9, None, 60.0)),
    ],
)
def test_each_form(text: str, expected: tuple[str, float, float | None, float | None]) -> None:
    spec = parse_load(text, place="--ort-load")
    found = (spec.scenario, spec.percent, spec.rate_per_s, spec.latency_s)
    assert found == pytest.approx(expected)
    assert spec.text == text.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server:2:ttft=2s:tpot=200ms", ("server", 90.0, 2.0, 2.0, 0.2)),
        ("server:2:tpot=200ms:ttft=2s", ("server", 90.0, 2.0, 2.0, 0.2)),
        ("server:ttft=2s:2:tpot=200ms:p99", ("server", 99.0, 2.0, 2.0, 0.2)),
        (" server : 0.5/s : TTFT = 500 ms ", ("server", 90.0, 0.5, 0.5, None)),
        ("server:2:tpot=50ms", ("server", 90.0, 2.0, None, 0.05)),
        ("peak:ttft=2s:tpot=200ms", ("peak", 90.0, None, 2.0, 0.2)),
        ("peak:p95:ttft=2s", ("peak", 95.0, None, 2.0, None)),
    ],
)
def test_each_form_of_limits_of_tokens(
    text: str, expected: tuple[str, float, float | None, float | None, float | None]
) -> None:
    spec = parse_load(text, place="--ort-load")
    bounds = (spec.first_token_s, spec.token_time_s)
    assert (spec.scenario, spec.percent, spec.rate_per_s, *bounds) == expected
    assert spec.is_of_tokens
    assert spec.latency_s is None


@pytest.mark.parametrize(
    "text",
    [
        "server:ttft=2s",
        "server:2:3s:ttft=2s:p90",
        "server:2:3s:ttft=2s",
        "server:2:ttft=2",
        "server:2:ttft=",
        "server:2:ttft=0s",
        "server:2:ttft=2MB",
        "server:2:first=2s",
        "server:2:ttft=2s:ttft=3s",
        "server:0:ttft=2s",
        "peak:2:ttft=2s",
        "peak:p90:p99:ttft=2s",
        "offline:ttft=2s",
        "single-stream:ttft=2s",
        "multi-stream:p99:tpot=2s",
    ],
)
def test_wrong_limits_of_tokens_are_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_load(text, place="--ort-load")
    assert error.value.hint


def test_a_load_of_tokens_fits_requests_of_one_sequence_alone() -> None:
    text = "server:2:ttft=2s:tpot=200ms"
    spec, whole = parse_load(text, place=""), parse_load("server:2:2s", place="")
    asked = Generation(engine="session", prompt_tokens=16, new_tokens=8)
    inference = make_case(sampling=Sampling(loads=(text, "server:2:2s")))
    request = replace(inference, generation=asked)
    fits = [request]
    others = [inference, replace(request, batch=2)]
    one_token = replace(request, generation=replace(asked, new_tokens=1))
    assert [bool(why_unfit(spec, case)) for case in (*fits, *others, one_token)] == [
        False,
        *[True] * 3,
    ]
    assert not any(why_unfit(whole, case) for case in (*fits, *others, one_token))
    assert fitting_loads(request) == (text, "server:2:2s")
    assert [fitting_loads(case) for case in others] == [("server:2:2s",)] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sever:1:2ms",
            "in 'sever:1:2ms' is not a load scenario. Did you mean 'server:1:2ms'?",
        ),
        ("sever:5", "Did you mean 'server'? Write e.g. server:5:20ms. For a language model,"),
        (
            "",
            "'' in '' is not a load scenario. Choose one of: multi-stream, offline",
        ),
        (
            "server:100",
            "'server:100' has no latency limit. Write e.g. server:100:20ms",
        ),
        ("server:20ms", "'server:20ms' has no rate. Write e.g. server:100:20ms"),
        ("server:2/s", "'server:2/s' has no latency limit. Write e.g. server:2/s:20ms. For a lang"),
        ("server", "'server' has no rate and no latency limit."),
        ("server:ttft=2s", "'server:ttft=2s' has no rate. Write e.g. server:2:ttft=2s"),
        ("server:1:2ms:p99:4", "has 4 values behind server (1, 2ms, p99, 4), but at most 3"),
        ("peak:p99", "'peak:p99' has no latency limit. Write e.g. peak:p99:20ms"),
        ("peak:20ms", "'peak:20ms' has no percentile. Write e.g. peak:p99:20ms"),
        ("offline:3", "'offline:3' has 1 value behind offline (3), but takes none. Write offline"),
        ("single-stream:p90:ttft=2s", "write single-stream:p90. To test this limit"),
        ("server:2:ttft=2s:ttft=3s", "Keep one of ttft=2s and ttft=3s"),
        ("server:100:20", "the latency '20' in 'server:100:20' has no unit. For seconds, write"),
        (
            "server:100:20MB",
            "the latency '20MB' in 'server:100:20MB' is not a time",
        ),
        ("server:100:0ms", "the latency '0ms' in 'server:100:0ms' is out of range. Write a time"),
        ("server:0:20ms", "the rate '0' in 'server:0:20ms' is out of range. Write a number"),
        ("server:-5:20ms", "the rate '-5' in 'server:-5:20ms' is out of range"),
        ("server:1e9:20ms", "the rate '1e9' in 'server:1e9:20ms' is out of range"),
        ("server:fast:20ms", "the rate 'fast' in 'server:fast:20ms' is not a number"),
        ("server::20ms", "the rate '' in 'server::20ms' is not a number"),
        ("peak:99:20ms", "'99' in 'peak:99:20ms' is not a percentile. Write p99"),
        (
            "peak:20ms:p99",
            "is not a percentile. Write the percentile first: peak:p99:20ms",
        ),
        ("server:2:p99:20ms", "limit, e.g. server:2:20ms:p99"),
        ("server:2:p99", "limit, e.g. server:2:20ms:p99"),
        ("server:2:ttft=p99", "'p99' in 'server:2:ttft=p99' is not a time"),
        ("server:2:3s:ttft=2s", "'3s' and ttft=2s"),
        ("server:2:ttft=2s:tpot", "'server:2:ttft=2s:tpot' has no time. Write the limit behind it"),
        ("server:2:ttft=", "'ttft=' in 'server:2:ttft=' has no time. Write the limit behind it"),
        ("server:2:ttft:3s", "has a colon between ttft and its time. Write ttft=3s"),
        ("server:2:first=3s", "Write ttft=3s for the time to the first token, or tpot=3s for"),
        ("server:2:latency=3s", "For the latency of an inference, write 3s alone"),
        ("server:20ms:100", "Write the rate before the latency limit: server:100:20ms"),
        ("server:20ms:p99", "before the latency limit, e.g. server:100:20ms:p99"),
        ("server:5:20ms:30ms", "Write server:5:20ms, or with a percentile server:5:20ms:p99"),
        ("peak:30:20ms", "Write e.g. peak:p99:20ms"),
        ("peak:2:ttft=2s", "Write peak:ttft=2s, or with a percentile peak:p90:ttft=2s"),
        ("server:2:p9:p99:ttft=2s", "besides limits on tokens (2, p9, p99), but at most 2"),
        ("100:20ms", "Did you mean 'server:100:20ms'?"),
        ("100:fast", "Choose one of: "),
        ("server:2:ttft=2s:e2e=3s", "Leave e2e=3s out, or write tpot=3s for"),
        ("server:2:ttft=2s:tpot=1s:e2e=3s", "Leave e2e=3s out"),
        ("peak:p100:20ms", "the percentile 'p100' in 'peak:p100:20ms' is out of range"),
        ("peak:p49:20ms", "the percentile 'p49' in 'peak:p49:20ms' is out of range"),
        ("single-stream:20ms", "'20ms' in 'single-stream:20ms' is not a percentile"),
    ],
)
def test_a_wrong_load_has_one_message_with_place_and_next_step(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_load(text, place="--ort-load")
    assert str(error.value).startswith("--ort-load: ")
    assert message in str(error.value)
    assert error.value.hint


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        spec = parse_load(text, place="here")
    except UsageError:
        return
    assert 50 <= spec.percent < 100
    assert parse_load(spec.text, place="here") == spec


def test_the_verdict_is_that_of_the_test_that_answers() -> None:
    spec = LoadSpec(text="peak:p99:20ms", scenario="peak", percent=99.0, latency_s=0.02)
    good, bad = LoadTest(valid=True, rate_per_s=10.0), LoadTest(valid=False, rate_per_s=20.0)
    assert Load(spec=spec, reason="not installed").valid is None
    assert Load(spec=spec, tests=(bad,)).valid is False
    found = Load(spec=spec, tests=(bad, good), answer=1)
    assert (found.valid, found.test) == (True, good)


def test_threads_in_all_count_the_callers_and_what_each_session_has_beside_them() -> None:
    spec = LoadSpec(text="offline", scenario="offline", percent=90.0)
    assert Load(spec=spec, callers=1, sessions=1, threads=2).total_threads == 2
    assert Load(spec=spec, callers=6, sessions=2, threads=4).total_threads == 12
    assert Load(spec=spec, callers=3, sessions=1, threads=1).total_threads == 3
