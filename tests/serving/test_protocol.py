"""Messages of the Open Inference Protocol: what comes back of them, and what is refused where."""

from __future__ import annotations

import contextlib
import json
import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.serving.protocol import (
    DeclaredTensor,
    InferRequest,
    InferResponse,
    ModelMetadata,
    WantedOutput,
    WireTensor,
    decode_error,
    decode_metadata,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    metadata_fields,
)
from pytest_ortbench.serving.tensor_values import (
    DATATYPES,
    HEADER_LENGTH,
    ProtocolError,
    numpy_type,
)

X = {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2.5, -3, 0]}


def message(*inputs: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"inputs": list(inputs or (X,)), **fields}).encode()


def changed(**fields: Any) -> bytes:
    """The message of one input with other fields; ``None`` leaves a field out."""
    entry = {key: value for key, value in {**X, **fields}.items() if value is not None}
    return message(entry)


def as_bytes(text: dict[str, Any], blob: bytes) -> tuple[bytes, int]:
    head = json.dumps(text).encode()
    return head + blob, len(head)


def values_of(datatype: str) -> np.ndarray[Any, Any]:
    if datatype == "BYTES":
        return np.array([["a", "ä"], ["", "z\n"]], dtype=object)
    if datatype == "BOOL":
        return np.array([[True, False], [False, True]])
    return np.array([[0, 1], [2, 100]], dtype=numpy_type(datatype))


def test_a_message_written_by_hand_is_read() -> None:
    read = decode_request(
        message(id="7", outputs=[{"name": "y", "parameters": {"binary_data": True}}])
    )
    (tensor,) = read.inputs
    assert (tensor.name, tensor.datatype) == ("x", "FP32")
    assert tensor.array.dtype == np.float32
    assert tensor.array.tolist() == [[1, 2.5], [-3, 0]]
    assert read.wanted == (WantedOutput(name="y", binary=True),)
    assert (read.request_id, read.binary) == ("7", False)


def test_nested_data_is_read_as_flat_data_is() -> None:
    (tensor,) = decode_request(changed(data=[[1, 2.5], [-3, 0]])).inputs
    assert tensor.array.tolist() == [[1, 2.5], [-3, 0]]


def test_bytes_written_by_hand_are_read() -> None:
    """As the extension documents them: little-endian, texts with four bytes of length."""
    texts = b"\x02\x00\x00\x00ab" + b"\x00\x00\x00\x00"
    body, length = as_bytes(
        {
            "inputs": [
                {
                    "name": "t",
                    "shape": [2],
                    "datatype": "BYTES",
                    "parameters": {"binary_data_size": len(texts)},
                },
                {
                    "name": "f",
                    "shape": [1, 2],
                    "datatype": "FP32",
                    "parameters": {"binary_data_size": 8},
                },
                {
                    "name": "b",
                    "shape": [1],
                    "datatype": "BF16",
                    "parameters": {"binary_data_size": 2},
                },
                {"name": "j", "shape": [], "datatype": "INT8", "data": [-5]},
            ],
            "parameters": {"binary_data_output": True},
        },
        texts + struct.pack("<ff", 1.5, -2.0) + struct.pack("<H", 0x3FC0),
    )
    read = decode_request(body, length)
    assert [tensor.array.tolist() for tensor in read.inputs] == [
        ["a" + "b", ""],
        [[1.5, -2.0]],
        [1.5],
        -5,
    ]
    assert read.inputs[1].array.flags.aligned
    assert read.binary_outputs(["y"]) == {"y"}


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_comes_back_as_it_went(datatype: str, binary: bool) -> None:
    tensor = WireTensor(name="x", datatype=datatype, array=values_of(datatype))
    sent = InferRequest(
        inputs=(tensor,), wanted=(WantedOutput(name="y", binary=False),), binary=binary
    )
    wire = encode_request(sent, binary=binary)
    assert (HEADER_LENGTH in wire.headers) is binary
    got = decode_request(wire.body, wire.header_length)
    assert (got.wanted, got.binary) == (sent.wanted, binary)
    assert got.binary_outputs(["y", "z"]) == ({"z"} if binary else set())
    assert got.inputs[0].array.dtype == tensor.array.dtype
    assert got.inputs[0].array.tolist() == tensor.array.tolist()
    response = InferResponse(model_name="m", outputs=(tensor,), model_version="1", request_id="ä")
    back = encode_response(response, binary=("x",) if binary else ())
    read = decode_response(back.body, back.header_length)
    assert (read.model_name, read.model_version, read.request_id) == ("m", "1", "ä")
    assert read.outputs[0].array.tolist() == tensor.array.tolist()


