"""The timed loop against a bare loop on the same session."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import LoopTimes
from pytest_ortbench.selfcheck.questions import TimeBare
from pytest_ortbench.selfcheck.ratios import fastest, lies_within, ratio_of

#: What both may differ by: two loops in turns on a busy machine with two CPUs stay within 2 %.
MARGIN = 0.05
_ROUNDS, _SHORT_ROUNDS, _ITERATIONS = 330, 110, 2

#: Slow devices get fewer rounds.
_WITHIN_S, _LEAST_ROUNDS, _SLOW_NS = 8.0, 7, 50_000_000


def _look(bench: CheckBench) -> LoopTimes:
    rounds = _SHORT_ROUNDS if bench.short else _ROUNDS
    # A second thread would tell of the machine, not of the loops.
    with bench.opened(bench.case("builtin:canary", threads=1)) as worker:
        slow = min(worker.ask(TimeBlock(iterations=2)).durations_ns) > _SLOW_NS
        iterations = 1 if slow else _ITERATIONS
        return worker.ask(
            TimeBare(rounds=rounds, iterations=iterations, within_s=_WITHIN_S, least=_LEAST_ROUNDS)
        )


def _judge(facts: LoopTimes, provider: Provider) -> LineFinding:
    del provider
    ratio = ratio_of(facts.ours_ns, facts.bare_ns)
    if ratio is None:
        return unchecked("no times", "no inference was timed")
    amounts = (ratio, fastest(facts.ours_ns, "ours"), fastest(facts.bare_ns, "bare"))
    within = lies_within(ratio, 1 - MARGIN, 1 + MARGIN)
    if within:
        return passed("agrees", "the timed loop takes as long as a bare one", *amounts)
    if within is None:
        return unchecked("unclear", "this machine is too busy to tell both loops apart", *amounts)
    return wrong("differs", "the timed loop and a bare one take different times", *amounts)


CHECK = Check(name="loop", about="the timed loop against a bare loop", look=_look, judge=_judge)
