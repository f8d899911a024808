"""Power and energy of each case that had an energy pass, as lines and columns."""

from __future__ import annotations

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line

_ENERGY = Column(
    key="energy",
    heading="energy/inf",
    about="Gross energy of the device per inference.",
    row="energy_per_inference_j",
    metric="energy_per_inference",
)
_POWER = Column(
    key="power",
    heading="power",
    about="Gross mean power of the device.",
    row="power_w",
    metric="power",
)
#: Columns that tables show when asked for, and where they stand.
COLUMNS = tuple((Place(after="size"), column) for column in (_ENERGY, _POWER))


def energy_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return a line for each case with energy, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [
        _line(result.energy, entry.summary, shown.name_of(result.case))
        for entry in shown.entries
        if (result := entry.result).failure is None
        and result.energy is not None
        and result.energy.windows
    ]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def _line(energy: Energy, summary: Summary, case: str) -> str:
    quantities = summary.quantities
    parts = [
        f"{quantities[name]} {label}"
        for name, label in (
            ("energy_per_inference", "an inference"),
            ("energy_net_per_inference", "of it above idle power"),
            ("power", "under load"),
            ("idle_power", "idle"),
        )
        if name in quantities
    ]
    window = energy.windows[0]
    counter = [w.counter_j for w in energy.windows if w.counter_j is not None]
    integral = [w.integral_j for w in energy.windows if w.integral_j is not None]
    checked = ""
    if sum(integral) and len(counter) == len(integral) == len(energy.windows):
        checked = (
            f", {100 * (sum(counter) / sum(integral) - 1):+.1f} % compared with integrated power"
        )
    note = f"; {energy.note}" if energy.note else ""
    return (
        f"energy of {case}: {', '.join(parts)} "
        f"({counted(len(energy.windows), 'trial')}, {window.source} of {window.device}{checked}"
        f"{note})"
    )
