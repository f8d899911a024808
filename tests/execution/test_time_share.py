"""What a warm-up says of the inferences after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_ortbench.core.outcome import WarmUp
from pytest_ortbench.execution.time_share import cpus_used, usual_ns


def warm_up(durations: Sequence[int], cpu_ns: int | None) -> WarmUp:
    return WarmUp(
        durations_ns=tuple(durations),
        count=len(durations),
        total_ns=sum(durations),
        steady=True,
        rule="",
        cpu_ns=cpu_ns,
    )


def test_what_an_inference_usually_takes_is_not_what_a_disturbed_one_took() -> None:
    assert usual_ns(warm_up([900] * 30 + [100, 100, 500, 100] * 5, None)) == 100
    assert usual_ns(warm_up([100, 200], None)) == 100
    assert usual_ns(warm_up([], None)) == 0


@pytest.mark.parametrize(
    ("durations", "cpu_ns", "cpus"),
    [
        ([100] * 20, 2000, 1.0),
        ([100] * 20, 3900, 1.95),
        # Something else had the CPUs for the half of the time.
        ([100] * 10 + [300] * 10, 3900, 1.95),
        # It had less than one: nothing is known.
        ([100] * 20, 1700, None),
        ([100] * 20, None, None),
        ([], 5, None),
    ],
)
def test_how_many_cpus_a_model_keeps_busy(
    durations: Sequence[int], cpu_ns: int | None, cpus: float | None
) -> None:
    assert cpus_used(warm_up(durations, cpu_ns)) == cpus
