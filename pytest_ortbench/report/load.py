"""What became of each case under load, as lines and as a table."""

from __future__ import annotations

from pytest_ortbench.core.load import Load, LoadTest
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.report.escape import encodable, markdown, one_line

#: Columns of the table.
HEADINGS = ("case", "load", "verdict", "answered", "p50", "p99", "how")


def load_lines(run: Run, *, encoding: str = "utf-8") -> list[str]:
    """Return a line for each load of each case, after a blank one.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [
        line
        for result in run.cases
        for load in result.loads
        for line in (f"load of {result.case.case_id}: {_sentence(load)}",)
    ]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def load_rows(run: Run) -> list[tuple[str, ...]]:
    """Return a row for each load, with the cells of :data:`HEADINGS`."""
    return [(result.case.case_id, *_cells(load)) for result in run.cases for load in result.loads]


def load_markdown(run: Run) -> str:
    """Return the table as Markdown under a heading; empty where no case was put under load."""
    rows = load_rows(run)
    if not rows:
        return ""
    lines = [
        "### Under load",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"| {' | '.join(['---'] * len(HEADINGS))} |",
        *(f"| {' | '.join(markdown(one_line(cell)) for cell in row)} |" for row in rows),
        "",
        "Latencies are counted from the scheduled arrival.",
    ]
    return "\n".join(lines) + "\n"


def load_facts(result: CaseResult) -> tuple[str, ...]:
    """Return a sentence for each load of a case, for where its numbers come from."""
    return tuple(f"load {_sentence(load)}" for load in result.loads)


def verdict(load: Load) -> str:
    """``VALID``, ``INVALID``, or why there is none."""
    if load.valid is None:
        return "not tested"
    return "VALID" if load.valid else "INVALID"


def _sentence(load: Load) -> str:
    text = load.spec.text
    if load.valid is None:
        return f"{text}: not tested: {load.reason}"
    if load.spec.scenario == "peak":
        return f"{text}: {_peak(load)}; {_how(load)}"
    test = load.test
    assert test is not None
    late = "" if test.late is None else f", {test.late} of {test.queries} late"
    return f"{text}: {verdict(load)}{_why(test)}: {_numbers(load, test)}{late}; {_how(load)}"


def _peak(load: Load) -> str:
    count = f"{len(load.tests)} test{'s' * (len(load.tests) != 1)}"
    if load.test is None:
        last = load.tests[-1]
        return f"INVALID{_why(last)}: {load.reason} ({count})"
    beyond = "" if load.beyond_per_s is None else f", INVALID at {_rate(load.beyond_per_s)}"
    note = f"; {load.note}" if load.note else ""
    return (
        f"VALID up to {_rate(load.test.rate_per_s)}{beyond} ({count}): "
        f"{_numbers(load, load.test)}{note}"
    )


def _why(test: LoadTest) -> str:
    return "" if test.valid else f" ({'; '.join(reason.rstrip('.') for reason in test.reasons)})"


def _numbers(load: Load, test: LoadTest) -> str:
    parts = [f"{_rate(test.completed_per_s)} answered"]
    if load.spec.scenario != "offline":
        names = dict.fromkeys(("50", f"{load.spec.percent:g}", "99"))
        parts += [
            f"p{name} {format_amount(test.percentiles_ns[name] * 1e-9, 's')}"
            for name in names
            if name in test.percentiles_ns
        ]
    return ", ".join(parts)


def _how(load: Load) -> str:
    test = load.test or load.tests[-1]
    callers = f"{load.callers} caller{'s' * (load.callers > 1)}"
    rules = "MLPerf's durations" if load.official else "non-conforming, MLPerf asks for 600 s"
    return (
        f"{test.requests} requests in {format_amount(test.duration_s, 's')}, {callers}, "
        f"{load.total_threads} threads in all; {rules}"
    )


def _cells(load: Load) -> tuple[str, ...]:
    test = load.test
    if load.valid is None or test is None:
        return (load.spec.text, verdict(load), "", "", "", load.reason)
    latency = [
        format_amount(test.percentiles_ns[name] * 1e-9, "s")
        if name in test.percentiles_ns and load.spec.scenario != "offline"
        else ""
        for name in ("50", "99")
    ]
    if load.spec.scenario == "peak":
        how = f"{_peak(load)}; {_how(load)}"
    else:
        how = f"{'; '.join(test.reasons)}; {_how(load)}" if test.reasons else _how(load)
    return (load.spec.text, verdict(load), _rate(test.completed_per_s), *latency, how)


def _rate(value: float | None) -> str:
    return "" if value is None else f"{significant(value)}/s"
