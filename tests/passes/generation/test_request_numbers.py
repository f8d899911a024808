"""Numbers of requests: what is divided by what, and which token counts where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.generation.declaration import PASS
from tests.passes.generation.generated import make_generated, make_generating_case, make_request
from tests.results_factory import make_result


def value(summary: Summary, metric: str) -> float:
    return summary.quantities[metric].value


def test_first_token_and_later_ones_are_kept_apart() -> None:
    """A slow prompt and slow choosing do not slow the tokens, and the batch divides no time."""
    requests = [make_request((80, 2, 4, 6), chosen_ms=1)] * 3
    summary = summarise(
        make_generated([requests, requests, requests], case=make_generating_case(batch=4))
    )
    assert value(summary, "ttft") == pytest.approx(0.081)
    assert value(summary, "tpot") == pytest.approx(0.004)
    assert value(summary, "decode_rate") == pytest.approx(250)
    assert value(summary, "decode_rate_batch") == pytest.approx(1000)
    assert value(summary, "prefill_rate") == pytest.approx(4 * 16 / 0.080)
    # Of a request: its steps, and four times the choice of a token.
    assert value(summary, "latency_p50") == pytest.approx(0.096)
    assert "request_ttft" not in summary.quantities


def test_what_is_prepared_counts_for_the_request_alone() -> None:
    requests = [make_request((80, 2, 2), chosen_ms=1, prepared_ms=9)] * 3
    summary = summarise(make_generated([requests]))
    assert value(summary, "ttft") == pytest.approx(0.081)
    assert value(summary, "request_ttft") == pytest.approx(0.090)


def test_an_encoder_counts_for_the_first_token_and_a_request_for_the_sound() -> None:
    bare = make_request((80, 2, 2))
    request = replace(bare, encoder_ns=16_000_000, wall_ns=100_000_000)
    case = make_generating_case()
    assert case.generation is not None
    heard = replace(case, generation=replace(case.generation, sound_s=2.0))
    summary = summarise(make_generated([[request] * 3], case=heard))
    assert value(summary, "encoder_time") == pytest.approx(0.016)
    assert value(summary, "ttft") == pytest.approx(0.096)
    assert value(summary, "tpot") == pytest.approx(0.002)
    factor = summary.quantities["real_time_factor"]
    assert factor.value == pytest.approx(0.05)
    assert format_amount(factor.value, factor.unit) == "0.0500"
    # A text is no sound, and a decoder alone has no encoder.
    read = summarise(make_generated([[request] * 3], case=case)).quantities
    assert "encoder_time" in read
    assert "real_time_factor" not in read
    assert "encoder_time" not in summarise(make_generated([[bare] * 3], case=heard)).quantities


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("real_time_factor<=1", False),
        ("real_time_factor<=2.5", True),
        ("real_time_factor<0.5", False),
    ],
)
def test_what_is_slower_than_its_sound_breaks_a_limit_of_one(text: str, is_kept: bool) -> None:
    case = make_generating_case()
    assert case.generation is not None
    heard = replace(case, generation=replace(case.generation, sound_s=0.05))
    request = replace(make_request((80, 2, 2)), encoder_ns=16_000_000)
    summary = summarise(make_generated([[request] * 3], case=heard))
    (outcome,) = check_limits([parse_limit(text, place="test")], summary)
    assert outcome.judgement.is_good is is_kept


def test_percentiles_are_over_tokens_and_intervals_over_requests() -> None:
    """Fifty requests of ten tokens: the interval is as wide as requests differ, not as tokens."""
    slow, fast = make_request((50, *[3] * 10)), make_request((50, *[2] * 10))
    summary = summarise(make_generated([[slow] * 10 + [fast] * 40]))
    quantity = summary.quantities["itl_p50"]
    assert quantity.value == pytest.approx(0.002)
    assert quantity.samples == 50
    assert value(summary, "itl_p90") == pytest.approx(0.003)


def test_too_few_tokens_give_no_percentile() -> None:
    summary = summarise(make_generated([[make_request((50, 2, 2))] * 3]))
    assert "itl_p99" not in summary.quantities
    assert summary.needed["itl_p99"] == 368


def test_a_case_of_inferences_has_none_of_them() -> None:
    assert not set(PASS.metric_names) & set(summarise(make_result()).quantities)
