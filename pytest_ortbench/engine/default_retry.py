"""A case that a graph refused at its default sizes: tried again at the next sensible ones."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field, replace

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.planning.next_sizes import default_symbols, next_sizes, with_sizes
from pytest_ortbench.schema.case_questions import CheckOutputs

#: Failures that other sizes may mend, in the first inference.
_MENDED = ("error", "unsupported", "out_of_memory")


@dataclass(slots=True, kw_only=True)
class DefaultRetry:
    """Tries other default sizes, and remembers those that a model took.

    Attributes:
        launcher: Starts the workers.
    """

    launcher: Launcher
    _taken: dict[str, dict[str, int]] = field(default_factory=dict)

    def known(self, case: Case) -> Case:
        """Return the case at the sizes that its model took after it had refused the first ones."""
        sizes = self._taken.get(case.model.path)
        other = None
        if sizes and default_symbols(case).keys() >= sizes.keys():
            other = with_sizes(case, sizes)
        return other or case

    def other(self, result: CaseResult) -> Case | CaseResult:
        """Return the case at sizes that its graph takes, or its failure with what was tried.

        Args:
            result: What became of it.
        """
        case, failure = result.case, result.failure
        if failure is None or failure.phase != "first" or failure.kind not in _MENDED:
            return result
        tried = {name: [size.size] for name, size in default_symbols(case).items()}
        for sizes in next_sizes(case, smaller=failure.kind == "out_of_memory"):
            other = with_sizes(case, sizes)
            if other is None:
                continue
            for name, size in sizes.items():
                tried[name].append(size)
            if self._runs(other):
                self._taken[case.model.path] = sizes
                return other
        return replace(result, failure=_with_tries(failure, tried)) if tried else result

    def _runs(self, case: Case) -> bool:
        deadline = time.monotonic() + case.sampling.timeout_s
        try:
            with closing(self.launcher.open(case, worker=0, deadline=deadline)) as worker:
                worker.ask(CheckOutputs(run="first"))
        except WorkerError:
            return False
        return True


def _with_tries(failure: Failure, tried: dict[str, list[int]]) -> Failure:
    told = "; ".join(f"{name} {', '.join(map(str, sizes))}" for name, sizes in tried.items())
    name = next(iter(tried))
    hint = f"Nobody named these sizes, so defaults were tried: {told}. Set yours with "
    hint += f"--ort-dims={name}:SIZE"
    return replace(failure, hint=f"{failure.hint.rstrip('. ')}. {hint}" if failure.hint else hint)
