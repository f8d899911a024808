"""Blocks of a model in turns with those of a yardstick, with fakes for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, CaseResult, Failure, YardstickTurns
from pytest_ortbench.core.yardstick import YardstickBlock
from pytest_ortbench.execution import standard
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.yardstick.choice import SHARE
from pytest_ortbench.yardstick.measuring.turns import (
    ENOUGH_ROUNDS,
    KEPT_ROUNDS,
    MODEL_NS,
    MOST_SHARE,
    OfCase,
    Turns,
    in_one_block,
    sizes_of_blocks,
    spread_evenly,
)
from tests.execution.fakes import FakeLauncher, FakeWorker, FakeYardstick
from tests.results_factory import make_block, make_case

MS = 1_000_000


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))


def begun(
    launcher: FakeLauncher, each_ns: float, *, case: Case | None = None, cpus_used: float = 1.0
) -> Turns:
    case = make_case() if case is None else case
    worker = launcher.open(case, worker=0, deadline=None)
    kept = OfCase(case, launcher)  # type: ignore[arg-type]  # as far as asked
    turns = Turns(worker, kept, seed=3)
    turns.begin(typical_ns=each_ns, cpus_used=cpus_used)
    return turns


def beside(launcher: FakeLauncher, each_ns: float, **more: Any) -> tuple[Turns, FakeYardstick]:
    launcher.unit_ns = launcher.unit_ns or 0.5 * MS
    turns = begun(launcher, each_ns, **more)
    return turns, launcher.yardsticks[-1]


def fast(each_ns: float = MS) -> FakeLauncher:
    return FakeLauncher(lambda *_: each_ns)


@pytest.mark.parametrize(
    ("each_ns", "unit_ns"),
    [(2e4, 5e5), (3e5, 5e5), (1e6, 3e5), (2.9e6, 5e5), (8e6, 5e5), (1e8, 5e5), (5e9, 5e5),
     (1e6, 8e6), (1e6, 4e4)],
)  # fmt: skip
def test_a_turn_of_the_yardstick_takes_at_most_a_quarter_of_a_block_of_the_model(
    each_ns: float, unit_ns: float
) -> None:
    sizes = sizes_of_blocks(each_ns, unit_ns)
    assert min(sizes.runs, sizes.units) >= 1
    model_ns = sizes.runs * max(1, each_ns)
    turn_ns = (sizes.units + sizes.untimed_units) * unit_ns + sizes.untimed_runs * each_ns
    assert turn_ns <= 1.1 * SHARE * max(model_ns, each_ns)
    # No longer than needed for that: other states of the machine would come in between.
    assert model_ns <= max(1.6 * MODEL_NS, 1.3 * (turn_ns + 2 * MS) / SHARE, each_ns)


def test_long_inferences_have_no_untimed_one_before_them_and_long_blocks_of_the_yardstick() -> None:
    short, long = sizes_of_blocks(1e6, 5e5), sizes_of_blocks(1e8, 5e5)
    assert (short.untimed_runs, long.untimed_runs) == (2, 0)
    assert (long.runs, long.units) == (1, 24)
    assert short.units < 6


def test_rounds_hold_a_block_of_each_and_all_inferences_are_one_block() -> None:
    launcher = fast()
    turns, yardstick = beside(launcher, MS)
    worker = launcher.opened[0]
    before = sum(worker.blocks)
    block = turns.time(250)
    facts = turns.facts()
    assert len(block.durations_ns) == 250 == sum(worker.blocks) - before
    assert block.wall_ns == sum(block.durations_ns)
    assert facts.rounds == len(facts.model_mean_ns) == len(yardstick.blocks) - 1
    assert 7 <= facts.rounds <= 250 / 12
    assert len(facts.yardstick_mean_ns) == len(facts.memory_low_ns) == facts.rounds
    assert set(facts.yardstick_low_ns) == {MS * 9 // 20}
    assert set(facts.memory_low_ns) == {MS * 27 // 200}
    shares = zip(facts.memory_mean_ns, facts.yardstick_mean_ns, strict=True)
    assert all(memory == pytest.approx(0.3 * unit, rel=0.01) for memory, unit in shares)
    assert all(
        MS <= low <= mean < 2 * MS
        for low, mean in zip(facts.model_low_ns, facts.model_mean_ns, strict=True)
    )
    assert (facts.absence, facts.yardstick) == ("", yardstick.yardstick)
    assert (facts.model_cpus, facts.yardstick_cpus) == (2.0, 1.0)
    assert not worker.paused


@pytest.mark.parametrize(("cpus_used", "ways"), [(1.9, {350}), (1.0, set())])
def test_rounds_on_several_threads_keep_the_way_between_cpus(
    cpus_used: float, ways: set[int]
) -> None:
    turns, _ = beside(fast(), MS, cpus_used=cpus_used)
    turns.time(250)
    facts = turns.facts()
    assert set(facts.handover_ns) == ways
    assert len(facts.handover_ns) == (facts.rounds if ways else 0)


def test_only_after_a_turn_of_the_yardstick_inferences_are_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Turns that take far too long leave rounds of the model alone."""
    launcher = fast()
    turns, yardstick = beside(launcher, MS)
    clock, untimed, order = [0], [], []

    class Time:
        @staticmethod
        def monotonic_ns() -> int:
            return clock[0]

    timed = yardstick.time

    def slow(units: int, *, untimed: int) -> YardstickBlock:
        clock[0] += 100 * MS
        order.append("y")
        return timed(units, untimed=untimed)

    def block(question: TimeBlock) -> Block:
        untimed.append(question.untimed)
        order.append("M")
        made = launcher.opened[0].block(question)
        clock[0] += made.wall_ns
        return made

    launcher.opened[0].answering({TimeBlock: block})
    monkeypatch.setattr(yardstick, "time", slow)  # it waits for a CPU
    monkeypatch.setattr("pytest_ortbench.yardstick.measuring.turns.time", Time)
    turns.time(2000)
    before = [" ", *order]
    after_turns = [before[at] == "y" for at, side in enumerate(order) if side == "M"]
    assert after_turns.count(True) >= 3
    assert after_turns.count(False) >= 2
    # The first block follows the look at the yardstick that said how long a unit takes.
    assert [count > 0 for count in untimed[1:]] == after_turns[1:]
    assert untimed[0] > 0


