"""Asks a reference how far it differs from itself, where a case would be condemned by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_ortbench.analysis.inaccuracy import needs_spread
from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.precision import has_fixed_ranges
from pytest_ortbench.launch.seam import Launcher


def with_spread(result: CaseResult, asked: Case, launcher: Launcher, scratch: Path) -> CaseResult:
    """Return a result whose accuracy says how far the reference differs from itself.

    Only where its outputs are further from the reference than they may be; the others are returned
    as they are, and cost nothing.

    Args:
        result: What is known of the case.
        asked: The case that the reference was computed for, in the runtime of the reference.
        launcher: Starts the worker; it asks each reference once.
        scratch: Folder of the reference outputs.
    """
    if result.accuracy is None or not needs_spread(result):
        return result
    # As in the comparison: ranges that were fixed beforehand hold at the measured magnitude.
    magnitudes = (1.0,) if has_fixed_ranges(result.case) else ()
    try:
        reference = launcher.reference(asked, scratch)
        spread = launcher.reference_spread(asked, reference, magnitudes)
    except WorkerError as error:
        spread = ReferenceSpread(reason=error.failure.told)
    return replace(result, accuracy=replace(result.accuracy, spread=spread))
