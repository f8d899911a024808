"""The one way from a request to results: plan, prepare, measure.

The pytest front end and every console command that starts a worker do it through a session. It
makes what is needed for that when it is first asked for, and ends all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.convert.variants import VARIANTS_FOLDER, Variants
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import long_reads_told
from pytest_ortbench.core.outcome import PHASES, CaseResult
from pytest_ortbench.core.own_folder import sweep
from pytest_ortbench.core.run import Run
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.machine_lock import MachineLock
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import project_start
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.project_root import root_directory
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.served_apps import service_command, with_service
from pytest_ortbench.runtimes.resolve import RUNTIMES_FOLDER, ChosenRuntimes, choose_runtimes
from pytest_ortbench.runtimes.specs import CURRENT

if TYPE_CHECKING:
    from pytest_ortbench.execution.budget import Budget
    from pytest_ortbench.execution.default_retry import DefaultRetry
    from pytest_ortbench.execution.execution import Execution, Listener, ResultStore
    from pytest_ortbench.runtimes.environments import Environments


class Session:
    """Plans requests, prepares the files of their cases, and measures these.

    Args:
        root: Folder that relative paths of the user start from.
        notify: Told what is chosen, fetched or made on the way.
        runtimes: Where to measure, as ``--ort-runtimes`` takes it.
        place: Where the runtimes were written, for messages.
        named_from: Folder that names of models start from; by default pytest's root directory.
        announce: Told of environments that are made, which takes long; by default ``notify``.
        on_phase: Told what a worker is doing with each phase that it enters, for people; it must be
            quick.
        memory_bytes: What memory a worker may take; ``None``: nearly all that is free.
        waits: Whether to wait for another run that measures on this machine.
        how_not_to_wait: What stands behind the news of waiting.
        longest_wait_s: How long to wait for it; ``None``: until it has ended.

    Attributes:
        machine: The machine's turn; whoever measures takes it first.
    """

    def __init__(
        self,
        root: Path,
        *,
        notify: Callable[[str], None],
        runtimes: Sequence[str] = (CURRENT,),
        place: str = "--runtimes",
        named_from: Path | None = None,
        announce: Callable[[str], None] | None = None,
        on_phase: Callable[[str], None] | None = None,
        memory_bytes: int | None = None,
        waits: bool = True,
        how_not_to_wait: str = "",
        longest_wait_s: float | None = None,
    ) -> None:
        self.root = root
        self.named_from = root_directory(root) if named_from is None else named_from
        self.machine = MachineLock(
            announce or notify, waits=waits, hint=how_not_to_wait, longest_s=longest_wait_s
        )
        self.launcher = ProcessLauncher(
            on_phase=None if on_phase is None else lambda name: on_phase(PHASES.get(name, name)),
            memory_bytes=memory_bytes,
            machine=self.machine,
        )
        self._notify, self._announce = notify, announce or notify
        self._specs = tuple(runtimes)
        self._place = place
        self._execution: Execution | None = None
        sweep()
        self._summaries: dict[Key, tuple[CaseResult, Summary]] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def project(self) -> Path:
        """Folder where to look for what the project configures."""
        return project_start(self.root, self.named_from)

    def _environments(self) -> Environments:
        # The interpreter that runs pytest needs none of it.
        from pytest_ortbench.runtimes.environments import Environments

        return Environments(cache_folder() / RUNTIMES_FOLDER, notify=self._announce)

    # -- plan ---------------------------------------------------------------------------------

    @cached_property
    def runtimes(self) -> ChosenRuntimes:
        """Where to measure; environments that are not there yet are made at the first call."""
        return self.choose_runtimes(self._specs, place=self._place)

    def choose_runtimes(self, specs: Sequence[str], *, place: str) -> ChosenRuntimes:
        """Return the runtimes that specifications stand for, made if they are not there yet.

        Raises:
            UsageError: for a specification or configuration that breaks a rule.
        """
        return choose_runtimes(
            specs,
            root=self.project,
            environments=self._environments,
            notify=self._notify,
            place=place,
        )

    @cached_property
    def planner(self) -> Planner:
        """Makes the plans of the session."""
        return self.another_planner()

    def another_planner(self, chosen: ChosenRuntimes | None = None) -> Planner:
        """Return a planner that gives models names of its own, maybe for other runtimes.

        One planner gives two files different names; both sides of a comparison bear the same.
        """
        chosen = self.runtimes if chosen is None else chosen
        return Planner(
            self.launcher,
            self.root,
            runtimes=chosen.runtimes,
            notify=self._notify,
            failures=chosen.failures,
            named_from=self.named_from,
        )

    def plan(self, request: PlanRequest) -> Plan:
        """Return the cases of a request.

        Raises:
            UsageError: if it can't be understood.
        """
        request = with_service(request)
        if request.serve:
            command = partial(service_command, request)
            self.launcher.services.expect(request.endpoint, command, self.root)
        with long_reads_told(self._announce):
            return self.planner.plan(request)

    # -- prepare ------------------------------------------------------------------------------

    @cached_property
    def variants(self) -> Variants:
        """Makes the files of precisions, and keeps them in the user's cache."""
        return Variants(launcher=self.launcher, folder=cache_folder() / VARIANTS_FOLDER)

    @cached_property
    def retry(self) -> DefaultRetry:
        """Tries other default sizes where nothing measures yet."""
        from pytest_ortbench.execution.default_retry import DefaultRetry

        return DefaultRetry(launcher=self.launcher)

    def prepare(self, planned: Planned) -> Case:
        """Return a case with its file, made if it is not there yet, at sizes that its graph takes.

        Raises:
            WorkerError: if it is refused, or its file can't be made.
        """
        if planned.refusal is not None:
            raise WorkerError(planned.refusal)
        return self.retry.fitting(self.retry.prepare(planned, self.variants))

    # -- measure ------------------------------------------------------------------------------

    def start(
        self,
        header: Run,
        listener: Listener,
        planned: Mapping[Key, Planned],
        *,
        journal: ResultStore | None = None,
        finished: Mapping[Key, CaseResult] | None = None,
        min_samples: Mapping[Key, int] | None = None,
        passes: Mapping[Key, Collection[str]] | None = None,
        budget: Budget | None = None,
    ) -> Execution:
        """Return what measures the cases of a run, each once.

        Args:
            header: The run document without its cases.
            listener: Hears what happens.
            planned: All cases of the run.
            journal: Keeps each result at once.
            finished: Results of an interrupted run of the same plan.
            min_samples: Samples that the tests of a case need, by its key.
            passes: Passes besides the standard one that the tests of a case need, by its key.
            budget: The time that the run has; ``None`` sets no limit.
        """
        # Whoever only plans does not wait for it to load.
        from pytest_ortbench.execution.execution import Execution

        self._execution = Execution(
            launcher=self.launcher,
            header=header,
            listener=listener,
            journal=journal,
            finished=finished or {},
            min_samples=min_samples or {},
            passes=passes or {},
            planned=planned,
            counted=_compares_variants(planned.values()),
            machine=self.machine,
            budget=budget,
            variants=self.variants,
        )
        return self._execution

    def summary_of(self, result: CaseResult) -> Summary:
        """Return the numbers of a result, computed once until a further pass changes it."""
        kept = self._summaries.get(result.case.key)
        if kept is None or kept[0] is not result:
            kept = self._summaries[result.case.key] = (result, summarise(result))
        return kept[1]

    def close(self) -> None:
        """End every worker that is left; remove what was written on the way, and what they left."""
        if self._execution is not None:
            self._execution.close()
        self.launcher.close()
        self.machine.close()
        sweep()


def _compares_variants(planned: Collection[Planned]) -> bool:
    """Return whether some model is measured in more than one precision."""
    precisions: dict[str, set[str]] = {}
    for entry in planned:
        case = entry.case
        precisions.setdefault(case.model.name, set()).add(case.variant.precision)
    return any(len(of_model) > 1 for of_model in precisions.values())
