"""Energy of what a case writes, beside that of its inferences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.energy.numbers import add_energy
from tests.passes.test_generating_rows import generating
from tests.results_factory import make_result

WINDOW = EnergyWindow(
    source="rapl", device="package-0", duration_ns=10**10, inferences=50, energy_j=400.0
)


@pytest.mark.parametrize("batch", [1, 4])
def test_joules_of_a_request_are_shared_by_the_tokens_that_it_writes(batch: int) -> None:
    collector = Collector()
    result = make_result(case=generating(batch=batch), energy=Energy(windows=(WINDOW,)))
    add_energy(collector, result)
    assert collector.quantities["energy_per_inference"].value == pytest.approx(8.0)
    # Eight tokens of each sequence.
    assert collector.quantities["energy_per_token"].value == pytest.approx(1.0 / batch)


def test_single_inferences_have_no_joules_of_tokens() -> None:
    collector = Collector()
    case = replace(generating(), generation=None)
    add_energy(collector, make_result(case=case, energy=Energy(windows=(WINDOW,))))
    assert collector.quantities["energy_per_inference"].value == pytest.approx(8.0)
    assert collector.missing["energy_per_token"]
