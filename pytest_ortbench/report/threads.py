"""What a reader should know of threads: where more of them are slower."""

from __future__ import annotations

from pytest_ortbench.analysis.sentences import factor_text, with_interval
from pytest_ortbench.analysis.thread_counts import SlowerThreads, slower_threads
from pytest_ortbench.core.units import counted
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line


def thread_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of each case where the most threads are slower than fewer.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    members = ((entry.result, entry.summary) for entry in shown.entries)
    return [encodable(one_line(_line(remark)), encoding) for remark in slower_threads(members)]


def _line(remark: SlowerThreads) -> str:
    default = ", which nobody chose," if remark.is_default else ""
    few = counted(remark.fewer, "thread")
    return (
        f"{remark.case_id}: {few} {'is' if remark.fewer == 1 else 'are'} faster than "
        f"{remark.more}{default} {factor_text(remark.factor, remark.low, remark.high)}: "
        f"{with_interval(remark.faster)} against {with_interval(remark.slower)}"
    )
