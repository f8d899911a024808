"""Files that break the rules of ONNX: each is an error of its own, and the other models go on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model
from pytest_ortbench.models.arithmetic import count_proto
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.models.symbols import UnknownSymbolError, evaluate, parse
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.models.graphs import INT64, model, node, relu, value, weight


def _resolved(proto: onnx.ModelProto, folder: Path) -> Model | BrokenModel:
    """What becomes of ``proto``; a good model beside it must come through."""
    onnx.save(relu(), folder / "good.onnx")
    (folder / "bad.onnx").write_bytes(proto.SerializeToString())
    bad, good = resolve_models(["bad.onnx", "good.onnx"], root=folder)
    assert isinstance(good, Model)
    assert (bad.name, good.name) == ("bad", "good")
    return bad


def _message(proto: onnx.ModelProto, folder: Path) -> str:
    bad = _resolved(proto, folder)
    assert isinstance(bad, BrokenModel)
    text = str(bad.error)
    assert "\n" not in text
    return text


def _one_node(op: str, inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
    return model([node(op, inputs, outputs)], [value("x", ["N", 4])], [value("y", None)])


def _constant_without_output() -> onnx.ModelProto:
    return model(
        [node("Constant", [], [], value_float=1.0), node("Relu", ["x"], ["y"])],
        [value("x", ["N", 4])],
        [value("y", None)],
    )


def _reshape_without_output() -> onnx.ModelProto:
    return model(
        [node("Reshape", ["w", "shape"], [])],
        [value("shape", [2], INT64)],
        [value("y", None)],
        [weight("w", 4, 4)],
    )


@pytest.mark.parametrize(
    "build",
    [
        _constant_without_output,
        lambda: _one_node("BatchNormalization", ["x"], ["y"]),
        lambda: _one_node("PRelu", ["x"], ["y"]),
        lambda: _one_node("LayerNormalization", ["x"], ["y"]),
        _reshape_without_output,
    ],
    ids=["constant", "batch-normalization", "prelu", "layer-normalization", "reshape"],
)
def test_a_node_that_lacks_inputs_or_outputs_is_left_to_the_runtime(
    tmp_path: Path, build: Callable[[], onnx.ModelProto]
) -> None:
    found = _resolved(build(), tmp_path)
    assert isinstance(found, Model)
    assert "IndexError: " in found.notes[-1]
    assert [(info.roles, info.hint.kind) for info in found.inputs] == [
        ((), found.inputs[0].hint.kind)
    ]


def test_a_weight_of_an_unknown_type_is_left_to_the_runtime(tmp_path: Path) -> None:
    proto = model(
        [node("Add", ["x", "w"], ["y"])],
        [value("x", ["N", 4])],
        [value("y", None)],
        [weight("w", 4)],
    )
    proto.graph.initializer[0].data_type = 999
    assert isinstance(_resolved(proto, tmp_path), Model)


def _external(**entries: str) -> onnx.ModelProto:
    proto = model([node("MatMul", ["x", "w"], ["y"])], [value("x", ["N", 4])], [value("y", None)])
    tensor = proto.graph.initializer.add()
    tensor.name, tensor.data_type = "w", TensorProto.FLOAT
    tensor.dims.extend([4, 4])
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    return proto


def test_an_offset_that_is_no_number(tmp_path: Path) -> None:
    """``"²".isdigit()`` is true, and yet it is none for ``int``."""
    (tmp_path / "w.bin").write_bytes(bytes(64))
    found = _resolved(_external(location="w.bin", offset="²", length="64"), tmp_path)
    assert isinstance(found, Model)


def test_an_offset_of_thousands_of_digits(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    text = _message(_external(location="w.bin", offset="9" * 5000), tmp_path)
    assert ("'w.bin'" in text, "64 bytes" in text) == (True, True)
    assert "100,000,000,000,000,000,063" in text


def test_zeros_in_front_of_an_offset_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    text = _message(_external(location="w.bin", offset="0" * 30 + "1", length="64"), tmp_path)
    assert ("'w.bin'" in text, "64 bytes, but the model needs 65" in text) == (True, True)


def test_a_location_that_no_file_can_have(tmp_path: Path) -> None:
    text = _message(_external(location="w" * 300), tmp_path)
    assert os.strerror(errno.ENAMETOOLONG) in text
    assert text.startswith(str(tmp_path / "bad.onnx"))


def test_external_data_that_can_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "w.bin"
    data.write_bytes(bytes(64))
    opened = Path.open

    def denied(path: Path, mode: str = "r") -> object:
        if path == data:  # a mode of 000 means nothing to a superuser
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", denied)
    text = _message(_external(location="w.bin", length="64"), tmp_path)
    assert text.startswith(f"{data}: ")
    assert os.strerror(errno.EACCES) in text


@pytest.mark.parametrize(
    "name",
    ["(" * 350, "(" * 5000, "-" * 350 + "n", "+".join("n" * 200), "+".join("n" * 5000)],
    ids=["brackets", "more-brackets", "signs", "sum", "longer-sum"],
)
def test_a_dimension_named_like_deep_arithmetic(tmp_path: Path, name: str) -> None:
    found = _resolved(relu([name, 4]), tmp_path)
    assert isinstance(found, Model)
    (spec,) = resolve_inputs(found, batch=2, dims={})
    assert spec.shape[1] == 4


def test_a_name_that_is_too_long_for_arithmetic_is_opaque() -> None:
    assert parse("+".join("n" * 200)) is not None
    assert parse("+".join("n" * 201)) is None
    assert parse("(" * 350) is None
    with pytest.raises(UnknownSymbolError):
        evaluate("+".join("n" * 201), {"n": 1})


def test_a_size_beyond_any_axis_is_no_size() -> None:
    assert evaluate("n * n", {"n": 3_037_000_499}) == 9_223_372_030_926_249_001
    with pytest.raises(ArithmeticError, match="larger than"):
        evaluate("n * n", {"n": 3_037_000_500})


def test_an_error_of_ours_is_not_taken_for_one_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Model:
        raise UsageError("not so")

    monkeypatch.setattr("pytest_ortbench.models.resolve.read_model", refuse)
    onnx.save(relu(), tmp_path / "m.onnx")
    with pytest.raises(UsageError, match="not so"):
        resolve_models(["m.onnx"], root=tmp_path)


def test_functions_that_stand_for_a_billion_nodes_are_not_spelt_out(tmp_path: Path) -> None:
    proto = model([node("F0", ["x"], ["y"], domain="own")], [value("x", ["N", 4])],
                  [value("y", None)], opsets={"": 17, "own": 1})  # fmt: skip
    imports = list(proto.opset_import)
    for number in range(40):
        following = f"F{number + 1}"
        twice = [node(following, ["a"], ["t"], domain="own"), node(following, ["t"], ["b"],
                                                                   domain="own")]  # fmt: skip
        body = twice if number < 39 else [node("Relu", ["a"], ["b"])]
        proto.functions.append(
            onnx.helper.make_function("own", f"F{number}", ["a"], ["b"], body, imports)
        )
    found = _resolved(proto, tmp_path)
    assert isinstance(found, Model)
    assert found.notes
    assert count_proto(proto, {"x": (1, 4)}).reason


def test_a_name_of_an_operator_set_that_no_document_takes(tmp_path: Path) -> None:
    proto = _one_node("Relu", ["x"], ["y"])
    proto.opset_import.add(domain="x" * 5000, version=1)
    message = _message(proto, tmp_path)
    assert "5,000" in message
    assert "opset_import" in message
