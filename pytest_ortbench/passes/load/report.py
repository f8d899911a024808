"""What became of each case under load, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.load.facts import TPOT, TTFT, Load, LoadTest
from pytest_ortbench.passes.load.numbers.loads import broken_bounds
from pytest_ortbench.passes.load.numbers.spec import about_origin
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import markdown, markdown_row, one_line
from pytest_ortbench.report.pass_table import PassTable

#: Percentiles that every table has; one that a load is judged by comes beside them.
_PERCENTILES = (50.0, 90.0, 99.0)

#: Encodings of tensors, in words.
_ENCODINGS = {
    "binary": "binary tensors",
    "json": "JSON",
    "own": "a function of yours",
    "openai": "streamed tokens",
}
#: What answers were compared with.
_STANDARDS = {"reference": "the reference", "first": "the answer before the load"}
_DELAYS_FROM = {"arrival": "they were due", "issue": "the load generator handed them over"}

#: Field of a test that a column of times reads, and the percentile, by the column's heading.
Times = dict[str, tuple[str, str]]


def load_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return a table for each case that was put under load, in their order."""
    return tuple(
        _table(result, shown.name_of(result.case)) for result in shown.run.cases if result.loads
    )


def load_markdown(shown: ShownRun) -> str:
    """Return the tables as Markdown under a heading; empty where no case was put under load."""
    tables = load_tables(shown)
    if not tables:
        return ""
    lines = ["### Under load"]
    for table in tables:
        lines += ["", markdown(table.title)]
        if table.rows:
            lines += ["", markdown_row(table.headings), markdown_row(["---"] * len(table.headings))]
            lines += [markdown_row([markdown(cell) for cell in row]) for row in table.rows]
        if table.remarks:
            lines += ["", *(f"- {markdown(remark)}" for remark in table.remarks)]
    return "\n".join(lines) + "\n"


def _table(result: CaseResult, case: str) -> PassTable:
    loads = result.loads
    name = f"load of {case}"
    remarks = tuple(one_line(text) for load in loads for text in _remarks(load))
    wrong = ", ".join(flag_names(result.flags, "bars"))
    if wrong and any(load.valid for load in loads):
        remarks += (f"VALID is said of the times alone: the outputs are {wrong}",)
    tested = [load for load in loads if load.tests]
    if not tested:
        return PassTable(title=one_line(name), remarks=remarks)
    percents = sorted({*_PERCENTILES, *(load.spec.percent for load in tested)})
    # Where loads differ, the title is about the one with the most callers.
    most = max(tested, key=lambda load: load.callers)
    fewer = [load for load in tested if _callers(load) != _callers(most)]
    remarks += tuple(one_line(f"{load.spec.text}: {_callers(load)}") for load in fewer)
    times = _times(tested, percents)
    headings = (
        "load",
        "verdict",
        "asked",
        "answered",
        *times,
        "late",
        "requests",
        "time",
    )
    rows: list[tuple[str, ...]] = []
    for load in tested:
        if load.spec.scenario != "peak":
            rows.append(_row(load, load.tests[0], load.spec.text, times, wrong))
            continue
        for number, test in enumerate(load.tests):
            text = f"{load.spec.text}, test {number + 1}{' *' if number == load.answer else ''}"
            rows.append(_row(load, test, text, times, wrong))
    return PassTable(
        title=one_line(f"{name} ({_how(most)})"),
        headings=headings,
        rows=tuple(rows),
        remarks=remarks,
    )


def _how(load: Load) -> str:
    """What is the same for all loads of a case, but for the callers of single queries."""
    rules = "MLPerf's own durations" if load.official else ("non-conforming: MLPerf requires 600 s")
    version = load.tests[0].version
    return f"{_callers(load)}; MLPerf loadgen {version}; {rules}"


def _callers(load: Load) -> str:
    if any(test.exchanges is not None for test in load.tests):
        return "each request sent when it arrives"
    callers = f"{load.callers} caller{'s' * (load.callers > 1)}"
    return f"{callers}, {load.total_threads} thread{'s' * (load.total_threads > 1)} in all"


def _times(tested: Sequence[Load], percents: Sequence[float]) -> Times:
    """Return the columns of times, of whole requests and of tokens, as far as loads have them."""
    of_tokens = [load for load in tested if load.spec.is_of_tokens]
    times: Times = {}
    if len(of_tokens) < len(tested):
        times = {f"p{percent:g}": ("percentiles_ns", f"{percent:g}") for percent in percents}
    for name, of in ((TTFT, "first_token_percentiles_ns"), (TPOT, "token_time_percentiles_ns")):
        shown = sorted({50.0, *(load.spec.percent for load in of_tokens)})
        if of_tokens:
            times |= {f"{name} p{percent:g}": (of, f"{percent:g}") for percent in shown}
    return times


