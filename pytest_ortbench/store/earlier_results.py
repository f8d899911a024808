"""What the newest runs measured on this machine, for who wants to know how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Machine
from pytest_ortbench.store.documents import load
from pytest_ortbench.store.folder import DOCUMENT

#: So many of the newest documents are read, none that is larger: it takes some 10 ms a megabyte.
_NEWEST, _LARGEST_BYTES = 5, 2_000_000


def earlier_results(root: Path, machine: Machine) -> Iterator[CaseResult]:
    """Yield results of the newest runs of a machine, the oldest first; none where there are none.

    Args:
        root: The results folder.
        machine: The machine; runs of others are passed over.
    """
    with suppress(OSError):
        # Names of runs begin with their time.
        names = sorted((entry.name for entry in root.iterdir() if entry.is_dir()), reverse=True)
        for name in reversed(names[:_NEWEST]):
            path = root / name / DOCUMENT
            with suppress(OSError, DocumentError):
                if path.stat().st_size <= _LARGEST_BYTES:
                    run = load(path)
                    if run.machine.stable == machine.stable:
                        yield from run.cases
