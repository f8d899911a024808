"""The timed loop against events of the device."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.selfcheck.check import (
    CantLook,
    Check,
    CheckBench,
    LineFinding,
    passed,
    unchecked,
    wrong,
)
from pytest_ortbench.selfcheck.facts import EventTimes
from pytest_ortbench.selfcheck.questions import TimeByEvents
from pytest_ortbench.selfcheck.ratios import fastest, lies_within, ratio_of

#: The loop can't be faster than the device; starting an inference and being told of its end may
#: take it some more.
LEAST, MOST = 0.97, 1.15
_ROUNDS, _ITERATIONS = 33, 10

_NONE = unchecked("no events", "nothing tells events of the device of this provider")


def _look(bench: CheckBench) -> EventTimes:
    if bench.provider.name not in NVIDIA:
        raise CantLook(_NONE)
    with bench.opened(bench.heavy("device")) as worker:
        return worker.ask(TimeByEvents(rounds=_ROUNDS, iterations=_ITERATIONS))


def _judge(facts: EventTimes, provider: Provider) -> LineFinding:
    del provider
    if facts.reason:
        return unchecked("no events", facts.reason)
    ratio = ratio_of(facts.ours_ns, facts.device_ns, "ratio to the device")
    if ratio is None:
        return unchecked("no times", "no inference was timed")
    amounts = (ratio, fastest(facts.ours_ns, "ours"), fastest(facts.device_ns, "device"))
    if ratio.high is not None and ratio.high < LEAST:
        return wrong("too fast", "the timed loop ends before the device does", *amounts)
    within = lies_within(ratio, LEAST, MOST)
    if within:
        return passed("agrees", "the timed loop takes as long as the device", *amounts)
    if within is None:
        return unchecked("unclear", "the times scatter too much to compare them", *amounts)
    return unchecked("overhead", "what starts an inference takes too long to compare", *amounts)


CHECK = Check(
    name="events", about="the timed loop against events of the device", look=_look, judge=_judge
)
