"""How many items a second does it get through?

Give it several batch sizes to see where it stops paying, and callers, sessions or processes to see
how it scales:

    @pytest.mark.ortbench(batch_sizes=[1, 4, 16], limits=["throughput >= 100 /s"])

    pytest suites/test_throughput.py --ort-concurrency=1,2,4 --ort-processes=1,2
"""


def test_throughput(ortbench):
    """Items a second: inferences a second times the batch size."""
    assert ortbench.throughput() > 0
