"""What a pass is carried out with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.launch.launcher import Launcher


def _as_it_is(case: Case) -> Case:
    return case


def let_go(part: object) -> None:
    """Keep nothing."""


def _no_reference(case: Case) -> Path:
    raise case_error(f"there is no reference for {case.case_id}", kind="unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a pass may use.

    Attributes:
        launcher: Starts the workers.
        others: The other cases of the plan, which a pass may learn further shapes from.
        results: What is known of cases that were measured, of which a pass may take over what is
            the same for all cases of a model.
        argument: What a test asked for behind the name of the pass; empty for what the case itself
            asks for.
        prepare: Gives another case of the plan the file of its variant; raises a ``WorkerError``
            where it has none.
        reference: Gives the file of feeds and reference outputs of a case; raises a ``WorkerError``
            where it has none.
        keep: Takes what a pass would return if it ended now, so that an interrupt costs nothing of
            it.
    """

    launcher: Launcher
    others: Sequence[Case] = ()
    results: Sequence[CaseResult] = ()
    argument: str = ""
    prepare: Callable[[Case], Case] = _as_it_is
    reference: Callable[[Case], Path] = _no_reference
    keep: Callable[[object], None] = let_go
