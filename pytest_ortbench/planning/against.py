"""The other side of a comparison: plans its cases and pairs them with those that were asked for.

Of a folder of models (``--ort-against=model:FOLDER``), each file stands against the model whose
path ends as its own does.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.errors import OrtbenchError, UsageError
from pytest_ortbench.core.gate import UnnamedModel
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import SCHEMES
from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS
from pytest_ortbench.models.revisions import Revision, revision
from pytest_ortbench.planning.asked import DEFAULT_MODELS, Asked, without_unasked
from pytest_ortbench.planning.baseline_sizes import fed_alike
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.named_models import SuiteFile, lost_models, suite_file
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.providers import check_specs
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.session_options import apply_session_options
from pytest_ortbench.planning.sides import Pairing, SideSpec, pair_cases

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
        offered: Gives cases the inputs that plugins offer for them.
    """

    side: SideSpec
    planner: Planner
    planner_of: Callable[[str], Planner]
    root: Path
    folder: Path
    offered: Callable[[Plan], Plan]
    _revision: Revision | None = None
    _files: dict[str, Model] = field(default_factory=dict)
    _files_of_git: dict[Path, str | OrtbenchError] = field(default_factory=dict)
    _lost: dict[str, list[Path]] = field(default_factory=dict)
    _set_already: bool = False

    def look_for_lost(
        self,
        requests: Sequence[tuple[PlanRequest, Plan]],
        suites: Callable[[PlanRequest], Sequence[Path]],
    ) -> tuple[UnnamedModel, ...]:
        """Find the models that the suite of a revision measured and the present one does not.

        Each is a model of the first request whose suite named it; :meth:`pairing` finds its cases.

        Args:
            requests: What the tests asked for, with the plans of it.
            suites: The files that say which models a request has.

        Returns:
            Every other model file of the revision that no request names.
        """
        if self.side.kind != "git":
            return ()
        found = self._found
        files = {path for _, plan in requests for path in _model_files(plan, found.top)}
        known = {path for request, _ in requests for path in self._gone(request, found)}
        known |= {Path(path).resolve() for path in files}
        left = [
            path for path in found.models_below(found.top, of_any_format=True) if path not in known
        ]
        for request, plan in requests:
            sources = suites(request)
            if not sources:
                continue
            before = [_read(path, found.text(path), found.top) for path in sources]
            now = [_read(path, _text(path), found.top) for path in sources]
            measured = [Path(path).resolve() for path in _model_files(plan, found.top)]
            lost = lost_models(
                filter(None, before),
                filter(None, now),
                there=_inside((path for path in left if path.exists()), found.top),
                gone=_inside((path for path in left if not path.exists()), found.top),
                measured=_inside(measured, found.top),
            )
            self._lost[repr(request)] = [found.top / path for path in lost]
            left = [path for path in left if path not in self._lost[repr(request)]]
        return tuple(
            UnnamedModel(
                place=path.relative_to(found.top).as_posix(),
                baseline=self.side.label,
                is_there=path.exists(),
            )
            for path in left
        )

    @property
    def _found(self) -> Revision:
        """The revision of the other side."""
        if self._revision is None:
            self._revision = revision(self.side.value, self.root)
        return self._revision

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
            baselines = self._planned(request, kind, value)
            by_name = kind == "model" and self._is_group(value)
            stands_for = self._stand_ins(plan.entries, baselines) if by_name else {}
            pairing = pair_cases(
                plan.entries, baselines, kind, by_name=by_name, stand_ins=stands_for
            )
            asked = Asked.of(request, plan, self.root)
            missed = by_name and kind == "model"
            pairing = without_unasked(
                pairing,
                baselines,
                lambda case: missed and asked.names(_standing(case, stands_for)),
            )
        if kind in ("git", "model"):
            fed = (fed_alike(pair, adopts=kind == "git") for pair in pairing.pairs)
            pairing = replace(pairing, pairs=tuple(fed))
        return pairing

    def require_any(self, pairings: Iterable[Pairing]) -> None:
        """Refuse a side that leaves nothing to compare, however many tests there are.

        Args:
            pairings: Those of all requests.

        Raises:
            UsageError: if no case has another side.
        """
        found = list(pairings)
        if not found or any(pairing.pairs or pairing.vanished for pairing in found):
            return
        if self._set_already:
            raise UsageError(
                f"this run already measures {self.side.label}, so each case would be compared "
                "with itself",
                place=_PLACE,
                hint=f"Name something else to compare with in {_PLACE}. To measure without a "
                f"comparison, leave {_PLACE} out",
            )
        if self.side.kind == "git" and not self._files:
            raise UsageError(
                "no model of this run is a file in a Git repository, so none has a version at "
                f"{self.side.label} to compare with",
                place=_PLACE,
                hint="Measure a model file that is committed in a Git repository. To compare with "
                f"another file, write e.g. {_PLACE}=model:OLD.onnx",
            )

    def _is_group(self, spec: str) -> bool:
        """Whether a specification of models stands for as many as there happen to be."""
        path = self.root / spec
        return path.is_dir() or (glob.has_magic(spec) and not path.exists())

    def _stand_ins(
        self, entries: Sequence[Planned], baselines: Sequence[Planned]
    ) -> dict[str, str]:
        """The models that the files of a folder, or of a pattern, stand against."""
        folder = self.root / self.side.value
        if not folder.is_dir():
            folder = next(above for above in folder.parents if not glob.has_magic(str(above)))
        return stand_ins(
            (entry.case.model for entry in entries),
            (entry.case.model for entry in baselines),
            self.planner.place_of(folder),
        )

    def _planned(self, request: PlanRequest, kind: str, value: str) -> tuple[Planned, ...]:
        if kind == "model":
            request = replace(request, models=(value,), made="")
        elif kind == "precision":
            request = replace(request, precisions=(value,))
        elif kind == "provider":
            check_specs((value,), place=_PLACE)
            request = replace(request, providers=(value,))
        planner = self.planner_of(value) if kind == "runtime" else self.planner
        try:
            plan = planner.plan(request)
        except UsageError as error:
            # All else was planned already, for the contender: what is wrong is what differs.
            raise UsageError(error.message, place=_PLACE, hint=error.hint) from error
        entries = self.offered(plan).entries
        if kind == "precision":
            # Beside ``native`` a plan holds the variants that a model has of its own.
            entries = tuple(entry for entry in entries if entry.case.variant.precision == value)
        return entries

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

            def changed(link: Provider) -> Provider:
                if owner not in (link.alias, link.name):
                    return link
                self.planner.check_options({link.alias: {option: value}}, place=_PLACE)
                return replace(link, options={**link.options, option: value})

            return replace(entry, case=replace(case, provider=case.provider.of_links(changed)))
        session = apply_session_options(case.session, {name: value})
        self._set_already = self._set_already or session == case.session
        return replace(entry, case=replace(case, session=session))

    def _against_revision(self, request: PlanRequest, plan: Plan) -> Pairing:
        found = self._found
        files = _model_files(plan, found.top)
        self._files |= files
        earlier = {
            self._extracted(found, Path(path)): model
            for path, model in files.items()
            if found.has(Path(path))
        }
        missed = [*self._gone(request, found), *self._lost.get(repr(request), ())]
        gone = {self._extracted(found, path): path for path in missed}
        originals = {**{path: Path(model.path) for path, model in earlier.items()}, **gone}
        specs = tuple(originals)
        baselines: tuple[Planned, ...] = ()
        if specs:
            planned = self.planner.plan(replace(request, models=specs, made=""), earlier, originals)
            baselines = self.offered(planned).entries
        pairing = pair_cases(plan.entries, baselines, "git", by_name=True)
        # Models that are gone were looked for in the folders and patterns of the request.
        return without_unasked(
            pairing, baselines, lambda case: case.variant.precision in request.precisions
        )

    def _extracted(self, found: Revision, path: Path) -> str:
        """Return the path of a file as it was; Git is asked for each file once."""
        kept = self._files_of_git.get(path)
        if kept is None:
            try:
                kept = str(found.extract(path, self.folder))
            except OrtbenchError as error:
                kept = error
            self._files_of_git[path] = kept
        if isinstance(kept, OrtbenchError):
            raise kept
        return kept

    def _gone(self, request: PlanRequest, found: Revision) -> list[Path]:
        """Models that the request's folders and patterns held at the revision and hold no more."""
        there = dict.fromkeys(
            path for spec in request.models or DEFAULT_MODELS for path in self._meant(spec, found)
        )
        return [path for path in there if not path.exists()]

    def _meant(self, spec: str, found: Revision) -> Iterator[Path]:
        path = self.root / spec
        if path.is_dir():
            yield from found.models_below(path)
        elif glob.has_magic(spec) and not path.exists():
            folder = next(above for above in path.parents if not glob.has_magic(str(above)))
            pattern = str(folder.resolve() / path.relative_to(folder))
            for file in found.models_below(folder, of_any_format=True):
                # ``*`` ends at a slash, but in ``**``, which is any number of folders.
                anywhere = "**" in pattern
                if fnmatch(str(file), pattern) if anywhere else file.match(pattern):
                    yield file
        elif not path.exists() and not spec.startswith(SCHEMES):
            # A file, or a folder that git keeps no longer since all of it is gone.
            yield from found.models_below(path)


