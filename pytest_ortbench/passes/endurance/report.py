"""What a service lost under a steady load, as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_ortbench.analysis.memory_growth import growth_text
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.passes.endurance.facts import Endurance, EnduranceFault
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line


def endurance_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return lines about each service that was kept under load, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [
        line
        for entry in shown.entries
        if entry.result.endurance is not None
        for line in _lines(entry.result.endurance, entry.summary, shown.name_of(entry.result.case))
    ]
    return [encodable(line, encoding) for line in ["", *lines]] if lines else []


def _lines(found: Endurance, summary: Summary, case: str) -> Iterator[str]:
    name = one_line(f"endurance of the service of {case}")
    exchanges = found.exchanges
    if exchanges is None:
        yield f"{name}: {one_line(found.reason) or 'no request was sent'}"
        return
    share = ""
    if found.capacity_per_s:
        percents = 100 * found.rate_per_s / found.capacity_per_s
        share = f", {percents:.0f} % of the rate that one caller reaches"
    yield (
        f"{name}: {counted(exchanges.sent, 'request')} in {format_amount(found.seconds, 's')} "
        f"({significant(found.rate_per_s)}/s{share}): {_lost(exchanges)}"
    )
    yield f"  memory of the service: {one_line(_grown(summary))}"
    for fault in found.faults:
        yield f"  {one_line(_done(fault))}"


def _grown(summary: Summary) -> str:
    grown = summary.quantities.get("endurance_growth")
    if grown is None:
        return f"no verdict: {summary.missing['endurance_growth']}"
    low = -math.inf if grown.low is None else grown.low
    high = math.inf if grown.high is None else grown.high
    verdict = summary.notes.get("endurance_leaks", "")
    return f"{growth_text(grown.value, low, high, 'requests')}: {verdict}"


def _lost(exchanges: Exchanges) -> str:
    if not exchanges.failures:
        return "none was lost"
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(exchanges.failed.items()))
    away = format_amount(exchanges.away_s, "s")
    end = "" if exchanges.came_back else ", up to the end"
    share = 100 * exchanges.failures / exchanges.sent
    lost = f"{exchanges.failures} of them were lost ({share:.2g} %: {kinds})"
    return f"{lost}; no answer for {away}{end}"


def _done(fault: EnduranceFault) -> str:
    if not fault.count:
        return f"{fault.kind}: not done: {fault.reason or 'there was no time for it'}"
    times = "once" if fault.count == 1 else f"{fault.count} times"
    if fault.away_s:
        return f"{fault.kind} {times}: ready again after {format_amount(fault.away_s, 's')}"
    if fault.reason:
        return f"{fault.kind} {times}: {fault.reason}"
    answers = ", ".join(f"{status} {count}" for status, count in sorted(fault.answers.items()))
    return f"{fault.kind} {times}, answered with: {answers}"
