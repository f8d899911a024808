"""Going on with an interrupted run: which cases it had finished, and whether it was the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.store.documents import list_runs, load


def plan_fingerprint(cases: Iterable[Case], environment: Mapping[str, str] | None = None) -> str:
    """Return a digest that two plans share exactly if they would measure the same.

    Args:
        cases: The planned cases; their order does not matter, nor where the model files lie (the
            files' digests count).
        environment: Further facts that must agree: host, versions of ONNX Runtime.

    Returns:
        32 hexadecimal digits.
    """
    lines = sorted(_canonical(case) for case in cases)
    lines.append(msgspec.json.encode(environment or {}, order="sorted"))
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """What an interrupted run, or several, left of a plan.

    Attributes:
        results: The measured cases by their key.
        runs: Ids of the runs that they come from, the newest first.
    """

    results: dict[tuple[str, str], CaseResult] = field(default_factory=dict)
    runs: tuple[str, ...] = ()


def resumable(root: Path, plan: str) -> Resumable:
    """Return the measured cases of the interrupted runs of a plan, and whose they are.

    Runs count from the newest back to the last one that was complete (a resumed run may have been
    interrupted again); where two have the same case, the newer one does. A case that failed is
    not among them: it is worth another try.

    Args:
        root: The results folder.
        plan: What :func:`plan_fingerprint` says of the plan.
    """
    found: dict[tuple[str, str], CaseResult] = {}
    runs: list[str] = []
    for stored in list_runs(root):
        if not plan or stored.plan != plan:
            continue
        if stored.complete:
            break
        try:
            run = load(stored.path)
        except DocumentError:
            # Its head could be read and its cases can't: then there is nothing to take from it.
            continue
        fresh = [
            result
            for result in run.cases
            if result.status == "measured" and result.case.key not in found
        ]
        found.update((result.case.key, result) for result in fresh)
        if fresh:
            runs.append(run.run_id)
    return Resumable(results=found, runs=tuple(runs))


def finished_results(root: Path, plan: str) -> dict[tuple[str, str], CaseResult]:
    """Return the results of :func:`resumable`."""
    return resumable(root, plan).results


def _canonical(case: Case) -> bytes:
    """The case as bytes, without what says where files lie instead of what is in them."""
    placeless = replace(
        case,
        model=replace(case.model, path=""),
        variant=replace(case.variant, path=""),
    )
    try:
        return msgspec.json.encode(placeless, order="sorted")
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return repr(placeless).encode("utf-8", "backslashreplace")
