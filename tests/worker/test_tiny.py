"""The serialised tiny models are what their descriptions say."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker.probe import probe
from pytest_ortbench.worker.tiny import (
    CONVOLUTION,
    MATRIX_PRODUCT,
    QUANTISED_CONVOLUTION,
    QUANTISED_MATRIX_PRODUCT,
    QUANTISED_MODELS,
    TINY_MODELS,
    TinyModel,
    tiny_feeds,
)

pytestmark = pytest.mark.live


def built(
    name: str,
    node: onnx.NodeProto,
    weight: np.ndarray,
    shapes: tuple[list[int], list[int]],
) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in zip("xy", shapes, strict=True)
    ]
    weights = [numpy_helper.from_array(weight.astype(np.float32), "w")]
    graph = helper.make_graph([node], name, values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], producer_name="")
    model.ir_version = 6
    return model


def test_they_can_be_rebuilt_from_their_parts() -> None:
    kernel = (((np.arange(54) % 7) - 3) / 8).reshape(3, 2, 3, 3)
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    expected = built("convolution", conv, kernel, ([1, 2, 6, 6], [1, 3, 6, 6]))
    assert onnx.load_from_string(CONVOLUTION.content) == expected
    weight = (((np.arange(32) % 5) - 2) / 4).reshape(8, 4)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    expected = built("matrix-product", product, weight, ([2, 8], [2, 4]))
    assert onnx.load_from_string(MATRIX_PRODUCT.content) == expected


def quantised(
    name: str, node: onnx.NodeProto, weight: np.ndarray, shapes: tuple[list[int], list[int]]
) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in zip("xy", shapes, strict=True)
    ]
    constants = {
        "xs": np.float32(1 / 128),
        "xz": np.uint8(128),
        "ws": np.float32(1 / 64),
        "wz": np.int8(0),
        "ys": np.float32(1 / 32),
        "yz": np.uint8(128),
        "w": weight.astype(np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        node,
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "ys", "yz"], ["y"]),
    ]
    weights = [numpy_helper.from_array(value, key) for key, value in constants.items()]
    graph = helper.make_graph(nodes, name, values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], producer_name="")
    model.ir_version = 6
    return model


def test_the_quantised_ones_can_be_rebuilt_from_their_parts() -> None:
    kernel = (((np.arange(54) % 7) - 3) * 16).reshape(3, 2, 3, 3)
    conv = helper.make_node("Conv", ["xd", "wd"], ["r"], pads=[1, 1, 1, 1])
    expected = quantised("quantised-convolution", conv, kernel, ([1, 2, 6, 6], [1, 3, 6, 6]))
    assert onnx.load_from_string(QUANTISED_CONVOLUTION.content) == expected
    weight = (((np.arange(32) % 5) - 2) * 16).reshape(8, 4)
    product = helper.make_node("MatMul", ["xd", "wd"], ["r"])
    expected = quantised("quantised-matrix-product", product, weight, ([2, 8], [2, 4]))
    assert onnx.load_from_string(QUANTISED_MATRIX_PRODUCT.content) == expected


@pytest.mark.parametrize("model", [*TINY_MODELS, *QUANTISED_MODELS], ids=lambda model: model.name)
def test_they_are_valid_and_old_enough_for_every_runtime(model: TinyModel) -> None:
    loaded = onnx.load_from_string(model.content)
    onnx.checker.check_model(loaded)
    assert loaded.ir_version <= 6
    assert loaded.opset_import[0].version <= 13
    assert tiny_feeds(model)["x"].shape == model.shape


def test_the_cpu_executes_both() -> None:
    probed = probe(Provider(alias="cpu", name="CPUExecutionProvider"))
    assert probed.refused == {}
    assert set(probed.placements) == {"convolution", "matrix product"}
    for placement in probed.placements.values():
        assert placement.executed["CPUExecutionProvider"] >= 1


def test_a_provider_that_takes_quantised_graphs_only_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As accelerators without floating point do: the plain ones are left to the CPU."""
    refusing = TinyModel(name="plain", content=b"no model", shape=(1,))
    monkeypatch.setattr("pytest_ortbench.worker.probe.TINY_MODELS", (refusing,))
    probed = probe(Provider(alias="cpu", name="CPUExecutionProvider"))
    assert list(probed.placements) == ["quantised convolution", "quantised matrix product"]
    assert list(probed.refused) == ["plain"]


def test_one_refused_model_is_told_and_the_other_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ggml does: it runs matrix products and refuses convolutions."""
    broken = TinyModel(name="broken", content=b"no model", shape=(1,))
    monkeypatch.setattr("pytest_ortbench.worker.probe.TINY_MODELS", (broken, MATRIX_PRODUCT))
    probed = probe(Provider(alias="cpu", name="CPUExecutionProvider"))
    assert list(probed.placements) == ["matrix product"]
    assert "protobuf parsing failed" in probed.refused["broken"]
