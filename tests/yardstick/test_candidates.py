"""The benchmark of candidates: what its table makes of launches, and what a block of each holds."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("yardstick_candidates")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("candidate_work")


def line(model: float, same: float, other: float, seed: int) -> dict[str, Any]:
    """A launch whose model, and both of whose candidates, are slower by these factors."""
    draw = random.Random(seed)

    def blocks(usual_ns: int, factor: float) -> list[int]:
        return [round(usual_ns * factor * draw.uniform(1, 1.01)) for _ in range(16)]

    mean_ns = blocks(4_000_000, model)
    works = {"same": blocks(300_000, same), "other": blocks(500_000, other)}
    return {
        "model": "net",
        "threads": 2,
        "p50_ns": sorted(mean_ns)[8],
        "mean_ns": mean_ns,
        "low_ns": mean_ns,
        "wall_ns": [24_000_000] * 16,
        "cpu": [seed % 2] * 16,
        "ran_ns": [48_000_000 if model < 1.5 else 24_000_000] * 16,
        "waited_ns": [0] * 16,
        "of_threads_ns": [[24_000_000, 24_000_000 if model < 1.5 else 0]] * 16,
        "of_threads_cpu": [[0, 1 if model < 1.5 else 0]] * 16,
        "faults": [0] * 16,
        "steal": [0] * 16,
        "voluntary": [4] * 16,
        "forced": [0] * 16,
        "candidates": {
            name: {"mean_ns": took, "low_ns": took, "next_to": list(range(16))}
            for name, took in works.items()
        },
    }


def factors(count: int) -> list[float]:
    draw = random.Random(1)
    return [draw.uniform(1, 1.2) for _ in range(count)]


def test_a_candidate_that_slows_down_alike_takes_the_difference_out(candidates: ModuleType) -> None:
    lines = [line(factor, factor, 1, seed) for seed, factor in enumerate(factors(24))]
    assert candidates.alike(lines, "same") > 0.99
    assert abs(candidates.alike(lines, "other")) < 0.6
    for estimate in ("floors", "blocks", "mixture"):
        values = {
            name: [candidates.ESTIMATES[estimate](each, name) for each in lines]
            for name in ("same", "other")
        }
        spread = {name: max(of) / min(of) - 1 for name, of in values.items()}
        assert spread["same"] < 0.02 < 0.1 < spread["other"]


def test_half_suits_work_that_slows_down_twice_as_much(candidates: ModuleType) -> None:
    lines = [line(factor, factor**2, 1, seed) for seed, factor in enumerate(factors(24))]
    halves = [candidates.ESTIMATES["half"](each, "same") for each in lines]
    floors = [candidates.ESTIMATES["floors"](each, "same") for each in lines]
    assert max(halves) / min(halves) - 1 < 0.02 < 0.1 < max(floors) / min(floors) - 1


def test_two_runs_that_are_drawn_differ_by_what_their_launches_do(candidates: ModuleType) -> None:
    assert candidates.differ([1.0] * 6) == "0.0% / 0.0%"
    # One of a hundred that is twice as slow is no median of three.
    assert candidates.differ([1.0] * 99 + [2.0]) == "0.0% / 0.0%"
    assert candidates.differ([1.0] * 50 + [2.0] * 50).endswith(" / 100.0%")


def test_slow_launches_tell_which_candidate_saw_it(candidates: ModuleType) -> None:
    lines = [line(2 if seed < 4 else 1, 2 if seed < 4 else 1, 1, seed) for seed in range(24)]
    first, *facts = candidates.slow_launches(lines)
    assert first.endswith(": 4 of 24")
    assert any("same" in text and "×2.0" in text for text in facts)
    assert any("other" in text and "×1.0" in text for text in facts)
    assert candidates.slow_launches(lines[4:])[0].endswith(": 0 of 20")


def test_slow_launches_tell_what_their_threads_did(candidates: ModuleType) -> None:
    slow, usual = (line(factor, 1, 1, 0) for factor in (2, 1))
    facts = candidates.THREAD_FACTS
    on_one_cpu = facts["blocks whose two busiest threads are on one CPU"]
    second = facts["CPU time of the second thread, of the first"]
    assert (on_one_cpu(slow), on_one_cpu(usual)) == (1, 0)
    assert (second(slow), second(usual)) == (0, 1)


def test_threads_are_counted_from_one_time_to_another(candidates: ModuleType) -> None:
    earlier = candidates.ThreadFacts(of_threads={"7": (100, 5, 1, 0, 2, 0)}, steal=3)
    threads = {"7": (150, 6, 1, 2, 2, 1), "8": (90, 0, 3, 0, 4, 0)}
    counted = candidates.ThreadFacts(of_threads=threads, steal=4).since(earlier)
    assert counted == {
        "ran_ns": 140,
        "waited_ns": 1,
        "voluntary": 3,
        "forced": 2,
        "faults": 4,
        "cpu": 1,
        "of_threads_ns": [90, 50],
        "of_threads_cpu": [0, 1],
        "steal": 1,
    }


def test_a_table_of_few_launches_says_so_and_one_of_many_has_every_candidate(
    candidates: ModuleType,
) -> None:
    lines = [line(1, 1, 1, seed) for seed in range(8)]
    assert "same" not in candidates.table(lines[:5])
    table = candidates.table(lines)
    assert table.count("\n  same ") == table.count("\n  other ") == 1


def test_every_candidate_has_a_name_and_work_of_its_own(
    candidates: ModuleType, work: ModuleType
) -> None:
    for threads, some in candidates.CANDIDATES.items():
        assert len({candidate.name for candidate in some}) == len(some)
        # They are put before and after blocks of the model in pairs.
        assert len(some) % 2 == 0
        assert all(candidate.threads <= threads for candidate in some)
        numpy_ones = {candidate.work for candidate in some} - {"network", "itself"}
        assert numpy_ones <= set(work.WORKS)


def test_the_chain_keeps_its_values_in_range(work: ModuleType) -> None:
    unit = work.WORKS["chain"]()
    first = np.abs(unit()).max()
    for _ in range(20):
        last = np.abs(unit()).max()
    assert 0.1 * first < last < 10 * first
