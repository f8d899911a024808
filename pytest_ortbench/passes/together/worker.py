"""Other models in the process of a case: they run in threads while its block is timed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.passes.together.questions import BesideBlock, OpenBeside, TimeBeside
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.calling import require_safe_callers, until_of
from pytest_ortbench.worker.standard import opened_as, time_block
from pytest_ortbench.worker.warm_up import least_seconds, warm_up

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: What the case keeps its neighbours under.
_KEPT = "together"


def open_beside(question: OpenBeside, measured: MeasuredCase) -> None:
    """Open another case in this process.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    measured.enter("together")
    # Two sessions of a process, as those of one case would be.
    require_safe_callers(replace(measured.case, sessions=2))
    other = opened_as(question.case)(question.case, measured.enter)
    other.open()
    warm_up(
        other.run_timed,
        least_s=least_seconds(question.case.provider),
        budget_s=question.budget_s,
        callers=question.case.callers,
    )
    neighbours = measured.kept.setdefault(_KEPT, [])
    assert isinstance(neighbours, list)  # nobody else keeps anything there
    neighbours.append(other)


def time_beside(question: TimeBeside, measured: MeasuredCase) -> BesideBlock:
    """Time a block of the case while its neighbours run.

    Raises:
        Exception: what an inference raised, of the case or of a neighbour.
    """
    kept = measured.kept[_KEPT]
    assert isinstance(kept, list)
    neighbours = [_ThreadBeside(other) for other in kept]
    measured.enter("together")
    try:
        for neighbour in neighbours:
            neighbour.start()
        before = [neighbour.runs for neighbour in neighbours]
        block = time_block(TimeBlock(iterations=question.iterations), measured)
        runs = _runs_since(before, neighbours)
    finally:
        for neighbour in neighbours:
            neighbour.stop()
    return BesideBlock(block=block, neighbour_runs=runs)


def _runs_since(before: Sequence[int], neighbours: Sequence[_ThreadBeside]) -> int:
    """What the least busy one has done; an inference that goes on counts, since it ran beside."""
    return min(
        neighbour.runs - earlier + 1 for earlier, neighbour in zip(before, neighbours, strict=True)
    )


class _ThreadBeside:
    """A case that runs in a thread of its own until it is told to stop."""

    def __init__(self, measured: MeasuredCase) -> None:
        self.runs = 0
        self._until = until_of(measured.live_loop())
        self._over = False
        self._begun = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Let it run, and wait for its first inference."""
        self._thread.start()
        self._begun.wait()
        self._raise()

    def stop(self) -> None:
        """End it behind the inference that it is in."""
        self._over = True
        if self._thread.ident is not None:
            self._thread.join()
        self._raise()

    def _work(self) -> None:
        try:
            self._until(self._is_over)
        except Exception as error:  # noqa: BLE001 - handed over to the thread that asked
            self._error = error
        finally:
            self._begun.set()

    def _is_over(self, _: int) -> bool:
        self.runs += 1
        self._begun.set()
        return self._over

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
