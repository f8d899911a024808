"""A service under a steady load: ended and started again, fed what is no request, and leaking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.launch.service_process import ServiceProcess
from pytest_ortbench.passes.endurance.facts import FAULTS, Endurance
from pytest_ortbench.passes.endurance.numbers import memory_growth
from pytest_ortbench.passes.endurance.run import faults as faults_module
from pytest_ortbench.passes.endurance.run.enduring import ServiceMemory, endurance_of
from pytest_ortbench.passes.endurance.run.faults import Faults
from pytest_ortbench.passes.endurance.worker import steady_load
from tests.engines.test_endpoint import X, endpoint
from tests.results_factory import make_case
from tests.serving.started import free_port

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def few_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client find out in a moment what it takes by itself."""
    monkeypatch.setattr("pytest_ortbench.engines.endpoint.worker.own_cost._SINGLE", 5)
    monkeypatch.setattr("pytest_ortbench.engines.endpoint.worker.own_cost._MANY_S", 0.02)


@contextmanager
def started(leak_bytes: int = 0) -> Iterator[ServiceProcess]:
    """Run the service that is written by hand as a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "tests.engines.endpoint_server", str(port), str(leak_bytes)]
    with closing(ServiceProcess(command, port, folder=ROOT)) as process:
        yield process


def endured(
    process: ServiceProcess, kinds: tuple[str, ...], *, seconds: float, rate_per_s: float
) -> Endurance:
    """Keep it under load as the pass does, with the client in this process."""
    url = f"http://127.0.0.1:{process.port}/v2/models/relu/infer"
    with closing(endpoint(url)) as engine:
        engine.open()
        sender = engine.sender(
            {"x": X}, timeout_s=10.0, percents=(50.0, 99.0), holds_failures=False
        )
        memory = ServiceMemory(process, seconds)
        faults = Faults(kinds, url, process, seconds, memory.begin_anew)
        with memory, faults:
            load = steady_load(sender, rate_per_s=rate_per_s, seconds=seconds, seed=0)
    return endurance_of(case_of(rate_per_s), load, memory, faults, None)


def case_of(rate_per_s: float) -> Case:
    case = make_case()
    provider = Provider(name="endpoint", alias="endpoint", role="endpoint")
    sampling = replace(case.sampling, endurance_per_s=rate_per_s)
    return replace(case, provider=provider, sampling=sampling)


def test_a_service_that_is_ended_under_load_comes_back_and_what_it_lost_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults_module, "_LEAST_S", 0.5)
    with started() as process:
        before = process.pid
        found = endured(process, tuple(FAULTS), seconds=7.0, rate_per_s=40.0)
        assert process.pid != before
    exchanges = found.exchanges
    assert exchanges is not None
    assert 0 < exchanges.failures < exchanges.sent
    assert {*exchanges.failed} <= {"refused", "broken", "timeout"}
    assert exchanges.away_s > 0
    assert exchanges.came_back
    done = {fault.kind: fault for fault in found.faults}
    assert {*done} == {*FAULTS}
    for kind in ("restart", "kill"):
        assert (done[kind].count, done[kind].reason) == (1, "")
        assert done[kind].away_s > 0
    assert "400" in done["malformed"].answers
    assert "413" in done["oversized"].answers
    for kind in ("malformed", "oversized", "slow"):
        assert done[kind].count == sum(done[kind].answers.values()) > 0
    # Memory is that of the last process alone.
    assert found.at
    assert len(found.at) == len(found.resident_bytes)
    assert min(found.resident_bytes) > 0


def test_a_service_that_keeps_what_it_is_sent_leaks() -> None:
    with started(leak_bytes=200_000) as process:
        found = endured(process, (), seconds=5.0, rate_per_s=80.0)
    assert found.exchanges is not None
    assert found.exchanges.failed == {}
    grown = memory_growth(found)
    assert not isinstance(grown, str), grown
    assert grown.leaks
    assert grown.per_thousand == pytest.approx(200e6, rel=0.5)


def test_the_memory_of_a_service_of_others_is_not_known() -> None:
    memory = ServiceMemory(None, 1.0)
    with memory:
        pass
    assert memory.readings == []
    assert memory.note


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1/v2/models/relu/infer", "grpc://127.0.0.1:1/relu", ""]
)
def test_faults_that_are_not_sent_say_why(url: str) -> None:
    with Faults(("malformed", "oversized", "slow"), url, None, 1.0, lambda: None) as faults:
        pass
    assert {fault.kind for fault in faults.found if fault.reason} == {
        "malformed", "oversized", "slow",
    }  # fmt: skip
    assert all(fault.count == 0 for fault in faults.found)
