"""What differs between a case of a stored run and the same case of another one: the first fact.

Each function returns it with both values, ``""`` where nothing differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import CaseResult

#: Characters of a digest that a message shows.
_DIGITS = 12

#: Facts of an interpreter that decide what it has in its heap before a session.
_INTERPRETER = ("executable", "python")


def workload_difference(before: Case, after: Case) -> str:
    """The first of what is fed and what is timed that differs, with both values."""
    if before.io != after.io:
        return f"io: {before.io} → {after.io}"
    old_inputs, new_inputs = (
        {spec.name: f"{spec.type} {list(spec.shape)}" for spec in case.inputs}
        for case in (before, after)
    )
    difference = first_difference("input", old_inputs, new_inputs) or difference_of_inputs(
        before, after
    )
    if not difference and before.seed != after.seed:
        difference = f"seed: {before.seed} → {after.seed}"
    return difference


def size_difference(before: Case, after: Case) -> str:
    """The first input that is fed at other sizes; one that only one of the cases has is none."""
    old, new = (
        {spec.name: str(list(spec.shape)) for spec in case.inputs} for case in (before, after)
    )
    shared = old.keys() & new.keys()
    sides = ({name: sizes[name] for name in sizes if name in shared} for sizes in (old, new))
    return first_difference("input", *sides)


def difference_of_inputs(before: Case, after: Case) -> str:
    """The first input whose values come from elsewhere, or from a file that held other ones."""
    sides = (
        {spec.name: _values(case, spec.path) if spec.path else "random" for spec in case.inputs}
        for case in (before, after)
    )
    return first_difference("values of input", *sides)


def service_difference(before: Case, after: Case) -> str:
    """The first of address and started application that differs, the folder of which is no part."""
    options = (before.provider.options, after.provider.options)
    sides = ({"url": of.get("url", ""), "app": PurePath(of.get("app", "")).name} for of in options)
    return first_difference("endpoint", *sides)


def label_difference(before: Case, after: Case) -> str:
    sides = (
        {} if case.dataset is None else {case.dataset.label: _values(case, case.dataset.path)}
        for case in (before, after)
    )
    return first_difference("labelled data", *sides)


def _values(case: Case, path: str) -> str:
    """What a file of a case held, as far as it takes to tell it from others."""
    return case.file_contents.get(path, "")[:_DIGITS] or "unknown"


def device_difference(old: CaseResult, new: CaseResult) -> str:
    """How the programs in the place of devices differ; empty where one of them had no worker."""
    if not old.measurements or not new.measurements:
        return ""
    before, after = (", ".join(side.software_devices) or "hardware" for side in (old, new))
    return "" if before == after else f"device in software: {before} → {after}"


def interpreter_difference(old: CaseResult, new: CaseResult) -> str:
    """How the interpreters of two results differ; empty where one of them had no worker."""
    sides = [
        {name: str(getattr(result.measurements[0].runtime, name)) for name in _INTERPRETER}
        for result in (old, new)
        if result.measurements
    ]
    return first_difference("interpreter", *sides) if len(sides) == 2 else ""


def first_difference(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The first fact that differs, with both values; empty if none does."""
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, "none"), after.get(name, "none")
        if old != new:
            return f"{kind} {name}: {old} → {new}"
    return ""
