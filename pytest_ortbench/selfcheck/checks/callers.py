"""Whether the times of several callers fill the time that passed."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import Block
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong

CALLERS = 2
#: In a closed loop the times of all callers add up to the time that passed, times callers. What
#: Python does between two inferences belongs to none of them.
LEAST, CLEAR, MOST = 0.70, 0.85, 1.02
_BLOCKS = 5
#: Inferences of a block, about as many as fit into so much time.
_FEWEST, _MOST, _BLOCK_NS = 4, 60, 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Busy:
    """Blocks of several callers."""

    blocks: tuple[Block, ...]


def _look(bench: CheckBench) -> _Busy:
    with bench.opened(bench.case("builtin:canary", callers=CALLERS)) as worker:
        first = worker.ask(TimeBlock(iterations=_FEWEST))
        fitting = _BLOCK_NS * _FEWEST // max(first.wall_ns, 1)
        iterations = max(_FEWEST, min(_MOST, fitting))
        blocks = [worker.ask(TimeBlock(iterations=iterations)) for _ in range(_BLOCKS)]
    return _Busy(blocks=tuple(blocks))


def _judge(facts: _Busy, provider: Provider) -> LineFinding:
    del provider
    wall_ns = sum(block.wall_ns for block in facts.blocks)
    spent_ns = sum(sum(block.durations_ns) for block in facts.blocks)
    count = sum(len(block.durations_ns) for block in facts.blocks)
    if not wall_ns or not count:
        return unchecked("no times", "no inference was timed")
    share = spent_ns / (wall_ns * CALLERS)
    amounts = (
        Amount(name="callers", value=float(CALLERS)),
        Amount(name="time in inferences", value=share, unit="ratio"),
        Amount(name="rate", value=count / wall_ns * 1e9, unit="1/s"),
    )
    if share > MOST:
        return wrong("too much", "inferences took more time than there was", *amounts)
    if share < LEAST:
        return wrong("too little", "callers waited outside of what is timed", *amounts)
    if share < CLEAR:
        return unchecked("unclear", "this machine is too busy to tell", *amounts)
    return passed("closed", "the times of all callers fill the time that passed", *amounts)


CHECK = Check(
    name="callers", about="times of several callers against the clock", look=_look, judge=_judge
)
