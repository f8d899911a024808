"""How much memory does it take, and does it stay that way?

To set your own limits:

    @pytest.mark.ortbench(limits=["peak_rss <= 500 MB", "model_size <= 100 MB"])

With --ort-soak=MINUTES every case runs that long besides; a leak fails the test, and so does a
soak that allows no verdict.
"""

import pytest


def test_memory(ortbench):
    """The peak of session and runs, over the process that has only loaded ONNX Runtime."""
    memory = ortbench.memory()
    if memory.get("peak_rss") is None:
        pytest.skip(ortbench.summary.missing["peak_rss"])
    assert memory.peak_rss >= 0  # bytes; memory.session_rss and .process_peak_rss too
    if ortbench.result.soak is not None and memory.leaks > 0:
        pytest.fail(f"{memory.memory_growth} for every thousand inferences", pytrace=False)
