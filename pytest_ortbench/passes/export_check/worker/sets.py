"""The input sets of one choice of sizes, which the file and the source are fed alike."""

from __future__ import annotations

from pytest_ortbench.passes.export_check.questions import SizeChoice
from pytest_ortbench.worker.accuracy import MAGNITUDES
from pytest_ortbench.worker.inputs import make_feeds, scales, varies

#: The measured magnitude first; sizes alone are asked about at that one.
_ORDER = (1.0, 0.1, 10.0)


def magnitudes_of(choice: SizeChoice) -> tuple[float, ...]:
    """Return the magnitude of each input set, in their order."""
    scaled = choice.samples >= len(MAGNITUDES) and scales(choice.inputs)
    return tuple(
        _ORDER[number % len(_ORDER)] if scaled else 1.0
        for number in range(choice.samples if varies(choice.inputs) else 1)
    )


def feeds_of(choice: SizeChoice, number: int, *, seed: int) -> dict[str, object]:
    """Return what one input set feeds.

    Args:
        choice: Its sizes.
        number: Which of the sets.
        seed: Of drawn values.
    """
    magnitude = magnitudes_of(choice)[number]
    return make_feeds(choice.inputs, seed=seed, magnitude=magnitude, sample=number)
