"""``--ort-together=MODEL,MODEL``: which models stand beside each other, and with which cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import SCHEMES, SUFFIXES
from pytest_ortbench.core.option_text import exists
from pytest_ortbench.passes.together.declaration import PASS
from pytest_ortbench.passes.together.facts import WAYS
from pytest_ortbench.planning.request import PlanRequest

PLACE = "--ort-together"
_BESIDE_ITSELF = "To run one model several times at once, use --ort-sessions=2"


def is_called(model: Model, spec: str) -> bool:
    """Whether a specification means a model: its name, where it comes from, or its file.

    Args:
        model: Any model of the plan.
        spec: As written, or a path that starts at no working directory.
    """
    if spec in (model.name, model.source, model.place):
        return True
    try:
        return Path(spec).resolve() == Path(model.path).resolve()
    except (OSError, ValueError):  # no path at all
        return False


def neighbour_of(case: Case, spec: str, others: Iterable[Case]) -> Case | str:
    """Return the case of another model that is measured as a case is, or why there is none.

    Args:
        case: What it runs beside.
        spec: The other model.
        others: The other cases of the plan.
    """
    named = [other for other in others if is_called(other.model, spec)]
    if not named:
        return f"{spec} has no case in this run"
    alike = [other for other in named if _method(other) == _method(case)]
    if not alike:
        return f"{spec} has no case in {case.variant.precision} on {case.provider.label} here"
    return _nearest_batch(case, alike)


def _method(case: Case) -> tuple[object, ...]:
    """How a case does its work, whatever the model."""
    return (
        case.runtime.label,
        case.provider.label,
        case.variant.precision,
        case.io,
        case.call,
        case.concurrency,
        case.sessions,
        case.session,
        case.generation is None,
    )


def _nearest_batch(case: Case, alike: Sequence[Case]) -> Case:
    """The one with the same batch, else the first with the nearest one."""
    return min(alike, key=lambda other: abs(other.batch - case.batch))


def has_neighbours(case: Case) -> bool:
    """Whether a case is measured beside others."""
    return bool(case.together)


def with_neighbours(case: Case, asked: Mapping[str, Any]) -> Case:
    """Return the case with the models that it runs beside; one that is not named has none.

    Args:
        case: Any case.
        asked: What passes ask of each case.
    """
    specs: Sequence[str] = asked.get(PASS.name, ())
    if not any(is_called(case.model, spec) for spec in specs):
        return case
    others = (spec for spec in specs if not is_called(case.model, spec))
    return replace(case, together=tuple(_as_placed(spec, case.model) for spec in others))


def _as_placed(spec: str, beside: Model) -> str:
    """A file as its path within the root of the run, where that of another one tells the root."""
    path = Path(spec).absolute()
    if not exists(path):
        return spec
    depth = len(PurePosixPath(beside.place).parts)
    root = Path(beside.path).parents[depth - 1] if depth else None
    inside = root is not None and path.is_relative_to(root)
    return path.relative_to(root or path).as_posix() if inside else str(path)


def refuse_wrong_models(request: PlanRequest, models: Sequence[Model]) -> None:
    """Refuse models that can't stand beside each other, whatever else is planned.

    Raises:
        UsageError: for a single model, one that is named twice, and a file that is not there.
    """
    specs: Sequence[str] = request.of_passes.get(PASS.name, ())
    if not specs:
        return
    for index, spec in enumerate(specs):
        if _is_file(spec) and not exists(Path(spec)):
            raise UsageError(
                f"the file {spec!r} does not exist", place=PLACE, hint="Correct the path"
            )
        for earlier in specs[:index]:
            same = Path(earlier).absolute() == Path(spec).absolute()
            if same or any(is_called(own, earlier) and is_called(own, spec) for own in models):
                raise UsageError(
                    f"{earlier!r} and {spec!r} are the same model",
                    place=PLACE,
                    hint=f"Name different models. {_BESIDE_ITSELF}",
                )
    if len(specs) < 2:
        # Each file of the command line is asked about by itself, and one message is told once.
        strangers = (model.name for model in models if not is_called(model, specs[0]))
        other = next(strangers, "") if len(models) > 1 else ""
        both = f"{PLACE}={specs[0]},{other or 'OTHER.onnx'}"
        raise UsageError(
            f"only {specs[0]!r} is named, so no model would run beside it",
            place=PLACE,
            hint=f"Name two models, e.g. {both}. {_BESIDE_ITSELF}"
            if other
            else "Name a second model of this run, e.g. "
            f"pytest {_file_of(specs[0])} OTHER.onnx {both}. {_BESIDE_ITSELF}",
        )


def _is_file(spec: str) -> bool:
    return Path(spec).suffix.lower() in SUFFIXES and ":" not in spec


def refuse_strangers(options: Any, cases: Sequence[Case]) -> None:
    """Refuse a model that no case of the run is of.

    A model that a test makes comes alone, when all others are known: it is asked for nothing.

    Raises:
        UsageError: for the first one.
    """
    is_made = bool(cases) and all(own.model.is_made for own in cases)
    named = () if is_made else options.together
    wanted = dict.fromkeys((*named, *(spec for own in cases for spec in own.together)))
    models = {own.model.name: own.model for own in cases}.values()
    place = options.place_of("models") if "models" in options.given else ""
    for spec in wanted:
        if not any(is_called(model, spec) for model in models):
            raise UsageError(
                f"{spec!r} is not a model of this run",
                place=options.place_of("together"),
                hint=_choose_or_add(spec, _unnamed(models, wanted), place)
                if models
                else "Add the files of all models to the arguments of pytest, e.g. "
                + " ".join(map(_file_of, wanted)),
            )


def _file_of(spec: str) -> str:
    """A model as it is named for a run: a name becomes that of a file."""
    is_whole = spec.startswith(SCHEMES) or Path(spec).suffix.lower() in SUFFIXES
    return spec if is_whole else f"{spec}.onnx"


def _unnamed(models: Iterable[Model], wanted: Iterable[str]) -> list[str]:
    """Names of the models of a run that nothing asks for yet."""
    asked = list(wanted)
    return [model.name for model in models if not any(is_called(model, spec) for spec in asked)]


def _choose_or_add(spec: str, names: Sequence[str], place: str) -> str:
    """Return the next step for a model that a run does not have.

    Args:
        spec: The model as it is written.
        names: Those that the run has, and that are not named yet.
        place: Where an option names models; empty where none does.
    """
    near = nearest(spec, names)
    whole = _file_of(spec)
    where = (
        f"{whole} to {place or '--ort-models'}"
        if spec.startswith(SCHEMES)
        else f"its file to {place or 'the arguments of pytest'}, e.g. {whole}"
    )
    if near:
        return f"Did you mean {near!r}? If not, add {where}"
    return f"Add {where}" + (
        f". If you meant another model, write its name: {', '.join(names)}" if names else ""
    )


def why_not_together(case: Case) -> str:
    """Return why a case can't run beside others; empty if it can."""
    if case.generation is not None:
        return "requests of language models are not measured beside other models"
    return ""


def together_takes_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: all models start for each launch of each way."""
    started = case.sampling.workers * (1 + len(case.together)) * worker_s
    return len(WAYS) * (started + case.sampling.time_s)
