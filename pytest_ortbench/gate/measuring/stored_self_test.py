"""Runs of the same code on this machine, one after the other, as a stored baseline meets them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.run import Machine
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.gate.measuring.trial_log import StoredTrialLog
from pytest_ortbench.gate.numbers.stored_relative import RunSpread
from pytest_ortbench.gate.numbers.stored_trials import StoredTrial, spreads_of, trial_of
from pytest_ortbench.launch.launcher import Launcher


def stored_trials(
    cases: Sequence[Case],
    launcher: Launcher,
    scratch: Path,
    *,
    until: float,
    version: str,
    seed: int = 0,
) -> Iterator[StoredTrial]:
    """Measure all cases again and again, in another order each time; yield each run.

    Args:
        cases: What is measured, prepared.
        launcher: Starts the workers.
        scratch: Folder for reference outputs.
        until: When to stop, of ``time.monotonic()``; a run that began is finished.
        version: Version of this package, for the record.
        seed: Decides the orders.
    """
    order = random.Random(seed)
    while True:
        for case in order.sample(cases, len(cases)):
            if time.monotonic() >= until:
                return
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
            at = datetime.now(timezone.utc).isoformat(timespec="seconds")
            result = measure(case, launcher, scratch)
            yield trial_of(result, load=round(load, 2), at=at, version=version)


def spreads_on(machine: Machine) -> dict[str, RunSpread]:
    """Return by how much runs of the same code differ on a machine, as far as it was tried here.

    A log that can't be read says nothing.
    """
    try:
        return spreads_of(StoredTrialLog.of(machine).read())
    except DocumentError:
        return {}
