"""The operator profile of a case as lines: by operator type, by node, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ortbench.analysis.bottlenecks import hints, kind_share
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import common_scale, format_amount, significant
from pytest_ortbench.report.escape import encodable, one_line

_BETWEEN = "(between nodes)"
_SHORTEST = 24
#: Characters in front of a node's shapes.
_NODE_WIDTH = 60


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
    if profile.reason or not profile.operators:
        reason = one_line(profile.reason) or "no node was seen"
        lines = [f"{name}: no operator profile: {reason}"]
    else:
        lines = [_heading(name, profile), *_operators(profile, top), *_nodes(profile, top, width)]
        lines += [f"  - {hint}" for hint in hints(profile)]
        if profile.trace:
            lines.append(f"  trace: {profile.trace} (open it in Perfetto or chrome://tracing)")
    return [encodable(line, encoding) for line in lines]


def run_profile_lines(run: Run, *, width: int, encoding: str = "utf-8") -> list[str]:
    """Return the profiles of all cases of a run that have one."""
    lines: list[str] = []
    for result in run.cases:
        if result.profile is not None:
            found = profile_lines(
                result.case.case_id, result.profile, width=width, encoding=encoding
            )
            lines += ["", *found]
    return lines


def _heading(name: str, profile: OperatorProfile) -> str:
    plain = ""
    if profile.plain_ns:
        plain = f", {format_amount(profile.plain_ns * 1e-9, 's')} without the profiler"
    copies, casts = kind_share(profile, "copy"), kind_share(profile, "cast")
    return (
        f"{name}: {format_amount(profile.run_ns * 1e-9, 's')} a run, {profile.runs} runs{plain}; "
        f"{profile.node_count} nodes; copies {_percent(copies)}, casts {_percent(casts)}"
    )


def _operators(profile: OperatorProfile, top: int) -> list[str]:
    shown = profile.operators[:top]
    rest = profile.operators[top:]
    rows = [
        (one_line(each.op), _alias(each.provider), str(each.nodes), each.time_ns, each.kind)
        for each in shown
    ]
    if rest:
        count = f"({len(rest)} more types)"
        nodes = str(sum(each.nodes for each in rest))
        rows.append((count, "", nodes, sum(each.time_ns for each in rest), ""))
    rows.append((_BETWEEN, "", "", profile.between_ns, ""))
    factor, unit = common_scale([each.time_ns * 1e-9 for each in shown], "s")
    table = [("operator", "on", "nodes", f"time [{unit}]", "share", "")]
    table += [
        (
            op,
            where,
            nodes,
            significant(time_ns * 1e-9 / factor),
            _percent(profile.share(time_ns)),
            "" if kind == "compute" else kind,
        )
        for op, where, nodes, time_ns, kind in rows
    ]
    return _aligned(table, right=(2, 3, 4))


def _nodes(profile: OperatorProfile, top: int, width: int) -> list[str]:
    shown = profile.nodes[:top]
    factor, unit = common_scale([node.time_ns * 1e-9 for node in shown], "s")
    table = [("slowest nodes", f"time [{unit}]", "share", "")]
    table += [
        (
            _cut(one_line(f"{node.op} {node.name}"), _NODE_WIDTH),
            significant(node.time_ns * 1e-9 / factor),
            _percent(profile.share(node.time_ns)),
            one_line(node.shapes),
        )
        for node in shown
    ]
    return [_cut(line, max(width, _SHORTEST)) for line in _aligned(table, right=(1, 2))]


def _aligned(rows: Sequence[Sequence[str]], *, right: Iterable[int]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(size) if column in right else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _alias(provider: str) -> str:
    return one_line(provider.removesuffix("ExecutionProvider").lower())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