def test_numbers_that_json_lacks_go_as_bytes_only() -> None:
    array = np.array([np.nan, np.inf], dtype=np.float32)
    response = InferResponse(
        model_name="m", outputs=(WireTensor(name="y", datatype="FP32", array=array),)
    )
    with pytest.raises(ProtocolError) as refused:
        encode_response(response)
    assert refused.value.place == "outputs[0].data"
    assert refused.value.hint
    wire = encode_response(response, binary=("y",))
    np.testing.assert_array_equal(
        decode_response(wire.body, wire.header_length).outputs[0].array, array
    )


def test_metadata_comes_back_as_it_went() -> None:
    metadata = ModelMetadata(
        name="m",
        versions=("1",),
        platform="onnxruntime_onnx",
        inputs=(DeclaredTensor(name="x", datatype="FP32", shape=(-1, 3)),),
        outputs=(DeclaredTensor(name="y", datatype="INT64", shape=()),),
    )
    assert decode_metadata(json.dumps(metadata_fields(metadata)).encode()) == metadata


def test_an_error_is_read_and_anything_else_is_none() -> None:
    assert decode_error(b'{"error": "no"}') == "no"
    assert decode_error(b'{"error": {"message": "full", "code": 429}}') == "full"
    bodies = (
        b"",
        b"<html>",
        b"[]",
        b'{"error": 1}',
        b'{"error": {}}',
        b'{"error": {"message": 1}}',
    )
    assert [decode_error(body) for body in bodies] == [""] * 6


BLOB = {"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
TEXT = {"name": "x", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", "body"),
        (b"\xff\xfe", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b"[" * 100_000, "body"),
        (b'{"inputs": ' + b"[" * 100_000, "body"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [NaN]}]}', "body"),
        (b"{}", "inputs"),
        (message(inputs=[]), "inputs"),
        (message(inputs={}), "inputs"),
        (message(inputs=[1]), "inputs[0]"),
        (message(id=3), "id"),
        (message(id="x" * 1001), "id"),
        (message(parameters=[]), "parameters"),
        (message(parameters={"binary_data_output": 1}), "parameters.binary_data_output"),
        (message(outputs="y"), "outputs"),
        (message(outputs=[{}]), "outputs[0].name"),
        (message(outputs=[{"name": "y"}, {"name": "y"}]), "outputs[1].name"),
        (
            message(outputs=[{"name": "y", "parameters": {"classification": 3}}]),
            "outputs[0].parameters.classification",
        ),
        (
            message(outputs=[{"name": "y", "parameters": {"binary_data": "yes"}}]),
            "outputs[0].parameters.binary_data",
        ),
        (message(X, X), "inputs[1].name"),
        (changed(name=None), "inputs[0].name"),
        (changed(name=""), "inputs[0].name"),
        (changed(datatype="FP33"), "inputs[0].datatype"),
        (changed(datatype=["FP32"]), "inputs[0].datatype"),
        (changed(shape=None), "inputs[0].shape"),
        (changed(shape=4), "inputs[0].shape"),
        (changed(shape=[-1, 4]), "inputs[0].shape[0]"),
        (changed(shape=[2, 2.0]), "inputs[0].shape[1]"),
        (changed(shape=[True, 4]), "inputs[0].shape[0]"),
        (changed(shape=[2**31, 1]), "inputs[0].shape[0]"),
        (changed(shape=[1] * 33), "inputs[0].shape"),
        (changed(shape=[3, 2]), "inputs[0].data"),
        (changed(shape=[2**30, 2**30, 2**30]), "inputs[0].data"),
        (changed(shape=[0] + [2**31 - 1] * 8, data=[]), "inputs[0].shape"),
        (changed(data=None), "inputs[0].data"),
        (changed(data="1234"), "inputs[0].data"),
        (changed(data=[1, 2, 3]), "inputs[0].data"),
        (changed(data=[[1, 2], [3]]), "inputs[0].data"),
        (changed(data=[[1, 2, 3, 4]]), "inputs[0].data"),
        (changed(data=[[1, 2], 3, 4]), "inputs[0].data"),
        (changed(data=[[[1], [2]], [[3], [4]]]), "inputs[0].data"),
        (changed(data=[1, 2, 3, "4"]), "inputs[0].data"),
        (changed(data=[1, 2, 3, None]), "inputs[0].data"),
        (changed(data=[1, 2, 3, True]), "inputs[0].data"),
        (changed(data=[1, 2, 3, {}]), "inputs[0].data"),
        (changed(data=[1, 2, 3, 1e39]), "inputs[0].data"),
        (changed(data=[1, 2, 3, 10**400]), "inputs[0].data"),
        (changed(datatype="BF16", data=[1, 2, 3, 3.4e38]), "inputs[0].data"),
        (changed(datatype="FP16", data=[1, 2, 3, 70_000]), "inputs[0].data"),
        (changed(datatype="INT8", data=[1, 2, 3, 128]), "inputs[0].data"),
        (changed(datatype="UINT64", data=[1, 2, 3, -1]), "inputs[0].data"),
        (changed(datatype="INT64", data=[1, 2, 3, 2**63]), "inputs[0].data"),
        (changed(datatype="INT32", data=[1, 2, 3, 4.0]), "inputs[0].data"),
        (changed(datatype="BOOL", data=[1, 0, 1, 0]), "inputs[0].data"),
        (changed(datatype="BYTES", data=["a", "b", "c", 1]), "inputs[0].data"),
        (changed(datatype="BYTES", data=["a", "b", "c", "\ud800"]), "inputs[0].data"),
        (changed(parameters={"binary_data_size": 16}), "inputs[0].data"),
        (
            changed(data=None, parameters={"binary_data_size": 16}),
            "inputs[0].parameters.binary_data_size",
        ),
        (
            changed(data=None, parameters={"binary_data_size": -1}),
            "inputs[0].parameters.binary_data_size",
        ),
        (
            changed(parameters={"shared_memory_region": "/dev/shm/x"}),
            "inputs[0].parameters.shared_memory_region",
        ),
        (as_bytes({"inputs": [BLOB]}, bytes(7)), "inputs[0].parameters.binary_data_size"),
        (as_bytes({"inputs": [BLOB]}, bytes(9)), "inputs"),
        (
            as_bytes({"inputs": [{**BLOB, "shape": [3]}]}, bytes(8)),
            "inputs[0].parameters.binary_data_size",
        ),
        (
            as_bytes({"inputs": [{**BLOB, "shape": [8], "datatype": "BOOL"}]}, b"\x02" * 8),
            "inputs[0]",
        ),
        (as_bytes({"inputs": [TEXT]}, b"\x02\0\0\0a"), "inputs[0]"),
        (as_bytes({"inputs": [TEXT]}, b"\0\0\0\0\0"), "inputs[0]"),
        (as_bytes({"inputs": [TEXT]}, b"\x01\0\0\0\xff"), "inputs[0]"),
        ((message(), 0), HEADER_LENGTH),
        ((message(), -1), HEADER_LENGTH),
        ((message(), 10**9), HEADER_LENGTH),
    ],
)
def test_what_breaks_a_rule_is_refused_at_its_place(
    body: bytes | tuple[bytes, int], place: str
) -> None:
    arguments = body if isinstance(body, tuple) else (body,)
    with pytest.raises(ProtocolError) as refused:
        decode_request(*arguments)
    assert refused.value.place == place
    assert refused.value.hint


