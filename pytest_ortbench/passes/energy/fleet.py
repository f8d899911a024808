"""What a comparison of many runs keeps of the energy of a case."""

from __future__ import annotations

from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity

_DISAGREE = "ENERGY-DISAGREE"


def power(result: CaseResult, summary: Summary) -> dict[str, Quantity | float | str | None]:
    """Return the power of the device, and why neither it nor energy must be ranked."""
    windows = result.energy.windows if result.energy else ()
    idle = [window.idle_w for window in windows if window.idle_w is not None]
    return {
        "power": summary.quantities.get("power"),
        "power_reason": _DISAGREE if _DISAGREE in flag_names(summary.flags, "notes") else "",
        "idle_w": sum(idle) / len(idle) if idle else None,
    }
