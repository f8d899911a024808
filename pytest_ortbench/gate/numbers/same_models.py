"""Which model of one run is which model of another: by path, where documents say it.

Documents of versions that called files by their last part only hold no path relative to the root.
Their absolute paths and digests tell which model is meant, or that nothing does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.gate import MODEL_CHANGED, MODEL_SAME, MODEL_UNPROVEN
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.run import Run

#: What shows that two models are one, the strongest first.
_EVIDENCE = ("path", "place", "digest", "folder")
#: Of these, what shows it although the content differs.
_SHOWN = ("path", "place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A model as another run has it.

    Attributes:
        model: That run's.
        relation: A key of :data:`pytest_ortbench.core.gate.MODEL_RELATIONS`.
    """

    model: Model
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """What became of the models of an earlier run.

    Attributes:
        earlier: Earlier models by the names of the later ones.
        doubtful: Why a later model has none although the earlier run has one of its name, by name.
        moved_from: Earlier names of later models that are new, but whose content is not, by name.
    """

    earlier: Mapping[str, Twin] = field(default_factory=dict)
    doubtful: Mapping[str, str] = field(default_factory=dict)
    moved_from: Mapping[str, str] = field(default_factory=dict)

    def key_of(self, case: Case) -> tuple[str, str] | None:
        """The key under which the earlier run has a later case; ``None`` without its model."""
        twin = self.earlier.get(case.model.name)
        return None if twin is None else replace(case, model=twin.model).key

    def later_name(self, name: str) -> str:
        """Return what an earlier model is called later; its own name where that is not certain."""
        later_names = [after for after, twin in self.earlier.items() if twin.model.name == name]
        return later_names[0] if len(later_names) == 1 else name

    def moved_to(self, name: str) -> str:
        """The later name of an earlier model that is gone, but whose content is not; or empty."""
        return next((after for after, before in self.moved_from.items() if before == name), "")


def models_of(run: Run) -> dict[str, Model]:
    """Return the models of a run by name."""
    return {result.case.model.name: result.case.model for result in run.cases}


def twins(earlier: Iterable[Model], later: Iterable[Model]) -> Twins:
    """Find each model of a run in an earlier one.

    Args:
        earlier: Models of the earlier run.
        later: Models of the later run, or of a plan.
    """
    before = list(earlier)
    certain: dict[str, Twin] = {}
    doubtful: dict[str, str] = {}
    rest: list[Model] = []
    for model in later:
        same, reason = _earlier(model, before)
        if same is not None:
            certain[model.name] = same
            continue
        rest.append(model)
        if reason:
            doubtful[model.name] = reason
    used = {twin.model.name for twin in certain.values()}
    left = {model.digest: model.name for model in before if model.name not in used}
    moved = {model.name: left[model.digest] for model in rest if model.digest in left}
    moved = {name: other for name, other in moved.items() if name not in doubtful}
    return Twins(earlier=certain, doubtful=doubtful, moved_from=moved)


def later_names(earlier: Mapping[str, Model], newest: Mapping[str, Model]) -> dict[str, str]:
    """Return what the models of a run are called in the newest of several runs, by their names.

    Args:
        earlier: Models of any of the runs.
        newest: Models of the newest one.
    """
    same = twins(earlier.values(), newest.values())
    names = {name: same.later_name(name) for name in earlier}
    taken = {later for name, later in names.items() if later != name}
    # Where another model of that run has the name now, one of which nothing is known has its path.
    return {
        name: earlier[name].path if later == name and name in taken else later
        for name, later in names.items()
    }


def named_alike(run: Run, newest: Mapping[str, Model]) -> Run:
    """Return a run whose models are called as in the newest of several runs."""
    names = later_names(models_of(run), newest)
    return replace(
        run,
        cases=tuple(
            replace(result, case=_called(result.case, names[result.case.model.name]))
            for result in run.cases
        ),
    )


def _called(case: Case, name: str) -> Case:
    return case if name == case.model.name else replace(case, model=replace(case.model, name=name))


def _earlier(model: Model, before: Iterable[Model]) -> tuple[Twin | None, str]:
    """The earlier state of a model; else why one of its name is none, or an empty text."""
    by_evidence: dict[str, list[Model]] = {}
    namesakes = []
    for other in before:
        evidence = _evidence(other, model)
        if evidence:
            by_evidence.setdefault(evidence, []).append(other)
        elif not other.place and model.name.rsplit("/", 1)[-1] == other.name:
            namesakes.append(other)
    for evidence in _EVIDENCE:
        candidates = _nearest(model, by_evidence.get(evidence, []))
        if len(candidates) > 1:
            paths = " and ".join(other.path for other in candidates[:2])
            return None, f"{paths} could both be that model"
        if candidates:
            relation = _relation(candidates[0], model, evidence)
            return Twin(model=candidates[0], relation=relation), ""
    if namesakes:
        return None, (
            f"the one of that name was {namesakes[0].path}, recorded by a version that called "
            "files by their last part, and nothing shows that it is this file"
        )
    return None, ""


def _nearest(model: Model, candidates: list[Model]) -> list[Model]:
    """Of several models that could be it, those in a folder of the same name, or of its name."""
    for alike in (_in_like_folders, lambda before, after: before.name == after.name):
        if len(candidates) > 1:
            candidates = [other for other in candidates if alike(other, model)] or candidates
    return candidates


def _relation(before: Model, after: Model, evidence: str) -> str:
    if before.digest and before.digest == after.digest:
        return MODEL_SAME
    return MODEL_CHANGED if evidence in _SHOWN else MODEL_UNPROVEN


def _evidence(before: Model, after: Model) -> str:
    """What shows that two models are one: an entry of :data:`_EVIDENCE`, or an empty text."""
    if before.source != after.source:
        return ""
    if before.source != "file":
        return "place"  # shipped, fetched or built: the source names it
    if before.path == after.path:
        return "path"
    if before.place and after.place == before.place:
        return "place"
    if before.name == after.name and _is_configured(before) and _is_configured(after):
        return "place"
    if before.place and after.place:
        return ""
    if before.digest and before.digest == after.digest:
        return "digest"
    return "folder" if _in_like_folders(before, after) else ""


def _is_configured(model: Model) -> bool:
    """Whether a file is surely called as a configuration says, and not by its path."""
    by_path = (model.place, model.place.removesuffix(".onnx")) if model.place else ()
    return model.name not in (*by_path, *_ends(model.path.removesuffix(".onnx"), 1))


def _in_like_folders(before: Model, after: Model) -> bool:
    """Whether two absolute paths end alike: by the known place of one, and by a folder at least."""
    known = max(len(PurePosixPath(model.place).parts) for model in (before, after))
    count = max(known, 2)
    return _ends(before.path, count) == _ends(after.path, count)


def _ends(path: str, count: int) -> tuple[str, ...]:
    windows = "\\" in path and "/" not in path
    parts = PureWindowsPath(path).parts if windows else PurePosixPath(path).parts
    return parts[-count:]
