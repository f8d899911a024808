"""Which providers are measured in one runtime: those that were named, and those that really run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.run import Skip
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.planning.provider_options import PLACE, check_options
from pytest_ortbench.planning.providers import (
    ALL,
    RuntimeOffer,
    expand,
    is_known,
    spec_words,
    split_specs,
)
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin

#: Where outcomes of probes are kept within the cache.
PROBES_FOLDER = "probes"


class Candidates:
    """Asks runtimes what they have, each once.

    Args:
        launcher: Asks them.
        memory: Remembers what was tried.
        plugins: Plug-ins that the project has configured.
    """

    def __init__(
        self, launcher: Launcher, memory: ProbeMemory, plugins: Sequence[ConfiguredPlugin] = ()
    ) -> None:
        self._launcher = launcher
        self._memory = memory
        self._declared: dict[str, tuple[str, ...]] = {}
        for plugin in plugins:
            self._declared[plugin.alias] = plugin.options
            self._declared[plugin.provider] = plugin.options
        self._configured = RuntimeOffer(
            libraries={each.provider: each.library for each in plugins if each.library},
            aliases={each.alias: each.provider for each in plugins},
        )
        self._infos: dict[str, RuntimeInfo] = {}

    @classmethod
    def remembering(
        cls, launcher: Launcher, cache: Path, plugins: Sequence[ConfiguredPlugin] = ()
    ) -> Candidates:
        """Return candidates whose probes are remembered in the user's cache folder."""
        return cls(launcher, ProbeMemory(cache / PROBES_FOLDER), plugins)

    def equip(self, runtime: Runtime) -> Runtime:
        """Return the runtime with the plug-ins that the project has configured."""
        return replace(runtime, plugins=dict(self._configured.libraries))

    def check(
        self, options: Mapping[str, Mapping[str, str]], *, root: Path, place: str = PLACE
    ) -> None:
        """Check provider options, those of providers that are not measured too.

        Args:
            options: By alias.
            root: The project's folder.
            place: Where they were written.

        Raises:
            UsageError: for an option that the provider doesn't document.
        """
        for alias, given in options.items():
            declared = self._declared.get(alias, ())
            check_options(alias, given, declared=declared, place=place, root=root)

    def stand_in(self, runtime: Runtime, specs: Sequence[str]) -> tuple[list[Provider], list[Skip]]:
        """Providers of a runtime that nobody can ask: the CPU stands in for ``all``.

        So the failure becomes a row.
        """
        named = ["cpu" if spec == ALL else spec for spec in split_specs(specs)]
        # A name that only the runtime could explain is taken as it is.
        words = tuple(word for spec in named for word in spec_words(spec))
        return expand(named, replace(self._configured, available=words), runtime=runtime.label)

    def providers(
        self, runtime: Runtime, specs: Sequence[str]
    ) -> tuple[list[Provider], list[Skip]]:
        """The providers to measure in one runtime.

        Those asked for by name are cases whatever becomes of them; under ``all`` each candidate is
        tried on tiny models first, and those that don't run are left out with the reason.

        Args:
            runtime: With its plug-ins, see :meth:`equip`.
            specs: As typed.

        Raises:
            UsageError: for a provider that neither we nor the runtime know.
        """
        offer = self._configured
        split = split_specs(specs)
        asks = ALL in split or not all(is_known(spec, offer.aliases) for spec in split)
        if asks:
            try:
                offer = offer.observed(self.inspect(runtime))
            except WorkerError as error:
                skip = Skip(what=ALL, reason=str(error), runtime=runtime.label)
                providers, skips = self.stand_in(runtime, specs)
                return providers, [*skips, skip] if ALL in split else skips
        providers, skips = expand(split, offer, runtime=runtime.label)
        doubtful = [p for p in providers if not p.named and p.alias != "cpu"]
        if not doubtful:
            return providers, skips
        remembered = self._memory.probe(self._launcher, runtime, self.inspect(runtime), doubtful)
        refused = {
            each.outcome.provider.label: each.outcome.reason
            for each in remembered
            if not each.outcome.usable
        }
        kept = [p for p in providers if p.named or p.label not in refused]
        skips += [
            Skip(what=label, reason=reason, runtime=runtime.label)
            for label, reason in refused.items()
        ]
        return kept, skips

    def offered(self, runtime: Runtime) -> tuple[list[Provider], list[Skip]]:
        """What ``all`` means in a runtime before anything was tried, and what it never means.

        Raises:
            WorkerError: if it can't be asked.
        """
        return expand(
            (ALL,), self._configured.observed(self.inspect(runtime)), runtime=runtime.label
        )

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        """Say what a runtime is.

        Raises:
            WorkerError: if it can't be asked.
        """
        if runtime.label not in self._infos:
            self._infos[runtime.label] = self._launcher.inspect(runtime)
        return self._infos[runtime.label]
