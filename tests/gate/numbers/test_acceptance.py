"""What of a gate's findings is covered, and what is not any more."""

from __future__ import annotations

from datetime import date

import pytest

from pytest_ortbench.core.acceptance import AcceptedEntry
from pytest_ortbench.core.gate import GateFinding, GateResult
from pytest_ortbench.gate.numbers.acceptance import Acceptances, acceptance_text
from pytest_ortbench.gate.numbers.rules import parse_rules
from pytest_ortbench.gate.numbers.stored import gate_runs
from tests.results_factory import make_case, make_result, make_run

TODAY = date(2026, 11, 28)
CASE = "net/native/cpu/b1"
DIGEST = "0123456789abcdef" * 4


def result(*findings: GateFinding, case_id: str = CASE) -> GateResult:
    judged = GateResult(
        case_id=case_id,
        runtime="current",
        baseline="git:main",
        verdict="same",
        model_digest=DIGEST,
    )
    return judged.with_findings(findings)


def accepted(judged: GateResult, *entries: AcceptedEntry, strict: bool = False) -> GateResult:
    acceptances = Acceptances(entries=entries, today=TODAY)
    return acceptances.applied(judged, strict=strict, case_ids=(CASE,))


def entry(metric: str = "model_size", **options) -> AcceptedEntry:
    return AcceptedEntry(**{"case": CASE, "metric": metric, "reason": "more classes", **options})


SIZE = GateFinding(about="model_size", text="model_size went up", worse_by=0.2)


def test_an_accepted_finding_fails_nothing_and_the_verdict_stays_as_it_was_judged():
    judged = result(SIZE)
    assert [finding.about for finding in judged.findings if finding.fails] == ["model_size"]
    covered = accepted(judged, entry(worse_by=0.22, until=date(2027, 1, 31)))
    assert covered.failures == ()
    assert covered.verdict == judged.verdict
    (finding,) = covered.accepted
    assert finding.text == SIZE.text
    assert finding.acceptance is not None
    assert finding.acceptance.state == "accepted"
    assert finding.acceptance.reason == "more classes"
    assert finding.acceptance.until == "2027-01-31"


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"worse_by": 0.22}, "accepted"),
        ({"worse_by": 0.2}, "accepted"),
        ({"worse_by": 0.19}, "exceeded"),
        ({}, "accepted"),
        ({"until": TODAY}, "accepted"),
        ({"until": date(2026, 11, 27)}, "expired"),
        ({"until": date(2026, 11, 27), "worse_by": 0.1}, "expired"),
        ({"model": DIGEST[:16]}, "accepted"),
        ({"model": "ffff0000ffff0000"}, "other file"),
    ],
)
def test_so_much_and_so_long_and_for_this_file(options: dict, state: str):
    covered = accepted(result(SIZE), entry(**options))
    (finding,) = covered.findings
    assert finding.acceptance is not None
    assert finding.acceptance.state == state
    assert bool(covered.failures) is (state != "accepted")
    assert all("more classes" in text for text in covered.failures)


def test_what_is_no_number_is_not_covered_by_an_amount():
    answers = GateFinding(about="answers", text="other answers")
    assert accepted(result(answers), entry("answers", worse_by=9.0)).failures
    assert not accepted(result(answers), entry("answers", model=DIGEST[:8])).failures


def test_an_entry_is_about_its_metric_and_its_case_alone():
    latency = GateFinding(about="latency", text="slower", worse_by=0.1)
    judged = accepted(result(SIZE, latency), entry(worse_by=0.5))
    assert judged.failures == ("slower",)
    assert accepted(result(SIZE, latency), entry("")).failures == ()
    assert accepted(result(SIZE, case_id="other/native/cpu/b1"), entry()).failures


def test_of_two_entries_the_one_that_covers_counts():
    entries = (
        entry(until=date(2026, 1, 1)),
        entry(case="net", worse_by=0.1),
        entry(case="net*", worse_by=0.3),
    )
    assert accepted(result(SIZE), *entries).failures == ()
    (finding,) = accepted(result(SIZE), *entries[:2]).findings
    assert finding.acceptance is not None
    assert finding.acceptance.state == "exceeded"


def test_a_sentence_without_a_finding_fails_whatever_was_accepted():
    judged = GateResult(
        case_id=CASE, runtime="current", baseline="b", verdict="same", failures=("something",)
    )
    assert accepted(judged, entry("")).failures == ("something",)


def test_warnings_need_an_acceptance_only_where_they_fail():
    noise = GateFinding(about="latency", text="inconclusive", fails=False, worse_by=0.02)
    assert accepted(result(noise), entry("latency")).warnings == ("inconclusive",)
    assert accepted(result(noise), entry("latency"), strict=True).warnings == ()
    exceeded = accepted(result(noise), entry("latency", worse_by=0.01), strict=True)
    assert len(exceeded.warnings) == 1


def test_entries_that_are_about_nothing_that_was_found():
    used, idle, elsewhere = entry(), entry("latency"), entry(case="gone")
    acceptances = Acceptances(entries=(used, idle, elsewhere), today=TODAY)
    assert acceptances.unused([result(SIZE)], (CASE,)) == [idle, elsewhere]


def test_every_metric_that_a_gate_judges_can_be_accepted():
    small = make_result(case=make_case(model="net"))
    large = make_result(case=make_case(model="net", variant_bytes=28_000_000))
    runs = (make_run([small]), make_run([large]))
    limits = parse_rules(["latency_p99:<=1us", "session_create:<=1us"], place="--ort-gate")
    (judged,) = gate_runs(*runs, limits)
    about = {finding.about: finding.worse_by for finding in judged.findings}
    assert set(about) == {"model_size", "latency_p99", "session_create"}
    assert about["model_size"] == pytest.approx(1.0)
    # Of a limit the share is that by which it is exceeded.
    assert about["latency_p99"] is not None
    assert about["latency_p99"] > 1000
    entries = [entry(metric) for metric in about]
    assert len(accepted(judged, *entries[:2]).failures) == 1
    assert accepted(judged, *entries).failures == ()


def test_a_large_share_is_written_out() -> None:
    (finding,) = accepted(result(SIZE), entry(worse_by=13.69)).findings
    assert " 1369 % " in acceptance_text(finding)
