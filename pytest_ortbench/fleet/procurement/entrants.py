"""Which machine of the table a run comes from, and why a machine has no offer.

A purchase is decided among the machines that could be priced. So a name that only can be a mistake
ends the call, and every other machine that is missing is kept with its reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.numbers.sides import machine_names
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms, entry_header

#: Facts of a machine that a message shows where they differ, at most.
_FACTS = 2


class Absence(Enum):
    """Why a machine has no offer for a workload."""

    NO_RUN = "no run of it was given"
    NO_PRICE = "it has no entry in the table of machines"
    NOT_MEASURED = "{of} {was} not measured there"
    NOT_RANKED = "no case of {of} can be ranked there"
    OTHER_INPUTS = "{of} {was} measured with other inputs there"
    OTHER_MODEL = "the model of {of} is another file there"
    ONE_WORKER = (
        "{of} {was} measured in one worker process there, which does not show how far processes "
        "differ; measure again with --ort-workers=3"
    )
    NO_THROUGHPUT = "the throughput of {of} is not known there"
    NO_COMMON_COUNT = (
        "the models were not measured with the same number of processes or callers there"
    )
    NO_FIGURE = "no cost can be computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A machine without an offer for a workload.

    Attributes:
        machine: Its name.
        absence: Why.
        subject: What of, where a part of a workload is meant: the models of a mix.
        several: Whether the subject is more than one model.
        detail: The reason of the case itself: ``INACCURATE``.
    """

    machine: str
    absence: Absence
    subject: str = ""
    several: bool = False
    detail: str = ""

    @property
    def reason(self) -> str:
        """Why, for people: ``gbdt was not measured there``."""
        if self.absence is Absence.NO_FIGURE:
            return self.detail
        detail = f" ({self.detail})" if self.detail else ""
        reason = self.absence.value.format(
            of=self.subject or "this workload", was="were" if self.several else "was"
        )
        return f"{reason}{detail}"


def machines_of(runs: Sequence[RunFacts], terms: Terms) -> dict[str, PricedMachine]:
    """Return the machine of the table that each run comes from, by the run's id.

    Args:
        runs: Runs; those of machines without an entry are left out.
        terms: The machines.

    Raises:
        UsageError: if a name is misspelt, stands for several machines, or none is in the table.
    """
    # A run may be called as the entry or as its host.
    by_host = {machine.name: machine for machine in terms.machines}
    by_host |= {machine.host: machine for machine in terms.machines}
    names = dict(zip((run.run_id for run in runs), machine_names(runs), strict=True))
    _refuse_shared_names(runs, names, by_host)
    strangers = strangers_to(terms, list(names.values()))
    for machine in without_run(terms, list(names.values())):
        near = nearest(machine.host, strangers)
        if near and not _differ_by_a_number(near, machine.host):
            raise UsageError(
                f"no run comes from {entry_header(machine.name)}, and the run from {near!r} has no "
                "entry in the table",
                place="--machines",
                hint=f"If both are the same machine, {_mended(machine, near)}. If not, add an "
                f"entry {entry_header(near)} with its price",
            )
    if not set(names.values()) & set(by_host):
        known, first = ", ".join(by_host), entry_header(next(iter(by_host)))
        name = next(iter(names.values()))
        raise UsageError(
            "no run comes from a machine of the table. The runs come from "
            f"{', '.join(dict.fromkeys(names.values()))}. The table has {known}",
            place="--machines",
            hint=f"If {name} is in the table under another name, write host = {json.dumps(name)} "
            f"there, e.g. below {first}. If it is not, add an entry {entry_header(name)} "
            "with its price",
        )
    return {run_id: by_host[name] for run_id, name in names.items() if name in by_host}


