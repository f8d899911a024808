"""GitLab's metrics report: numbers of a change beside those of its target branch, in OpenMetrics.

GitLab splits a line as a shell does, cuts it at ``#`` even inside quotes, keeps name and labels
together as the name, and compares values as texts. So a line has the labels only that stay the same
from run to run, and a value the digits only that mean something.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import significant
from pytest_ortbench.passes.registry import PASSES, unit_of
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.prometheus import prometheus_name

#: Numbers that a reviewer compares; a merge request shows each of each case.
SHOWN = (
    "latency_p50",
    "throughput",
    "peak_rss",
    "device_memory",
    "model_size",
    "placement",
    "accuracy_sqnr",
    # Outputs that are exact have no ratio of signal to noise.
    "accuracy_max_abs",
    "accuracy_top1",
)
_DIGITS = 4


def render_metrics_report(shown: ShownRun) -> str:
    """Write the numbers of a run as OpenMetrics text: a gauge a number, with the case as label."""
    lines: list[str] = []
    for name in _names(shown):
        metric = METRICS[name]
        title = prometheus_name(metric)
        values = list(_values(shown, name))
        if values:
            lines.append(f"# TYPE {title} gauge")
            lines += [f"{title}{{case={_quoted(case)}}} {value}" for case, value in values]
    lines.append("# TYPE ortbench_case_measured gauge")
    lines += [
        f"ortbench_case_measured{{case={_quoted(_name(shown, entry))}}} {int(entry.measured)}"
        for entry in shown.entries
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _names(shown: ShownRun) -> list[str]:
    """Name the numbers to show, those on labelled data and of requests where there are any."""
    units = [unit for entry in shown.entries if (unit := unit_of(entry.result.case)) is not None]
    return [
        *SHOWN,
        *(own.name for entry in PASSES if entry.judge_labels for own in entry.metrics),
        *dict.fromkeys(name for unit in units for name in (unit.first[0], unit.speed[0])),
    ]


def _values(shown: ShownRun, metric: str) -> Iterator[tuple[str, str]]:
    for entry in shown.entries:
        quantity = entry.quantity(metric)
        if quantity is not None:
            yield _name(shown, entry), significant(quantity.value, _DIGITS)


def _name(shown: ShownRun, entry: Entry) -> str:
    return shown.name_of(entry.result.case)


def _quoted(text: str) -> str:
    """Return a label's value; the sign that GitLab takes for a comment gets a wide look-alike."""
    inert = one_line(text).replace("#", "＃").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inert}"'
