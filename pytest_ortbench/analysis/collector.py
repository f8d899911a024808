"""Where the numbers of a case are gathered, and the reasons for those that it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.quantity import Quantity


class Collector:
    """Gathers quantities and reasons under their metric's name and unit.

    Attributes:
        quantities: Numbers by name of the metric.
        missing: Reasons, likewise.
        needed: Samples that a number asks for, of those that are missing for want of samples.
        infinite: What is beyond every number, since nothing differs, likewise; ``missing`` says so.
        notes: What stands behind a number, for the few where it is not plain from the number.
    """

    def __init__(self) -> None:
        self.quantities: dict[str, Quantity] = {}
        self.missing: dict[str, str] = {}
        self.needed: dict[str, int] = {}
        self.infinite: dict[str, Quantity] = {}
        self.notes: dict[str, str] = {}

    def add(
        self,
        name: str,
        value: float | None,
        *,
        reason: str = "not measured",
        low: float | None = None,
        high: float | None = None,
        samples: int = 1,
    ) -> None:
        """Take one number, or the reason if it is ``None``."""
        if value is None:
            self.missing[name] = reason
        else:
            self.quantities[name] = Quantity(
                value=float(value), unit=METRICS[name].unit, low=low, high=high, samples=samples
            )

    def need(self, name: str, samples: int) -> None:
        """Note that a number asks for more samples than there are."""
        self.needed[name] = samples
        self.missing[name] = f"n<{samples}"

    def add_infinite(self, name: str, *, reason: str) -> None:
        """Note that a metric is beyond every number, as a ratio to no difference at all is."""
        self.infinite[name] = Quantity(value=math.inf, unit=METRICS[name].unit)
        self.missing[name] = reason

    def reject(self, names: Sequence[str], reason: str) -> None:
        """Take one reason for several metrics."""
        for name in names:
            self.missing[name] = reason