def _read(path: Path, content: str | None, top: Path) -> SuiteFile | None:
    """A file of a suite; ``None`` for one that is not there."""
    if content is None:
        return None
    return suite_file(path.resolve().relative_to(top).as_posix(), content)


def _text(path: Path) -> str | None:
    """What a text file of the working tree holds."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _inside(paths: Iterable[Path], top: Path) -> list[PurePosixPath]:
    """Paths as git has them."""
    return [
        PurePosixPath(path.relative_to(top).as_posix())
        for path in paths
        if path.is_relative_to(top)
    ]


def _standing(case: Case, stand_ins: Mapping[str, str]) -> Case:
    """A case of the other side under the name of the model that its file stands against."""
    name = stand_ins.get(case.model.path, case.model.name)
    return replace(case, model=replace(case.model, name=name))


def _called(entry: Planned) -> tuple[str, ...]:
    """Aliases and names of a case's provider, or of the links of its chain."""
    return tuple(name for link in entry.case.provider.links for name in (link.alias, link.name))


def _model_files(plan: Plan, tree: Path) -> dict[str, Model]:
    """The plan's models by path, without those that are no file of the user's.

    What a test made may lie anywhere; of these, files of the working tree count.
    """
    models = {entry.case.model.path: entry.case.model for entry in plan.entries}
    return {
        path: model
        for path, model in models.items()
        if model.digest
        and (
            model.source == "file" or (model.is_made and Path(path).resolve().is_relative_to(tree))
        )
    }


