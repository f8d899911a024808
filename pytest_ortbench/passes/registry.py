"""Every pass, one line each, in the order in which they are carried out; this is the only list.

The passes are made when somebody asks for them: a start of pytest loads their options only.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ortbench.core.case import Case
    from pytest_ortbench.passes.pass_object import Pass, TimedUnit

    #: Every pass.
    PASSES: tuple[Pass, ...]

#: Names of the folders; the :class:`Pass` of each is ``PASS`` in its module ``declaration``.
NAMES = (
    "energy",
    "profile",
    "soak",
    "load",
    "served",
    "endurance",
    "stages",
    "startup",
    "processes",
    "together",
    "transfers",
    "task",
    "generation",
    "export_check",
)


def __getattr__(name: str) -> Any:
    if name != "PASSES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    passes = tuple(import_module(f"{__package__}.{folder}.declaration").PASS for folder in NAMES)
    globals()["PASSES"] = passes
    return passes


def pass_named(name: str) -> Pass:
    """Return the pass of a name, or of a name with an argument: ``load:offline``."""
    from pytest_ortbench.passes.registry import PASSES

    return next(entry for entry in PASSES if entry.name == name.partition(":")[0])


def owner_of(case: Case) -> Pass | None:
    """Return the pass that has a unit of its own for what a case times; ``None`` for inferences."""
    from pytest_ortbench.passes.registry import PASSES

    for entry in PASSES:
        if entry.unit is not None and getattr(case, entry.unit.case_field) is not None:
            return entry
    return None


def unit_of(case: Case) -> TimedUnit | None:
    """Return what a case times where that is no inference."""
    owner = owner_of(case)
    return None if owner is None else owner.unit


def metrics_beside(cases: Iterable[Case]) -> dict[str, str]:
    """Return the metrics of which some of the cases can have none, since others time their unit.

    Args:
        cases: Those of a run. Metrics of a unit that none of them times are not among it.

    Returns:
        By the name of a metric, the field of a case that says whether it can have it.
    """
    from pytest_ortbench.passes.registry import PASSES

    units = [(entry, entry.unit) for entry in PASSES if entry.unit is not None]
    cases = list(cases)
    return {
        name: unit.case_field
        for entry, unit in units
        if any(getattr(case, unit.case_field) is not None for case in cases)
        for name in entry.metric_names
    }


def can_have(metric: str, case: Case, beside: Mapping[str, str]) -> bool:
    """Return whether a case can have a metric.

    Args:
        metric: Its name.
        case: The case.
        beside: See :func:`metrics_beside`.
    """
    return metric not in beside or getattr(case, beside[metric]) is not None


def option_groups() -> tuple[type, ...]:
    """Return the classes of the option rows of all passes that have some."""
    files = [(folder, Path(__file__).parent / folder / "options.py") for folder in NAMES]
    return tuple(_options_in(folder, file) for folder, file in files if file.exists())


def _options_in(folder: str, file: Path) -> type:
    """Load options by their file: an import would load the package of the pass, too.

    That and the search for both would take most of what the plugin costs a start of pytest.
    """
    name = f"{__package__}.{folder}.options"
    if name not in sys.modules:
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    group: type = sys.modules[name].OPTIONS
    return group
