"""Earlier states of model files bear the names of what they became."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.planning.planner import named_as_later
from pytest_ortbench.planning.unreadable import UnreadableModel

HINT = ValueHint(kind="integers", low=0, high=9)


def model(name: str, *inputs: TensorInfo, **changes: Any) -> Model:
    made = Model(
        name=name, path=f"/{name}.onnx", source="file", digest=name, size_bytes=1, inputs=inputs
    )
    return replace(made, **changes)


def tensor(*shape: int | str | None, hint: ValueHint | None = None) -> TensorInfo:
    return TensorInfo(name="ids", type="tensor(int64)", shape=shape, hint=hint)


LATER = model("from-catalogue", tensor("batch", 128, hint=HINT), default_dims={"batch": 4})


def test_name_sizes_and_values_are_those_of_the_later_state():
    earlier = model("model", tensor(None, 128), digest="earlier")
    (found,) = named_as_later([earlier], {"/model.onnx": LATER})
    assert isinstance(found, Model)
    assert (found.name, found.path, found.digest) == ("from-catalogue", "/model.onnx", "earlier")
    assert (found.inputs, found.default_dims) == (LATER.inputs, {"batch": 4})


@pytest.mark.parametrize("inputs", [(tensor("batch", 64),), (tensor("batch"),), ()])
def test_another_interface_stays(inputs: tuple[TensorInfo, ...]):
    (found,) = named_as_later([model("model", *inputs)], {"/model.onnx": LATER})
    assert isinstance(found, Model)
    assert (found.name, found.inputs) == ("from-catalogue", inputs)


def test_others_and_broken_ones():
    gone = model("gone", tensor(1))
    broken = UnreadableModel(name="model", path="/model.onnx", message="no graph")
    assert named_as_later([gone, broken], {"/model.onnx": LATER}) == [
        gone,
        replace(broken, name="from-catalogue"),
    ]
