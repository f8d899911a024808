"""A batch that the model fixes: measured under its own size, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.model import Model
from pytest_ortbench.plan.feeds import Refused, resolve_inputs
from tests.zoo.graphs import model, node, read, value, weight


def _dense(tmp_path: Path, *, rows: int) -> Model:
    proto = model(
        [node("Gemm", ["x", "w"], ["y"])],
        [value("x", [rows, 10])],
        [value("y", [rows, 3])],
        [weight("w", 10, 3)],
    )
    return read(proto, tmp_path)


def _recurrent(tmp_path: Path, *, batch: int) -> Model:
    proto = model(
        [node("GRU", ["x", "w", "r"], ["y"], hidden_size=4)],
        [value("x", [16, batch, 3])],
        [value("y", None)],
        [weight("w", 1, 12, 3), weight("r", 1, 12, 4)],
    )
    return read(proto, tmp_path)


def test_rows_of_a_dense_layer_are_a_batch(tmp_path: Path) -> None:
    found = _dense(tmp_path, rows=32)
    with pytest.raises(Refused) as caught:
        resolve_inputs(found, batch=1, dims={})
    failure = caught.value.failure
    assert failure.kind == "unsupported"
    assert failure.message == "batch 1 was asked, and axis 0 of 'x' is fixed to 32 in the model"
    assert "--ort-batch-sizes=32" in failure.hint
    (spec,) = resolve_inputs(found, batch=32, dims={})
    assert spec.shape == (32, 10)


def test_second_axis_of_a_recurrent_layer_is_a_batch(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="axis 1 of 'x' is fixed to 8"):
        resolve_inputs(_recurrent(tmp_path, batch=8), batch=1, dims={})
    (spec,) = resolve_inputs(_recurrent(tmp_path, batch=8), batch=8, dims={})
    assert spec.shape == (16, 8, 3)


def test_a_fixed_batch_of_one_is_what_is_asked(tmp_path: Path) -> None:
    (dense,) = resolve_inputs(_dense(tmp_path, rows=1), batch=1, dims={})
    (recurrent,) = resolve_inputs(_recurrent(tmp_path, batch=1), batch=1, dims={})
    assert (dense.shape, recurrent.shape) == ((1, 10), (16, 1, 3))


def test_rows_that_no_consumer_reads_as_a_batch_stay_allowed(tmp_path: Path) -> None:
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", [32, 10])],
        [value("y", None)],
        [weight("w", 10, 3)],
    )
    (spec,) = resolve_inputs(read(proto, tmp_path), batch=1, dims={})
    assert spec.shape == (32, 10)
