"""Loads on an endpoint: what counts as late, what makes a test INVALID, and whose fault it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from pytest_ortbench.core.exchange import ClientCost, Exchanges
from pytest_ortbench.engines.seam import Sender
from pytest_ortbench.passes.load.facts import LoadTest
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.worker.generator import put_under_load
from pytest_ortbench.passes.load.worker.over_network import percents_of, timeout_of, with_exchanges
from pytest_ortbench.schema.wire import from_plain, to_plain
from tests.engines.endpoint_server import Handler, Service, serving
from tests.engines.test_endpoint import X, endpoint

MS = 1_000_000
ASKED = PutUnderLoad(
    scenario="server",
    percent=90.0,
    expected_per_s=100.0,
    rate_per_s=100.0,
    latency_s=0.05,
    least_s=0.7,
    least_queries=68,
)
SEEN = Exchanges(
    url="http://127.0.0.1:1/v2/models/m/infer",
    protocol="v2",
    encoding="json",
    request_bytes=1,
    answer_bytes=1,
    timeout_s=10.0,
    sent=100,
    send_delay_ns={"50": MS, "90": 5 * MS, "99": 50 * MS},
    cost=ClientCost(p50_ns=MS, p99_ns=MS, most_per_s=100.0),
)
VALID = LoadTest(valid=True)
INVALID = LoadTest(valid=False, reasons=("Performance constraints satisfied: NO",))


@pytest.mark.parametrize(
    ("asked", "seen", "kept_rate"),
    [
        (ASKED, SEEN, True),
        # A tenth of the limit at the percentile of the limit, whatever the others are.
        (ASKED, replace(SEEN, send_delay_ns={"90": 5 * MS + 1}), False),
        (replace(ASKED, percent=99.0), SEEN, False),
        (ASKED, replace(SEEN, cost=ClientCost(most_per_s=99.0)), False),
        (ASKED, replace(SEEN, cost=ClientCost(reason="none")), True),
        # Without a limit and a rate there is nothing to keep.
        (
            replace(ASKED, scenario="offline", latency_s=None, rate_per_s=None),
            replace(SEEN, send_delay_ns={"90": 10**9}),
            True,
        ),
    ],
)
def test_a_client_that_is_behind_makes_a_test_invalid(
    asked: PutUnderLoad, seen: Exchanges, kept_rate: bool
) -> None:
    found = with_exchanges(VALID, asked, seen)
    assert (found.client_kept_rate, found.valid) == (kept_rate, kept_rate)
    assert found.exchanges == seen
    assert bool(found.reasons) != kept_rate
    # What the generator found stays, behind what explains it.
    worse = with_exchanges(INVALID, asked, seen)
    assert worse.valid is False
    assert worse.reasons[-1:] == INVALID.reasons
    assert len(worse.reasons) == (1 if kept_rate else 2)


@pytest.mark.parametrize("scenario", ["single-stream", "multi-stream", "offline"])
def test_without_a_limit_one_failure_is_enough(scenario: str) -> None:
    asked = replace(ASKED, scenario=scenario, latency_s=None, rate_per_s=None)
    assert with_exchanges(VALID, asked, replace(SEEN, failed={"broken": 1})).valid is False
    assert with_exchanges(VALID, asked, SEEN).valid is True


def test_with_one_failures_are_late_and_the_generator_judges() -> None:
    failed = replace(SEEN, failed={"timeout": 3})
    assert with_exchanges(VALID, ASKED, failed).valid is True
    found = with_exchanges(INVALID, ASKED, failed)
    assert (found.valid, len(found.reasons)) == (False, 2)


def test_failures_are_told_before_a_client_that_is_behind() -> None:
    failed = replace(SEEN, sent=193, failed={"timeout": 30, "broken": 8}, first_failure="away")
    behind = replace(failed, cost=ClientCost(most_per_s=99.0))
    [of_failures, *_] = with_exchanges(INVALID, ASKED, failed).reasons
    found = with_exchanges(INVALID, ASKED, behind)
    assert found.client_kept_rate is False
    assert found.reasons[0] == of_failures
    assert found.reasons[-1:] == INVALID.reasons
    assert len(found.reasons) == 3


def test_a_test_without_a_verdict_stays_one() -> None:
    assert with_exchanges(LoadTest(), ASKED, replace(SEEN, failed={"broken": 1})).valid is None


def test_a_request_has_four_times_its_limit_and_ten_seconds_at_least() -> None:
    assert timeout_of(ASKED) == 10.0
    assert timeout_of(replace(ASKED, latency_s=5.0)) == 20.0
    assert percents_of(replace(ASKED, percent=97.5)) == (50.0, 90.0, 97.5, 99.0)


def served(service: Service, asked: PutUnderLoad, *, timeout_s: float = 60.0) -> LoadTest:
    with closing(endpoint(service.url)) as engine:
        engine.open()
        sender = engine.sender(
            {"x": X},
            timeout_s=timeout_s,
            percents=percents_of(asked),
            holds_failures=asked.scenario == "server",
        )
        return put_under_load((), asked, sender)


@pytest.mark.live
def test_requests_go_to_the_service_as_they_arrive() -> None:
    with serving() as service:
        found = served(service, replace(ASKED, latency_s=60.0))
    exchanges = found.exchanges
    assert exchanges is not None
    assert found.queries == found.requests == exchanges.sent >= 68
    # One before the load was checked.
    assert len(service.asked) == exchanges.sent + 1
    assert exchanges.failed == {}
    assert found.late == 0
    assert found.min_ns is not None
    # From the arrival it takes longer than from the sending.
    assert found.percentiles_ns["50"] >= exchanges.round_trip_ns["50"] > 0
    assert from_plain(LoadTest, to_plain(found)) == found


class Noting(Sender):
    """A sender whose requests are answered as they are sent, and which notes what it is told."""

    def __init__(self) -> None:
        self.sent = 0
        self.told: list[Sequence[int]] = []

    def send(self, done: Callable[[int], None], at_first: Callable[[], None]) -> None:
        del at_first
        self.sent += 1
        done(0)

    def close(self, issue_delays_ns: Sequence[int] = ()) -> Exchanges:
        self.told.append(issue_delays_ns)
        return replace(SEEN, sent=self.sent)


@pytest.mark.live
@pytest.mark.parametrize("rate_per_s", [200.0, 1000.0])
def test_a_sender_is_told_how_late_each_request_was_issued(rate_per_s: float) -> None:
    sender = Noting()
    put_under_load((), replace(ASKED, rate_per_s=rate_per_s), sender)
    # At a higher rate nobody traces the requests, and their delays are not known.
    assert [len(delays) for delays in sender.told] == [sender.sent if rate_per_s < 500 else 0]
    assert all(delay >= 0 for delay in sender.told[0])


@pytest.mark.live
def test_a_request_that_failed_at_once_is_late_all_the_same() -> None:
    """Half of the requests are refused in no time; the limit is a second."""
    count = 0

    def refuse(handler: Handler) -> bool:
        nonlocal count
        count += 1
        if count % 2:
            return False
        handler.answer(b"", status=503)
        return True

    with serving(Service(fault=refuse)) as service:
        found = served(service, replace(ASKED, latency_s=1.0), timeout_s=2.0)
    exchanges = found.exchanges
    assert exchanges is not None
    assert found.valid is False
    assert exchanges.failed == {"server error": exchanges.sent // 2}
    assert found.late is not None
    assert found.late >= exchanges.failures
    assert sum(latency >= 2e9 for latency in found.latencies_ns) >= exchanges.failures
    assert np.median(found.latencies_ns) > 0


@pytest.mark.live
def test_a_service_that_dies_loses_nothing_of_the_count() -> None:
    """From the twentieth request on nobody answers: each is counted, and the test ends."""

    def die(handler: Handler) -> bool:
        if len(handler.server.service.asked) < 20:
            return False
        handler.server.socket.close()
        handler.close_connection = True
        return True

    with serving(Service(fault=die)) as service:
        found = served(service, replace(ASKED, scenario="single-stream", rate_per_s=None,
                                        latency_s=None, least_s=0.1), timeout_s=5.0)  # fmt: skip
    exchanges = found.exchanges
    assert exchanges is not None
    assert found.valid is False
    assert exchanges.sent == found.requests
    assert exchanges.failures == exchanges.sent - 18
    assert set(exchanges.failed) <= {"broken", "refused"}


#: What the service below takes for a request, one at a time.
SERVICE_S = 0.02


@pytest.mark.live
def test_half_of_what_a_service_can_do_is_valid_and_twice_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sleeps, so that it can never be faster; 75 times its time is the limit.

    At twice the rate a second of waiting is added every second, so that half of the requests come
    later than the limit in the best case.
    """
    monkeypatch.setattr("pytest_ortbench.engines.endpoint.worker.own_cost._SINGLE", 5)
    one_at_a_time = threading.Lock()

    def work(_: Handler) -> bool:
        with one_at_a_time:
            time.sleep(SERVICE_S)
        return False

    asked = replace(ASKED, latency_s=75 * SERVICE_S, least_s=3.0, expected_per_s=1 / SERVICE_S)
    with serving(Service(fault=work)) as service:
        half = served(service, replace(asked, rate_per_s=0.5 / SERVICE_S))
        twice = served(service, replace(asked, rate_per_s=2.0 / SERVICE_S))
    assert half.valid is True
    assert twice.valid is False
    for found in (half, twice):
        assert found.exchanges is not None
        assert found.exchanges.failed == {}
    assert twice.late is not None
    assert twice.late > 0.3 * twice.queries
