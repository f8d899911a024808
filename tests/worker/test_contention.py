"""Counters of steal and throttling, on laid-out copies of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.worker.contention import (
    Contention,
    ContentionMeter,
    counter_growth,
    most_growth,
)


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_ticks_leave_guest_time_out_and_throttling_is_in_ns(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "proc/stat": "cpu  1 2 3 4 5 6 7 8 100 200\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/box/cpu.stat": "nr_throttled 1\nthrottled_usec 9\n",
            "sys/fs/cgroup/cpu.stat": "throttled_usec 4\n",
        },
    )
    assert ContentionMeter(tmp_path).read() == Contention(
        steal_ticks=8, total_ticks=36, throttled_ns=(9000, 4000)
    )


def test_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    unknown = Contention(steal_ticks=None, total_ticks=None, throttled_ns=())
    assert ContentionMeter(tmp_path).read() == unknown
    lay(tmp_path, {"proc/stat": "intr 5\n"})
    assert ContentionMeter(tmp_path).read() == unknown


def test_differences() -> None:
    assert counter_growth(3, 5) == 2
    assert counter_growth(None, 5) is None
    assert counter_growth(3, None) is None


def test_throttling_is_what_one_level_grew_by_whatever_others_counted_before(
    tmp_path: Path,
) -> None:
    # The most of the counters themselves is the slice's old 500 s at both ends: a growth of 0.
    files = {
        "proc/self/cgroup": "0::/slice/box\n",
        "sys/fs/cgroup/slice/cpu.stat": "nr_throttled 900\nthrottled_usec 500000000\n",
        "sys/fs/cgroup/slice/box/cpu.stat": "throttled_usec 3000000\n",
    }
    lay(tmp_path, files)
    meter = ContentionMeter(tmp_path)
    before = meter.read()
    lay(tmp_path, {"sys/fs/cgroup/slice/box/cpu.stat": "throttled_usec 4000000\n"})
    assert most_growth(before.throttled_ns, meter.read().throttled_ns) == 1_000_000_000


def test_a_level_that_can_not_be_read_at_both_ends_does_not_count() -> None:
    assert most_growth((None, 3), (900, 5)) == 2
    assert most_growth((3, 900), (5, None)) == 2
    assert most_growth((None,), (4,)) is None
    assert most_growth((), ()) is None
