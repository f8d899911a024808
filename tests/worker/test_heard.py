"""What an encoder said is the same in every step; keys that were made of it are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from pytest_ortbench.core.case import Provider
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from tests.models.graphs import read
from tests.worker.asking import ask
from tests.worker.decoder_cases import decoder_case

pytestmark = pytest.mark.live

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
IDS = np.array([[1, 2]])


def listening() -> ModelProto:
    """A decoder whose scores are the sum of the keys that it has of an encoder."""
    float32, int64 = TensorProto.FLOAT, TensorProto.INT64

    def value(name: str, shape: list[int | str], kind: int = float32) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    nodes = [
        helper.make_node("Cast", ["input_ids"], ["words"], to=float32),
        helper.make_node("Unsqueeze", ["words", "axes"], ["new"]),
        helper.make_node(
            "Concat", ["past_key_values.0.decoder.key", "new"], ["present.0.decoder.key"], axis=2
        ),
        helper.make_node("Unsqueeze", ["encoder_hidden_states", "one"], ["heard"]),
        helper.make_node(
            "Concat", ["past_key_values.0.encoder.key", "heard"], ["present.0.encoder.key"], axis=2
        ),
        helper.make_node("ReduceSum", ["past_key_values.0.encoder.key"], ["sum"], keepdims=0),
        helper.make_node("Unsqueeze", ["words", "two"], ["column"]),
        helper.make_node("Mul", ["column", "zeros"], ["nothing"]),
        helper.make_node("Add", ["nothing", "sum"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "listening",
        [
            value("input_ids", ["b", "s"], int64),
            value("encoder_hidden_states", ["b", "e", 1]),
            value("past_key_values.0.decoder.key", ["b", 1, "p", 1]),
            value("past_key_values.0.encoder.key", ["b", 1, "pe", 1]),
        ],
        [
            value("logits", ["b", "s", 7]),
            value("present.0.decoder.key", ["b", 1, "t", 1]),
            value("present.0.encoder.key", ["b", 1, "te", 1]),
        ],
        [
            numpy_helper.from_array(np.array([1, 3]), "axes"),
            numpy_helper.from_array(np.array([1]), "one"),
            numpy_helper.from_array(np.array([2]), "two"),
            numpy_helper.from_array(np.zeros((1, 1, 7), np.float32), "zeros"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_keys_of_the_first_step_are_kept(tmp_path: Path) -> None:
    found = read(listening(), tmp_path)
    assert found.decoder is not None
    session = ort.InferenceSession(found.path, providers=[CPU.name])
    heard = {"encoder_hidden_states": np.full((1, 3, 1), 2.0, np.float32)}
    runner = SessionDecoder(session, found.decoder, CPU, batch=1, length=6, heard=heard)
    for _ in range(2):
        runner.rewind()
        sums = []
        for ids in (IDS, IDS[:, :1], IDS[:, :1]):
            runner.read(ids)
            sums.append(float(runner.scores()[0, -1, 0]))
        # Fed back from step to step it would grow: 0, 6, 12.
        assert sums == [0.0, 6.0, 6.0]
    # Four tokens of one number: what the encoder said is no part of the text's cache.
    assert runner.cache_bytes == runner.computed_cache_bytes == 4 * 4


def test_the_shipped_decoder_writes_after_what_it_hears(tmp_path: Path) -> None:
    case = decoder_case(tmp_path, model="speech_decoder")
    measured = GeneratingCase(case, lambda _: None)
    measured.open()
    block = ask(measured, TimeBlock(iterations=2))
    assert [request.new_tokens for request in block.requests] == [3, 3]
    assert case.model.decoder is not None
    assert len(case.model.decoder.heard) == 4
