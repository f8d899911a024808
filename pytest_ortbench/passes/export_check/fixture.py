"""What tests read of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.export_check.numbers.verdict import judge_export

if TYPE_CHECKING:
    from pytest_ortbench.core.judgement import Judgement
    from pytest_ortbench.plugin.measured import Measured


def export_judgement(ortbench: Measured) -> Judgement | None:
    """Whether the exported file answers what its source does, good, bad or not judged.

    Also of a case that gave no number; ``None`` for a model that was exported from no source.
    """
    return judge_export(ortbench.outcome)
