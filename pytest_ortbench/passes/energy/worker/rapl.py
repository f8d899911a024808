"""Energy counters of CPUs (RAPL), through the kernel's powercap files.

``package-N`` holds the whole socket, ``dram`` the memory beside it. Other domains are parts of
these (``core``, ``uncore``) or hold them (``psys``), so they are not added. What other processes
make the socket do is in the figure too.
"""

from __future__ import annotations

import re
from pathlib import Path

from pytest_ortbench.passes.energy.worker.meter import DeviceState, NoMeter

#: ``intel-rapl:0`` a socket, ``intel-rapl:0:2`` a part of it; AMD's have the same names. The
#: domains of ``intel-rapl-mmio`` show the same sockets a second time.
_DOMAIN = re.compile(r"intel-rapl:\d+(:\d+)?")
_ADDED = re.compile(r"package-\d+(-die-\d+)?|dram")


class RaplMeter:
    """The energy of all sockets and their memory.

    Args:
        root: Folder of the domains.

    Raises:
        NoMeter: if there is no domain, or it may not be read.
    """

    source = "rapl"
    power_source = ""
    #: The counters move every millisecond; ten readings a second place the ends well enough.
    poll_s = 0.1
    note = ""

    def __init__(self, root: Path) -> None:
        self._domains = _domains(root)
        self.device = ", ".join(domain.name for domain in self._domains)

    def energy_j(self) -> float | None:
        """Return the sum over the domains since the meter was opened, their wrap-around undone."""
        total = 0.0
        for domain in self._domains:
            energy = domain.energy_j()
            if energy is None:
                return None
            total += energy
        return total

    def power_w(self) -> float | None:
        """Return nothing: these counters have no reading of power."""
        return None

    def state(self) -> DeviceState:
        """Return a state in which nothing is known."""
        return DeviceState()


class _Domain:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / "energy_uj"
        try:
            self._last = _whole(self._file)
            #: The largest value; after it comes zero.
            self._range = _whole(folder / "max_energy_range_uj") + 1
        except OSError as error:
            reason = error.strerror or str(error)
            root_only = " (only root may read it since Linux 5.10)" if _is_forbidden(error) else ""
            raise NoMeter(f"{self._file} can't be read: {reason}{root_only}") from error
        except ValueError as error:
            raise NoMeter(f"{self._file} does not hold a number") from error
        self._sum = 0

    def energy_j(self) -> float | None:
        try:
            now = _whole(self._file)
        except (OSError, ValueError):
            return None
        # Read often enough, it can't have gone all the way round in between.
        self._sum += (now - self._last) % self._range
        self._last = now
        return self._sum * 1e-6


def _domains(root: Path) -> list[_Domain]:
    try:
        folders = sorted(folder for folder in root.iterdir() if _DOMAIN.fullmatch(folder.name))
    except OSError:
        folders = []
    domains = []
    for folder in folders:
        name = _text(folder / "name")
        if _ADDED.fullmatch(name):
            domains.append(_Domain(folder, name))
    if not domains:
        raise NoMeter(
            f"{root} has no RAPL counter (virtual machines and containers seldom have one)"
        )
    return domains


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _whole(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))


def _is_forbidden(error: OSError) -> bool:
    return isinstance(error, PermissionError)
