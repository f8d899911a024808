"""Kinds of providers, for planning; they stand in core because the launch layer names them too."""

from __future__ import annotations

from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS, ProviderKind, supplied_by

__all__ = ["BY_NAME", "KINDS", "ProviderKind", "supplied_by"]