def test_the_order_within_a_round_is_random_and_follows_the_seed() -> None:
    class Telling(FakeLauncher):
        order = ""

        def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
            made = super().open(case, worker=worker, deadline=deadline)

            def told(question: TimeBlock) -> Block:
                self.order += "M"
                return made.block(question)

            return made.answering({TimeBlock: told})

        def yardstick(self, name: str, *, threads: int) -> FakeYardstick:
            made = super().yardstick(name, threads=threads)
            time = made.time

            def told(units: int, *, untimed: int) -> YardstickBlock:
                self.order += "y"
                return time(units, untimed=untimed)

            made.time = told  # type: ignore[method-assign]  # told of each turn
            return made

    orders = []
    for _ in range(2):
        launcher = Telling(lambda *_: MS)
        turns, _ = beside(launcher, MS)
        turns.time(400)
        orders.append(launcher.order)
    assert orders[0] == orders[1]
    rounds = orders[0][1:]
    pairs = {rounds[index : index + 2] for index in range(0, len(rounds), 2)}
    assert pairs == {"My", "yM"}


def test_a_yardstick_that_dies_is_a_reason_and_the_model_goes_on() -> None:
    launcher = fast()
    turns, yardstick = beside(launcher, MS)
    yardstick.fails_after = 4
    assert len(turns.time(250).durations_ns) == 250
    assert len(turns.time(100).durations_ns) == 100
    assert turns.facts() == YardstickTurns(absence="failed", detail="it died")
    assert yardstick.closed
    assert not launcher.opened[0].paused


def test_one_that_can_not_start_or_tell_its_threads_is_a_reason() -> None:
    launcher = fast()
    turns = begun(launcher, MS)
    assert turns.facts() == YardstickTurns(absence="library", detail="no library")
    assert len(turns.time(50).durations_ns) == 50

    def refuse(*_: object, **__: object) -> FakeYardstick:
        raise WorkerError(Failure(kind="unavailable", phase="start", message="no interpreter"))

    launcher.yardstick = refuse  # type: ignore[method-assign]  # one that can't start
    facts = begun(launcher, MS).facts()
    assert (facts.absence, facts.detail) == ("failed", "no interpreter")


