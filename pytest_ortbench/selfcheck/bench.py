"""The bench of one provider in one runtime: plans cases, makes their files, opens workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar, cast

from pytest_ortbench.core.case import Case, Provider, Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.seam import Launcher, Worker
from pytest_ortbench.models.builders.check_models import write_check_model
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor
from pytest_ortbench.selfcheck.check import CantLook, unchecked
from pytest_ortbench.worker.binding import may_keep_outputs

T = TypeVar("T")

#: A case of a check is measured for so long, and a worker may take so long for everything.
TIMED_S, SHORT_TIMED_S = 1.0, 0.3
_TIMEOUT_S = 60.0
#: No line needs the last percent.
_WARM_UP_S = 4.0

#: Batches of the model ``product``, tried until an inference takes so long: much longer than what
#: starts one. Providers with a device of their own are tried with larger ones.
_BATCHES_ON_HOST = (1, 64)
_BATCHES = (1, 64, 1024, 16384, 65536)
_HEAVY_NS = 1_000_000


class SessionBench:
    """A :class:`~pytest_ortbench.selfcheck.check.CheckBench` of real workers.

    Attributes:
        provider: The provider that is checked.
        launcher: Starts workers.
        short: Whether it is the short form.

    Args:
        plan: Plans a request.
        prepare: Makes the file of a planned case.
        launcher: Starts workers.
        provider: What is checked.
        runtime: In which runtime.
        folder: Takes models and reference outputs.
        short: Whether it is the short form.
    """

    def __init__(
        self,
        *,
        plan: Callable[[PlanRequest], Plan],
        prepare: Callable[[Planned], Case],
        launcher: Launcher,
        provider: Provider,
        runtime: Runtime,
        folder: Path,
        short: bool = False,
    ) -> None:
        self.provider, self.launcher, self.short = provider, launcher, short
        self._plan, self._prepare = plan, prepare
        self._runtime = runtime
        self._folder = folder
        self._measured: dict[tuple[str, str], CaseResult] = {}
        self._kept: dict[str, object] = {}

    def model(self, name: str) -> str:
        """Return the path of a model of known behaviour, by its name."""
        return str(write_check_model(name, self._folder))

    def case(
        self,
        model: str,
        *,
        precision: str = "native",
        io: str = "end-to-end",
        batch: int | None = None,
        callers: int = 1,
        threads: int | None = None,
        options: dict[str, str] | None = None,
    ) -> Case:
        """Return a case that is ready to run."""
        given = {**self.provider.options, **(options or {})} if options else {}
        request = PlanRequest(
            models=(model,),
            providers=(self.provider.label,),
            precisions=(precision,),
            batch_sizes=() if batch is None else (batch,),
            io=(io,),
            threads=() if threads is None else (threads,),
            concurrency=() if callers == 1 else (callers,),
            provider_options={self.provider.alias: given} if given else {},
            sampling=Sampling(
                time_s=SHORT_TIMED_S if self.short else TIMED_S,
                workers=1,
                timeout_s=_TIMEOUT_S,
                keep=500,
                yardstick="off",
            ),
            generate="off",
        )
        plan = self._plan(request)
        planned = next(
            (entry for entry in plan.entries if entry.case.runtime.label == self._runtime.label),
            None,
        )
        if planned is None:
            reasons = [skip.reason for skip in plan.skips]
            raise CantLook(unchecked("left out", "; ".join(reasons) or "no such case is planned"))
        if planned.refusal is not None:
            raise CantLook(unchecked(planned.refusal.kind, planned.refusal.message))
        return self._prepare(planned)

    @contextmanager
    def opened(self, case: Case) -> Iterator[Worker]:
        """Open a case in a worker, warmed up."""
        deadline = time.monotonic() + case.sampling.timeout_s
        with closing(self.launcher.open(case, worker=0, deadline=deadline)) as worker:
            worker.ask(WarmUpFor(budget_s=min(_WARM_UP_S, warm_up_budget_s(case))))
            yield worker

    def measured(self, case: Case) -> CaseResult:
        """Measure a case by the standard pass, in short, and once however many ask."""
        if case.key not in self._measured:
            self._measured[case.key] = measure(case, self.launcher, self._folder / "reference")
        return self._measured[case.key]

    def heavy(self, io: str = "end-to-end") -> Case:
        """Return a case whose inference takes much longer than to start it."""
        on_host = not may_keep_outputs(self.provider)
        batch = self.once("heavy", lambda: self._heavy_batch(on_host=on_host))
        return self.case(self.model("product"), io=io, batch=batch)

    def once(self, name: str, look: Callable[[], T]) -> T:
        """Return what a look found, taken once however many checks ask for it."""
        if name not in self._kept:
            self._kept[name] = look()
        return cast("T", self._kept[name])

    def _heavy_batch(self, *, on_host: bool) -> int:
        """The smallest batch whose inference is long, or the largest that runs."""
        largest = _BATCHES_ON_HOST[0]
        for batch in _BATCHES_ON_HOST if on_host else _BATCHES:
            try:
                with self.opened(self.case(self.model("product"), batch=batch)) as worker:
                    block = worker.ask(TimeBlock(iterations=3))
            except WorkerError:
                if batch == largest:
                    raise
                break
            largest = batch
            if min(block.durations_ns) >= _HEAVY_NS:
                break
        return largest
