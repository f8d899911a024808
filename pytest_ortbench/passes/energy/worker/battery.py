"""Power of a whole machine that runs on its battery, through the kernel's ``power_supply`` files.

A battery tells what flows out of it, to everything: display, disks and other processes are in the
figure, as they are while the machine is idle. So net energy means more than gross. A battery that
is charged, or a machine on mains, tells nothing of what the machine takes.
"""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.cpus import read_text
from pytest_ortbench.passes.energy.worker.meter import DeviceState, NoMeter


class BatteryMeter:
    """What flows out of the batteries of this machine.

    Args:
        root: Folder of the power supplies.

    Raises:
        NoMeter: if there is no battery, it does not tell its power, or it is not what feeds the
            machine.
    """

    source = power_source = "battery power"
    #: Firmware renews its reading every second at best.
    poll_s = 0.5
    note = (
        "power of the whole machine from its battery, which renews its reading every few seconds: "
        "a longer --ort-energy-window averages more of them"
    )

    def __init__(self, root: Path) -> None:
        self._batteries = _batteries(root)
        self.device = ", ".join(folder.name for folder in self._batteries)
        self._mains = _mains(root)
        fed_by = next((folder.name for folder in self._mains if _is_online(folder)), "")
        if fed_by:
            raise NoMeter(f"{fed_by} feeds the machine: unplug it to measure by {self.device}")
        states = {folder.name: _word(folder / "status") for folder in self._batteries}
        if "Discharging" not in states.values():
            told = ", ".join(f"{name} is {state or 'unknown'}" for name, state in states.items())
            raise NoMeter(f"no battery feeds the machine: {told}")
        if self.power_w() is None:
            raise NoMeter(f"{self.device} tells neither power_now nor current_now and voltage_now")

    def energy_j(self) -> float | None:
        """Return nothing: what a battery holds is told in steps of many joules."""
        return None

    def power_w(self) -> float | None:
        """Return what flows out of all batteries; ``None`` once the machine is fed otherwise."""
        if any(map(_is_online, self._mains)):
            return None
        total = 0.0
        for folder in self._batteries:
            if _word(folder / "status") != "Discharging":
                continue
            power = _power_w(folder)
            if power is None:
                return None
            total += power
        # One that is empty or full takes its turn without a word.
        return total or None

    def state(self) -> DeviceState:
        """Return a state in which nothing is known."""
        return DeviceState()


def _batteries(root: Path) -> list[Path]:
    """Batteries of the machine itself, and not of a mouse."""
    found = [
        folder
        for folder in _supplies(root)
        if _word(folder / "type") == "Battery" and _word(folder / "scope") != "Device"
    ]
    if not found:
        raise NoMeter(f"{root} has no battery")
    return found


def _mains(root: Path) -> list[Path]:
    return [folder for folder in _supplies(root) if _word(folder / "type") in ("Mains", "USB")]


def _supplies(root: Path) -> list[Path]:
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _is_online(folder: Path) -> bool:
    return _word(folder / "online") == "1"


def _power_w(folder: Path) -> float | None:
    """Power now; some drivers tell current and voltage instead, some give a sign to what leaves."""
    power = _micro(folder / "power_now")
    if power is not None:
        return abs(power)
    current, voltage = (_micro(folder / name) for name in ("current_now", "voltage_now"))
    return None if current is None or voltage is None else abs(current * voltage)


def _micro(path: Path) -> float | None:
    """A number of millionths as a whole unit; ``None`` where none is told."""
    try:
        return int(_word(path)) * 1e-6
    except ValueError:
        return None


def _word(path: Path) -> str:
    return read_text(path).strip()
