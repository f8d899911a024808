"""What stands between the table and the answer: one block for each pass that a run holds."""

from __future__ import annotations

from pytest_ortbench.core.run import Run
from pytest_ortbench.report.energy import energy_lines
from pytest_ortbench.report.load import load_lines
from pytest_ortbench.report.scaling import scaling_lines
from pytest_ortbench.report.soak import soak_lines
from pytest_ortbench.report.stages import stage_lines

_BLOCKS = (scaling_lines, energy_lines, stage_lines, load_lines, soak_lines)


def block_lines(run: Run, *, encoding: str = "utf-8") -> list[str]:
    """Return the lines of every pass beside the standard one, each block after a blank line.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to.
    """
    return [line for lines_of in _BLOCKS for line in lines_of(run, encoding=encoding)]