def stand_ins(models: Iterable[Model], baselines: Iterable[Model], folder: str) -> dict[str, str]:
    """Return the names of the models that files of a folder stand against, by the files' paths.

    A file stands against the model whose path ends as its own path inside the folder does:
    ``old/det/model.onnx`` against ``models/det/model.onnx``. Of several such files the one with
    most folders in common counts, whatever else was asked for.

    Args:
        models: What was asked for.
        baselines: What the folder holds.
        folder: Place of the folder, relative to the run's root as the places of models are.

    Raises:
        UsageError: if a file could stand against either of two models.
    """
    inside = {_parts(_relative(model, folder)): model for model in baselines}
    claims: dict[tuple[str, ...], list[Model]] = {}
    for model in {model.path: model for model in models}.values():
        parts = _parts(PurePosixPath(model.place or f"{model.name}.onnx"))
        ends = (parts[start:] for start in range(len(parts)))
        end = next((end for end in ends if end in inside), None)
        if end is not None:
            claims.setdefault(end, []).append(model)
    return {inside[end].path: _only(end, claimed, folder).name for end, claimed in claims.items()}


def _only(end: tuple[str, ...], claimed: list[Model], folder: str) -> Model:
    """The model that a file stands against: one with just its path goes before longer ones."""
    exact = [model for model in claimed if _parts(PurePosixPath(model.place)) == end]
    if len(exact) == 1 or len(claimed) == 1:
        return (exact or claimed)[0]
    file = "/".join((*end[:-1], f"{end[-1]}.onnx"))
    first, second = claimed[:2]
    raise UsageError(
        f"the file {folder}/{file} fits two models of this run by its name, {first.name!r} and "
        f"{second.name!r}",
        place="--ort-against",
        hint=f"To compare it with {first.name!r}, move it to {folder}/{first.place}. To compare it "
        f"with {second.name!r}, move it to {folder}/{second.place}",
    )


def _relative(model: Model, folder: str) -> PurePosixPath:
    place = PurePosixPath(model.place)
    return place.relative_to(folder) if place.is_relative_to(folder) else place


def _parts(place: PurePosixPath) -> tuple[str, ...]:
    return (*place.parts[:-1], place.name.removesuffix(".onnx"))
