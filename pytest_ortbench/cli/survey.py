"""What really runs in one runtime: asked of its worker, not read from its list of providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS, ProviderKind
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.launch.probe_memory import ProbeMemory, Remembered
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderState:
    """What became of one provider.

    Attributes:
        alias: Its alias, with a device if it has one.
        state: ``runs``; ``fails``: it is listed, and executed nothing; ``absent``: it is not in
            this runtime; ``left out``: nobody means it by ``all``.
        reason: Why it does not run, or what supplies it.
        hint: The next step, where one is known.
        tried_at_s: When it was tried, seconds since the epoch; ``None``: just now, or not at all.
    """

    alias: str
    state: str
    reason: str = ""
    hint: str = ""
    tried_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a runtime is and what runs in it.

    Attributes:
        info: What its worker says of it; ``None`` if there is no working ONNX Runtime.
        failure: Why not.
        providers: Every provider that is known, those that run first.
    """

    info: RuntimeInfo | None = None
    failure: Failure | None = None
    providers: tuple[ProviderState, ...] = ()

    @property
    def running(self) -> tuple[ProviderState, ...]:
        """The providers that executed a node here."""
        return self.in_state("runs")

    def in_state(self, state: str) -> tuple[ProviderState, ...]:
        """Return the providers in one state."""
        return tuple(provider for provider in self.providers if provider.state == state)


def survey(
    launcher: Launcher,
    runtime: Runtime,
    *,
    memory: ProbeMemory | None = None,
    plugins: Sequence[ConfiguredPlugin] = (),
    again: bool = True,
    on_step: Callable[[str], None] = lambda _: None,
) -> Survey:
    """Ask a runtime what it has, and try each of its providers on tiny models.

    Args:
        launcher: Starts the processes.
        runtime: Which interpreter.
        memory: Remembers what was tried; ``None`` remembers nothing.
        plugins: Plug-ins that the project has configured.
        again: Try every provider, even if it is remembered.
        on_step: Called with what is tried next.
    """
    on_step("ONNX Runtime")
    memory = memory or ProbeMemory(None)
    candidates = Candidates(launcher, memory, plugins)
    runtime = candidates.equip(runtime)
    try:
        info = candidates.inspect(runtime)
    except WorkerError as error:
        return Survey(failure=error.failure)
    providers, skips = candidates.offered(runtime)
    states = []
    for provider in providers:
        on_step(provider.label)
        [attempt] = memory.probe(launcher, runtime, info, [provider], again=again)
        states.append(_state(provider.label, attempt))
    # Stable: the order in which the runtime lists them, those that run first.
    states.sort(key=lambda state: state.state != "runs")
    broken = {BY_NAME[name].alias if name in BY_NAME else name for name in info.plugin_problems}
    states += [
        ProviderState(
            alias=skip.what,
            state="fails" if skip.what in broken else "left out",
            reason=skip.reason,
        )
        for skip in skips
    ]
    listed = {provider.alias for provider in providers} | {skip.what for skip in skips}
    states += [
        ProviderState(alias=alias, state="absent", reason=_supply(kind))
        for alias, kind in KINDS.items()
        if alias not in listed and kind.in_all
    ]
    return Survey(info=info, providers=tuple(states))


def _state(label: str, attempt: Remembered) -> ProviderState:
    outcome = attempt.outcome
    return ProviderState(
        alias=label,
        state="runs" if outcome.usable else "fails",
        reason=outcome.reason,
        hint=outcome.failure.hint if outcome.failure else "",
        tried_at_s=None if attempt.fresh else attempt.at_s,
    )


def _supply(kind: ProviderKind) -> str:
    """What it takes to have a provider, in a few words."""
    if not kind.distributions:
        return f"in no package on PyPI: {kind.elsewhere}"
    installs = " or ".join(f"pip install {name}" for name in kind.distributions)
    installs += f" ({kind.which})" if kind.which else ""
    return f"{installs}; needs {kind.source}" if kind.source else installs