def test_a_worker_that_fails_fails_the_case() -> None:
    launcher = fast()
    turns, yardstick = beside(launcher, MS)

    def crash(_: TimeBlock) -> Block:
        raise WorkerError(Failure(kind="crash", phase="measure", message="the model died"))

    launcher.opened[0].answering({TimeBlock: crash})
    with pytest.raises(WorkerError) as caught:
        turns.time(100)
    assert caught.value.failure.kind == "crash"
    assert not yardstick.closed
    assert not launcher.opened[0].paused


@pytest.mark.parametrize(("took_ms", "least", "most"), [(50, 14, 14), (200, 3, 7)])
def test_turns_that_take_far_longer_than_planned_become_fewer(
    monkeypatch: pytest.MonkeyPatch, took_ms: int, least: int, most: int
) -> None:
    """Beside other work a block of 2 ms may take 50: then there are as many as a ratio needs.

    The model keeps two thirds of the time.
    """
    launcher = fast()
    turns, yardstick = beside(launcher, MS)
    clock = [0]

    timed = yardstick.time

    def slow(units: int, *, untimed: int) -> YardstickBlock:
        clock[0] += took_ms * MS
        return timed(units, untimed=untimed)

    def block(question: TimeBlock) -> Block:
        made = worker.block(question)
        clock[0] += made.wall_ns
        return made

    class Time:
        @staticmethod
        def monotonic_ns() -> int:
            return clock[0]

    worker = launcher.opened[0]
    worker.answering({TimeBlock: block})
    monkeypatch.setattr(yardstick, "time", slow)  # it waits for a CPU
    monkeypatch.setattr("pytest_ortbench.yardstick.measuring.turns.time", Time)
    turns.time(2000)
    rounds = len(yardstick.blocks) - 1
    # What the model is timed for between two rounds is asked for at once.
    assert len(worker.blocks) - 1 <= 2 * rounds + 1
    assert rounds * took_ms * MS <= MOST_SHARE * 2000 * 1.1 * MS + took_ms * MS
    assert turns.facts().rounds == rounds
    assert least <= rounds <= most


@pytest.mark.parametrize(
    ("asked", "cpus_used", "name", "threads"),
    [("auto", 1.9, "parallel", 2), ("auto", 1.1, "mixed", 1), ("memory", 1.9, "memory", 1),
     ("parallel", 1.0, "parallel", 2)],
)  # fmt: skip
def test_the_yardstick_that_a_case_takes(
    asked: str, cpus_used: float, name: str, threads: int
) -> None:
    case = make_case(sampling=Sampling(yardstick=asked))
    turns, yardstick = beside(fast(), MS, case=case, cpus_used=cpus_used)
    assert turns.facts().absence == "short"
    assert yardstick.yardstick.name == name
    assert yardstick.yardstick.threads == threads


def test_long_runs_keep_some_rounds_spread_over_all() -> None:
    block = make_block([MS])
    rounds = [(make_block([MS + index]), block) for index in range(3 * KEPT_ROUNDS + 7)]
    kept = spread_evenly(rounds, KEPT_ROUNDS)
    starts = [model.durations_ns[0] - MS for model, _ in kept]
    assert len(kept) == KEPT_ROUNDS
    assert starts == sorted(set(starts))
    assert (starts[0], starts[-1] > 3 * KEPT_ROUNDS) == (0, True)
    assert spread_evenly(rounds[:5], KEPT_ROUNDS) == rounds[:5]


def test_counters_of_blocks_add_up_unless_one_lacks_them() -> None:
    blocks = [make_block([1, 2], steal_ticks=1), make_block([3], steal_ticks=2)]
    block = in_one_block(blocks)
    assert (block.durations_ns, block.steal_ticks, block.total_ticks) == ((1, 2, 3), 3, 100)
    assert in_one_block([*blocks, make_block([4], steal_ticks=None)]).steal_ticks is None


def measured(launcher: FakeLauncher, folder: Path, **sampling: Any) -> CaseResult:
    case = make_case(sampling=Sampling(target=0.0, **sampling))
    return standard.measure(case, launcher, folder)  # type: ignore[arg-type]  # as far as asked


