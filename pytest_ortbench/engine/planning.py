"""From a request to its plan: models are resolved, runtimes asked what they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.run import Skip
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.plan.matrix import Plan, Target, UnreadableModel, build_plan
from pytest_ortbench.plan.providers import expand
from pytest_ortbench.plan.request import PlanRequest
from pytest_ortbench.zoo.resolve import BrokenModel, resolve_models


class Planner:
    """Makes plans; what it learns about models and runtimes is shared by all plans of a run.

    Args:
        launcher: Asks the runtimes.
        root: Folder that paths of models start at.
        runtimes: Where to measure.
        notify: Told what is fetched.
        failures: Why some of the runtimes can't be started, by label: their cases are refused.
    """

    def __init__(
        self,
        launcher: Launcher,
        root: Path,
        *,
        runtimes: Sequence[Runtime],
        notify: Callable[[str], None],
        failures: Mapping[str, Failure] | None = None,
    ) -> None:
        self._launcher = launcher
        self._root = root
        self._runtimes = tuple(runtimes)
        self._notify = notify
        self._failures = failures or {}
        self._models: dict[tuple[str, ...], list[Model | UnreadableModel]] = {}
        self._targets: dict[tuple[str, ...], tuple[list[Target], list[Skip]]] = {}
        self._infos: dict[str, RuntimeInfo] = {}

    def plan(self, request: PlanRequest) -> Plan:
        """Build the plan of ``request``.

        Raises:
            UsageError: if a specification can't be understood.
        """
        models = self._resolve(request.models)
        targets, skips = self._expand(request.providers)
        return build_plan(request, models, targets, skips)

    def _resolve(self, specs: tuple[str, ...]) -> list[Model | UnreadableModel]:
        if specs not in self._models:
            found = resolve_models(specs, root=self._root, notify=self._notify)
            self._models[specs] = [
                UnreadableModel(name=model.name, path=model.path, message=str(model.error))
                if isinstance(model, BrokenModel)
                else model
                for model in found
            ]
        return self._models[specs]

    def _expand(self, specs: tuple[str, ...]) -> tuple[list[Target], list[Skip]]:
        if specs not in self._targets:
            targets: list[Target] = []
            skips: list[Skip] = []
            for runtime in self._runtimes:
                providers, left_out = self._providers(runtime, specs)
                failure = self._failures.get(runtime.label)
                target = Target(runtime=runtime, providers=tuple(providers), refusal=failure)
                targets.append(target)
                skips += left_out
            self._targets[specs] = (targets, skips)
        return self._targets[specs]

    def _providers(
        self, runtime: Runtime, specs: tuple[str, ...]
    ) -> tuple[list[Provider], list[Skip]]:
        """The providers to measure in one runtime.

        Those asked for by name are cases whatever becomes of them; under ``all`` each candidate is
        tried on two tiny models first, and those that don't run are left out with the reason.
        """
        available: tuple[str, ...] = ()
        if runtime.label in self._failures:
            # Nobody can be asked; the CPU stands in for 'all', so that the failure becomes a row.
            stand_in = tuple("cpu" if spec == "all" else spec for spec in specs)
            return expand(stand_in, (), runtime=runtime.label)
        if "all" in specs:
            try:
                available = self._inspect(runtime).available_providers
            except WorkerError as error:
                # Nothing can be expanded; the CPU stands in, so that the failure becomes a row.
                skip = Skip(what="all", reason=str(error), runtime=runtime.label)
                providers, skips = expand(("cpu",), (), runtime=runtime.label)
                return providers, [*skips, skip]
        providers, skips = expand(specs, available, runtime=runtime.label)
        doubtful = [p for p in providers if not p.named and p.alias != "cpu"]
        if not doubtful:
            return providers, skips
        refused = {
            outcome.provider.label: outcome.reason
            for outcome in self._launcher.probe(runtime, doubtful)
            if not outcome.usable
        }
        kept = [p for p in providers if p.named or p.label not in refused]
        skips += [
            Skip(what=label, reason=reason, runtime=runtime.label)
            for label, reason in refused.items()
        ]
        return kept, skips

    def _inspect(self, runtime: Runtime) -> RuntimeInfo:
        if runtime.label not in self._infos:
            self._infos[runtime.label] = self._launcher.inspect(runtime)
        return self._infos[runtime.label]

    def close(self) -> None:
        """End whatever its launcher started."""
        self._launcher.close()
