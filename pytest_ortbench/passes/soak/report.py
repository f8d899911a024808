"""What the soak of each case found, as lines."""

from __future__ import annotations

from pytest_ortbench.analysis.memory_growth import Growth, growth_text
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.numbers import growth
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line


def soak_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return a line for each case that was soaked, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [
        _line(result.soak, shown.name_of(result.case))
        for result in shown.run.cases
        if result.soak is not None
    ]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def _line(soak: Soak, case: str) -> str:
    grown = growth(soak)
    name = f"soak of {case}"
    if not isinstance(grown, Growth):
        return f"{name}: no verdict: {grown}"
    text = growth_text(grown.per_thousand, grown.low, grown.high, "inferences")
    return (
        f"{name}: {text}, {soak.inferences} {_over(soak.shapes)}in "
        f"{format_amount(soak.seconds, 's')}: {grown.verdict}"
    )


def _over(shapes: int) -> str:
    return f"over {shapes} shapes " if shapes > 1 else ""
