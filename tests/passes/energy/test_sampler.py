"""The energy pass itself, on a simulated clock."""

from __future__ import annotations

import pytest

from pytest_ortbench.passes.energy.worker.sampler import Reader, ThreadSampler, Trace

from . import energy_simulation as simulated
from .laid_energy import Laid, laid_pass


def test_four_trials_each_long_enough_for_a_case_of_20_ms() -> None:
    """E1: a counter of 100 ms steps and a case of 20 ms: the window is longer."""
    made, _ = laid_pass(Laid(simulated.Board(window_ms=25)))
    energy = made.run(300)
    assert len(energy.windows) == 4
    for window in energy.windows:
        assert window.duration_ns >= 5e9
        assert window.ticks is not None
        assert window.ticks >= 50
        assert window.inferences >= 32
        assert window.energy_j / (window.duration_ns * 1e-9) == pytest.approx(400, rel=0.01)
        assert window.idle_w == pytest.approx(20, rel=0.01)
        assert window.net_j == pytest.approx(380 * window.duration_ns * 1e-9, rel=0.01)


def test_a_slow_case_gets_a_longer_window() -> None:
    made, _ = laid_pass(Laid(simulated.Board(window_ms=25)), inference_ms=400, trials=1)
    [window] = made.run(300).windows
    assert window.inferences >= 32
    assert window.duration_ns >= 32 * 400e6


def test_a_case_that_does_not_fit_is_null_with_the_reason() -> None:
    """E1: a window that holds too little gives no figure."""
    made, _ = laid_pass(Laid(simulated.Board(window_ms=25)), inference_ms=2000)
    energy = made.run(30)
    assert energy.windows == ()
    assert energy.reason.startswith("the window was too short: it had ")
    assert "32 inferences" in energy.reason
    assert "--ort-timeout" in energy.reason


def test_trials_that_do_not_fit_are_said() -> None:
    made, _ = laid_pass(Laid(simulated.Board(window_ms=25)))
    energy = made.run(30)
    assert len(energy.windows) == 2
    assert energy.note == "2 of 4 trials were possible within the time limit"


def test_a_counter_that_never_moves_is_not_believed() -> None:
    meter = Laid(simulated.Board(window_ms=100))
    meter.stuck = True
    made, _ = laid_pass(meter, trials=1)
    [window] = made.run(300).windows
    assert (window.source, window.counter_j) == ("nvml power", None)
    assert window.energy_j / (window.duration_ns * 1e-9) == pytest.approx(400, rel=0.01)


def test_a_stuck_counter_without_power_is_null() -> None:
    meter = Laid(simulated.Board(window_ms=100))
    meter.power = False
    meter.stuck = True
    made, _ = laid_pass(meter, trials=1)
    assert made.run(20).reason.startswith("the window was too short")


def test_a_hot_device_cools_down_to_where_it_began() -> None:
    meter = Laid(simulated.Board(window_ms=25))
    made, simulation = laid_pass(meter, trials=2)

    # 40 °C at first; after the first load 60 °C, and a degree less each 400 ms.
    def cooling(now_ms: int) -> float:
        if not simulation.loads:
            return 40.0
        return max(40.0, 60.0 - (now_ms - simulation.loads[0][1]) / 400)

    meter.temperatures = cooling
    windows = made.run(300).windows
    assert windows[0].temperature_c == 40.0
    assert windows[1].temperature_c is not None
    assert 40.0 <= windows[1].temperature_c <= 42.0
    second_began = simulation.board.loaded_at
    assert second_began - simulation.loads[0][1] >= 7200


def test_a_device_that_stays_hot_is_not_waited_for_for_ever() -> None:
    meter = Laid(simulated.Board(window_ms=25))
    made, simulation = laid_pass(meter, trials=2)
    meter.temperatures = lambda _: 80.0 if simulation.loads else 40.0
    windows = made.run(300).windows
    assert windows[1].temperature_c == 80.0
    assert simulation.board.loaded_at - simulation.loads[0][1] < 21_000


def test_the_thread_takes_readings_and_ends() -> None:
    board = simulated.Board(window_ms=25)
    sampler = ThreadSampler(Laid(board))
    trace: Trace = sampler.start()
    assert len(trace.readings) == 1
    assert len(trace.states) == 1
    sampler.stop()
    count = len(trace.readings)
    sampler.stop()
    assert len(trace.readings) == count


def test_the_state_is_read_twice_a_second() -> None:
    board = simulated.Board(window_ms=25)
    reader = Reader(Laid(board), lambda: board.now_ms * simulated.MS)
    for _ in range(100):
        reader.read()
        for _ in range(20):
            board.tick()
    assert len(reader.trace.readings) == 100
    assert len(reader.trace.states) == 4
