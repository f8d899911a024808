"""Resident memory: sources, baseline, rises, and what is not counted."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ortbench.worker.memory import (
    MemoryWatch,
    NoSource,
    ProcStatus,
    PsutilSource,
    Resident,
    RusageSource,
    best_source,
)


class Laid:
    """A source whose sizes a test sets."""

    name = "laid"

    def __init__(self, size: int) -> None:
        self.size = self.peak = size

    def grow_to(self, size: int) -> None:
        self.size = size
        self.peak = max(self.peak, size)

    def read(self) -> Resident:
        return Resident(now=self.size, peak=self.peak)

    def reset_peak(self) -> None:
        self.peak = self.size


def test_what_came_before_the_baseline_is_not_the_cases() -> None:
    source = Laid(100)
    source.grow_to(300)
    source.grow_to(120)
    watch = MemoryWatch(source)
    with watch.counted():
        pass
    assert watch.baseline == 120
    assert watch.peak_rise() == 0
    assert watch.process_peak == 300


def test_peak_and_rise_over_session_and_runs() -> None:
    source = Laid(100)
    watch = MemoryWatch(source)
    with watch.counted():
        source.grow_to(180)
        source.grow_to(150)
    assert (watch.peak_rise(), watch.rise()) == (80, 50)
    with watch.counted():
        source.grow_to(170)
    assert (watch.peak_rise(), watch.rise()) == (80, 70)
    assert watch.process_peak == 180


MB = 1_000_000


def test_our_own_work_between_is_not_counted() -> None:
    source = Laid(100 * MB)
    watch = MemoryWatch(source)
    with watch.counted():
        source.grow_to(150 * MB)
    source.grow_to(900 * MB)
    source.grow_to(155 * MB)
    with watch.counted():
        source.grow_to(157 * MB)
    assert watch.peak_rise() == 52 * MB
    assert watch.rise() == 52 * MB
    assert watch.process_peak == 900 * MB
    source.grow_to(154 * MB)
    with watch.counted():
        source.grow_to(160 * MB)
    assert watch.peak_rise() == 58 * MB


def test_noise_of_the_counters_does_not_add_up() -> None:
    source = Laid(100 * MB)
    watch = MemoryWatch(source)
    for step in range(1, 50):
        source.grow_to(100 * MB + step * 4096)
        with watch.counted():
            pass
    assert watch.baseline == 100 * MB


def test_a_region_that_fails_is_counted_too() -> None:
    source = Laid(100)
    watch = MemoryWatch(source)

    def fail() -> None:
        with watch.counted():
            source.grow_to(900)
            source.grow_to(110)
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert (watch.peak_rise(), watch.rise()) == (800, 10)


def test_a_size_below_the_baseline_is_no_rise() -> None:
    source = Laid(100)
    watch = MemoryWatch(source)
    with watch.counted():
        source.grow_to(60)
    assert watch.rise() == 0


def lay_proc(folder: Path, *, rss: int, peak: int) -> Path:
    (folder / "status").write_text(f"Name:\tx\nVmHWM:\t {peak} kB\nVmRSS:\t {rss} kB\n")
    return folder


def test_proc_is_read_in_kilobytes_and_reset(tmp_path: Path) -> None:
    source = ProcStatus(lay_proc(tmp_path, rss=7, peak=9))
    assert source.read() == Resident(now=7 * 1024, peak=9 * 1024)
    assert (tmp_path / "clear_refs").read_text() == "5"
    assert source.name == "VmHWM after clear_refs"


def test_a_reset_that_is_forbidden_is_said(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").mkdir()
    source = ProcStatus(lay_proc(tmp_path, rss=7, peak=9))
    assert source.name.startswith("VmHWM without reset ")
    # A watch on it still works; its peak just includes what came before.
    watch = MemoryWatch(source)
    with watch.counted():
        pass
    assert watch.peak_rise() == 2 * 1024


#: In a process of its own: what else is freed meanwhile would be taken off.
_RISE = """
import numpy as np
from pytest_ortbench.worker.memory import MemoryWatch, best_source

before = np.ones(25_000_000)
del before
watch = MemoryWatch(best_source())
with watch.counted():
    held = np.ones(5_000_000)
ours = np.ones(20_000_000)
with watch.counted():
    pass
print(watch.peak_rise())
"""


@pytest.mark.live
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_a_real_rise_and_a_transient_before_it() -> None:
    done = subprocess.run([sys.executable, "-c", _RISE], capture_output=True, check=True)
    # 40 MB are the case's; the 200 MB before and the 160 MB between are not.
    assert 38_000_000 < int(done.stdout) < 60_000_000


#: Frees 40 MB that stay in the heap, since a block above them lives; then a case takes as much.
_TAKEN_AGAIN = """
from pytest_ortbench.worker.memory import MemoryWatch, best_source, give_back_free_memory

freed = [b"x" * 100_000 for _ in range(400)]
above = b"y" * 100_000
del freed
give_back_free_memory()
watch = MemoryWatch(best_source())
with watch.counted():
    held = [b"x" * 100_000 for _ in range(400)]
print(watch.peak_rise())
"""


@pytest.mark.live
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back")
def test_memory_that_was_freed_before_hides_no_rise() -> None:
    done = subprocess.run([sys.executable, "-c", _TAKEN_AGAIN], capture_output=True, check=True)
    assert 38_000_000 < int(done.stdout) < 46_000_000


def test_other_platforms_name_their_source(tmp_path: Path) -> None:
    assert best_source(tmp_path).name == "psutil rss, no peak"
    now = PsutilSource().read().now
    assert now is not None
    assert now > 0
    usage = RusageSource().read()
    assert usage.peak is not None
    assert usage.peak > 1 << 20
    assert NoSource().read() == Resident(now=None, peak=None)


def test_without_any_source_nothing_is_known() -> None:
    watch = MemoryWatch(NoSource())
    with watch.counted():
        pass
    assert (watch.baseline, watch.rise(), watch.peak_rise(), watch.process_peak) == (None,) * 4
    assert watch.source.startswith("none: ")


def test_a_case_that_gives_back_in_between_has_no_baseline_below_nothing() -> None:
    megabyte = 1 << 20
    source = Laid(100 * megabyte)
    watch = MemoryWatch(source)
    with watch.counted():
        source.grow_to(500 * megabyte)
    source.grow_to(150 * megabyte)
    with watch.counted():
        pass
    assert watch.baseline == 0
    assert watch.rise() == 150 * megabyte
