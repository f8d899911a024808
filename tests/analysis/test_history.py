"""Change points of series whose steps are known."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.analysis.history import change_points, histories, series_names
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.core.run import Canary
from tests.results_factory import (
    make_case,
    make_machine,
    make_result,
    make_run,
    make_turns,
    make_turns_in_state,
    make_yardstick,
)


def noisy(levels: list[float], each: int = 8, spread: float = 0.01, seed: int = 0) -> list[float]:
    draw = random.Random(seed)
    return [level * (1 + draw.gauss(0, spread)) for level in levels for _ in range(each)]


def test_a_step_is_found_where_it_is_and_as_large_as_it_is():
    (step,) = change_points(noisy([2.0, 2.2]))
    assert step.index == 8
    assert step.change == pytest.approx(0.10, abs=0.01)


def test_two_steps():
    steps = change_points(noisy([2.0, 2.4, 1.8]))
    assert [step.index for step in steps] == [8, 16]
    assert [step.change > 0 for step in steps] == [True, False]


def test_noise_alone_rarely_makes_a_step():
    found = sum(bool(change_points(noisy([2.0], each=30, seed=seed))) for seed in range(100))
    assert found <= 2


@pytest.mark.parametrize("count", range(5))
def test_few_runs_say_nothing(count: int):
    assert change_points([1.0, 1.0, 9.0, 9.0][:count]) == ()


def test_one_run_that_is_off_is_no_change():
    assert change_points([2.0, 2.01, 1.99, 2.0, 3.0, 2.0, 2.01, 1.99, 2.0]) == ()


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 1000))
def test_units_do_not_matter(factor: float, seed: int):
    series = noisy([2.0, 2.3], seed=seed)
    scaled = change_points([factor * value for value in series])
    assert [step.index for step in scaled] == [step.index for step in change_points(series)]


def run_of(index: int, median_ns: int, *, machine_factor: float = 1.0, host: str = "a"):
    run = make_run(
        [make_result(median_ns=round(median_ns * machine_factor), seed=index, workers=1)],
        run_id=f"run-{index:02d}",
        machine=make_machine(host, cpu=host),
    )
    canary = Canary(model="builtin:canary@1", durations_ns=(round(1e6 * machine_factor),) * 3)
    return dataclasses.replace(run, started_at=f"2026-01-{index + 1:02d}", canary=canary)


def test_a_slow_day_of_the_machine_is_no_change_of_the_code():
    runs = [run_of(index, 3_000_000, machine_factor=1 + index % 3) for index in range(12)]
    (series,) = histories(runs)
    assert series.steps == ()
    assert series.points[0].ratio == pytest.approx(3.0, rel=0.01)


def test_a_host_that_changed_and_a_second_runtime_are_told_apart():
    one, two, three = (run_of(index, 3_000_000) for index in range(3))
    machine = dataclasses.replace(two.machine, stable={**two.machine.stable, "memory": "16 GB"})
    two = dataclasses.replace(two, machine=machine)
    found = histories([three, two, one])
    case = "mobilenet_v2/native/cpu/b1"
    assert series_names(found) == [f"{case} on a", f"{case} on a (2)"]
    assert [len(series.points) for series in found] == [2, 1]
    other = make_case(runtime="onnxruntime-1.20.1")
    one = dataclasses.replace(one, cases=(*one.cases, make_result(case=other, workers=1)))
    assert series_names(histories([one, two])) == [
        f"{case}+current on a",
        f"{case}+onnxruntime-1.20.1 on a",
        f"{case}+current on a (2)",
    ]


def test_a_device_in_software_and_hardware_are_apart():
    runs = [run_of(index, 3_000_000) for index in range(4)]
    for index in (1, 3):
        (result,) = runs[index].cases
        workers = tuple(
            dataclasses.replace(
                worker, runtime=dataclasses.replace(worker.runtime, software_device="SwiftShader")
            )
            for worker in result.measurements
        )
        changed = dataclasses.replace(result, measurements=workers)
        runs[index] = dataclasses.replace(runs[index], cases=(changed,))
    found = histories(runs)
    assert [(series.note, len(series.points)) for series in found] == [
        ("", 2),
        (" (SwiftShader)", 2),
    ]


def test_machines_are_apart_and_runs_in_order_of_time():
    runs = [run_of(index, 3_000_000 if index < 6 else 3_600_000) for index in range(12)]
    other = [run_of(index, 9_000_000, host="b") for index in range(3)]
    no_canary = dataclasses.replace(run_of(20, 1), canary=None)
    one, two = histories([*reversed(runs), *other, no_canary])
    assert {one.machine, two.machine} == {"a", "b"}
    series = one if one.machine == "a" else two
    (step,) = series.steps
    assert series.points[step.index].run_id == "run-06"
    assert step.change == pytest.approx(0.2, abs=0.01)


def in_turns(index: int, median_ns: int, *, slower: float = 1.0, flags=(), **turns):
    """A run of a case in turns with a yardstick, on a machine that is slower this time."""
    made = [
        make_turns(median_ns, seed=10 * index + worker, slower=(slower,), **turns)
        for worker in range(3)
    ]
    result = make_result(median_ns=round(median_ns * slower), turns=made, flags=flags)
    return dataclasses.replace(
        make_run([result], run_id=f"run-{index:02d}", machine=make_machine("a", cpu="a")),
        started_at=f"2026-{index // 28 + 1:02d}-{index % 28 + 1:02d}",
        canary=None,
    )


def test_sixty_runs_of_a_machine_that_wanders_show_no_change():
    draw = random.Random(3)
    runs = [in_turns(index, 3_000_000, slower=draw.uniform(1.0, 1.6)) for index in range(60)]
    (series,) = histories(runs)
    assert (series.against, series.steps, len(series.points)) == ("yardstick", (), 60)
    covering = [
        point
        for point in series.points
        if point.low is not None and point.high is not None and point.low < 6.0 < point.high
    ]
    assert len(covering) >= 55


def test_ten_per_cent_more_work_is_found_at_its_run():
    draw = random.Random(4)
    runs = [
        in_turns(index, 3_000_000 if index < 40 else 3_300_000, slower=draw.uniform(1.0, 1.6))
        for index in range(60)
    ]
    (series,) = histories(runs)
    (step,) = series.steps
    assert abs(step.index - 40) <= 2
    assert step.change == pytest.approx(0.10, abs=0.01)


def test_states_of_the_machine_are_no_steps_and_a_step_is_found_among_them():
    """A model goes over memory more than most do, on a machine that gets slower at that."""

    def run(index: int, state: int, slower: float):
        turns = [make_turns_in_state(state, passes=3.0, slower=slower)] * 3
        return dataclasses.replace(
            in_turns(index, 3_000_000), cases=(make_result(turns=turns, workers=3),)
        )

    states = [index // 4 % 2 for index in range(24)]
    (same,) = histories(run(index, state, 1.0) for index, state in enumerate(states))
    assert same.steps == ()
    (changed,) = histories(
        run(index, state, 1.1 if index >= 14 else 1.0) for index, state in enumerate(states)
    )
    (step,) = changed.steps
    assert (step.index, step.change) == (14, pytest.approx(0.10, abs=0.005))


def in_state(index: int, *, memory: float = 1.0, code: float = 1.0, flags=()):
    """A run of a model that a slow memory slows down more than any number of passes tells."""
    turns = make_turns_in_state(0, passes=1.0, slower=code * (1 + 1.5 * (memory - 1)))
    more = [round((memory - 1) * took) for took in turns.memory_mean_ns]
    turns = dataclasses.replace(
        turns,
        **{
            name: tuple(took + by for took, by in zip(getattr(turns, name), more, strict=True))
            for name in ("yardstick_mean_ns", "yardstick_low_ns", "memory_mean_ns", "memory_low_ns")
        },
    )
    result = make_result(turns=[turns] * 3, workers=3, flags=flags)
    return dataclasses.replace(in_turns(index, 3_000_000), cases=(result,))


def test_a_step_of_the_machine_is_told_from_one_of_the_code_by_runs_that_compare():
    """From run 8 on memory is slower by 40 %, but for every fourth run."""

    def slow(index: int) -> float:
        return 1.4 if index >= 8 and index % 4 != 3 else 1.0

    (same,) = histories(in_state(index, memory=slow(index)) for index in range(16))
    assert change_points([point.ratio for point in same.points])
    assert same.steps == ()
    (changed,) = histories(
        in_state(index, memory=slow(index), code=1.1 if index >= 8 else 1.0) for index in range(16)
    )
    (step,) = changed.steps
    assert (step.index, step.unlike) == (8, "")
    assert step.change == pytest.approx(0.10, abs=0.001)


def test_where_no_runs_compare_the_cause_is_not_known():
    (series,) = histories(in_state(index, memory=1.4 if index >= 8 else 1.0) for index in range(16))
    (step,) = series.steps
    assert (step.index, step.unlike) == (8, "memory")


def test_flagged_runs_are_shown_and_make_no_step():
    unsteady = [Flag(name="UNSTEADY")]
    runs = [
        in_turns(index, 3_000_000 if index < 6 else 4_000_000, flags=unsteady if index > 5 else ())
        for index in range(12)
    ]
    (series,) = histories(runs)
    assert (len(series.points), series.blurred, series.is_searched) == (12, 6, True)
    assert series.steps == ()
    two_modes = [in_turns(index, 3_000_000, flags=[Flag(name="BIMODAL")]) for index in range(6)]
    (series,) = histories(two_modes)
    assert (series.blurred, series.is_searched) == (0, True)
    (series,) = histories(runs[4:])
    assert (series.blurred, series.is_searched) == (6, False)


def test_runs_that_lacked_cpus_are_left_out_and_counted():
    good = [in_turns(index, 3_000_000) for index in range(6)]
    starved = [in_turns(index, 9_000_000, flags=[Flag(name="CPU-SHARE")]) for index in (6, 7)]
    without = run_of(8, 3_000_000)
    (series,) = histories([*good, *starved, without])
    assert (len(series.points), series.left_out, series.steps) == (6, 3, ())


def test_another_yardstick_is_another_series():
    runs = [in_turns(index, 3_000_000) for index in range(3)]
    runs += [
        in_turns(index, 3_000_000, yardstick=make_yardstick(version="0.4")) for index in (3, 4)
    ]
    found = histories(runs)
    case = "mobilenet_v2/native/cpu/b1"
    assert series_names(found) == [f"{case} on a", f"{case} on a (2)"]
    assert [len(series.points) for series in found] == [3, 2]
