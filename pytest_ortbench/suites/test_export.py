"""Does the exported model answer what its source does?

Collected for models that are exported from a source, as in --ort-models=net.py:build. The file runs
on the CPU and the source in its framework, on the same inputs, at several sizes of every open
dimension. To ask for more than rounding allows anyway, copy this file and set a limit:

    @pytest.mark.ortbench(models=["net.py:build"], limits=["export_sqnr >= 110 dB"])
"""

import pytest


def test_export(ortbench):
    """Every output is the source's, but for rounding, at every size that the file takes."""
    judgement = ortbench.export_judgement()
    if judgement is None or judgement.is_unjudged:
        why = "it was not compared" if judgement is None else judgement.reason
        pytest.skip(f"could not be judged: {why}")
    if not judgement.is_good:
        pytest.fail(judgement.reason, pytrace=False)
