"""Did the provider that was asked for really run the model?

A provider that ran no node at all fails every test of the case. To ask for more:

    @pytest.mark.ortbench(limits=["placement >= 95 %", "time_on_provider >= 90 %"])
"""

import pytest


def test_placement(ortbench):
    """At least one computing node ran where it was asked to, seen in a profiled run."""
    placement = ortbench.placement()
    if placement.get("ratio") is None:
        pytest.skip(ortbench.summary.missing["placement"])
    assert placement.ratio > 0
