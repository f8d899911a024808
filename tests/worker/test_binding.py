"""Inputs and outputs that stay on the provider's device; here, that of the CPU."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from pytest_ortbench.core.case import InputSpec, Provider
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.binding import bind
from pytest_ortbench.worker.inputs import make_feeds
from tests.worker.graphs import serialised, value
from tests.worker.sessions import CPU, cpu_session


def test_a_scalar_input_stays_a_scalar() -> None:
    """A sampling rate, say: ``sr`` of rank 0."""
    inputs = [value("x", TensorProto.FLOAT, [3, 2]), value("sr", TensorProto.FLOAT, [])]
    scale = helper.make_node("Mul", ["x", "sr"], ["y"])
    session = cpu_session(serialised([scale], inputs, [value("y", TensorProto.FLOAT, [3, 2])]))
    specs = [
        InputSpec(name=name, type="tensor(float)", shape=shape, hint=ValueHint(kind="normal"))
        for name, shape in (("x", (3, 2)), ("sr", ()))
    ]
    feeds = make_feeds(specs, seed=1)
    # One that is not contiguous keeps its shape, too.
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    binding = bind(session, {**feeds, "x": x}, Provider(alias="cpu", name=CPU))
    session.run_with_iobinding(binding)
    [found] = binding.copy_outputs_to_cpu()
    np.testing.assert_allclose(found, x * feeds["sr"])
    assert np.shape(feeds["sr"]) == ()
