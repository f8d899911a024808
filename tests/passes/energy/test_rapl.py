"""Energy of CPUs, from laid-out trees of RAPL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.energy.worker.meter import NoMeter
from pytest_ortbench.passes.energy.worker.meter_choice import open_meter

from . import energy_simulation as simulated
from .laid_energy import Laid, laid_pass

CPU = Provider(alias="cpu", name="CPUExecutionProvider")


def lay_rapl(root: Path, values: dict[str, tuple[str, int]], *, limit: int = 999_999) -> Path:
    for folder, (name, value) in values.items():
        place = root / folder
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "energy_uj").write_text(f"{value}\n")
        (place / "max_energy_range_uj").write_text(f"{limit}\n")
    return root


TREE = {
    "intel-rapl:0": ("package-0", 100),
    "intel-rapl:0:0": ("core", 50),
    "intel-rapl:0:2": ("dram", 70),
    "intel-rapl:1": ("package-1", 200),
    "intel-rapl:2": ("psys", 900),
    "intel-rapl-mmio:0": ("package-0", 100),
}


def test_sockets_and_their_memory_are_added_and_nothing_twice(tmp_path: Path) -> None:
    meter = open_meter(CPU, powercap=lay_rapl(tmp_path, TREE))
    assert (meter.source, meter.device) == ("rapl", "package-0, dram, package-1")
    assert meter.energy_j() == 0.0
    for folder, value in (("intel-rapl:0", 1100), ("intel-rapl:0:2", 80), ("intel-rapl:1", 200)):
        (tmp_path / folder / "energy_uj").write_text(str(value))
    (tmp_path / "intel-rapl:2" / "energy_uj").write_text("5000000")
    assert meter.energy_j() == pytest.approx(1010e-6)
    assert meter.power_w() is None


def test_a_counter_that_wraps_goes_on(tmp_path: Path) -> None:
    """E6: the difference over the end of the range is right."""
    lay_rapl(tmp_path, {"intel-rapl:0": ("package-0", 999_900)})
    meter = open_meter(CPU, powercap=tmp_path)
    total = 0
    for step, value in ((50, 999_950), (60, 10), (999_990, 0), (7, 7)):
        (tmp_path / "intel-rapl:0" / "energy_uj").write_text(str(value))
        total += step
        assert meter.energy_j() == pytest.approx(total * 1e-6)


def test_a_wrapping_tree_gives_the_true_energy(tmp_path: Path) -> None:
    """A counter of 30 J goes round every 75 ms at 400 W, and is read every 20 ms."""
    board = simulated.Board(window_ms=100)

    class Wrapping(Laid):
        poll_s = 0.02

        def energy_j(self) -> float | None:
            micro = round(self.board.energy[-1] * 1e6) % 30_000_000
            (tmp_path / "intel-rapl:0" / "energy_uj").write_text(str(micro))
            return real.energy_j()

        def power_w(self) -> float | None:
            return None

    lay_rapl(tmp_path, {"intel-rapl:0": ("package-0", 0)}, limit=29_999_999)
    real = open_meter(CPU, powercap=tmp_path)
    made, _ = laid_pass(Wrapping(board), trials=1)
    [window] = made.run(300).windows
    assert window.energy_j / (window.duration_ns * 1e-9) == pytest.approx(400, rel=0.01)
    assert window.integral_j is None


def test_a_tree_that_can_not_be_read_is_null_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6: a powercap file that only root may read."""
    with pytest.raises(NoMeter, match=r"has no RAPL counter.*virtual machines"):
        open_meter(CPU, powercap=tmp_path / "none")
    lay_rapl(tmp_path, TREE)
    whole = Path.read_text

    def forbidden(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return whole(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", forbidden)
    with pytest.raises(NoMeter, match=r"energy_uj can't be read: Permission denied \(only root"):
        open_meter(CPU, powercap=tmp_path)


def test_a_file_without_a_number_is_a_reason(tmp_path: Path) -> None:
    lay_rapl(tmp_path, {"intel-rapl:0": ("package-0", 1)})
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("\n")
    with pytest.raises(NoMeter, match="does not hold a number"):
        open_meter(CPU, powercap=tmp_path)
