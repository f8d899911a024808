"""Passes beside the standard one: each disturbs what the others measure, so each has its worker.

A pass takes the result of the standard pass, and what it found is added. It never costs the result
where its worker failed: the standard pass has given its numbers already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.passes.pass_object import Pass
from pytest_ortbench.passes.registry import PASSES, pass_named


def due(result: CaseResult, wanted: Iterable[str]) -> list[str]:
    """Return which of the wanted passes a result lacks; a case that failed gets few.

    Args:
        result: What is known of the case.
        wanted: Names of passes; behind a colon there may be an argument.
    """
    wanted = set(wanted)
    if result.failure is not None:
        wanted &= {entry.name for entry in PASSES if entry.looks_at_failed}
    plain = [entry.name for entry in PASSES if entry.name in wanted]
    with_arguments = sorted(name for name in wanted if ":" in name)
    return [name for name in (*plain, *with_arguments) if not _is_over(name, result)]


def carry_out(
    name: str,
    result: CaseResult,
    means: Means,
    *,
    keep: Callable[[CaseResult], None] | None = None,
) -> CaseResult:
    """Carry out one pass.

    Args:
        name: Of a pass, with an argument behind a colon if it takes one.
        result: What is known of the case.
        means: What it is carried out with, but for its argument.
        keep: Takes the result with what the pass has found so far.
    """
    began = time.monotonic()
    entry, argument = pass_named(name), _argument(name)
    means = replace(means, argument=argument)
    if keep is not None:
        means = replace(means, keep=lambda outcome: keep(_with(result, entry, outcome)))
    try:
        outcome = entry.load(entry.measure)(result, means)
    except WorkerError as error:
        reason = f"{error.failure.kind}: {error.failure.told}"
        outcome = _lacking(entry, result, argument, reason, interrupted=False)
    result = _with(result, entry, outcome)
    result = replace(result, wall_s=result.wall_s + time.monotonic() - began)
    return replace(result, flags=flags_of(result))


def without(
    result: CaseResult, names: Iterable[str], reason: str, *, interrupted: bool = False
) -> CaseResult:
    """Return a result with the reason for passes that it lacks, so that nothing looks unasked.

    Args:
        result: What is known of the case.
        names: The passes, as :func:`due` names them.
        reason: Why there is nothing.
        interrupted: Whether they were stopped before they were over, and are due again in a later
            run.
    """
    for name in names:
        entry = pass_named(name)
        outcome = _lacking(entry, result, _argument(name), reason, interrupted=interrupted)
        result = _with(result, entry, outcome)
    return replace(result, flags=flags_of(result))


def _argument(name: str) -> str:
    return name.partition(":")[2]


def _with(result: CaseResult, entry: Pass, outcome: object) -> CaseResult:
    values: dict[str, Any] = {entry.result_field: outcome}
    return replace(result, **values)


def _lacking(
    entry: Pass, result: CaseResult, argument: str, reason: str, *, interrupted: bool
) -> object:
    asked = (result, argument) if entry.lacking_takes_result else ()
    return entry.load(entry.lacking)(*asked, reason=reason, interrupted=interrupted)


def _is_over(name: str, result: CaseResult) -> bool:
    """Whether a pass was carried out: what an interrupt left of it is not enough."""
    entry = pass_named(name)
    if entry.is_over:
        return bool(entry.load(entry.is_over)(result, _argument(name)))
    outcome = getattr(result, entry.result_field)
    parts = outcome if isinstance(outcome, tuple) else (outcome,)
    return any(part is not None and not part.interrupted for part in parts)
