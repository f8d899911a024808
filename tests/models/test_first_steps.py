"""Decoders in two files: which go together, and what the first one gives to the later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.encoders import listening_to
from pytest_ortbench.models.first_steps import begun_by
from tests.models.test_encoders import KEYS, MASK, STATES, infos, model

IDS = TensorInfo(name="input_ids", type="tensor(int64)", shape=("batch", "tokens"))
ONE = replace(IDS, shape=("batch", 1))
LOGITS = infos(("logits", ("batch", "tokens", 99)))
OWN = [f"0.decoder.{kind}" for kind in ("key", "value")]
SAID = [f"0.encoder.{kind}" for kind in ("key", "value")]


def tensors(before: str, names: Sequence[str]) -> tuple[TensorInfo, ...]:
    return infos(*((f"{before}.{name}", KEYS) for name in names))


def first(
    *inputs: TensorInfo, names: Sequence[str] = OWN, outputs: Sequence[TensorInfo] = LOGITS
) -> Model:
    made = model([IDS, *inputs], [*outputs, *tensors("present", names)])
    return replace(made, path="/models/decoder_model.onnx", digest="1" * 64)


def later(ids: TensorInfo = ONE, *, said: Sequence[str] = ()) -> Model:
    mask = (MASK,) if said else ()
    inputs = [ids, *mask, *tensors("past_key_values", [*OWN, *said])]
    made = model(inputs, [*LOGITS, *tensors("present", OWN)])
    return replace(made, decoder=decoder_of(made.inputs, made.outputs).decoder)


def begun(goes_on: Model, begins: Model) -> Model:
    found = begun_by(goes_on, begins)
    assert isinstance(found, Model), found
    return found


@pytest.mark.parametrize("ids", [IDS, ONE])
def test_a_cache_is_given_whatever_number_of_tokens_a_later_step_takes(ids: TensorInfo) -> None:
    found = begun(later(ids), first())
    assert found.first_step is not None
    assert found.first_step.given == {f"past_key_values.{n}": f"present.{n}" for n in OWN}
    assert found.first_step.digest == "1" * 64
    assert found.first_step.decoder.cache == ()
    assert found.decoder is not None
    assert len(found.decoder.cache) == 2
    assert not found.decoder.shares_buffers


def test_keys_of_an_encoder_are_given_and_its_states_are_heard_by_the_first_step() -> None:
    states = infos(("encoder_hidden_states", STATES))
    found = begun(later(said=SAID), first(*states, MASK, names=[*OWN, *SAID]))
    assert found.first_step is not None
    assert found.first_step.given == {
        f"past_key_values.{name}": f"present.{name}" for name in (*OWN, *SAID)
    }
    assert found.hears == ("encoder_hidden_states", "encoder_attention_mask")
    heard = listening_to(found, model(outputs=infos(("last_hidden_state", STATES))))
    assert isinstance(heard, Model)
    assert heard.encoder is not None
    assert heard.encoder.heard == {"encoder_hidden_states": "last_hidden_state"}


@pytest.mark.parametrize(
    ("goes_on", "begins"),
    [
        # A tensor is missing, is called twice, has another type.
        (later(), first(names=OWN[:1])),
        (later(), first(outputs=[*LOGITS, *tensors("out", OWN), *tensors("new", OWN)], names=[])),
        (
            later(),
            first(
                outputs=[
                    *LOGITS,
                    *(replace(i, type="tensor(float16)") for i in tensors("present", OWN)),
                ],
                names=[],
            ),
        ),
        # Nobody gives the keys of the encoder.
        (later(said=SAID), first()),
        # Other tokens; no scores; another kind of network.
        (later(), first(outputs=infos(("logits", ("batch", "tokens", 98))))),
        (later(), first(outputs=[])),
        (later(), model(infos(("x", ("batch", 3))), infos(("y", ("batch", 3))))),
        (model(), first()),
        # A whole decoder, and the same half twice.
        (later(), later(IDS)),
        (first(), first()),
    ],
)
def test_halves_that_do_not_go_together(goes_on: Model, begins: Model) -> None:
    found = begun_by(goes_on, begins)
    assert isinstance(found, str)
    assert found


def test_one_token_alone_is_no_decoder() -> None:
    assert later(ONE).decoder is None
    assert later(IDS).decoder is not None
