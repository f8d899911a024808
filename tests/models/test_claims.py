"""Weights that claim more than the file holds: refused where the file is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.models.model_file import read_model_file
from tests.models.false_claims import FALSE_CLAIMS, stored, with_weight
from tests.models.graphs import FLOAT, INT64, STRING, node, value
from tests.models.graphs import model as make_model
from tests.refused import refused

MANY = 2**62


def _read(proto: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return read_model_file(folder / "m.onnx").proto


@pytest.mark.parametrize("name", FALSE_CLAIMS)
def test_a_false_claim_is_refused_in_one_line_that_names_file_and_tensor(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    with pytest.raises(ModelError) as caught:
        _read(FALSE_CLAIMS[name].build(), tmp_path)
    assert caught.value.place == str(tmp_path / "m.onnx")
    assert FALSE_CLAIMS[name].what in caught.value.message
    assert len(str(caught.value)) < 500 + len(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_the_message_says_what_is_claimed_and_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        _read(with_weight(stored("w", [1000, 250])), tmp_path)
    for part in ("weight 'w'", "1000 × 250", "1,000,000 bytes", " 16 "):
        assert part in caught.value.message


def _typed(kind: int, field: str, values: list[object], count: int) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name="w", data_type=kind)
    tensor.dims.append(count)
    getattr(tensor, field).extend(values)
    return tensor


@pytest.mark.parametrize(
    ("kind", "field", "values", "count"),
    [
        (TensorProto.FLOAT, "float_data", [1.0, 2.0], 2),
        (TensorProto.COMPLEX64, "float_data", [1.0, 0.0, 2.0, 0.0], 2),
        (TensorProto.DOUBLE, "double_data", [1.0, 2.0], 2),
        (TensorProto.FLOAT16, "int32_data", [1, 2], 2),
        (TensorProto.BOOL, "int32_data", [0, 1], 2),
        (TensorProto.INT4, "int32_data", [18, 3], 3),
        (TensorProto.INT64, "int64_data", [1, 2], 2),
        (TensorProto.UINT32, "uint64_data", [1, 2], 2),
        (TensorProto.STRING, "string_data", [b"a", b"b"], 2),
    ],
    ids=["float", "complex", "double", "float16", "bool", "int4", "int64", "uint32", "string"],
)
def test_what_is_there_in_typed_fields_is_enough_and_one_more_is_not(
    tmp_path: Path, kind: int, field: str, values: list[object], count: int
) -> None:
    _read(with_weight(_typed(kind, field, values, count)), tmp_path)
    with pytest.raises(ModelError, match="weight 'w' "):
        _read(with_weight(_typed(kind, field, values, count + 2)), tmp_path)


def _scalars() -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(np.float32(2.0), "w"), stored("empty", [0, MANY], raw=b"")]


def test_scalars_and_empty_weights_are_what_they_claim(tmp_path: Path) -> None:
    proto = with_weight(*_scalars())
    assert [item.name for item in _read(proto, tmp_path).graph.initializer] == ["w", "empty"]


def test_external_data_is_as_long_as_the_sizes_say_where_no_length_is_given(
    tmp_path: Path,
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))

    def external(*sizes: int) -> onnx.ModelProto:
        tensor = stored("w", sizes, raw=None)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
        return with_weight(tensor)

    _read(external(4, 4), tmp_path)
    with refused(ModelError, "'w.bin'", "64 bytes", "68"):
        _read(external(17), tmp_path)


def test_a_type_that_is_not_known_is_left_to_the_runtime(tmp_path: Path) -> None:
    tensor = stored("w", [100])
    tensor.data_type = 999
    _read(with_weight(tensor), tmp_path)


@pytest.mark.parametrize(
    "build",
    [
        lambda: make_model(
            [node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [MANY] * 20)]
        ),
        lambda: make_model(
            [node("Relu", ["x"], ["y"])], [value("x", [MANY] * 20)], [value("y", None)]
        ),
    ],
    ids=["output", "input"],
)
def test_sizes_of_values_claim_no_data(
    tmp_path: Path, build: Callable[[], onnx.ModelProto]
) -> None:
    _read(build(), tmp_path)


def test_kinds_of_elements_in_the_builders_are_those_of_onnx() -> None:
    assert (FLOAT, INT64, STRING) == (1, 7, 8)
    assert helper.tensor_dtype_to_np_dtype(FLOAT) == np.float32
