"""How many items a second does one caller get through?

Give it several batch sizes to see where it stops paying:

    @pytest.mark.ortbench(batch_sizes=[1, 4, 16], limits=["throughput >= 100 /s"])
"""


def test_throughput(ortbench):
    """Items a second: inferences a second times the batch size."""
    assert ortbench.throughput() > 0
