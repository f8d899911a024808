"""Are the answers right, compared with fp32 on the CPU without optimisation?

Each precision has a floor that it must keep. To set your own:

    @pytest.mark.ortbench(limits=["accuracy_sqnr >= 40 dB", "accuracy_top1 >= 99 %"])
"""

import pytest


def test_accuracy(ortbench):
    """No output is below the floor of its precision, and none turns into NaN or infinity."""
    wrong = [flag for flag in ortbench.result.flags if flag.name in ("INACCURATE", "NONFINITE")]
    assert not wrong, "; ".join(f"{flag.name}: {flag.detail}" for flag in wrong)
    if ortbench.accuracy().get("finite") is None:
        pytest.skip(ortbench.summary.missing["accuracy_finite"])
