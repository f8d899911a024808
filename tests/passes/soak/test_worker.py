"""Soaking: readings on a simulated clock, and a real loop that keeps its outputs."""

from __future__ import annotations

import gc
import mmap

import pytest

from pytest_ortbench.analysis.memory_growth import Growth
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.numbers import growth
from pytest_ortbench.passes.soak.worker import soak
from pytest_ortbench.worker.memory import best_source


@pytest.fixture(autouse=True)
def _small_heap() -> None:
    """Collecting all of pytest's objects at each reading would take minutes."""
    gc.freeze()


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def test_readings_are_spread_over_the_time() -> None:
    time, sizes = Time(), iter(range(10_000))
    found = soak(
        lambda: time.pass_by(0.125),
        lambda: next(sizes),
        seconds=60,
        source="laid",
        clock=lambda: time.now,
    )
    assert (found.seconds, found.inferences, found.source) == (60, 480, "laid")
    assert len(found.at) == 480
    assert found.at[0] == 1
    assert found.at[-1] == found.inferences
    assert list(found.at) == sorted(set(found.at))
    # One look before the loop, to see whether there is a source.
    assert found.resident_bytes == tuple(range(1, len(found.at) + 1))


def test_without_a_source_there_is_a_reason() -> None:
    found = soak(lambda: None, lambda: None, seconds=60, source="nothing")
    assert found == Soak(reason="resident memory can't be read (nothing)")


def test_a_real_loop_that_keeps_its_outputs_is_found() -> None:
    gc.collect()  # what other tests left must not shrink the process meanwhile
    time, source = Time(), best_source()
    kept: list[mmap.mmap] = []

    def infer() -> None:
        # Pages of their own: the allocator would first hand out what other tests gave back.
        kept.append(mmap.mmap(-1, 50 * mmap.PAGESIZE))
        kept[-1].write(b"\1" * len(kept[-1]))
        time.pass_by(0.1)

    found = growth(
        soak(infer, lambda: source.read().now, seconds=30, source="", clock=lambda: time.now)
    )
    assert isinstance(found, Growth)
    assert found.leaks
    assert found.per_thousand == pytest.approx(50_000 * mmap.PAGESIZE, rel=0.1)
    for pages in kept:
        pages.close()


def test_a_real_loop_over_many_sizes_is_not_accused() -> None:
    time, source = Time(), best_source()
    sizes = [1000 * (1 + index * 37 % 300) for index in range(300)]
    done = 0

    def infer() -> None:
        nonlocal done
        bytearray(sizes[done % len(sizes)])
        done += 1
        time.pass_by(0.01)

    found = growth(
        soak(infer, lambda: source.read().now, seconds=60, source="", clock=lambda: time.now)
    )
    assert isinstance(found, Growth)
    assert not found.leaks
