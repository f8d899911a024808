"""The other side of a comparison: plans its cases and pairs them with those that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS
from pytest_ortbench.engine.planning import Planner
from pytest_ortbench.plan.matrix import Plan, Planned
from pytest_ortbench.plan.providers import check_specs
from pytest_ortbench.plan.request import PlanRequest
from pytest_ortbench.plan.session_options import apply_session_options
from pytest_ortbench.plan.sides import Pairing, SideSpec, pair_cases
from pytest_ortbench.zoo.revisions import Revision, revision

_PLACE = "--ort-against"

_PROVIDERS = (*KINDS, *BY_NAME)


@dataclass(slots=True)
class Against:
    """Plans the baseline of every request.

    Attributes:
        side: What differs.
        planner: Makes plans for the runtimes that the options name.
        planner_of: Makes plans for one other runtime, by its requirement.
        root: Folder that the user's paths start at.
        folder: Where models of a revision are written.
    """

    side: SideSpec
    planner: Planner
    planner_of: Callable[[str], Planner]
    root: Path
    folder: Path
    _revision: Revision | None = None

    def pairing(self, request: PlanRequest, plan: Plan) -> Pairing:
        """Pair the cases of a plan with their baselines.

        Args:
            request: What the plan was made from.
            plan: The contender's cases.

        Raises:
            UsageError: if there is no such side.
            ModelError: if a revision's model can't be had.
        """
        kind, value = self.side.kind, self.side.value
        if kind == "option":
            known = {name for entry in plan.entries for name in _called(entry)} | {*_PROVIDERS}
            baselines = tuple(self._with_option(entry, known) for entry in plan.entries)
            pairing = pair_cases(plan.entries, baselines, kind)
        elif kind == "git":
            pairing = self._against_revision(request, plan)
        else:
            pairing = pair_cases(plan.entries, self._planned(request, kind, value), kind)
        return pairing

    def _planned(self, request: PlanRequest, kind: str, value: str) -> tuple[Planned, ...]:
        if kind == "model":
            request = replace(request, models=(value,))
        elif kind == "precision":
            request = replace(request, precisions=(value,))
        elif kind == "provider":
            check_specs((value,), place=_PLACE)
            request = replace(request, providers=(value,))
        planner = self.planner_of(value) if kind == "runtime" else self.planner
        return planner.plan(request).entries

    def _with_option(self, entry: Planned, providers: Collection[str]) -> Planned:
        """The same case with one option set: of its provider, else of the session.

        An option of another provider leaves the case as it is.
        """
        name, _, value = self.side.value.partition("=")
        case = entry.case
        owner, dot, option = name.partition(".")
        if dot and owner in providers and owner not in _called(entry):
            return entry
        if dot and owner in _called(entry):
            self.planner.check_options({case.provider.alias: {option: value}}, place=_PLACE)
            options = {**case.provider.options, option: value}
            return replace(
                entry, case=replace(case, provider=replace(case.provider, options=options))
            )
        session = apply_session_options(case.session, {name: value})
        if session == case.session:
            raise UsageError(
                f"{self.side.label} is what the options ask for already",
                place=_PLACE,
                hint="Name the value that the baseline has",
            )
        return replace(entry, case=replace(case, session=session))

    def _against_revision(self, request: PlanRequest, plan: Plan) -> Pairing:
        if self._revision is None:
            self._revision = revision(self.side.value, self.root)
        found = self._revision
        files = _model_files(plan)
        if not files:
            raise UsageError(
                f"{self.side.label} has no model to compare: none is a file of the working tree",
                place=_PLACE,
                hint="Name a model file; built-in models and those of the zoo do not change",
            )
        gone = [path for path in self._listed(request, found) if not path.exists()]
        earlier = [path for path in files if found.has(path)] + gone
        specs = tuple(str(found.extract(path, self.folder)) for path in earlier)
        baselines = self.planner.plan(replace(request, models=specs)).entries if specs else ()
        return pair_cases(plan.entries, baselines, "git")

    def _listed(self, request: PlanRequest, found: Revision) -> list[Path]:
        """Models that the request's folders held at the revision."""
        folders = [self.root / spec for spec in request.models if (self.root / spec).is_dir()]
        return [path for folder in folders for path in found.models_below(folder)]


def _called(entry: Planned) -> tuple[str, str]:
    """Alias and name of a case's provider."""
    return entry.case.provider.alias, entry.case.provider.name


def _model_files(plan: Plan) -> list[Path]:
    """Files of the plan's models, each once, without those that are no file of the user's."""
    models: Mapping[str, Model] = {
        entry.case.model.path: entry.case.model
        for entry in plan.entries
        if entry.case.model.source == "file" and entry.case.model.digest
    }
    return [Path(path) for path in models]
