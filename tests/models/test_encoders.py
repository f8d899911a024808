"""Which file a decoder listens to, and which of its outputs goes into which input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.encoders import encoder_beside, first_half, later_half, listening_to

Shape = tuple[int | str, ...]
STATES: Shape = ("batch", "length", 16)
KEYS: Shape = ("batch", 4, "length", 8)
MASK = TensorInfo(name="encoder_attention_mask", type="tensor(int64)", shape=("batch", "length"))


def infos(*named: tuple[str, Shape]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(name=name, type="tensor(float)", shape=shape) for name, shape in named)


def model(inputs: Sequence[TensorInfo] = (), outputs: Sequence[TensorInfo] = ()) -> Model:
    return Model(
        name="m",
        path="/models/m.onnx",
        source="file",
        digest="0" * 64,
        size_bytes=1,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def listener(*inputs: TensorInfo) -> Model:
    heard = tuple(info.name for info in inputs)
    decoder = Decoder(ids="input_ids", logits="logits", vocabulary=9, heard=heard)
    return replace(model(inputs), decoder=decoder)


def heard(decoder: Model, encoder: Model) -> dict[str, str]:
    found = listening_to(decoder, encoder)
    assert isinstance(found, Model), found
    assert found.encoder is not None
    assert found.encoder.digest == encoder.digest
    return found.encoder.heard


@pytest.mark.parametrize("output", ["last_hidden_state", "hidden_states", "anything"])
def test_states_go_to_states_and_the_mask_is_made(output: str) -> None:
    decoder = listener(*infos(("encoder_hidden_states", STATES)), MASK)
    assert heard(decoder, model(outputs=infos((output, STATES)))) == {
        "encoder_hidden_states": output
    }


def test_keys_go_to_their_own_layer() -> None:
    names = [f"{kind}_cross_{layer}" for layer in (0, 1) for kind in ("key", "value")]
    decoder = listener(*infos(*((f"past_{name}", KEYS) for name in names)))
    outputs = infos(("hidden_states", STATES), *((f"present_{name}", KEYS) for name in names))
    assert heard(decoder, model(outputs=outputs)) == {
        f"past_{name}": f"present_{name}" for name in names
    }


def test_what_does_not_go_together_says_why() -> None:
    decoder = listener(*infos(("encoder_hidden_states", STATES)))
    for encoder in (
        model(outputs=infos(("pooled", ("batch", 16)))),
        model(outputs=infos(("first", STATES), ("second", STATES))),
    ):
        assert isinstance(listening_to(decoder, encoder), str)
    assert isinstance(listening_to(model(), model(outputs=infos(("states", STATES)))), str)


@pytest.mark.parametrize(
    ("decoder", "encoder"),
    [
        ("decoder_model_merged.onnx", "encoder_model.onnx"),
        ("decoder_model.onnx", "encoder_model.onnx"),
        ("decoder_model_merged_quantized.onnx", "encoder_model_quantized.onnx"),
        ("tiny_decoder.onnx", "tiny_encoder.onnx"),
        ("decoder_model.onnx", "encoder_model_fp16.onnx"),
        ("model.onnx", "encoder_model.onnx"),
    ],
)
def test_files_of_exporters_are_found_beside_each_other(
    decoder: str, encoder: str, tmp_path: Path
) -> None:
    (tmp_path / encoder).touch()
    found = encoder_beside(tmp_path / decoder)
    fits = encoder not in ("encoder_model_fp16.onnx",) and decoder != "model.onnx"
    assert found == (tmp_path / encoder if fits else None)


@pytest.mark.parametrize(
    ("name", "others", "first", "later"),
    [
        ("decoder_model", ["decoder_with_past_model"], None, "decoder_with_past_model"),
        ("decoder_with_past_model", ["decoder_model"], "decoder_model", None),
        (
            "decoder_model_int8",
            ["decoder_with_past_model_int8"],
            None,
            "decoder_with_past_model_int8",
        ),
        ("t5_decoder_with_past_model", ["t5_decoder_model"], "t5_decoder_model", None),
        ("decoder_model", [], None, None),
        ("decoder_model", ["decoder_with_past_model_int8"], None, None),
        ("decoder_model", ["decoder_with_past_model", "decoder_model_merged"], None, None),
        (
            "decoder_with_past_model",
            ["decoder_model", "decoder_model_merged"],
            "decoder_model",
            None,
        ),
        ("decoder_model_merged", ["decoder_model", "decoder_with_past_model"], None, None),
        ("model", ["decoder_model"], None, None),
    ],
)
def test_the_other_half_of_a_decoder(
    name: str, others: list[str], first: str | None, later: str | None, tmp_path: Path
) -> None:
    for stem in (name, *others):
        (tmp_path / f"{stem}.onnx").write_bytes(b"")
    path = tmp_path / f"{name}.onnx"
    halves = [half and half.stem for half in (first_half(path), later_half(path))]
    assert halves == [first, later]
