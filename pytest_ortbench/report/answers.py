"""The last lines in the terminal, the first of HTML and job summary: one and the same."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import sentences
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.escape import encodable, one_line


def answer_lines(
    run: Run, *, encoding: str = "utf-8", summaries: Sequence[Summary] | None = None
) -> list[str]:
    """Answer for each model: fastest, highest throughput, smallest; a tie, or why nothing ranks.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to; what it can't write gets a stand-in.
        summaries: One for each of its cases, where the caller has them already.

    Returns:
        Plain lines without line ends; empty for a run without cases.
    """
    return [
        encodable(one_line(sentence), encoding)
        for answer in answers(run, summaries)
        for sentence in sentences(answer)
    ]
