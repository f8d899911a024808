"""How long does it take until the first answer?

To set your own limits:

    @pytest.mark.ortbench(limits=["session_create <= 2 s", "first_inference <= 100 ms"])

``session_create_disk`` (the model's files not in memory), ``session_create_cached`` and
``first_inference_shape`` (of another shape of the plan) start further processes where they are
asked for, or everywhere with --ort-startup.
"""

import pytest


def test_startup(ortbench):
    """Creating the session, and the first inference after it, are apart from steady state."""
    startup = ortbench.startup()
    if startup.get("session_create") is None:  # a service runs the model
        pytest.skip(ortbench.summary.missing["session_create"])
    assert startup.session_create > 0
    assert startup.first_inference > 0
