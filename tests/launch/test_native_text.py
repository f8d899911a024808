"""Native messages made readable."""

from __future__ import annotations

import pytest

from pytest_ortbench.launch.native_text import error_code, error_lines, readable
from tests.launch import native_messages as said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (said.IR_99, "Unsupported model IR version: 99, max supported IR version: 14"),
        (said.RELU_1, "Could not find an implementation for Relu(1) node with name ''"),
        (
            said.MATMUL_MISMATCH,
            "Non-zero status code returned while running MatMul node. Name:'mm' "
            "Status Message: MatMul dimension mismatch",
        ),
        (
            said.RESHAPE,
            "Non-zero status code returned while running Reshape node. Name:'rs' Status Message: "
            "input_shape_size == requested_shape_size was false. The input tensor cannot be "
            "reshaped to the requested shape. Input shape:{2,6}, requested shape:{1,2,3}",
        ),
        (
            said.BUFFER,
            "Non-zero status code returned while running ConstantOfShape node. Name:'cs' Status "
            "Message: Failed to allocate memory for requested buffer of size 35184372088832",
        ),
        (said.OPENVINO_OPTION, "Invalid OpenVINO EP option: foo"),
        ("plain words (with brackets)", "plain words (with brackets)"),
        ("/models/a.onnx:3 is odd", "/models/a.onnx:3 is odd"),
    ],
)
def test_places_codes_and_signatures_are_left_out(text: str, expected: str) -> None:
    assert readable(text) == expected


def test_long_messages_are_cut_in_the_middle_since_a_reason_stands_at_either_end() -> None:
    beginning, end = "No kernel: x", "x, Error: no such axis"
    text = readable(beginning + "x" * 1000 + end)
    assert len(text) == 400
    assert text.startswith(beginning)
    assert text.endswith(end)


def test_error_code() -> None:
    assert error_code(said.PROTOBUF) == "INVALID_PROTOBUF"
    assert error_code("no code") == ""


def test_error_lines_come_last_first_without_prefix_and_colour() -> None:
    assert error_lines("fine\n" + said.OPENVINO_LOG) == [
        "Failed to create OpenVINOExecutionProvider. Please refer "
        "https://onnxruntime.ai/docs/execution-providers/OpenVINO-ExecutionProvider.html"
        "#requirements to ensure all dependencies are met.",
        "[OpenVINO] Device GPU is not available",
    ]
