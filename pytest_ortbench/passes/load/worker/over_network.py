"""Loads on an endpoint: what its client saw, and what of that makes a test INVALID.

The generator knows nothing of failures. Where a latency is limited, a request that failed is
completed when the timeout is over: it counts as over the limit, like one whose answer never came.
Where none is limited, one failure makes the test INVALID.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.load.facts import LoadTest
from pytest_ortbench.passes.load.questions import PutUnderLoad

#: Seconds that a request may take at least, and how many times its limit.
_TIMEOUT_S, _TIMEOUT_LIMITS = 10.0, 4.0
#: Share of the limit by which requests may be sent late, at the percentile of the limit. Latency
#: counts from the arrival, so that what is sent late is measured late; but it comes in bunches that
#: no user sent.
LATE_SHARE = 0.1
_SHOWN = (50.0, 90.0, 99.0)


def timeout_of(asked: PutUnderLoad) -> float:
    """Return after which time a request has failed."""
    return max(_TIMEOUT_S, _TIMEOUT_LIMITS * _limit_s(asked))


def percents_of(asked: PutUnderLoad) -> tuple[float, ...]:
    """Return the percentiles that the client's times are told at."""
    return tuple(sorted({*_SHOWN, asked.percent}))


def with_exchanges(test: LoadTest, asked: PutUnderLoad, exchanges: Exchanges) -> LoadTest:
    """Return a test with what its client saw, INVALID where that does not let it stand.

    Args:
        test: As the generator judges it.
        asked: What was asked for.
        exchanges: What the client saw.
    """
    behind = _behind(asked, exchanges)
    test = replace(test, exchanges=exchanges, client_kept_rate=not behind)
    if test.valid is None:
        return test
    unlimited = exchanges.failures > 0 and not _limit_s(asked)
    valid = test.valid and not behind and not unlimited
    # Answers that fail may be what holds the client up.
    told = [_failed(exchanges), behind]
    reasons = () if valid else (*(text for text in told if text), *test.reasons)
    return replace(test, valid=valid, reasons=reasons)


def _limit_s(asked: PutUnderLoad) -> float:
    return asked.latency_s or asked.first_token_s or 0.0


def _behind(asked: PutUnderLoad, exchanges: Exchanges) -> str:
    """Say how the client did not keep the rate; empty if it did."""
    most, rate = exchanges.cost.most_per_s, asked.rate_per_s
    if most is not None and rate is not None and rate > most:
        return (
            f"the client can't keep the rate: of {significant(rate)}/s it sends "
            f"{significant(most)}/s to a responder that computes nothing"
        )
    limit_s = _limit_s(asked)
    delay_s = exchanges.send_delay_ns.get(f"{asked.percent:g}", 0) * 1e-9
    if limit_s and delay_s > LATE_SHARE * limit_s:
        return (
            f"the client can't keep the rate: p{asked.percent:g} of the time from arrival to "
            f"sending is {format_amount(delay_s, 's')}, more than {100 * LATE_SHARE:g} % of the "
            "limit"
        )
    return ""


def _failed(exchanges: Exchanges) -> str:
    """Say how many requests failed, and how the first one did; empty for none."""
    if not exchanges.failures:
        return ""
    return (
        f"{exchanges.failures} of {exchanges.sent} requests failed; the first: "
        f"{exchanges.first_failure}"
    )
