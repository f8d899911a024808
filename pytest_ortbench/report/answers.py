"""The last lines in the terminal, the first of HTML and job summary: one and the same."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import sentences
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.escape import encodable, one_line


def answer_lines(
    run: Run,
    *,
    encoding: str = "utf-8",
    summaries: Sequence[Summary] | None = None,
    models: int | None = None,
) -> list[str]:
    """Answer for each model: fastest, highest throughput, smallest; a tie, or why nothing ranks.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to; what it can't write gets a stand-in.
        summaries: One for each of its cases, where the caller has them already.
        models: Most models that are answered for; the rest are counted. All by default.

    Returns:
        Plain lines without line ends; empty for a run without cases.
    """
    found = answers(run, summaries)
    said = [
        encodable(one_line(sentence), encoding)
        for answer in found[:models]
        for sentence in sentences(answer)
    ]
    if models is not None and len(found) > models:
        said.append(f"and {len(found) - models} further models: see the page")
    return said