def test_all_workers_of_a_case_take_the_same_and_give_what_was_asked_for(tmp_path: Path) -> None:
    launcher = fast()
    launcher.unit_ns = 0.5 * MS
    result = measured(launcher, tmp_path)
    turns = [measurement.yardstick for measurement in result.measurements]
    assert [each and each.yardstick and each.yardstick.name for each in turns] == ["parallel"] * 3
    # It is left to the next case.
    assert [yardstick.closed for yardstick in launcher.yardsticks] == [False]
    for measurement in result.measurements:
        # As without a yardstick: seconds of the model alone, in blocks of a quarter of a second.
        assert measurement.samples.wall_ns == pytest.approx(5e9 / 3, rel=0.01)
        assert measurement.samples.blocks == 7
        assert measurement.yardstick is not None
        assert measurement.yardstick.rounds >= 50


def test_a_known_median_waits_for_enough_rounds(tmp_path: Path) -> None:
    launcher = fast()
    # Long units make long rounds, of which there are too few when the median is known.
    launcher.unit_ns = 2 * MS
    beside = standard.measure(make_case(), launcher, tmp_path)  # type: ignore[arg-type]  # as far as asked
    case = make_case(sampling=Sampling(yardstick="off"))
    alone = standard.measure(case, fast(), tmp_path)  # type: ignore[arg-type]  # likewise
    for result in (beside, alone):
        assert {each.stop for each in result.measurements} == {"target"}
    rounds = [each.yardstick.rounds for each in beside.measurements if each.yardstick]
    assert min(rounds) >= ENOUGH_ROUNDS - 5
    assert alone.measurements[0].samples.count < beside.measurements[0].samples.count < 1000


def test_turned_off_it_times_blocks_as_ever(tmp_path: Path) -> None:
    launcher = fast()
    launcher.unit_ns = 0.5 * MS
    result = measured(launcher, tmp_path, yardstick="off")
    assert launcher.yardsticks == []
    assert {each.yardstick for each in result.measurements} == {YardstickTurns(absence="off")}
    assert {len(worker.blocks) for worker in launcher.opened} == {7}


def test_a_case_that_fails_leaves_no_yardstick(tmp_path: Path) -> None:
    class Failing(FakeLauncher):
        def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
            made = super().open(case, worker=worker, deadline=deadline)

            def crash(_: TimeBlock) -> Block:
                raise WorkerError(Failure(kind="crash", phase="measure", message="it died"))

            return made.answering({TimeBlock: crash})

    launcher = Failing(lambda *_: MS)
    launcher.unit_ns = 0.5 * MS
    assert measured(launcher, tmp_path).status == "crash"
    assert [yardstick.closed for yardstick in launcher.yardsticks] == [False]
    assert not any(worker.paused for worker in launcher.opened)


@pytest.mark.parametrize("kept_threads", [1, 2])
def test_one_with_much_data_goes_with_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_threads: int
) -> None:
    monkeypatch.setattr(OfCase.__module__ + ".MOST_KEPT_THREADS", kept_threads)
    launcher = fast()
    launcher.unit_ns = 0.5 * MS
    assert measured(launcher, tmp_path).status == "measured"
    (yardstick,) = launcher.yardsticks
    assert yardstick.yardstick.threads == 2
    assert yardstick.closed == (kept_threads < 2)


def test_one_that_died_beside_one_worker_is_started_again_for_the_next(tmp_path: Path) -> None:
    class Dying(FakeLauncher):
        def yardstick(self, name: str, *, threads: int) -> FakeYardstick:
            made = super().yardstick(name, threads=threads)
            made.fails_after = 5 if len(self.yardsticks) == 1 else None
            return made

    launcher = Dying(lambda *_: MS)
    launcher.unit_ns = 0.5 * MS
    result = measured(launcher, tmp_path)
    absences = [each.yardstick and each.yardstick.absence for each in result.measurements]
    assert (result.status, absences) == ("measured", ["failed", "", ""])
    assert [each.closed for each in launcher.yardsticks] == [True, False]
    assert len({each.yardstick for each in launcher.yardsticks}) == 1
