"""Margins that a machine can't resolve are refused before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.units import amounts_apart
from pytest_ortbench.gate.measuring.trial_log import TrialLog
from pytest_ortbench.gate.numbers.self_test import resolution
from pytest_ortbench.launch.machine import fingerprint


def check_margins(margins: Mapping[str, float | None], *, place: str) -> None:
    """Refuse a margin below what this machine's self-test resolved.

    Without a self-test, or with one that can't be read, nothing is refused: the launches will tell.

    Args:
        margins: Margins of the latency by case id; ``None`` where the user set none.
        place: Where they come from.

    Raises:
        UsageError: if one can't be resolved.
    """
    wanted = {case_id: margin for case_id, margin in margins.items() if margin is not None}
    if not wanted:
        return
    log = TrialLog.of(fingerprint())
    try:
        least = resolution(log.read())
    except DocumentError:
        return
    case_id = min(wanted, key=lambda name: wanted[name])
    if least is not None and wanted[case_id] < least:
        wish, seen = amounts_apart(wanted[case_id], least, "ratio")
        raise UsageError(
            f"the margin of {case_id} is {wish}, but on this machine the noise hides slowdowns "
            f"below {seen}, as its self-test showed",
            place=place,
            hint=f"Write a margin of {seen} or more. If the machine is quieter now, remove "
            f"{log.path}, and run 'ortbench gate --self-test' again",
        )
