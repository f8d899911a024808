"""The figure of energy by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures.dots import Theme, draw_by_case

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_THEME = Theme(
    heading="Energy by case",
    metric="energy_per_inference",
    axis="energy of one inference",
    value="J/inf",
    which="thriftiest",
    reading="Mark: gross energy of the device per inference; bar: its 95 % interval over the "
    "trials.",
)


def draw_energy(shown: Sequence[Entry]) -> Figure | None:
    """Draw the energy of each case; ``None`` if no case has any."""
    return draw_by_case(shown, _THEME)