def test_json_that_is_cut_by_its_header_is_told_with_the_length() -> None:
    for length, told in ((None, []), (5, ["5"])):
        with pytest.raises(ProtocolError) as refused:
            decode_request(b"{'inputs': []}", length)
        assert re.findall(r"first (\d+)", refused.value.message) == told


def test_json_in_front_of_bytes_is_told_with_its_length() -> None:
    body, length = as_bytes({"inputs": [BLOB]}, b"\0\0\x80\x3f" * 2)
    for header in (None, length + 1):
        with pytest.raises(ProtocolError) as refused:
            decode_request(body, header)
        assert refused.value.hint.partition(f"{HEADER_LENGTH}: {length}")[1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"id": "\xdcbung"}', "byte 8 (0xdc)"),
        (b'{"id": [1, NaN]}', "NaN"),
        (b"<!DOCTYPE html><title>Log in", "<!DOCTYPE html>"),
    ],
)
def test_a_body_that_is_no_json_is_told_with_what_it_has_instead(body: bytes, told: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_request(body)
    assert told in refused.value.message


def test_parameters_are_told_with_those_of_their_place() -> None:
    for part, told in (("inputs", "binary_data_size"), ("outputs", "binary_data")):
        tensor = {"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}
        fields = {"inputs": [tensor], "outputs": [{"name": "y"}]}
        fields[part] = [{**fields[part][0], "parameters": []}]
        with pytest.raises(ProtocolError) as refused:
            decode_request(message(**fields))
        assert f'"{told}"' in refused.value.hint


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([[1, 2, 3], None], "null"),
        ([[1, 2, 3], 4, 5, 6], "4"),
        ([[1, 2, 3], [4, 5]], "[4, 5]"),
        ([[1, 2, 3], [4, [5], 6]], "[5]"),
    ],
)
def test_the_part_that_is_nested_unlike_the_shape_is_told(data: list[Any], told: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_request(changed(shape=[2, 3], data=data))
    assert re.search(rf"(^|list,? ){re.escape(told)}\W", refused.value.message)


def test_bytes_without_a_tensor_are_told_otherwise_where_one_has_values_as_json() -> None:
    as_json = {"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}
    hints = []
    for tensor, rest in ((as_json, bytes(4)), (BLOB, bytes(9))):
        with pytest.raises(ProtocolError) as refused:
            decode_request(*as_bytes({"inputs": [tensor]}, rest))
        hints.append(refused.value.hint)
    assert hints[0] != hints[1]


def test_a_list_that_is_nested_deeper_than_the_shape_gets_another_step() -> None:
    hints = []
    for data in ([[1], [2], [3], [4]], ["1", "2", "3", "4"]):
        with pytest.raises(ProtocolError) as refused:
            decode_request(changed(shape=[4], data=data))
        hints.append(refused.value.hint)
    assert hints[0] != hints[1]


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("FP32", [1, 2, 1e39, 4]),
        ("FP32", [1, 2, 10**400, 4]),
        ("BF16", [[1, 2], [3.4e38, 4]]),
        ("INT8", [1, 2, 128, 4]),
        ("INT32", [1, 2, 4.0, 4]),
        ("BYTES", ["a", "b", "\ud800", "d"]),
        ("BOOL", [True, False, 1, True]),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_index(datatype: str, data: list[Any]) -> None:
    with pytest.raises(ProtocolError, match=r"^inputs\[0\]\.data: element 2\b"):
        decode_request(changed(datatype=datatype, data=data))


def test_a_byte_that_is_no_bool_is_told_with_its_tensor_and_not_as_a_wrong_size() -> None:
    bools = {**BLOB, "shape": [8], "datatype": "BOOL"}
    with pytest.raises(ProtocolError) as refused:
        decode_request(*as_bytes({"inputs": [bools]}, b"\1\0\xff" + bytes(5)))
    assert refused.value.place == "inputs[0]"
    assert re.findall(r"\d+", refused.value.message)[:2] == ["2", "255"]


def test_bytes_that_are_not_sent_are_told_with_the_header_where_it_lacks() -> None:
    body, length = as_bytes({"inputs": [BLOB]}, b"")
    for header, is_told in ((None, True), (length, False)):
        with pytest.raises(ProtocolError) as refused:
            decode_request(body, header)
        assert (HEADER_LENGTH in refused.value.hint) is is_told


def test_the_size_that_a_message_gives_for_fewer_texts_is_the_right_one() -> None:
    data = b"\1\0\0\0a\1\0\0\0b"
    text = TEXT | {"parameters": {"binary_data_size": len(data)}}
    with pytest.raises(ProtocolError) as refused:
        decode_request(*as_bytes({"inputs": [text]}, data))
    size = next(int(found) for found in re.findall(r"\d+", refused.value.hint))
    text["parameters"] = {"binary_data_size": size}
    (tensor,) = decode_request(*as_bytes({"inputs": [text]}, data[:size])).inputs
    assert tensor.array.tolist() == ["a"]


@pytest.mark.parametrize(
    ("data", "numbers"),
    [
        pytest.param(b"\x09\0\0\0a", [0, 9, 1], id="a length beyond the end"),
        pytest.param(b"\x01\0\0\0a\x03\0\0\0", [1, 3, 0], id="a second element"),
    ],
)
def test_a_length_of_an_element_that_does_not_fit_is_told(data: bytes, numbers: list[int]) -> None:
    text = TEXT | {"shape": [2], "parameters": {"binary_data_size": len(data)}}
    with pytest.raises(ProtocolError) as refused:
        decode_request(*as_bytes({"inputs": [text]}, data))
    assert [int(found) for found in re.findall(r"\d+", refused.value.message)] == numbers


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"model_name": "m"}', "outputs"),
        (b'{"outputs": []}', "model_name"),
        (b'{"model_name": 1, "outputs": []}', "model_name"),
        (b'{"model_name": "m", "outputs": [{"name": "y"}]}', "outputs[0].datatype"),
    ],
)
def test_a_response_that_breaks_a_rule_is_refused_at_its_place(body: bytes, place: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_response(body)
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"{}", "name"),
        (b'{"name": "m", "versions": [1]}', "versions"),
        (
            b'{"name": "m", "inputs": [{"name": "x", "datatype": "A", "shape": [-2]}]}',
            "inputs[0].shape[0]",
        ),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused_at_its_place(body: bytes, place: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_metadata(body)
    assert refused.value.place == place


@given(body=st.binary(max_size=200), length=st.none() | st.integers(-5, 250))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(body: bytes, length: int | None) -> None:
    for read in (decode_request, decode_response):
        with pytest.raises(ProtocolError):
            read(body, length)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_changed_message_is_read_or_refused(data: st.DataObject) -> None:
    """One byte of a good message is another one: nothing but a refusal may come of it."""
    body, length = as_bytes({"inputs": [BLOB, TEXT | {"name": "t"}]}, bytes(8) + b"\x01\0\0\0a")
    at = data.draw(st.integers(0, len(body) - 1))
    spoilt = bytearray(body)
    spoilt[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        assert len(decode_request(bytes(spoilt), length).inputs) == 2
