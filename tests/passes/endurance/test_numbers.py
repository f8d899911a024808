"""What was lost under a steady load, and whether the memory of the service grew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.endurance.declaration import PASS
from pytest_ortbench.passes.endurance.facts import Endurance, EnduranceFault
from pytest_ortbench.passes.endurance.report import endurance_lines
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.wire import from_plain, to_plain
from tests.results_factory import make_result, make_run

MB = 1_000_000
EXCHANGES = Exchanges(
    url="http://127.0.0.1:1/v2/models/m/infer",
    protocol="v2",
    encoding="json",
    request_bytes=1,
    answer_bytes=1,
    timeout_s=10.0,
    sent=1000,
    failed={"refused": 4, "broken": 1},
    away_s=2.5,
)
FOUND = Endurance(
    seconds=600.0,
    rate_per_s=8.0,
    capacity_per_s=10.0,
    exchanges=EXCHANGES,
    at=tuple(range(0, 1000, 5)),
    resident_bytes=(100 * MB,) * 200,
    faults=(
        EnduranceFault(kind="restart", count=1, away_s=2.25),
        EnduranceFault(kind="oversized", count=3, answers={"413": 2, "none": 1}),
        EnduranceFault(kind="kill"),
    ),
)


def of(found: Endurance | None) -> CaseResult:
    result = replace(make_result(), endurance=found)
    provider = Provider(name="endpoint", alias="endpoint", role="endpoint")
    return replace(result, case=replace(result.case, provider=provider))


def test_what_was_lost_counts_and_how_long_it_was_away() -> None:
    found = summarise(of(FOUND)).quantities
    assert found["endurance_lost"].value == pytest.approx(0.005)
    assert found["endurance_lost"].low is not None
    assert found["endurance_lost"].low > 0
    assert found["endurance_away"].value == 2.5
    assert (found["endurance_growth"].value, found["endurance_leaks"].value) == (0, 0)
    none = summarise(of(replace(FOUND, exchanges=replace(EXCHANGES, failed={}, away_s=0.0))))
    assert none.quantities["endurance_lost"].value == 0
    limit = parse_limit("endurance_lost <= 0", place="here")
    verdicts = [
        check_limits([limit], summary)[0].judgement for summary in (none, summarise(of(FOUND)))
    ]
    assert (verdicts[0].is_good, verdicts[1].is_bad) == (True, True)


def test_a_service_that_keeps_memory_leaks() -> None:
    sizes = tuple(100 * MB + 20_000 * at for at in FOUND.at)
    leaking = summarise(of(replace(FOUND, resident_bytes=sizes))).quantities
    assert leaking["endurance_leaks"].value == 1
    assert leaking["endurance_growth"].value == pytest.approx(20 * MB)


def test_what_is_not_known_is_missing() -> None:
    for found in (None, Endurance(reason="it ended"), Endurance()):
        assert {*PASS.metric_names} <= summarise(of(found)).missing.keys()
    foreign = replace(FOUND, at=(), resident_bytes=(), memory_note="of somebody else")
    summary = summarise(of(foreign))
    assert {"endurance_growth", "endurance_leaks"} <= summary.missing.keys()
    assert "endurance_lost" in summary.quantities


def test_the_report_has_a_line_for_each_thing_that_was_done() -> None:
    lines = endurance_lines(shown_run(make_run([of(FOUND), make_result()])))
    blank, lost, memory, *faults = lines
    assert (blank, len(faults)) == ("", len(FOUND.faults))
    assert "refused 4" in lost
    assert "2.5" in lost
    assert memory.startswith("  ")
    assert "2.25 s" in faults[0]
    assert "413 2" in faults[1]
    assert endurance_lines(shown_run(make_run([make_result()]))) == []
    (_, told) = endurance_lines(shown_run(make_run([of(Endurance(reason="it ended"))])))
    assert "it ended" in told


def test_the_facts_go_through_a_document() -> None:
    assert from_plain(Endurance, to_plain(FOUND)) == FOUND
