"""How much energy does one inference take?

Collected with ``--ort-energy``, since it takes about 45 s a case. Skipped, with the reason, where
no counter can be read; a figure from a data sheet is no measurement.

    @pytest.mark.ortbench(limits=["energy_per_inference <= 50 mJ", "power <= 75 W"])
"""

import pytest


def test_energy(ortbench):
    """Joules an inference, and watts under load, of the device that ran it."""
    energy = ortbench.energy()
    if energy.get("energy_per_inference") is None:
        reason = ortbench.summary.missing["energy_per_inference"]
        pytest.skip(f"energy was requested but can't be measured here: {reason}")
    assert energy.energy_per_inference > 0
    assert energy.power > 0
