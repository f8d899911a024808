"""What the example promises: how long a frame takes, and how well its shapes are found."""

import pytest

#: A clip has 30 frames a second, so a frame has 33 ms.
FRAME = "latency_p90 <= 30 ms"


@pytest.mark.ortbench(models="shapes.onnx", limits=[FRAME])
def test_whole_frame(ortbench):
    """Request, answer and drawing, from the frame in memory to the boxes on it."""


@pytest.mark.ortbench(models="shapes.onnx", limits=["task_map50 >= 0.95", "task_map >= 0.7"])
def test_boxes(ortbench):
    """mAP over every tenth frame of the clip."""
    assert ortbench.task().map50 > 0.9
