"""Sizes that a session is told: on the CPU, and where a provider takes nothing without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.case import Provider, Runtime, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.worker.session import create, require_fixed, session_options
from tests.providers.cases import Measured, drawn, save
from tests.providers.conftest import QNN

CPU, ON_QNN = "CPUExecutionProvider", "QNNExecutionProvider"
ON_CPU = Provider(alias="cpu", name=CPU)

pytestmark = pytest.mark.live


def image(path: Path, batch: str | None) -> Path:
    """Conv, Relu, GlobalAveragePool, Flatten and MatMul on any batch, which has a name or none."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    return save(
        path,
        nodes,
        [("x", TensorProto.FLOAT, [batch, 3, 8, 8])],  # type: ignore[list-item]  # no name
        [("y", TensorProto.FLOAT, [batch, 10])],  # type: ignore[list-item]  # likewise
        {"w": drawn(4, 3, 3, 3) / 4, "m": drawn(4, 10)},
    )


def growing(path: Path) -> Path:
    """Two inputs whose lengths are a name and an expression over it."""
    return save(
        path,
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=1)],
        [
            ("a", TensorProto.FLOAT, ["N", "past"]),
            ("b", TensorProto.FLOAT, ["N", "past + 1"]),
        ],
        [("y", TensorProto.FLOAT, ["N", "all"])],
    )


@pytest.mark.parametrize("level", ["disable", "all"])
def test_a_session_knows_the_sizes_that_it_was_told(tmp_path: Path, level: str) -> None:
    sizes = {"N": 2, "past": 3, "past + 1": 4}
    config = SessionConfig(graph_optimization_level=level, fixed_dims=sizes)
    path = growing(tmp_path / "m.onnx")
    session, _ = create(str(path), ON_CPU, session_options(config, threads=1))
    assert [given.shape for given in session.get_inputs()] == [[2, 3], [2, 4]]
    assert [made.shape for made in session.get_outputs()] == [[2, 7]]
    require_fixed(session, config)
    one = np.ones((1, 3), np.float32)
    with pytest.raises(Exception, match="invalid dimensions"):
        session.run(None, {"a": one, "b": np.ones((1, 4), np.float32)})


def test_a_session_that_leaves_a_size_open_is_refused(tmp_path: Path) -> None:
    path = growing(tmp_path / "m.onnx")
    session, _ = create(str(path), ON_CPU, session_options(SessionConfig(), threads=1))
    with pytest.raises(WorkerError) as raised:
        require_fixed(session, SessionConfig(fixed_dims={"past": 3}))
    assert (raised.value.failure.kind, raised.value.failure.phase) == ("unsupported", "session")
    # What the model does not have changes nothing.
    require_fixed(session, SessionConfig(fixed_dims={"rows": 3}))


@pytest.mark.heavy
@pytest.mark.needs("network")
@pytest.mark.parametrize(
    ("batch", "status", "told"), [("N", "measured", {"N": 1}), (None, "fallback", {})]
)
def test_qnn_takes_an_open_batch_that_is_fixed(
    measure: Measured,
    distribution: Callable[[str], Runtime],
    tmp_path: Path,
    batch: str | None,
    status: str,
    told: dict[str, int],
) -> None:
    result = measure(image(tmp_path / "m.onnx", batch), "qnn:htp", distribution(QNN))
    assert (result.status, result.case.session.fixed_dims) == (status, told)
    assert result.placement is not None
    assert set(result.placement.executed) == ({ON_QNN} if told else {CPU})
