"""What a worker reads for a self-check, from files and meters that were made up."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.passes.energy.worker.meter import DeviceState
from pytest_ortbench.passes.energy.worker.meter_ticks import ticks_of
from pytest_ortbench.selfcheck.ratios import lies_within, ratio_of
from pytest_ortbench.selfcheck.worker.looks import clocks_now, counted_nodes


def event(name: str, provider: str, op: str, index: int = 0, kind: str = "_kernel_time") -> dict:
    return {
        "cat": "Node",
        "name": f"{name}{kind}",
        "args": {"provider": provider, "op_name": op, "node_index": str(index)},
    }


def test_each_node_counts_once_and_copies_apart() -> None:
    events = [
        {"cat": "Session", "name": "model_run"},
        event("a", "CUDA", "Conv"),
        event("a", "CUDA", "Conv"),
        event("a", "CUDA", "Conv", kind="_fence_before"),
        event("b", "CUDA", "Relu", 1),
        event("c", "CPU", "Shape", 2),
        event("d", "CUDA", "MemcpyToHost", 3),
    ]
    counted = counted_nodes(events)
    assert (counted.nodes, counted.copies) == ({"CPU": 1, "CUDA": 2}, 1)


def test_clocks_of_the_cpus_of_the_process(tmp_path: Path) -> None:
    for cpu, text in ((0, "3000000\n"), (1, "2500000\n"), (3, "<unknown>\n")):
        folder = tmp_path / f"cpu{cpu}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(text)
    assert clocks_now(tmp_path, [0, 2, 3]) == [3000.0]


class SlowMeter:
    """A counter that moves every fourth reading, and power that changes every second."""

    source, device, poll_s, note = "made up", "GPU-1", 0.1, ""

    def __init__(self) -> None:
        self.readings = 0

    def energy_j(self) -> float:
        self.readings += 1
        return float(self.readings // 4)

    def power_w(self) -> float:
        return float(self.readings // 2)

    def state(self) -> DeviceState:
        return DeviceState()


def test_how_often_a_meter_moves() -> None:
    now = iter(range(0, 10**12, 1_000_000))
    ticks = ticks_of(SlowMeter(), 0.04, clock=lambda: next(now))
    assert (ticks.source, ticks.device) == ("made up", "GPU-1")
    assert set(ticks.tick_ns) == {4_000_000}
    assert set(ticks.step_ns) == {2_000_000}
    assert ticks.reading_ns == 1_025_641


def test_a_ratio_looks_at_what_nothing_disturbed() -> None:
    # Every third block of either side is twice as long.
    ours = [1_000 * (1 + (number % 3 == 0)) for number in range(99)]
    others = [1_000 * (1 + (number % 3 == 1)) for number in range(99)]
    ratio = ratio_of(ours, others)
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == (1.0, 1.0, 1.0)
    assert lies_within(ratio, 0.95, 1.05) is True
    assert lies_within(ratio, 1.1, 1.2) is False


def test_few_rounds_leave_a_ratio_open() -> None:
    ratio = ratio_of([1_000] * 4, [1_000] * 4)
    assert ratio is not None
    assert (ratio.low, lies_within(ratio, 0.5, 2.0)) == (None, None)
    assert ratio_of([], []) is None
