"""Sizes of open dimensions that a session is told, so that it may be built for them.

ONNX Runtime takes them by the name of the dimension, before it places nodes. *Seen* with 1.32: an
expression is a name like any other, the level of optimisation does not matter, and a session takes
inputs of these sizes only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ortbench.core.case import FIX_DIMS, Case
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import BY_NAME
from pytest_ortbench.passes.registry import PASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSizes:
    """The sizes of all open dimensions of a case, or why they are not all known.

    Attributes:
        sizes: By name of the dimension; empty where nothing is open, too.
        reason: Why there are none; empty where all are known.
        hint: The next step then.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    hint: str = ""


def open_sizes(case: Case) -> OpenSizes:
    """Return the sizes of the dimensions that a model leaves open, as a case feeds them.

    Args:
        case: With its inputs; those that it does not feed stay as they are.
    """
    if case.generation is not None:
        return _unknown("the sizes grow with each token that a request writes")
    varied = {
        name: entry.name
        for entry in PASSES
        if entry.varied_dims
        for name in entry.load(entry.varied_dims)(case)
    }
    fed = {spec.name: spec.shape for spec in case.inputs}
    sizes: dict[str, int] = {}
    first: dict[str, str] = {}
    for info in case.model.inputs:
        if info.name not in fed:
            continue
        if not info.type.startswith("tensor("):
            return _unknown(f"the input {info.name!r} is not a tensor")
        if info.shape is None:
            return _unknown(
                f"the model does not state how many axes input {info.name!r} has",
                _fixed_in_file(case, info.name),
            )
        for axis, (declared, size) in enumerate(zip(info.shape, fed[info.name], strict=True)):
            if isinstance(declared, int):
                continue
            if not declared:
                return _unknown(
                    f"axis {axis} of input {info.name!r} has no name",
                    _fixed_in_file(case, info.name),
                )
            if declared in varied:
                return _unknown(f"--ort-{varied[declared]} feeds several sizes of {declared!r}")
            here = f"on axis {axis} of input {info.name!r}"
            if sizes.setdefault(declared, size) != size:
                return _unknown(
                    f"the dimension {declared!r} is {sizes[declared]} {first[declared]}, but "
                    f"{size} {here}",
                    f"Give {declared!r} the same size in both places",
                )
            first.setdefault(declared, here)
    return OpenSizes(sizes=sizes)


def _fixed_in_file(case: Case, name: str) -> str:
    """Return what fixes the sizes of an input in the file, with the sizes that it is fed."""
    shape = next((spec.shape for spec in case.inputs if spec.name == name), ())
    model = Path(case.model.path)
    files = (str(model), f"{model.stem}-fixed{model.suffix}")
    return (
        "Leave out --ort-fix-dims=on. To fix the sizes in the file, run: python -m "
        f"onnxruntime.tools.make_dynamic_shape_fixed --input_name {shlex.quote(name)} "
        f"--input_shape {','.join(map(str, shape))} {shlex.join(files)}"
    )


def _unknown(reason: str, hint: str = "Leave out --ort-fix-dims=on") -> OpenSizes:
    return OpenSizes(reason=reason, hint=hint)


def needs_sizes(case: Case) -> bool:
    """Whether a provider of the case, or a link of its chain, takes nodes of known sizes only."""
    kinds = (BY_NAME.get(link.name) for link in case.provider.links)
    return any(kind is not None and kind.known_sizes_only for kind in kinds)


def with_fixed_sizes(case: Case) -> Case:
    """Return the case with the sizes that its session is told, as far as it is to be told any.

    That is what the knob says; without one, providers are told that need it. What can't be told is
    left open.

    Args:
        case: With its inputs.
    """
    is_told = case.knobs.get(FIX_DIMS, "on" if needs_sizes(case) else "off") == "on"
    sizes = dict(open_sizes(case).sizes) if is_told else {}
    if sizes == case.session.fixed_dims:
        return case
    return replace(case, session=replace(case.session, fixed_dims=sizes))


def fixing_refusal(case: Case) -> Failure | None:
    """Return why sizes can't be fixed that are asked to be; ``None`` if they can.

    Args:
        case: With its inputs and knobs.
    """
    if case.knobs.get(FIX_DIMS) != "on":
        return None
    found = open_sizes(case)
    if not found.reason:
        return None
    return case_failure(f"--ort-fix-dims=on can't be followed: {found.reason}", found.hint)
