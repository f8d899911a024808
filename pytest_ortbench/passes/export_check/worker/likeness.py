"""How near values are to those that are right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.nearness import nearness_db
from pytest_ortbench.worker.accuracy import MEASURED, Collected
from pytest_ortbench.worker.sample_file import Sample


def figures_of(
    given: Sequence[object], right: Sequence[object], names: Sequence[str]
) -> tuple[OutputAccuracy, ...]:
    """Hold some values of one inference against those that are right.

    Args:
        given: The values.
        right: What they should be, in their order.
        names: What they are called.
    """
    collected = Collected()
    sample = Sample(magnitude=MEASURED, feeds={}, outputs=list(right))
    collected.add(sample, list(given), names)
    return collected.outputs()


def likeness_db(given: object, right: object) -> float:
    """Return how near a value is to what is right; the lowest where nothing can be compared."""
    figures = figures_of([given], [right], ["value"])
    return min(map(nearness_db, figures), default=-math.inf)
