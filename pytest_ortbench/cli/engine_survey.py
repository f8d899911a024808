"""Tells which engines and frameworks are installed, from package metadata, without imports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import InvalidRequirement, Requirement

from pytest_ortbench.cli.survey import ProviderState
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.registry import brought_kinds, engine_kinds


def engine_states() -> tuple[ProviderState, ...]:
    """Return what became of each engine and framework in this interpreter, installed ones first.

    ``installed`` means that all packages are there, ``absent`` that one is not, and ``fails`` that
    the declaration which another package brings can't be read.
    """
    brought, problems = brought_kinds()
    states = [_state(alias, kind) for alias, kind in {**engine_kinds(), **brought}.items()]
    states += [
        ProviderState(alias=alias, state="fails", reason=reason)
        for alias, reason in problems.items()
    ]
    return tuple(sorted(states, key=lambda state: state.state != "installed"))


def _state(alias: str, kind: EngineKind) -> ProviderState:
    versions = {name: _version_of(name) for name in kind.distributions}
    if all(versions.values()):
        packages = ", ".join(f"{name} {installed}" for name, installed in versions.items())
        reason = f"{kind.role}: {packages or 'needs no other package'}"
        return ProviderState(alias=alias, state="installed", reason=reason)
    return ProviderState(alias=alias, state="absent", reason=f"{kind.role}: {kind.supply}")


def _version_of(distribution: str) -> str:
    """Return the installed version of a package, as ``pip install`` takes it; empty if absent."""
    try:
        # A shell needs quotes around an extra.
        return version(Requirement(distribution.strip("'\"")).name)
    except (InvalidRequirement, PackageNotFoundError):
        return ""
