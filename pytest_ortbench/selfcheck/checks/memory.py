"""Meters of memory against memory that is taken on purpose, and against weights of known size."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import Memory
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.models.builders.check_models import WEIGHTS_BYTES
from pytest_ortbench.schema.case_questions import ReadMemory
from pytest_ortbench.selfcheck.check import (
    Check,
    CheckBench,
    LineFinding,
    passed,
    unchecked,
    works_on_cpus,
    wrong,
)
from pytest_ortbench.selfcheck.facts import MeteredMemory
from pytest_ortbench.selfcheck.questions import TakeMemory

#: What is taken, and how near the meter must be to it: pages and the granularity of a device (2
#: MiB) are less than that.
TAKEN_BYTES = 64 << 20
NEAR = 0.06
#: A session holds its weights once at least. How many copies a provider keeps is its own affair.
LEAST_COPIES = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memories:
    """What a session with weights of known size took, and what the meters show of known bytes."""

    session: Memory
    metered: MeteredMemory


def _look(bench: CheckBench) -> _Memories:
    with bench.opened(bench.case(bench.model("weights"))) as worker:
        session = worker.ask(ReadMemory())
        return _Memories(session=session, metered=worker.ask(TakeMemory(bytes_taken=TAKEN_BYTES)))


def _judge(facts: _Memories, provider: Provider) -> LineFinding:
    metered, session = facts.metered, facts.session
    if provider.name in NVIDIA:
        shown, held, source = metered.device_rise_bytes, session.device_bytes, metered.device_source
    else:
        shown, held, source = metered.host_rise_bytes, session.peak_bytes, metered.host_source
    if shown is None:
        return unchecked("no meter", source or "the memory can't be read")
    amounts = [
        Amount(name="taken", value=float(metered.taken_bytes), unit="bytes"),
        Amount(name="shown", value=float(shown), unit="bytes"),
    ]
    words = {"by": source}
    if abs(shown / metered.taken_bytes - 1) > NEAR:
        return wrong("meter off", "the meter shows other memory than was taken", *amounts, **words)
    if held is None:
        return unchecked("no meter", "the memory of the session was not read", *amounts, **words)
    amounts += [
        Amount(name="weights", value=float(WEIGHTS_BYTES), unit="bytes"),
        Amount(name="session", value=float(held), unit="bytes"),
    ]
    if provider.name not in NVIDIA and not works_on_cpus(provider):
        return unchecked(
            "no meter of the device",
            "nothing tells the memory of this device; that of the host is told rightly",
            *amounts,
            **words,
        )
    if held < LEAST_COPIES * WEIGHTS_BYTES:
        return wrong("weights missing", "a session shows less than its weights", *amounts, **words)
    return passed("agrees", "the meters show what was taken", *amounts, **words)


CHECK = Check(name="memory", about="meters of memory against known bytes", look=_look, judge=_judge)
