"""Encoders of models that listen: named or found, and how long the sound is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import InputSpec, Runtime
from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.core.model import Model, ValueHint
from pytest_ortbench.planning.encoders import refuse_encoder, sound_seconds, with_encoder
from pytest_ortbench.planning.families import families
from tests.models.test_encoders import STATES, infos, listener, model

DECODER = listener(*infos(("encoder_hidden_states", STATES)))
ENCODER = model(outputs=infos(("last_hidden_state", STATES)))


def reading(_spec: str) -> Model:
    return ENCODER


def broken(_spec: str) -> Model:
    raise ModelError("it is cut off", place="encoder.onnx")


def test_a_named_encoder_is_taken_or_refused() -> None:
    assert with_encoder(DECODER, "encoder.onnx", reading).encoder is not None
    with pytest.raises(ModelError):
        with_encoder(DECODER, "encoder.onnx", broken)
    with pytest.raises(UsageError):
        with_encoder(model(), "encoder.onnx", reading)


def test_a_model_that_is_named_as_its_own_encoder_is_to_be_replaced() -> None:
    hints = []
    for path in ("/models/encoder.onnx", "/models/other.onnx"):
        with pytest.raises(UsageError) as caught:
            with_encoder(
                replace(model(), path=path),
                "encoder.onnx",
                lambda _: replace(ENCODER, path="/models/encoder.onnx"),
            )
        hints.append(caught.value.hint)
    assert ["'file'" in hint for hint in hints] == [True, False]


def test_one_that_nobody_named_is_found_beside_or_missed_in_a_note(tmp_path: Path) -> None:
    (tmp_path / "encoder_model.onnx").touch()
    beside = replace(DECODER, path=str(tmp_path / "decoder_model.onnx"))
    assert with_encoder(beside, "", reading).encoder is not None
    for decoder, read in ((beside, broken), (DECODER, reading)):
        found = with_encoder(decoder, "", read)
        assert found.encoder is None
        assert len(found.notes) == 1
    assert with_encoder(model(), "", broken) == model()


@pytest.mark.parametrize(
    ("name", "shape", "seconds"),
    [
        ("audio_features", (2, 80, 300), 3.0),
        ("input_features", (1, 128, 3000), 30.0),
        ("input_values", (1, 32_000), 2.0),
        ("mel", (1, 80, 100), 1.0),
        ("input_ids", (1, 100), None),
        ("hidden_states", (1, 80, 300), None),
    ],
)
def test_seconds_of_sound(name: str, shape: tuple[int, ...], seconds: float | None) -> None:
    kind = "tensor(int64)" if name == "input_ids" else "tensor(float)"
    spec = InputSpec(name=name, type=kind, shape=shape, hint=ValueHint(kind="normal"))
    assert sound_seconds([spec]) == (None if seconds is None else pytest.approx(seconds))


def test_an_encoder_is_not_sent_elsewhere() -> None:
    assert refuse_encoder(Runtime()) is None
    refused = refuse_encoder(Runtime(label="far", shares_files=False))
    assert refused is not None
    assert "'far'" in refused.message
    assert "--ort-runtimes=current" in refused.hint


def test_a_table_names_an_encoder(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ortbench.models.speech]\nfile = "d.onnx"\nencoder = "e.onnx"\n'
    )
    assert families(tmp_path)["speech"].encoder == str(tmp_path / "e.onnx")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ortbench.models.speech]\nfile = "d.onnx"\nencoder = 3\n'
    )
    with pytest.raises(UsageError):
        families(tmp_path)


def test_the_catalogue_names_one_relative_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "catalogue.toml").write_text(
        '[speech]\nfile = "d.onnx"\nencoder = "e.onnx"\n'
    )
    assert families(tmp_path)["speech"].encoder == str(tmp_path / "models" / "e.onnx")
