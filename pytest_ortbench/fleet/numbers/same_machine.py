"""Runs of one machine under several names, by what their documents call it and say of it.

A document has no serial number: host name, processor and memory are what tells machines apart. Two
machines may agree in all of them, so this is said and refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.sides import machine_names
from pytest_ortbench.fleet.numbers.words import joined_names

#: Facts that differ between two runs of one machine: the share that a process may use, the system.
_OF_A_RUN = ("cpus_usable", "cores_usable", "cpu_quota", "system", "virtualisation")

#: Facts without which nothing tells one machine from another of the same host name, and what stands
#: there where nobody could say.
_OF_ALL, _NOT_KNOWN = ("cpu", "memory"), ("", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class SameMachine:
    """Names that stand for one machine.

    Attributes:
        host: Its host name in the documents.
        names: What it is called in the comparison.
    """

    host: str
    names: tuple[str, ...]


def same_machines(runs: Sequence[RunFacts]) -> tuple[SameMachine, ...]:
    """Return the machines that have several names in a comparison."""
    names_of: dict[tuple[object, ...], dict[str, None]] = {}
    for run, name in zip(runs, machine_names(runs), strict=True):
        if run.own_host and all(run.machine.get(fact, "") not in _NOT_KNOWN for fact in _OF_ALL):
            facts = [pair for pair in run.machine.items() if pair[0] not in _OF_A_RUN]
            key = (run.own_host, *sorted(facts), *sorted(run.devices))
            names_of.setdefault(key, {})[name] = None
    return tuple(
        SameMachine(host=str(key[0]), names=tuple(names))
        for key, names in names_of.items()
        if len(names) > 1
    )


def same_machine_texts(runs: Sequence[RunFacts]) -> list[str]:
    """Say which names stand for one machine, and what that means."""
    return [
        f"By their documents, {joined_names(same.names)} are one machine (host {same.host}, the "
        "same processor and memory). If that is so, they differ only in how it was used, or a file "
        "comes from the wrong machine; two machines may also share a host name."
        for same in same_machines(runs)
    ]
