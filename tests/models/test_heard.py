"""Decoders that listen to an encoder: what they hear, and what their own cache is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.decoders import decoder_of

Shape = tuple[int | str, ...]
IDS = TensorInfo(name="input_ids", type="tensor(int64)", shape=("batch_size", "tokens"))
LOGITS = TensorInfo(name="logits", type="tensor(float)", shape=("batch_size", "tokens", 50))
STATES = ("encoder_hidden_states", ("batch_size", "encoder_length", 16))
OWN: Shape = ("batch_size", 4, "past_length", 8)
OTHER: Shape = ("batch_size", 4, "encoder_length", 8)


def infos(named: Sequence[tuple[str, Shape]]) -> list[TensorInfo]:
    return [TensorInfo(name=name, type="tensor(float)", shape=shape) for name, shape in named]


def decoder(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Decoder:
    recognised = decoder_of([IDS, *inputs], [LOGITS, *outputs])
    assert recognised.decoder is not None, recognised.reason
    return recognised.decoder


def test_states_of_an_encoder_are_heard_and_its_keys_are_kept() -> None:
    """As one file for the first step and the later ones has them."""
    mask = TensorInfo(
        name="encoder_attention_mask", type="tensor(int64)", shape=("batch_size", "encoder_length")
    )
    flag = TensorInfo(name="use_cache_branch", type="tensor(bool)", shape=(1,))
    sides = (("decoder", OWN), ("encoder", OTHER))
    past = [
        (f"past_key_values.{n}.{side}.{kind}", shape)
        for n in (0, 1)
        for side, shape in sides
        for kind in ("key", "value")
    ]
    present = [(name.replace("past_key_values", "present"), shape) for name, shape in past]
    found = decoder([mask, *infos([STATES, *past]), flag], infos(present))
    assert found.heard == ("encoder_attention_mask", "encoder_hidden_states")
    assert found.cache_flag == "use_cache_branch"
    assert [tensor.is_of_encoder for tensor in found.cache] == [False, False, True, True] * 2
    assert all(tensor.shape == (0, 4, 0, 8) for tensor in found.cache)


@pytest.mark.parametrize(
    ("own", "heard"),
    [
        ("past_key_self_0", "past_key_cross_0"),
        ("past_key_values.0.decoder.key", "past_key_values.0.encoder.key"),
    ],
)
def test_keys_that_the_decoder_never_gives_are_heard(own: str, heard: str) -> None:
    """As the file for later steps has them."""
    present = own.replace("past_key_values", "present").replace("past", "present")
    found = decoder(infos([(own, OWN), (heard, OTHER)]), infos([(present, OWN)]))
    assert found.heard == (heard,)
    assert [tensor.past for tensor in found.cache] == [own]
    assert not found.cache[0].is_of_encoder


def test_a_decoder_alone_hears_nothing() -> None:
    found = decoder(infos([("past_key_values.0.key", OWN)]), infos([("present.0.key", OWN)]))
    assert found.heard == ()
