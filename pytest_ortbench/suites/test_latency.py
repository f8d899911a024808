"""How long does one inference take in steady state?

Copy this file and set your own limits, on the function or in it:

    @pytest.mark.ortbench(models=["detector.onnx"], limits=["latency_p90 <= 30 ms"])
"""


def test_latency(ortbench, benchmark):
    """A time was measured; with ``benchmark`` the case is a row of pytest-benchmark's table."""
    latency = ortbench.latency()
    assert latency.min > 0  # seconds; latency.p50, .p90, .p95 and .p99 too, each with its interval
