"""Power of a machine on its battery, from laid-out trees of power supplies."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.energy.worker.meter import NoMeter
from pytest_ortbench.passes.energy.worker.meter_choice import open_meter, why_no_meter
from pytest_ortbench.planning.providers import parse_provider

CPU = Provider(alias="cpu", name="CPUExecutionProvider")


def lay(root: Path, **supplies: dict[str, str]) -> Path:
    """Write power supplies, each with its files."""
    for name, files in supplies.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (root / name / file).write_text(f"{text}\n")
    return root


def battery(status: str = "Discharging", **files: str) -> dict[str, str]:
    return {"type": "Battery", "status": status, **files}


def test_power_of_a_battery_that_feeds_the_machine(tmp_path: Path) -> None:
    lay(
        tmp_path,
        AC={"type": "Mains", "online": "0"},
        BAT0=battery(power_now="12500000"),
        hid_mouse={**battery(power_now="1"), "scope": "Device"},
    )
    meter = open_meter(CPU, powercap=tmp_path / "none", supplies=tmp_path)
    assert (meter.source, meter.device) == ("battery power", "BAT0")
    assert meter.power_w() == pytest.approx(12.5)
    assert meter.energy_j() is None
    assert meter.note


@pytest.mark.parametrize(
    ("files", "watts"),
    [
        ({"current_now": "1500000", "voltage_now": "11000000"}, 16.5),
        # Some drivers write what leaves with a sign.
        ({"current_now": "-1500000", "voltage_now": "11000000"}, 16.5),
        ({"power_now": "-9000000"}, 9.0),
        ({"power_now": "9000000", "current_now": "1", "voltage_now": "1"}, 9.0),
    ],
)
def test_power_however_the_driver_tells_it(
    files: dict[str, str], watts: float, tmp_path: Path
) -> None:
    lay(tmp_path, BAT1=battery(**files))
    meter = open_meter(CPU, powercap=tmp_path / "none", supplies=tmp_path)
    assert meter.power_w() == pytest.approx(watts)


def test_two_batteries_are_added_and_one_that_rests_is_none_of_it(tmp_path: Path) -> None:
    lay(
        tmp_path,
        BAT0=battery(power_now="7000000"),
        BAT1=battery("Not charging", power_now="0"),
        BAT2=battery(power_now="3000000"),
    )
    meter = open_meter(CPU, powercap=tmp_path / "none", supplies=tmp_path)
    assert meter.power_w() == pytest.approx(10.0)
    lay(tmp_path, BAT0={"status": "Full"})
    assert meter.power_w() == pytest.approx(3.0)


@pytest.mark.parametrize(
    "supplies",
    [
        {},
        {"AC": {"type": "Mains", "online": "1"}},
        {"AC": {"type": "Mains", "online": "1"}, "BAT0": battery(power_now="9000000")},
        {"usb": {"type": "USB", "online": "1"}, "BAT0": battery(power_now="9000000")},
        {"BAT0": battery("Charging", power_now="9000000")},
        {"BAT0": battery("Unknown", power_now="9000000")},
        {"BAT0": {"type": "Battery", "power_now": "9000000"}},
        {"BAT0": battery()},
        {"BAT0": battery(power_now="much")},
        {"BAT0": battery(current_now="1500000")},
        {"mouse": {**battery(power_now="9000000"), "scope": "Device"}},
    ],
)
def test_without_a_battery_that_feeds_and_tells_there_is_no_meter(
    supplies: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    lay(tmp_path, **supplies)
    with pytest.raises(NoMeter):
        open_meter(CPU, powercap=tmp_path / "none", supplies=tmp_path)


def test_a_machine_that_is_plugged_in_meanwhile_has_no_power_any_more(tmp_path: Path) -> None:
    lay(
        tmp_path,
        AC={"type": "Mains", "online": "0"},
        BAT0=battery(power_now="12500000"),
    )
    meter = open_meter(CPU, powercap=tmp_path / "none", supplies=tmp_path)
    assert meter.power_w() is not None
    lay(tmp_path, AC={"online": "1"})
    assert meter.power_w() is None
    lay(tmp_path, AC={"online": "0"}, BAT0={"status": "Charging"})
    assert meter.power_w() is None


def test_a_counter_of_the_cpu_goes_before_the_battery(tmp_path: Path) -> None:
    domain = tmp_path / "powercap" / "intel-rapl:0"
    domain.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("energy_uj", "5"), ("max_energy_range_uj", "99")):
        (domain / name).write_text(text)
    lay(tmp_path / "supplies", BAT0=battery(power_now="12500000"))
    meter = open_meter(CPU, powercap=tmp_path / "powercap", supplies=tmp_path / "supplies")
    assert meter.source == "rapl"


def test_a_device_without_a_known_meter_is_measured_by_the_battery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, BAT0=battery(power_now="12500000"))
    webgpu = parse_provider("webgpu")
    assert open_meter(webgpu, supplies=tmp_path).source == "battery power"
    monkeypatch.setenv("ORTBENCH_POWER_SUPPLY", str(tmp_path))
    assert why_no_meter(webgpu) == ""
    # A GPU of its own has its own meter, or none.
    assert why_no_meter(parse_provider("cuda")) != ""
