"""What a baseline has and a run lost: models of which no case is left, and single cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_ortbench.core.acceptance import accept_command
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.gate.numbers.sentences import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One model that is gone, or one case of a model that is still there.

    Attributes:
        name: The model, or the case with its runtime where the run has several.
        results: The verdicts on its cases.
        is_model: Whether no case of the model is left.
    """

    name: str
    results: tuple[GateResult, ...]
    is_model: bool

    @property
    def reason(self) -> str:
        """What is gone, and who has it."""
        baselines = listed(list(dict.fromkeys(result.baseline for result in self.results)))
        if not self.is_model:
            return f"{self.name} was removed: {baselines} contains it"
        cases = listed(list(dict.fromkeys(result.case_id for result in self.results)))
        return f"the model {self.name} was removed: {baselines} contains it, as {cases}"

    @property
    def mend(self) -> str:
        """What to do if it was meant."""
        return f"If it was intended: {accept_command(self.name, 'removed')}"


def removals(
    results: Iterable[GateResult], models: Iterable[str], *, several_runtimes: bool
) -> tuple[Removal, ...]:
    """Return what is gone: a model of which nothing is left, else each of its cases.

    Args:
        results: The verdicts on cases that are gone.
        models: Names of the models of which this run has a case.
        several_runtimes: Whether cases are told apart by their runtime.
    """
    left = set(models)
    by_name: dict[tuple[str, bool], list[GateResult]] = {}
    for result in results:
        is_model = bool(result.model) and result.model not in left
        case = f"{result.case_id}+{result.runtime}" if several_runtimes else result.case_id
        by_name.setdefault((result.model if is_model else case, is_model), []).append(result)
    return tuple(
        Removal(name=name, results=tuple(of_name), is_model=is_model)
        for (name, is_model), of_name in by_name.items()
    )
