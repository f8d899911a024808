"""What a service takes for a request, as lines."""

from __future__ import annotations

from statistics import median

from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.served.facts import ServiceUse
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line
from pytest_ortbench.report.pass_table import PassTable
from pytest_ortbench.report.python_profile import profile_tables

#: A step below this share of a request is not named.
_SHOWN_SHARE = 0.01


def service_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return lines about the service of each case, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [
        line
        for result in shown.run.cases
        if result.served is not None
        for line in _lines(result.served, shown.name_of(result.case))
    ]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def service_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return tables of what profilers of Python found in the service of each case."""
    return tuple(
        table
        for result in shown.run.cases
        if result.served is not None
        for table in profile_tables(
            result.served.python,
            f"the service {result.served.app} of {shown.name_of(result.case)}",
            "request",
        )
    )


def _lines(use: ServiceUse, case: str) -> list[str]:
    if not use.durations_ns:
        return [f"service of {case}: {use.reason or 'no request was sent'}"]
    count = len(use.durations_ns)
    whole_ns = median(use.durations_ns)
    lines = [
        f"service {use.app} of {case}: {_time(whole_ns)} a request (median of {count}, sent one "
        f"after the other){_steps(use, whole_ns)}"
    ]
    cpu_s = use.cpu_ns * 1e-9 / count
    if cpu_s > 0:
        lines.append(
            f"  {format_amount(cpu_s, 's')} of processor time a request: the {use.cpus} processors "
            f"of this machine suffice for at most {significant(use.cpus / cpu_s)} requests a second"
        )
    if use.resident_bytes:
        lines.append(
            f"  {format_amount(use.resident_bytes, 'bytes')} of memory: this machine has room for "
            f"{use.memory_bytes // use.resident_bytes} such services"
        )
    return lines


def _steps(use: ServiceUse, whole_ns: float) -> str:
    """Where the time of a request goes, as the service tells it, and what is left for the way."""
    if not use.steps_ns:
        return "; the service does not say where the time goes"
    steps = {name: ns for name, ns in use.steps_ns.items() if ns >= _SHOWN_SHARE * whole_ns}
    rest = whole_ns - sum(use.steps_ns.values())
    parts = [f"{name} {_time(ns)}" for name, ns in steps.items()]
    if rest > 0:
        parts.append(f"HTTP and the client {_time(rest)}")
    return f", of which {', '.join(parts)}"


def _time(ns: float) -> str:
    return format_amount(ns * 1e-9, "s")
