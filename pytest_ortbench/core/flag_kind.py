"""What a validity flag means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagKind:
    """What a flag means: its severity and one sentence of advice."""

    name: str
    severity: str
    meaning: str
    advice: str


def flag_kind(name: str, severity: str, meaning: str, advice: str) -> FlagKind:
    """Return a kind of flag; the arguments are its fields in their order."""
    return FlagKind(name=name, severity=severity, meaning=meaning, advice=advice)
