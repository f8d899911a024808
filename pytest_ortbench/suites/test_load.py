"""How does the model do under load, by the rules of MLPerf's load generator?

Collected with ``--ort-load``, since a load takes at least 10 s a case. A service is told by a rate
and a bound, and its limit by a search for the highest rate that still keeps the bound:

    pytest model.onnx --ort-load=server:100:20ms
    pytest model.onnx --ort-load=peak:p99:20ms
    pytest llm/ --ort-load=server:2:ttft=2s:tpot=200ms

A test can name its own load, and limits take the metrics of the first load of a case:

    @pytest.mark.ortbench(limits=["load_p99 <= 20 ms"])
    def test_service(ortbench):
        assert ortbench.load("server:100:20ms").valid
"""

import pytest


def test_load(ortbench):
    """VALID means: enough queries were seen to vouch for the percentile, and it kept the bound."""
    invalid = [f"{load.text}: {load.reason}" for load in ortbench.loads() if not load.valid]
    if invalid:
        pytest.fail(f"INVALID under load: {'; '.join(invalid)}", pytrace=False)
