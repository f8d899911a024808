"""How much more than what was seen an acceptance allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.gate import ContrastVerdict, GateResult
from pytest_ortbench.gate.numbers.sentences import latency_finding

SEEN = ContrastVerdict(
    statistic="typical", verdict="slower", effect=2.199, low=1.864, high=2.429, margin=0.03,
    p=0.001, launches=12,
)  # fmt: skip


def accepted(contrast: ContrastVerdict, confirmed: ContrastVerdict | None = None) -> float:
    result = GateResult(
        case_id="a", runtime="current", baseline="git:main", verdict="slower",
        contrasts=(contrast,), confirmed=confirmed,
    )  # fmt: skip
    finding = latency_finding(result)
    assert finding.worse_by is not None
    return finding.worse_by + finding.slack


def test_another_run_of_the_same_change_is_accepted() -> None:
    assert accepted(SEEN) > 2.647
    assert accepted(SEEN) < 3.0


def test_the_wider_of_two_intervals_counts_and_none_leaves_the_margin() -> None:
    assert accepted(SEEN, replace(SEEN, high=2.6)) > accepted(SEEN)
    assert accepted(replace(SEEN, high=None)) == pytest.approx(3.199 * 1.03 - 1)
