"""Whether the timed region ends when the device is done; a loop that does not wait is noticed."""

from __future__ import annotations

from statistics import median

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import WaitTimes
from pytest_ortbench.selfcheck.questions import LeaveOutWaiting
from pytest_ortbench.worker.binding import may_keep_outputs

#: Of the time of all work, what may be left behind the timed loop, and what must be left behind one
#: that does not wait, so that it is noticed.
MOST_LEFT, NOTICED = 0.05, 0.20
_ROUNDS = 5
#: Inferences of a loop, about as many as fit into so much time.
_FEWEST, _MOST, _LOOP_NS = 3, 20, 300_000_000


def _look(bench: CheckBench) -> WaitTimes:
    if not may_keep_outputs(bench.provider):
        return WaitTimes(on_host=True)
    case = bench.heavy("device")
    with bench.opened(case) as worker:
        typical_ns = min(worker.ask(TimeBlock(iterations=_FEWEST)).durations_ns)
        iterations = max(_FEWEST, min(_MOST, _LOOP_NS // typical_ns))
        return worker.ask(LeaveOutWaiting(rounds=_ROUNDS, iterations=iterations))


def left_share(
    loops_ns: tuple[int, ...], left_ns: tuple[int, ...], idle_ns: tuple[int, ...]
) -> float:
    """Return what of the work was left when a loop returned, as a share of all of it."""
    idle = median(idle_ns)
    return median(
        max(0.0, left - idle) / (loop + max(0.0, left - idle))
        for loop, left in zip(loops_ns, left_ns, strict=True)
    )


def _judge(facts: WaitTimes, provider: Provider) -> LineFinding:
    del provider
    if facts.on_host:
        return unchecked(
            "host memory", "outputs lie in memory of the host: there is nothing to synchronise"
        )
    if not (facts.ours_ns and facts.launched_ns and facts.idle_ns) or min(facts.ours_ns) <= 0:
        return unchecked("no times", "no inference was timed")
    ours = left_share(facts.ours_ns, facts.ours_left_ns, facts.idle_ns)
    without = left_share(facts.launched_ns, facts.launched_left_ns, facts.idle_ns)
    amounts = (
        Amount(name="left behind the timed loop", value=ours, unit="ratio"),
        Amount(name="left without waiting", value=without, unit="ratio"),
    )
    words = {"device": facts.device, "by": facts.arbiter}
    if ours >= NOTICED:
        return wrong(
            "not synchronised", "the timed loop ends before the device does", *amounts, **words
        )
    if without < NOTICED:
        return unchecked(
            "never asynchronous",
            "a loop that does not wait leaves nothing behind either: runs return when the work is "
            "done",
            *amounts,
            **words,
        )
    if ours > MOST_LEFT:
        return unchecked("unclear", "the times scatter too much to tell", *amounts, **words)
    return passed(
        "synchronised",
        "the timed loop waits for the device, and a loop that does not is noticed",
        *amounts,
        **words,
    )


CHECK = Check(
    name="synchronisation",
    about="the timed loop, and one that leaves out the waiting",
    look=_look,
    judge=_judge,
)
