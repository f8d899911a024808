"""``--ort-against=SIDE``: what stands on the other side, and which cases make a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.core.precision import PRECISIONS
from pytest_ortbench.core.provider_kinds import KINDS as PROVIDERS
from pytest_ortbench.planning.matrix import Planned

#: How the newest stored run is named.
LATEST = "latest"
#: Kinds of sides, and an example of each.
KINDS: dict[str, str] = {
    "model": "model:old.onnx",
    "precision": "precision:fp32",
    "runtime": "runtime:onnxruntime==1.31.0",
    "provider": "provider:cpu",
    "option": "option:session.intra_op.allow_spinning=0",
    "git": "git:main",
}

#: Kinds whose value the id of a case has.
_AXES = ("precision", "provider", "runtime")
#: Where both sides are plans of the same files, so that a case can be its own baseline.
_SAME_FILES = ("precision", "provider", "runtime", "option")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSpec:
    """The baseline as it was asked for.

    Attributes:
        kind: A key of :data:`KINDS`.
        value: What stands behind the colon.
    """

    kind: str
    value: str

    @property
    def label(self) -> str:
        """As it was written: ``model:old.onnx``."""
        return f"{self.kind}:{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPair:
    """Two cases of two plans that make a pair."""

    baseline: Planned
    contender: Planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What became of the cases of both plans.

    Attributes:
        pairs: In the contender's order.
        itself: Cases of the contender that are the baseline itself: nothing to compare.
        added: Cases of the contender without a baseline.
        vanished: Cases of the baseline without a contender.
        models: Names of the models of all cases without a contender, as the contender has them.
        left: All cases without a contender, by their keys.
        unasked: Those of them that this run would not have measured: nobody asked for them.
    """

    pairs: tuple[PlannedPair, ...]
    itself: tuple[Key, ...] = ()
    added: tuple[Key, ...] = ()
    vanished: tuple[Key, ...] = ()
    unasked: tuple[Key, ...] = ()
    models: dict[Key, str] = field(default_factory=dict)
    left: dict[Key, Case] = field(default_factory=dict)


def parse_side(text: str, *, place: str) -> SideSpec:
    """Read one side.

    Raises:
        UsageError: if its kind is unknown or its value does not fit.
    """
    kind, colon, value = text.strip().partition(":")
    if not colon or kind not in KINDS:
        near = nearest(kind, KINDS)
        raise UsageError(
            f"{text!r} does not name a baseline",
            place=place,
            hint=(f"Did you mean {f'{near}:{value}'!r}?" if value else f"Write e.g. {KINDS[near]}")
            if near
            else _forms(text.strip()),
        )
    if not value.strip():
        raise UsageError(
            f"{text!r} has nothing after the colon", place=place, hint=f"Write e.g. {KINDS[kind]}"
        )
    if kind == "option" and "=" not in value:
        raise UsageError(
            f"{text!r} has no value",
            place=place,
            hint=f"Write {text.strip()}= and the value behind it, as in {KINDS[kind]}",
        )
    if kind == "git" and value.startswith("-"):
        raise UsageError(
            f"{value!r} is not a revision of Git", place=place, hint="Write e.g. git:main"
        )
    return SideSpec(kind=kind, value=value.strip())


def _forms(text: str) -> str:
    """How a baseline is written: the text in the form that it fits, else all forms."""
    kind = "model" if text.endswith((".onnx", ".ort")) else ""
    kind = "runtime" if text.startswith("onnxruntime") else kind
    kind = "precision" if text in PRECISIONS else kind
    kind = "provider" if text in PROVIDERS else kind
    if kind:
        return f"Write {kind}:{text}"
    if text == LATEST or text.endswith(".json"):
        return f"To compare with a stored run, write --ort-baseline={text}"
    return (
        f"Write a baseline in one of these forms: {', '.join(KINDS.values())}. To compare with a "
        f"stored run, write e.g. --ort-baseline={LATEST}"
    )


