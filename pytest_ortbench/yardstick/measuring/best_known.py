"""What a unit of each yardstick takes in quiet minutes of this machine, kept in the user's cache.

Likewise what a value takes from one CPU to another and back where they are nearest.

It turns a ratio back into milliseconds. The file is a convenience: what is wrong with it is no
failure, and nothing that compares two runs reads it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.outcome import Samples, YardstickTurns
from pytest_ortbench.core.ownership import other_writers
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.models.cache import cache_folder

_NAME = "yardsticks.json"
_VERSION = 1

#: Times that are kept, the latest: machines whose facts change each time must not fill the file.
_MOST = 200

#: A block in so many that is faster than the others: the floor, without the luck of one block.
_LOW_PERCENT = 5

#: Minutes are quiet if the yardstick had its CPUs, the hypervisor took none, and its middle block
#: is not much slower than a fast one.
_LEAST_CPU_SHARE = 0.95
_MOST_STEAL = 0.005
_MOST_SPREAD = 0.10
_LEAST_ROUNDS = 20

_LONGEST_NS = 2**53


def with_best(
    turns: YardstickTurns, samples: Samples, folder: Path | None = None
) -> YardstickTurns:
    """Return the turns with the best known time of their yardstick, which they may have bettered.

    Args:
        turns: Of a worker that is done.
        samples: Of the same worker.
        folder: Where the file is; ``None`` for the user's cache.
    """
    if turns.yardstick is None:
        return turns
    folder = cache_folder() if folder is None else folder
    if other_writers(folder):
        return turns
    path = folder / _NAME
    known = _read(path)
    machine = _machine()
    own = f"{machine} {turns.yardstick.identity}"
    way = f"{machine} handover, {platform.python_implementation()} {platform.python_version()}"
    found = {own: quiet_low_ns(turns, samples), way: _low_handover_ns(turns)}
    better = {
        key: low
        for key, low in found.items()
        if low is not None and low < known.get(key, _LONGEST_NS)
    }
    if better:
        known = {key: value for key, value in known.items() if key not in better} | better
        _write(path, dict(list(known.items())[-_MOST:]))
    return replace(
        turns,
        best_ns=known.get(own),
        best_handover_ns=known.get(way) if turns.handover_ns else None,
    )


def _low_handover_ns(turns: YardstickTurns) -> int | None:
    """Return what a value took in fast rounds; nothing but the CPUs' places makes it faster."""
    ways = sorted(took for took in turns.handover_ns if took is not None)
    if len(ways) < _LEAST_ROUNDS:
        return None
    return ways[len(ways) * _LOW_PERCENT // 100]


def quiet_low_ns(turns: YardstickTurns, samples: Samples) -> int | None:
    """Return what a unit took in fast blocks of the yardstick; ``None`` if it was disturbed.

    Args:
        turns: Of a worker.
        samples: Of the same worker.
    """
    means = sorted(turns.yardstick_mean_ns)
    yardstick, cpus = turns.yardstick, turns.yardstick_cpus
    if yardstick is None or cpus is None or len(means) < _LEAST_ROUNDS:
        return None
    low, middle = means[len(means) * _LOW_PERCENT // 100], means[len(means) // 2]
    is_quiet = (
        cpus >= _LEAST_CPU_SHARE * yardstick.threads
        and (samples.steal_ratio or 0.0) <= _MOST_STEAL
        and not samples.throttled_ns
        and middle <= (1 + _MOST_SPREAD) * low
    )
    return low if is_quiet else None


def _machine() -> str:
    """Return what machines share on which a yardstick takes as long."""
    facts = json.dumps(fingerprint().stable, sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def _read(path: Path) -> dict[str, int]:
    """Return the times of a file by their keys; none of what is not as it should be."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        return {}
    times = content.get("best_ns")
    if not isinstance(times, dict):
        return {}
    return {
        key: value for key, value in times.items() if type(value) is int and 0 < value < _LONGEST_NS
    }


def _write(path: Path, times: dict[str, int]) -> None:
    content = {"version": _VERSION, "best_ns": times}
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(content, indent=1).encode())
