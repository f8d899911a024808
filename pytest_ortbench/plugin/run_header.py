"""The run document of a pytest run before its first case: what runs where, and what others add."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Run, Skip
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.launch.machine import commit, fingerprint
from pytest_ortbench.runtimes.installed import installed
from pytest_ortbench.store.folder import new_run_id
from pytest_ortbench.store.resume import plan_fingerprint

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.options import Options

_HOOK = "pytest_ortbench_machine_info"
_RULE = 'Return a dictionary of strings, e.g. {"asset": "lab-07"}'


def header_of(
    config: pytest.Config,
    options: Options,
    planned: Collection[Planned],
    *,
    root: Path,
    skips: tuple[Skip, ...],
    making: Sequence[str] = (),
) -> Run:
    """Return the run document as far as it is known before the first case.

    Args:
        config: The run.
        options: What it was asked for.
        planned: All cases of it.
        root: Folder whose commit counts.
        skips: What was left out of all plans.
        making: Tests that make the models that they measure: their cases come while it runs.

    Raises:
        UsageError: for facts about the machine that are no text.
    """
    machine = fingerprint()
    machine = replace(machine, volatile={**machine.volatile, **offered_facts(config)})
    started = datetime.now(timezone.utc)
    return Run(
        run_id=new_run_id(machine.host, started),
        ortbench_version=VERSION,
        started_at=started.isoformat(timespec="seconds"),
        command=("pytest", *(str(argument) for argument in config.invocation_params.args)),
        options=dict(options.given),
        machine=machine,
        commit=commit(root),
        skips=skips,
        expected=len(planned),
        plan=plan_fingerprint(
            (entry.case for entry in planned),
            {
                "host": machine.host,
                "onnxruntime": _distributions(),
                **({"making": "\n".join(sorted(making))} if making else {}),
            },
            files=_calibration_files(planned),
        ),
    )


def _calibration_files(planned: Iterable[Planned]) -> Iterator[str]:
    """Stored inputs that variants are made with, wherever the plan names them."""
    for entry in planned:
        if entry.conversion is not None:
            for specs in entry.conversion.calibration:
                yield from (spec.path for spec in specs)


def _distributions() -> str:
    """The distributions of ONNX Runtime beside pytest: another one means another plan."""
    return " ".join(sorted(package.requirement for package in installed().distributions))


def offered_facts(config: pytest.Config) -> dict[str, str]:
    """Return what every ``pytest_ortbench_machine_info`` says; numbers as text.

    Args:
        config: The run.

    Raises:
        UsageError: for anything else than text and numbers under names, with who returned it:
            the run document holds text, and all measured cases would be lost at the end.
    """
    manager = config.pluginmanager
    offering = [
        hook
        for hook in getattr(config.hook, _HOOK).get_hookimpls()
        if not (hook.wrapper or hook.hookwrapper)
    ]
    facts: dict[str, str] = {}
    # The one that is called last overrules, as in the list that one call of all would give.
    for hook in reversed(offering):
        others = [other.plugin for other in offering if other.plugin is not hook.plugin]
        place = f"{_HOOK} of {hook.plugin_name}"
        for offered in manager.subset_hook_caller(_HOOK, remove_plugins=others)(config=config):
            facts.update(_read(offered, place))
    return facts


def _read(offered: object, place: str) -> dict[str, str]:
    if not isinstance(offered, Mapping):
        raise UsageError(f"{offered!r} is not a dictionary", place=place, hint=_RULE)
    return {_name(name, place): _text(name, value, place) for name, value in offered.items()}


def _name(name: object, place: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"the key {name!r} is not a string", place=place, hint=_RULE)
    return name


def _text(name: object, value: object, place: str) -> str:
    # A subclass of str is written as the text that it is; True and 4 say what they are.
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{name!r} is {value!r}, not a string", place=place, hint=_RULE)
