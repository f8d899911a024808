"""The operator profile of a case by type, by node, and what bounds it: as lines and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.units import common_scale, counted, format_amount, percent, significant
from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.numbers.bottlenecks import copy_shares, hints, kind_share
from pytest_ortbench.passes.profile.numbers.changes import BETWEEN, OperatorChange
from pytest_ortbench.passes.profile.numbers.roofline import Rate, model_rate, operator_rate
from pytest_ortbench.report.arithmetic import format_count
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import encodable, one_line
from pytest_ortbench.report.page_section import BlockTable, CaseBlock, PageSection

_SHORTEST = 24
#: Characters in front of a node's shapes.
_NODE_WIDTH = 60
#: Cases with a block of their own on the page; more make one that no browser likes.
PROFILES = 100
#: Rows of both tables of a block.
TYPES, NODES = 8, 6


def profile_lines(
    name: str,
    profile: OperatorProfile,
    *,
    top: int = 10,
    width: int = 100,
    encoding: str = "utf-8",
) -> list[str]:
    """Return the profile of one case, as plain lines.

    Shares are of the whole run, and with the time between nodes they add up to all of it.

    Args:
        name: The case, as the heading.
        profile: Its profile.
        top: Rows of each list.
        width: Characters that a line may have.
        encoding: Of the stream that the lines go to.
    """
    lines = [f"{name}: {summary_of(profile)}"]
    if not is_empty(profile):
        by_node = _aligned(node_table(profile, top, width=_NODE_WIDTH))
        lines += [f"  {fact}" for fact in rate_facts(profile)]
        lines += _aligned(operator_table(profile, top))
        lines += [_cut(line, max(width, _SHORTEST)) for line in by_node]
        lines += [f"  - {hint}" for hint in hints(profile)]
    if profile.trace:
        lines.append(f"  trace: {profile.trace} (open it in Perfetto or chrome://tracing)")
    return [encodable(line, encoding) for line in lines]


def run_profile_lines(shown: ShownRun, *, width: int, encoding: str = "utf-8") -> list[str]:
    """Return the profiles of all cases of a run that have one, against the peak of the run."""
    lines: list[str] = []
    for entry in shown.entries:
        profile, name = entry.result.profile, shown.name_of(entry.result.case)
        if profile is not None:
            lines += ["", *profile_lines(name, profile, width=width, encoding=encoding)]
    return lines


def profile_section(shown: Sequence[Entry]) -> PageSection | None:
    """Return the section of the page about the cases that were profiled, if any was."""
    profiled = [entry for entry in shown if entry.result.profile is not None]
    if not profiled:
        return None
    return PageSection(
        blocks_are="profiles",
        link="Time by operator",
        title="Where the time goes",
        about="From separate runs with the profiler on, which makes small nodes look slower. "
        "Shares are of the whole run.",
        blocks=tuple(profile_block(entry) for entry in profiled[:PROFILES]),
        left_out=max(0, len(profiled) - PROFILES),
    )


def profile_block(entry: Entry) -> CaseBlock:
    """Return the block of a case that was profiled."""
    profile = entry.result.profile
    assert profile is not None
    name = one_line(f"{entry.result.case.model.name}/{entry.label}")
    if is_empty(profile):
        return CaseBlock(name=name, summary=summary_of(profile))
    return CaseBlock(
        name=name,
        summary=summary_of(profile),
        facts=tuple(one_line(fact) for fact in rate_facts(profile)),
        hints=tuple(one_line(hint) for hint in hints(profile)),
        tables=(
            ("By operator type", operator_table(profile, TYPES)),
            ("Slowest nodes", node_table(profile, NODES)),
        ),
    )


def is_empty(profile: OperatorProfile) -> bool:
    """Whether there is nothing to show but a reason."""
    return bool(profile.reason) or not profile.operators


def summary_of(profile: OperatorProfile) -> str:
    """Return how long a run took, of how many nodes, and what copies and casts take of it."""
    if is_empty(profile):
        return f"no operator profile: {one_line(profile.reason) or 'no node was seen'}"
    plain = ""
    if profile.plain_ns:
        plain = f", {format_amount(profile.plain_ns * 1e-9, 's')} without the profiler"
    copies, casts = kind_share(profile, "copy"), kind_share(profile, "cast")
    to_device, to_host = copy_shares(profile)
    directions = ""
    if to_device or to_host:
        directions = f" ({percent(to_device)} to the device, {percent(to_host)} to the host)"
    return (
        f"{format_amount(profile.run_ns * 1e-9, 's')} a run, "
        f"{counted(profile.runs, 'run')}{plain}; "
        f"{counted(profile.node_count, 'node')}; copies take {percent(copies)}{directions}, "
        f"casts {percent(casts)}"
    )


def rate_facts(profile: OperatorProfile) -> Iterator[str]:
    """Yield what each provider took, what was achieved, what can be, and what is not counted."""
    providers: dict[str, int] = {}
    for timed in profile.operators:
        providers[timed.provider] = providers.get(timed.provider, 0) + timed.time_ns
    if len(providers) > 1:
        ranked = sorted(providers.items(), key=lambda pair: -pair[1])
        took = ", ".join(f"{_alias(name)} {percent(profile.share(ns))}" for name, ns in ranked)
        yield f"by provider: {took}"
    rate = model_rate(profile)
    if rate.macs_per_s is not None and rate.bytes_per_s is not None:
        yield "the run: " + _achieved(profile, rate)
    if profile.peak is not None:
        yield _reached(profile.peak)
    names = [one_line(operator.op) for operator in profile.operators if operator.macs is None]
    if names and any(operator.macs is not None for operator in profile.operators):
        more = f" and {len(names) - 6} more types" if len(names) > 6 else ""
        yield f"multiply-accumulates are not known for: {', '.join(names[:6])}{more}"


def _achieved(profile: OperatorProfile, rate: Rate) -> str:
    text = (
        f"{format_count(profile.macs or 0)}MAC, {format_amount(profile.moved_bytes or 0, 'bytes')} "
        f"moved"
    )
    if rate.intensity is not None:
        text += f" ({significant(rate.intensity)} MAC/B)"
    text += f"; {format_count(rate.macs_per_s or 0)}MAC/s"
    if rate.compute_share is not None:
        text += f", {_whole_percent(rate.compute_share)} of the peak"
    text += f"; {format_count(rate.bytes_per_s or 0)}B/s"
    if rate.memory_share is not None:
        text += f", {_whole_percent(rate.memory_share)} of the peak"
    if profile.work_source == "file":
        text += "; counted from the file"
    return text


def _reached(peak: Peak) -> str:
    parts = []
    if peak.macs_per_s is not None:
        parts.append(
            f"{format_count(peak.macs_per_s)}MAC/s (matrix product of {one_line(peak.element)}, "
            f"{one_line(peak.product)})"
        )
    if peak.bytes_per_s is not None:
        size = format_amount(peak.copy_bytes, "bytes")
        parts.append(f"{format_count(peak.bytes_per_s)}B/s ({size} read and written)")
    if peak.reason:
        parts.append(f"not measured: {one_line(peak.reason)}")
    threads = threads_of(peak)
    with_threads = f" with {threads}" if threads else ""
    return f"peak of {_alias(peak.provider)}{with_threads}: {'; '.join(parts)}"


def threads_of(peak: Peak) -> str:
    """Return ``2 threads``; empty for a provider that has its own, of which nothing is known."""
    if peak.provider != CPU:
        return ""
    return counted(peak.threads, "thread")


def operator_table(profile: OperatorProfile, top: int) -> BlockTable:
    """Return the slowest operator types, the others as one row, and the time in no node.

    Args:
        profile: A profile that is not empty.
        top: Types that have a row of their own.
    """
    shown, rest = profile.operators[:top], profile.operators[top:]
    factor, unit = common_scale([timed.time_ns * 1e-9 for timed in shown], "s")
    counted = any(operator.macs is not None for operator in profile.operators)

    def row(name: str, where: str, nodes: str, time_ns: int, *more: str) -> tuple[str, ...]:
        share = percent(profile.share(time_ns))
        cells = more or ("",) * (len(_RATES) + 1)
        return (name, where, nodes, significant(time_ns * 1e-9 / factor), share, *cells)

    rows = [
        row(
            one_line(timed.op),
            _alias(timed.provider),
            str(timed.nodes),
            timed.time_ns,
            *_rates(operator_rate(profile, timed), timed),
            _remark(timed, counted),
        )
        for timed in shown
    ]
    if rest:
        nodes = str(sum(timed.nodes for timed in rest))
        rows.append(
            row(f"({len(rest)} more types)", "", nodes, sum(timed.time_ns for timed in rest))
        )
    rows.append(row(BETWEEN, "", "", profile.between_ns))
    headings = ("operator", "on", "nodes", f"time [{unit}]", "share", *_RATES, "")
    return _without_empty(headings, rows, right=(2, 3, 4, 5, 6, 7, 8))


def node_table(profile: OperatorProfile, top: int, *, width: int = _NODE_WIDTH) -> BlockTable:
    """Return the slowest nodes.

    Args:
        profile: A profile that is not empty.
        top: Rows.
        width: Characters of a node's type and name.
    """
    shown = profile.nodes[:top]
    factor, unit = common_scale([node.time_ns * 1e-9 for node in shown], "s")
    rows = [
        (
            _cut(one_line(f"{node.op} {node.name}"), width),
            significant(node.time_ns * 1e-9 / factor),
            percent(profile.share(node.time_ns)),
            *_rates(operator_rate(profile, node), node)[-2:],
            one_line(node.shapes),
        )
        for node in shown
    ]
    headings = ("slowest nodes", f"time [{unit}]", "share", *_RATES[-2:], "")
    return _without_empty(headings, rows, right=(1, 2, 3))


_RATES = ("GMAC/s", "GB/s", "MAC/B", "of peak", "bound by")


def _rates(rate: Rate, timed: OperatorTime | NodeTime) -> tuple[str, ...]:
    """Cells of the columns of rates; empty where nothing is done or nothing is known."""
    return (
        significant(rate.macs_per_s / 1e9) if rate.macs_per_s else "",
        significant(rate.bytes_per_s / 1e9) if rate.bytes_per_s else "",
        significant(rate.intensity) if rate.intensity else "",
        _whole_percent(rate.share) if rate.share and timed.moved_bytes else "",
        rate.bound if timed.moved_bytes else "",
    )


def _remark(operator: OperatorTime, counted: bool) -> str:
    words = [] if operator.kind == "compute" else [operator.kind]
    return ", ".join([*words, *(["MACs unknown"] if counted and operator.macs is None else [])])


def _without_empty(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Iterable[int]
) -> BlockTable:
    last = len(headings) - 1  # of remarks, without a heading
    kept = [
        index
        for index in range(len(headings))
        if index == last or index < 3 or any(row[index] for row in rows)
    ]
    return BlockTable(
        headings=tuple(headings[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in rows),
        right=frozenset(kept.index(index) for index in right if index in kept),
    )


def _aligned(table: BlockTable) -> list[str]:
    rows = [table.headings, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.headings))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(size) if column in table.right else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _whole_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _alias(provider: str) -> str:
    return one_line(provider.removesuffix("ExecutionProvider").lower())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


#: Of rows of changes.
CHANGE_HEADER = ["operator", "nodes", "before", "after", "change"]


def change_rows(changes: Sequence[OperatorChange], *, top: int = 6) -> list[list[str]]:
    """Return a row for each operator, the largest change first, and one for all others.

    Args:
        changes: Of :func:`~.numbers.changes.operator_changes`.
        top: Operators that have a row of their own.
    """
    shown, rest = changes[:top], changes[top:]
    rows = [
        _change_row(
            f"{change.op} ({change.provider.removesuffix('ExecutionProvider')})"
            if change.provider
            else change.op,
            (change.before_nodes, change.after_nodes),
            (change.before_ns, change.after_ns),
        )
        for change in shown
    ]
    for label, some in ((f"{len(rest)} others", rest), ("the whole run", changes)):
        if some:
            nodes = (
                sum(change.before_nodes for change in some),
                sum(change.after_nodes for change in some),
            )
            times = (
                sum(change.before_ns for change in some),
                sum(change.after_ns for change in some),
            )
            rows.append(_change_row(label, nodes, times))
    return rows


def _change_row(label: str, nodes: tuple[int, int], times_ns: tuple[int, int]) -> list[str]:
    before, after = times_ns
    change = after - before
    return [
        label,
        "" if nodes == (0, 0) else str(nodes[0]) if nodes[0] == nodes[1] else _arrow(*nodes),
        format_amount(before / 1e9, "s"),
        format_amount(after / 1e9, "s"),
        ("+" if change > 0 else "") + format_amount(change / 1e9, "s"),
    ]


def _arrow(before: int, after: int) -> str:
    return f"{before} → {after}"