def pair_cases(
    contenders: Sequence[Planned],
    baselines: Sequence[Planned],
    kind: str,
    *,
    by_name: bool = False,
    stand_ins: Mapping[str, str] | None = None,
) -> Pairing:
    """Pair the cases of two plans by their ids without the axis that differs.

    A size that was set is part of an id as a batch or by its name, by what the graph of each model
    makes of it. So cases of two files whose ids differ make a pair if they are fed the same shapes.

    Args:
        contenders: Cases of the plan that the options name.
        baselines: Cases of the other side.
        kind: The axis that differs.
        by_name: Whether models pair by name, as those of a folder or a revision do; so they do
            wherever the other side has several. A single file stands against all.
        stand_ins: Names of the models that files of the other side stand against, by the files'
            paths; others go by their own names.

    Raises:
        UsageError: if two cases of the other side stand for the same one.
    """
    by_name = by_name or len({entry.case.model.name for entry in baselines}) > 1
    index: dict[tuple[str, ...], Planned] = {}
    models = {entry.case.model.path: entry.case.model.name for entry in baselines}
    models |= stand_ins or {}
    for entry in baselines:
        model = models[entry.case.model.path] if by_name else ""
        one = index.setdefault(_reduced(entry.case, kind, model), entry)
        if one is not entry:
            values = [_parts(case, "")[kind] for case in (one.case, entry.case) if kind in _AXES]
            raise UsageError(
                f"{one.case.case_id} and {entry.case.case_id} can't both be the baseline of one "
                "case",
                place="--ort-against",
                hint=f"Choose one of them, e.g. --ort-against={kind}:{values[0]}"
                if len(set(values)) == 2
                else "Name a revision of Git that has only one of the two models"
                if kind == "git"
                else f"Name one model file, e.g. --ort-against=model:{one.case.model.path}",
            )
    by_key = {
        contender.case.key: index.get(
            _reduced(contender.case, kind, contender.case.model.name if by_name else "")
        )
        for contender in contenders
    }
    if kind not in _SAME_FILES:
        used = {id(entry) for entry in by_key.values()}
        left_over = [entry for entry in index.values() if id(entry) not in used]
        missing = [entry for entry in contenders if by_key[entry.case.key] is None]
        names = models if by_name else {}
        by_key |= _fed_the_same(missing, left_over, kind, names)
    pairs: list[PlannedPair] = []
    itself: list[Key] = []
    added: list[Key] = []
    for contender in contenders:
        baseline = by_key[contender.case.key]
        if baseline is None:
            added.append(contender.case.key)
            continue
        if kind in _SAME_FILES and _however_named(baseline.case) == _however_named(contender.case):
            itself.append(contender.case.key)
        else:
            pairs.append(PlannedPair(baseline=baseline, contender=contender))
    used = {id(entry) for entry in by_key.values()}
    left = [entry.case for entry in index.values() if id(entry) not in used]
    return Pairing(
        pairs=tuple(pairs),
        itself=tuple(itself),
        added=tuple(added),
        vanished=tuple(case.key for case in left),
        models={case.key: models[case.model.path] for case in left},
        left={case.key: case for case in left},
    )


def _fed_the_same(
    contenders: Sequence[Planned],
    baselines: Sequence[Planned],
    kind: str,
    models: Mapping[str, str],
) -> dict[Key, Planned]:
    """Return the baseline of each contender that alone is fed the same shapes.

    Args:
        contenders: Cases without a baseline of the same id.
        baselines: Cases without a contender.
        kind: The axis that differs.
        models: What the baselines' models go by, by their paths; empty where models do not pair by
            name.
    """
    sides: dict[tuple[object, ...], tuple[list[Planned], list[Planned]]] = {}
    for place, entries in enumerate((contenders, baselines)):
        for entry in entries:
            case = entry.case
            name = models.get(case.model.path, case.model.name) if models else ""
            shapes = tuple((spec.name, spec.shape) for spec in case.inputs)
            if shapes:
                same = (*_own(case, kind, name), *_named(case.knobs), *sorted(shapes))
                sides.setdefault(same, ([], []))[place].append(entry)
    return {
        ours[0].case.key: theirs[0]
        for ours, theirs in sides.values()
        if len(ours) == len(theirs) == 1
    }


def _however_named(case: Case) -> Case:
    """The case, whether its provider was named or came from ``all``."""
    return replace(case, provider=replace(case.provider, named=True))


def _parts(case: Case, model: str) -> dict[str, str]:
    """The parts of a case's id that are kinds of sides; the model by another name, if one is given.

    Args:
        case: The case.
        model: As in :func:`_reduced`.
    """
    return {
        "model": model or case.model.name,
        "precision": case.variant.precision,
        "provider": case.provider.label,
        "runtime": case.runtime.label,
    }


def _reduced(case: Case, kind: str, model: str) -> tuple[str, ...]:
    """The parts of a case's id, that of the differing axis emptied.

    Args:
        case: The case.
        kind: The axis that differs.
        model: What its model goes by; empty where models do not pair by name.
    """
    sizes = {**case.dims, **case.knobs}
    return (*_own(case, kind, model), f"b{case.batch}", *_named(sizes))


def _own(case: Case, kind: str, model: str) -> tuple[str, ...]:
    """Return what is measured and on what, with the axis that differs left empty."""
    parts = _parts(case, model)
    if kind in parts and not (kind == "model" and model):
        parts[kind] = ""
    return tuple(parts.values())


def _named(values: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"{name}:{value}" for name, value in values.items())