def _row(load: Load, test: LoadTest, text: str, times: Times, wrong: str) -> tuple[str, ...]:
    """Return the cells of one test; ``wrong`` are the flags under which its answers are no good."""
    waiting = load.spec.scenario == "offline"
    known = [None if waiting else getattr(test, of).get(percent) for of, percent in times.values()]
    return (
        text,
        _verdict(test.valid, wrong),
        _rate(test.rate_per_s),
        _rate(test.completed_per_s),
        *("-" if time_ns is None else format_amount(time_ns * 1e-9, "s") for time_ns in known),
        "-" if test.late is None else f"{test.late} of {test.queries}",
        str(test.requests),
        format_amount(test.duration_s, "s"),
    )


def _verdict(is_valid: bool | None, wrong: str) -> str:
    """The generator judges times alone, which are worth nothing where the answers are wrong."""
    word = "VALID" if is_valid else "INVALID"
    return f"{wrong}, times {word}" if wrong else word


def _remarks(load: Load) -> list[str]:
    text = load.spec.text
    if not load.tests:
        return [f"{text} was not tested: {load.reason}"]
    shown = load.test or load.tests[-1]
    origin = about_origin(load.spec)
    about = [f"{text}: {origin}"] if origin else []
    about += [] if shown.exchanges is None else [_about_client(text, shown.exchanges)]
    if load.spec.scenario == "peak":
        return [_peak(load), *about]
    if load.valid:
        return about
    return [f"{text} is INVALID: {_reasons(load, load.tests[0])}", *about]


def _about_client(text: str, exchanges: Exchanges) -> str:
    """Say what of a load's times is the client's, and how many requests failed."""
    sent = f"{text}: {exchanges.protocol} with {_ENCODINGS[exchanges.encoding]} to {exchanges.url}"
    if exchanges.failures:
        share = 100 * exchanges.failures / exchanges.sent
        sent += f"; {exchanges.failures} requests ({share:.2g} %) failed: {_kinds(exchanges)}"
        away = format_amount(exchanges.away_s, "s")
        sent += f"; no answer for {away}{'' if exchanges.came_back else ', up to the end'}"
    if exchanges.compared:
        sent += (
            f"; {exchanges.compared} answers compared with {_STANDARDS[exchanges.compared_with]}"
        )
    cost = exchanges.cost
    if cost.p50_ns is None or cost.p99_ns is None or cost.most_per_s is None:
        return f"{sent}; the client's own share of the times is not known: {cost.reason}"
    delays = [
        f"p{percent} {format_amount(time_ns * 1e-9, 's')}"
        for percent, time_ns in exchanges.send_delay_ns.items()
        if percent != "90"
    ]
    return (
        f"{sent}; of each time, {format_amount(cost.p50_ns * 1e-9, 's')} is the client's own "
        f"(p99 {format_amount(cost.p99_ns * 1e-9, 's')}, measured on a service that computes "
        f"nothing); it can send {_rate(cost.most_per_s)}, and requests left it "
        f"{', '.join(delays)} after {_DELAYS_FROM[exchanges.delay_from]}"
    )


def _kinds(exchanges: Exchanges) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(exchanges.failed.items()))


def _peak(load: Load) -> str:
    text, count = load.spec.text, len(load.tests)
    tests = f"{count} test{'s' * (count != 1)}"
    if load.test is None:
        return f"{text}: {load.reason} ({tests}; {_reasons(load, load.tests[-1])})"
    sentence = f"{text}: VALID up to {_rate(load.test.rate_per_s)} (*)"
    if load.beyond_per_s is not None and load.test.rate_per_s:
        apart = load.beyond_per_s / load.test.rate_per_s - 1
        sentence += f", INVALID from {_rate(load.beyond_per_s)}, which is {100 * apart:.1f} % more"
    if load.capacity_per_s:
        share = (load.test.rate_per_s or 0.0) / load.capacity_per_s
        sentence += (
            f"; {100 * share:.0f} % of the {_rate(load.capacity_per_s)} of callers that never pause"
        )
    return f"{sentence}; {tests}" + (f"; {load.note}" if load.note else "")


def _reasons(load: Load, test: LoadTest) -> str:
    """Say why a test is INVALID: which bounds it broke, then what the generator says."""
    reasons = [*broken_bounds(load.spec, test), *(text.rstrip(".") for text in test.reasons)]
    return "; ".join(reasons) or "no reason was given"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{significant(value)}/s"