def called_as_priced(runs: Sequence[RunFacts], terms: Terms) -> tuple[list[RunFacts], Terms]:
    """Return runs and table with one name for a machine: that of its entry, whatever its host is.

    Raises:
        UsageError: as :func:`machines_of`.
    """
    machines = machines_of(runs, terms)
    named = [
        replace(run, host=machines[run.run_id].name) if run.run_id in machines else run
        for run in runs
    ]
    own = tuple(replace(machine, host=machine.name) for machine in terms.machines)
    return named, replace(terms, machines=own)


def strangers_to(terms: Terms, names: Sequence[str]) -> list[str]:
    """Return the names of machines that have no entry in the table, each once."""
    known = {name for machine in terms.machines for name in (machine.host, machine.name)}
    return [name for name in dict.fromkeys(names) if name not in known]


def without_run(terms: Terms, names: Sequence[str]) -> list[PricedMachine]:
    """Return the machines of the table that no run is of."""
    return [
        machine
        for machine in terms.machines
        if machine.host not in names and machine.name not in names
    ]


def _mended(machine: PricedMachine, near: str) -> str:
    """How an entry comes to be that of a machine called ``near``."""
    if machine.host == machine.name:
        return f"rename the entry to {entry_header(near)}"
    return f"write host = {json.dumps(near)} below {entry_header(machine.name)}"


def _differ_by_a_number(name: str, other: str) -> bool:
    """Whether two names are those of siblings: ``lab-1`` and ``lab-2``."""
    plain, other_plain = (re.sub(r"\d+", "", text) for text in (name, other))
    return plain == other_plain


def _refuse_shared_names(
    runs: Sequence[RunFacts], names: Mapping[str, str], by_host: Mapping[str, PricedMachine]
) -> None:
    """Refuse runs of different machines under one name, of which the table has only one."""
    for host in by_host:
        kinds: dict[str, RunFacts] = {}
        for run in runs:
            if run.host == host:
                kinds.setdefault(names[run.run_id], run)
        if len(kinds) > 1 and any(name not in by_host for name in kinds):
            first, second = list(kinds.values())[:2]
            other = f"{by_host[host].name}-2"
            raise UsageError(
                f"the runs of {host!r} are not of one machine: {_difference(first, second)}",
                place="--machines",
                hint=f"Add an entry {entry_header(other)} with a price for the second one. Then "
                f"write {by_host[host].name}= before the first of these runs, and {other}= before "
                "the second",
            )


def _difference(first: RunFacts, second: RunFacts) -> str:
    """``the run 2026…-vm-6807 has cpus_usable = 2, the run 2026…-vm-3cb5 has cpus_usable = 1``."""
    keys = [
        key
        for key in dict.fromkeys((*first.machine, *second.machine))
        if first.machine.get(key) != second.machine.get(key)
    ]
    return ", ".join(
        f"the run {run.run_id} has "
        + " and ".join(f"{key} {run.machine.get(key, 'not known')!r}" for key in keys[:_FACTS])
        for run in (first, second)
    )


def why_left_out(
    machine: PricedMachine, cases: Sequence[CaseFacts], reference: CaseFacts, *, subject: str = ""
) -> LeftOut:
    """Say why a machine that was measured has no offer.

    Args:
        machine: The machine.
        cases: Its cases of the workload.
        reference: The case that says what is fed.
        subject: What they are of, where that is a part of the workload.
    """
    if not cases:
        return LeftOut(machine=machine.name, absence=Absence.NOT_MEASURED, subject=subject)
    barred = next((case for case in cases if case.reason), None)
    if barred is not None and all(case.reason for case in cases):
        return LeftOut(
            machine=machine.name,
            absence=Absence.NOT_RANKED,
            subject=subject,
            detail=barred.reason,
        )
    absence = Absence.NO_THROUGHPUT
    if all(case.digest != reference.digest for case in cases):
        absence = Absence.OTHER_MODEL
    elif all(case.inputs != reference.inputs for case in cases):
        absence = Absence.OTHER_INPUTS
    elif any(case.one_worker for case in cases):
        absence = Absence.ONE_WORKER
    return LeftOut(machine=machine.name, absence=absence, subject=subject)
