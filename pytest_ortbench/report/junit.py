"""The numbers of a case as JUnit properties, for CI systems that chart them."""

from __future__ import annotations

import math

from pytest_ortbench.analysis.judgements import unjudged_words
from pytest_ortbench.analysis.rows import numbers
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.escape import one_line

#: In front of every name, since other plugins write properties too.
PREFIX = "ortbench."


def properties(result: CaseResult, summary: Summary) -> list[tuple[str, str]]:
    """Return names and values of what was measured, in SI units under the names of the row.

    A number that was not measured has no property; every number is finite and reads back equal.
    Text is on one line and holds no character that XML forbids.

    Args:
        result: The case.
        summary: Its numbers.
    """
    role = result.case.provider.role
    pairs = [("case_id", one_line(result.case.case_id)), ("status", result.status), ("role", role)]
    pairs += [
        (column, repr(value))
        for column, value in numbers(summary).items()
        if isinstance(value, int | float) and math.isfinite(value)
    ]
    pairs.append(("samples", str(summary.samples)))
    if result.flags:
        pairs.append(("flags", " ".join(flag.name for flag in result.flags)))
    if summary.on_drawn_inputs:
        pairs.append(("accuracy_inputs", DRAWN_INPUTS))
    unjudged = unjudged_words(summary.judgements)
    if unjudged:
        pairs.append(("unjudged", one_line(unjudged)))
    if result.failure is not None:
        pairs.append(("message", one_line(result.failure.message)))
    return [(PREFIX + name, value) for name, value in pairs]
