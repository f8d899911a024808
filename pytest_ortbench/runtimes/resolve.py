"""From ``--ort-runtimes`` to interpreters that can be started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import Skip
from pytest_ortbench.runtimes import auto as auto_runtimes
from pytest_ortbench.runtimes.config import ConfiguredRuntime, configured_runtimes
from pytest_ortbench.runtimes.installed import installed
from pytest_ortbench.runtimes.specs import (
    AUTO,
    CURRENT,
    PLACE,
    RequirementList,
    parse_spec,
)

if TYPE_CHECKING:
    from pytest_ortbench.runtimes.environments import Environments

#: Where environments are kept within the cache.
RUNTIMES_FOLDER = "runtimes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRuntimes:
    """The runtimes of one run.

    Attributes:
        runtimes: In the order of writing, labels unique.
        failures: Why some of them can't be started, by label; their cases fail with it.
        skips: Those of ``auto`` that can't be had.
    """

    runtimes: tuple[Runtime, ...]
    failures: dict[str, Failure] = field(default_factory=dict)
    skips: tuple[Skip, ...] = ()


def current() -> Runtime:
    """Return the interpreter that runs pytest, with its environment."""
    return Runtime(label=CURRENT, command=(sys.executable,))


def choose_runtimes(
    specs: Sequence[str],
    *,
    root: Path,
    environments: Callable[[], Environments],
    notify: Callable[[str], None],
    place: str = PLACE,
    hardware: Callable[[], auto_runtimes.Hardware] = auto_runtimes.this_hardware,
) -> ChosenRuntimes:
    """Turn specifications into runtimes, making environments where they are not there yet.

    All specifications are read before anything is made.

    Args:
        specs: As written, split.
        root: Folder whose configuration applies.
        environments: Gives what keeps environments; called where one is asked for.
        notify: Told what ``auto`` chose and why.
        place: Where the specifications were written.
        hardware: Looks at the machine, for ``auto``.

    Raises:
        UsageError: for a specification or configuration that breaks a rule.
    """
    # Not read where nobody asks for it: a wrong table must not stop those who don't.
    by_name = any(spec.strip() not in (CURRENT, AUTO) for spec in specs)
    configured = configured_runtimes(root) if by_name else {}
    chosen = _Chosen(environments, configured)
    wanted: list[tuple[str | RequirementList, bool]] = []
    for spec in specs:
        parsed = parse_spec(spec, configured, place=place)
        if parsed == AUTO:
            here = {
                distribution.name.lower().replace("_", "-")
                for distribution in installed().distributions
            }
            for choice in auto_runtimes.suiting_runtimes(hardware(), here):
                notify(f"auto: {choice.spec}: {choice.reason}")
                wanted.append((parse_spec(choice.spec, ()), False))
        else:
            wanted.append((parsed, True))
    for parsed, named in wanted:
        chosen.add(parsed, named=named)
    return chosen.result()


class _Chosen:
    """Runtimes so far, each once, under labels of their own."""

    def __init__(
        self, environments: Callable[[], Environments], configured: Mapping[str, ConfiguredRuntime]
    ) -> None:
        self._environments = environments
        self._configured = configured
        self._runtimes: dict[str, Runtime] = {}
        self._failures: dict[str, Failure] = {}
        self._skips: list[Skip] = []

    def add(self, spec: str | RequirementList, *, named: bool) -> None:
        """Add one; under ``auto`` one that can't be had is left out."""
        try:
            runtime = self._runtime(spec)
        except WorkerError as error:
            label = spec.label({}) if isinstance(spec, RequirementList) else spec
            if named:
                self._failures[self._keep(Runtime(label=label, requirements=_listed(spec)))] = (
                    error.failure
                )
            else:
                self._skips.append(Skip(what=label, reason=str(error)))
        else:
            self._keep(runtime)

    def result(self) -> ChosenRuntimes:
        return ChosenRuntimes(
            runtimes=tuple(self._runtimes.values()),
            failures=self._failures,
            skips=tuple(self._skips),
        )

    def _runtime(self, spec: str | RequirementList) -> Runtime:
        if isinstance(spec, RequirementList):
            environment = self._environments().ensure(spec)
            return Runtime(
                label=environment.manifest.label,
                command=(str(environment.python),),
                isolated=True,
                requirements=spec.requirements,
            )
        if spec == CURRENT:
            return current()
        return self._from_configuration(self._configured[spec])

    def _from_configuration(self, configured: ConfiguredRuntime) -> Runtime:
        interpreter = ""
        requirements = configured.requirements
        if requirements is not None:
            made = self._environments().ensure(requirements, python=configured.python)
            interpreter = str(made.python)
        return Runtime(
            label=configured.name,
            command=configured.command_with(interpreter),
            environment=configured.environment,
            isolated=bool(interpreter),
            requirements=() if requirements is None else requirements.requirements,
            shares_files=configured.shares_files,
            through_shell=configured.through_shell,
        )

    def _keep(self, runtime: Runtime) -> str:
        """Keep a runtime unless it is there already; return the label that it has now."""
        label, number = runtime.label, 1
        while label in self._runtimes:
            known = self._runtimes[label]
            if (known.command, known.environment) == (runtime.command, runtime.environment):
                # onnxruntime and onnxruntime==1.32.0 may be the same environment.
                return label
            number += 1
            label = f"{runtime.label}-{number}"
        self._runtimes[label] = replace(runtime, label=label)
        return label


def _listed(spec: str | RequirementList) -> tuple[str, ...]:
    return spec.requirements if isinstance(spec, RequirementList) else ()
