"""The one place that runs things: a planned case goes in, its result comes out, once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult, Failure, RuntimeInfo
from pytest_ortbench.core.run import Canary, Run
from pytest_ortbench.engine.standard import measure
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.plan.matrix import Planned

Key = tuple[str, str]


class Listener(Protocol):
    """Hears what the engine does; nothing that it does may take long."""

    def begin(self, case: Case) -> None:
        """A case starts."""

    def end(self, result: CaseResult) -> None:
        """A case is over."""

    def warn(self, text: str) -> None:
        """Something went wrong that does not stop the run."""


class Journal(Protocol):
    """Keeps each result as soon as it exists."""

    def append(self, result: CaseResult) -> None:
        """Store one result durably."""


@dataclass(slots=True)
class Engine:
    """Measures planned cases lazily, each once, one at a time.

    Attributes:
        launcher: Starts the workers.
        header: The run document without its cases.
        listener: Hears what happens.
        journal: Keeps each result at once; ``None`` keeps them in memory only.
        finished: Results of an interrupted run of the same plan, used instead of measuring.
        min_samples: Samples that the tests of a case need (368 for a limit on p99), by its key.
    """

    launcher: Launcher
    header: Run
    listener: Listener
    journal: Journal | None = None
    finished: Mapping[Key, CaseResult] = field(default_factory=dict)
    min_samples: Mapping[Key, int] = field(default_factory=dict)
    _results: dict[Key, CaseResult] = field(default_factory=dict)
    _scratch: tempfile.TemporaryDirectory[str] | None = None

    def result(self, planned: Planned) -> CaseResult:
        """Return the case's result, measuring it if this is the first time it is asked for."""
        key = planned.case.key
        if key not in self._results:
            self.listener.begin(planned.case)
            result = self._obtain(planned)
            # Known from here on, even if storing it fails: nothing is measured twice.
            self._results[key] = result
            self._store(result)
            self.listener.end(result)
        return self._results[key]

    def _store(self, result: CaseResult) -> None:
        if self.journal is None:
            return
        try:
            self.journal.append(result)
        except DocumentError as error:
            # A full disk costs no measurement: the journal writes this line along with the next.
            self.listener.warn(str(error))

    def _obtain(self, planned: Planned) -> CaseResult:
        if planned.refusal is not None:
            return refused(planned.case, planned.refusal)
        earlier = self.finished.get(planned.case.key)
        if earlier is not None:
            return earlier
        case = planned.case
        least = self.min_samples.get(case.key, 0)
        if least > case.sampling.min_samples:
            case = replace(case, sampling=replace(case.sampling, min_samples=least))
        return measure(case, self.launcher, self._scratch_folder())

    def known(self, planned: Planned) -> CaseResult | None:
        """Return the case's result if it exists already."""
        return self._results.get(planned.case.key)

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """Results so far, in the order of measuring."""
        return tuple(self._results.values())

    def run(self, *, canary: Canary | None = None, interrupted: bool = False) -> Run:
        """Return the run document as it stands now.

        Args:
            canary: The pinned model, if it was measured.
            interrupted: Whether the run was stopped before its end; it then counts as unfinished.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return replace(
            self.header,
            finished_at=None if interrupted else now,
            cases=self.results,
            canary=canary,
            runtimes=_observed(self.results),
        )

    def close(self) -> None:
        """End the workers and remove the scratch folder."""
        self.launcher.close()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _scratch_folder(self) -> Path:
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="ortbench-")
        return Path(self._scratch.name)


def refused(case: Case, failure: Failure) -> CaseResult:
    """Return the result of a case that was refused before anything ran."""
    return CaseResult(
        case=case,
        status=failure.kind,
        failure=failure,
        started_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _observed(results: Iterable[CaseResult]) -> dict[str, RuntimeInfo]:
    """The interpreters that really measured, by label."""
    found: dict[str, RuntimeInfo] = {}
    for result in results:
        for measurement in result.measurements:
            found.setdefault(result.case.runtime.label, measurement.runtime)
    return found
