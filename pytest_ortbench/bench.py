"""What one pytest run knows of its matrix: plans, the engine, limits.

Nothing here exists until a test of ours is collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.metrics import ENERGY_METRICS
from pytest_ortbench.interrupts import Shield
from pytest_ortbench.marker import MarkerValues, Rejected, marker_error, read_marker
from pytest_ortbench.model_file import OnnxFile
from pytest_ortbench.options import Options, read_options
from pytest_ortbench.progress import Progress

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case, Sampling
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.core.run import Canary, Run, Skip
    from pytest_ortbench.engine.engine import Engine
    from pytest_ortbench.engine.planning import Planner
    from pytest_ortbench.gating import Gating
    from pytest_ortbench.launch.runtimes import ChosenRuntimes
    from pytest_ortbench.plan.matrix import Plan, Planned
    from pytest_ortbench.plan.request import PlanRequest
    from pytest_ortbench.store.folder import RunFolder

_KEY = pytest.StashKey["Bench"]()
_MODELS_IGNORED = "--ort-models does not count for model files that are named themselves"


class Bench:
    """State of one pytest run; :meth:`of` makes it at the first call."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.options: Options = read_options(config)
        self.planned: dict[tuple[str, str], Planned] = {}
        self.needs: dict[tuple[str, str], int] = {}
        self.passes: dict[tuple[str, str], set[str]] = {}
        self.skips: dict[Skip, None] = {}
        self.notes: list[str] = []
        self.usage_errors: dict[str, None] = {}
        self.finished: Run | None = None
        self.files: list[tuple[str, Path]] = []
        self.left_out: list[str] = []
        self.shield = Shield()
        self.errors: list[str] = []
        self._plans: dict[str, Plan] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._ended: set[tuple[str, str]] = set()
        self._provider_specs: dict[str, None] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> Bench:
        """Return the run's state."""
        if _KEY not in config.stash:
            config.stash[_KEY] = cls(config)
            config.pluginmanager.register(config.stash[_KEY].shield, "ortbench-interrupts")
        return config.stash[_KEY]

    @classmethod
    def existing(cls, config: pytest.Config) -> Bench | None:
        """Return the run's state if a test of ours was collected, else ``None``."""
        return config.stash.get(_KEY, None)

    @property
    def root(self) -> Path:
        """Folder that relative paths of the user start from."""
        return self.config.invocation_params.dir

    @cached_property
    def progress(self) -> Progress:
        """Shows what is measured now."""
        # Not when the state is made: that may be before pytest has its reporter.
        plugins = self.config.pluginmanager
        return Progress(
            plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
        )

    @cached_property
    def planner(self) -> Planner:
        """Makes the plans; its launcher starts workers only to ask runtimes what they have."""
        return self._planner_in(self.runtimes)

    def another_planner(self, specs: Sequence[str] = (), *, place: str = "") -> Planner:
        """Return one that gives models names of its own, for other runtimes if some are named."""
        return self._planner_in(self._choose(specs, place=place) if specs else self.runtimes)

    def _planner_in(self, chosen: ChosenRuntimes) -> Planner:
        from pytest_ortbench.engine.planning import Planner
        from pytest_ortbench.launch.launcher import ProcessLauncher

        return Planner(
            ProcessLauncher(on_phase=None, log_folder=None),
            self.root,
            runtimes=chosen.runtimes,
            notify=self.notes.append,
            failures=chosen.failures,
        )

    @cached_property
    def runtimes(self) -> ChosenRuntimes:
        """Where to measure; environments that are not there yet are made at the first call."""
        place = self.options.places.get("runtimes", "--ort-runtimes")
        chosen = self._choose(self.options.runtimes, place=place)
        if all(runtime.shares_files for runtime in chosen.runtimes):
            from pytest_ortbench.option_values import refuse_absent_libraries

            refuse_absent_libraries(self.options)
        return chosen

    def _choose(self, specs: Sequence[str], *, place: str) -> ChosenRuntimes:
        from pytest_ortbench.launch.environments import Environments
        from pytest_ortbench.launch.runtimes import RUNTIMES_FOLDER, choose_runtimes
        from pytest_ortbench.zoo.cache import cache_folder

        chosen = choose_runtimes(
            specs,
            root=self.root,
            environments=Environments(cache_folder() / RUNTIMES_FOLDER, notify=self.progress.say),
            notify=self.notes.append,
            place=place,
        )
        self.skips.update(dict.fromkeys(chosen.skips))
        return chosen

    def _marker(self, item: pytest.Item) -> MarkerValues:
        return read_marker(item.iter_markers("ortbench"), place=item.nodeid)

    def _request(self, item: pytest.Item) -> PlanRequest:
        """The options as a request; a model file's own tests measure that file only."""
        from pytest_ortbench.plan.request import PlanRequest

        options = self.options
        file = item.getparent(OnnxFile)
        if file is not None and options.models and _MODELS_IGNORED not in self.notes:
            self.notes.append(_MODELS_IGNORED)
        return PlanRequest(
            models=(str(file.path),) if file is not None else self._models(),
            providers=options.providers,
            precisions=options.precisions,
            batch_sizes=options.batch_sizes,
            dims=options.dims,
            threads=options.threads,
            graph_opts=options.graph_opts,
            # One case with one caller is what everybody gets; asked for, it stands in the id.
            concurrency=options.concurrency if "concurrency" in options.given else (),
            sessions=options.sessions if "sessions" in options.given else (),
            io=options.io,
            inputs=options.inputs,
            session_options=options.session_options,
            provider_options=options.provider_options,
            custom_ops=tuple(str(path) for path in options.custom_ops),
            sampling=self._sampling(),
        )

    def _models(self) -> tuple[str, ...]:
        if self.options.models:
            return self.options.models
        offered = self.config.hook.pytest_ortbench_models(config=self.config)
        return tuple(str(spec) for specs in offered for spec in specs)

    def _sampling(self) -> Sampling:
        from pytest_ortbench.core.case import Sampling

        options = self.options
        return Sampling(
            time_s=options.time_s,
            target=options.target,
            workers=options.workers,
            timeout_s=options.timeout_s,
            soak_s=options.soak_s,
            keep=0 if options.samples == "all" else Sampling().keep,
        )

    def plan_for(self, definition: pytest.Item) -> Plan:
        """Return the plan of one test function; tests with equal axes share it."""
        request = self._marker(definition).apply(self._request(definition))
        self._provider_specs.update(dict.fromkeys(request.providers))
        key = repr(request)
        if key not in self._plans:
            self._plans[key] = self._with_offered_inputs(self.planner.plan(request))
        if self.gating is not None:
            self.gating.note_plan(request, self._plans[key])
        return self._plans[key]

    def entries_for(self, definition: pytest.Item) -> Sequence[Planned | Rejected]:
        """Return the cases of one test function.

        What is wrong with its own marker makes it one test that fails; what is wrong with an
        option is noted in :attr:`usage_errors` and ends the run before it starts. Neither is
        raised here, where pytest would show a traceback.
        """
        try:
            return self.plan_for(definition).entries
        except OrtbenchError as error:
            message = marker_error(error, definition)
            if message is not None:
                return [Rejected(message=message)]
            self.usage_errors[str(error)] = None
            return []

    def _with_offered_inputs(self, plan: Plan) -> Plan:
        """Ask plugins for real inputs of each case, if any plugin offers some."""
        from pytest_ortbench.plan.matrix import with_inputs

        hook = self.config.hook.pytest_ortbench_inputs
        if not hook.get_hookimpls():
            return plan
        entries = []
        for planned in plan.entries:
            path = hook(case=planned.case, config=self.config)
            entries.append(planned if path is None else with_inputs(planned, self.root / path))
        return replace(plan, entries=tuple(entries))

    def id_of(self, planned: Planned | Rejected) -> str:
        """The test id of a case: its case id, and the runtime where there are several."""
        if isinstance(planned, Rejected):
            return "rejected"
        key = planned.case.key
        if key not in self._ids:
            case_id, label = key
            several = len(self.runtimes.runtimes) > 1
            self._ids[key] = f"{case_id}+{label}" if several and label != "current" else case_id
        return self._ids[key]

    def limits_of(self, item: pytest.Item) -> tuple[Limit, ...]:
        """Limits that the markers of a test set."""
        return self._marker(item).limits

    def select(self, items: Iterable[pytest.Item]) -> None:
        """Note the cases of the tests that will run, and what those tests need of them."""
        from pytest_ortbench.analysis.limits import samples_for_limits

        self._refuse_unused_options()
        ours = [(item, planned) for item in items if (planned := planned_of(item)) is not None]
        for item, planned in ours:
            self.planned.setdefault(planned.case.key, planned)
            least = samples_for_limits(self.limits_of(item))
            if least:
                self.needs[planned.case.key] = max(least, self.needs.get(planned.case.key, 0))
            self.passes.setdefault(planned.case.key, set()).update(self._passes_of(item))
        for plan in self._plans.values():
            self.skips.update(dict.fromkeys(plan.skips))
        if self.planned and not self.config.option.collectonly:
            # Now, since a folder that can't be written to is better known before the measuring.
            _ = self.folder
        if self.gating is not None:
            self.gating.assign(ours)
            if not hasattr(self.config, "workerinput"):
                self.gating.prepare()

    def _refuse_unused_options(self) -> None:
        """Refuse options of a provider that no test and no other side of a gate asks for."""
        from pytest_ortbench.plan.providers import refuse_unused_options

        kind, _, value = self.options.against.partition(":")
        other = (value,) if kind == "provider" else ()
        refuse_unused_options(
            self.options.provider_options,
            (*self._provider_specs, *other),
            place=self.options.places.get("provider_options", "--ort-provider-option"),
        )

    def _passes_of(self, item: pytest.Item) -> set[str]:
        """Passes that a test needs besides the standard one, as far as it can be seen from here.

        A test that asks for more while it runs gets it then.
        """
        limited = any(limit.metric.name in ENERGY_METRICS for limit in self.limits_of(item))
        code = getattr(getattr(item, "function", None), "__code__", None)
        asks = "energy" in code.co_names if code is not None else False
        passes = {"energy"} if limited or asks else set()
        if self.options.profile:
            passes.add("profile")
        if self.options.soak_s:
            passes.add("soak")
        return passes

    def properties_of(self, planned: Planned) -> list[tuple[str, str]]:
        """Metrics of a measured case for JUnit; nothing for one that was not tried."""
        from pytest_ortbench.report.junit import properties

        result = self.engine.known(planned) if self.started else None
        found = properties(result) if result is not None else []
        judged = None if self.gating is None else self.gating.result_of(planned)
        if judged is not None:
            from pytest_ortbench.report.gate import gate_properties

            found += gate_properties(judged)
        return found

    def measure_canary(self) -> Canary | None:
        """Measure the pinned model along with a stored run."""
        from pytest_ortbench.engine.canary import measure_canary

        return None if self.folder is None else measure_canary(self.engine.launcher)

    @property
    def started(self) -> bool:
        """Whether any case was asked for."""
        return "engine" in self.__dict__

    def close(self) -> None:
        """End whatever may still run."""
        self.shield.down()
        if self.started:
            self.engine.close()
        if "planner" in self.__dict__:
            self.planner.close()
        if self.gating is not None:
            self.gating.close()

    def result(self, planned: Planned, *passes: str) -> CaseResult:
        """Return the result of one case, measuring it at the first call."""
        self.refuse_xdist()
        try:
            return self.engine.result(planned, *passes)
        except BaseException:
            # Whatever ends it, Ctrl-C above all: the status must not stay on the screen.
            self.progress.rest()
            raise

    # The gate --------------------------------------------------------------------------------

    @cached_property
    def gating(self) -> Gating | None:
        """Judges cases against their baselines; ``None`` where no option asks for it."""
        if not (self.options.against or self.options.baseline):
            return None
        from pytest_ortbench.gating import Gating

        return Gating(self)

    def refuse_xdist(self) -> None:
        """Fail a test that would measure in one of several processes at a time."""
        if hasattr(self.config, "workerinput"):
            pytest.fail(
                "pytest-ortbench does not measure under pytest-xdist: cases would disturb each "
                "other. Run these tests without -n (or with -n 0, or -p no:xdist)",
                pytrace=False,
            )

    @cached_property
    def engine(self) -> Engine:
        """Measures cases and keeps their results."""
        from pytest_ortbench.engine.engine import Engine
        from pytest_ortbench.launch.launcher import ProcessLauncher
        from pytest_ortbench.store.resume import finished_results

        header = self._header
        resume = self.options.resume
        finished = finished_results(self.options.results, header.plan) if resume else {}
        return Engine(
            launcher=ProcessLauncher(on_phase=self.progress.phase, log_folder=None),
            header=header,
            listener=self,
            journal=self.folder,
            finished=finished,
            min_samples=self.needs,
            passes=self.passes,
        )

    @cached_property
    def folder(self) -> RunFolder | None:
        """Where the run is stored; ``None`` with ``--ort-no-results``."""
        from pytest_ortbench.store.folder import RunFolder

        if self.options.no_results:
            return None
        return RunFolder.create(self.options.results, self._header)

    @cached_property
    def _header(self) -> Run:
        """The run document as far as it is known before the first case."""
        from datetime import datetime, timezone

        from pytest_ortbench import __version__
        from pytest_ortbench.core.run import Run
        from pytest_ortbench.launch.machine import commit, fingerprint
        from pytest_ortbench.store.folder import new_run_id
        from pytest_ortbench.store.resume import plan_fingerprint

        machine = fingerprint()
        for facts in self.config.hook.pytest_ortbench_machine_info(config=self.config):
            machine = replace(machine, volatile={**machine.volatile, **facts})
        started = datetime.now(timezone.utc)
        return Run(
            run_id=new_run_id(machine.host, started),
            ortbench_version=__version__,
            started_at=started.isoformat(timespec="seconds"),
            command=("pytest", *(str(a) for a in self.config.invocation_params.args)),
            options=dict(self.options.given),
            machine=machine,
            commit=commit(self.root),
            skips=tuple(self.skips),
            expected=len(self.planned),
            plan=plan_fingerprint(
                (planned.case for planned in self.planned.values()),
                {"host": machine.host, "onnxruntime": _distributions()},
            ),
        )

    # The engine's listener -------------------------------------------------------------------

    def begin(self, case: Case) -> None:
        """A case starts."""
        self.progress.expect(len(self.planned))
        self.progress.begin(case)

    def end(self, result: CaseResult) -> None:
        """A case is over, or got a further pass."""
        if result.case.key in self._ended:
            self.progress.rest()
        else:
            self._ended.add(result.case.key)
            self.progress.end()
        self.config.hook.pytest_ortbench_case_measured(config=self.config, result=result)

    def warn(self, text: str) -> None:
        """Something went wrong that does not stop the run; it is said at the end."""
        if text not in self.errors:
            self.errors.append(text)


def _distributions() -> str:
    """The distributions of ONNX Runtime beside pytest: another one means another plan."""
    from pytest_ortbench.launch.installed import installed

    return " ".join(sorted(found.requirement for found in installed().distributions))


def planned_of(item: pytest.Item) -> Planned | None:
    """The case that a test is parametrised with, ``None`` for a test that has none."""
    callspec = getattr(item, "callspec", None)
    planned: Planned | Rejected | None = (
        callspec.params.get("ortbench") if callspec is not None else None
    )
    return None if isinstance(planned, Rejected) else planned
