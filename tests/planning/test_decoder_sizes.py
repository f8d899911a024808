"""Sizes of a decoder's cache in rows: told, asked for, or set by the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import Model, TensorInfo, ToldSize
from pytest_ortbench.planning.decoder_notes import configuration_notes
from pytest_ortbench.planning.matrix import Planned, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes
from tests.worker.decoder_cases import CURRENT

INT64 = "tensor(int64)"
IDS = TensorInfo(name="input_ids", type=INT64, shape=("b", "s"))
MASK = TensorInfo(name="attention_mask", type=INT64, shape=("b", "all"))


def decoder_model(
    shape: Sequence[int | str | None] = ("b", "h", "p", "d"),
    sizes: Sequence[int] = (0, 0, 0, 0),
    *,
    length_axis: int = 2,
    **fields: Any,
) -> Model:
    pasts = [
        TensorInfo(name=f"past.{kind}", type="tensor(float)", shape=tuple(shape))
        for kind in ("key", "value")
    ]
    cache = tuple(
        CacheTensor(
            past=info.name,
            present=info.name.replace("past", "present"),
            type=info.type,
            shape=tuple(sizes),
            length_axis=length_axis,
        )
        for info in pasts
    )
    decoder = Decoder(
        ids="input_ids", logits="logits", vocabulary=9, cache=cache, mask="attention_mask"
    )
    outputs = (TensorInfo(name="logits", type="tensor(float)", shape=("b", "s", 9)),)
    return Model(
        name="m",
        path="/m.onnx",
        source="file",
        digest="0" * 64,
        size_bytes=1,
        inputs=(IDS, MASK, *pasts),
        outputs=outputs,
        decoder=decoder,
        **fields,
    )


def planned(model: Model, **asked: Any) -> list[Planned]:
    return list(build_plan(PlanRequest(models=("m",), **asked), [model], [CURRENT]).entries)


def shapes_of(entry: Planned) -> dict[str, tuple[int, ...]]:
    return {spec.name: spec.shape for spec in entry.case.inputs}


def test_the_total_follows_from_past_and_tokens_whatever_it_is_called() -> None:
    entries = {entry.case.knobs["workload"]: entry for entry in planned(known())}
    decode = shapes_of(entries["decode"])
    assert (decode["input_ids"], decode["attention_mask"]) == ((1, 1), (1, 129))
    assert decode["past.key"] == decode["past.value"] == (1, 2, 128, 4)
    assert shapes_of(entries["generate"])["attention_mask"] == (1, 128)
    assert {entry.refusal for entry in entries.values()} == {None}


def known() -> Model:
    return decoder_model(
        sizes=(0, 2, 0, 4), told_sizes={"head_size": ToldSize(size=4, why="config.json")}
    )


def test_a_told_size_says_where_it_comes_from() -> None:
    (*_, value) = planned(known())[0].case.inputs
    assert [(size.symbol, size.size) for size in value.resolved] == [
        ("b", 1),
        ("h", 2),
        ("p", 128),
        ("d", 4),
    ]
    assert "config.json" in value.resolved[3].how


def test_what_stays_unknown_is_one_question() -> None:
    for generate in ("auto", "only", "off"):
        (entry,) = planned(decoder_model(), generate=generate)
        assert entry.refusal is not None
        assert "--ort-dims=h:SIZE,d:SIZE" in entry.refusal.hint
    (entry,) = planned(decoder_model(sizes=(0, 2, 0, 0)), generate="auto")
    assert entry.refusal is not None
    assert "--ort-dims=d:SIZE" in entry.refusal.hint


@pytest.mark.parametrize("has_config", [True, False])
def test_a_configuration_that_is_there_is_not_asked_for(tmp_path: Path, has_config: bool) -> None:
    if has_config:
        (tmp_path / "config.json").write_text("{}")
    model = replace(decoder_model(), path=str(tmp_path / "model.onnx"))
    (entry,) = planned(model, generate="auto")
    assert entry.refusal is not None
    assert ("config.json" in entry.refusal.hint) is not has_config
    assert "--ort-dims=h:SIZE,d:SIZE" in entry.refusal.hint


def test_sizes_that_the_user_sets_complete_a_decoder() -> None:
    entries = planned(decoder_model(), dims={"h": (2,), "d": (8,)})
    assert [entry.case.knobs["workload"] for entry in entries] == ["decode", "prefill", "generate"]
    for entry in entries:
        assert entry.refusal is None
        assert entry.case.dims == {"h": 2, "d": 8}
    decoder = entries[-1].case.model.decoder
    assert decoder is not None
    assert [tensor.shape for tensor in decoder.cache] == [(0, 2, 0, 8)] * 2


def test_the_length_may_stand_before_the_heads() -> None:
    model = decoder_model(("b", "t", "h", "d"), (0, 0, 2, 4), length_axis=1)
    assert ModelAxes(model).cache == ("t", "s")
    decode = next(e for e in planned(model) if e.case.knobs["workload"] == "decode")
    assert shapes_of(decode)["past.key"] == (1, 128, 2, 4)


def test_lengths_of_one_cache_are_one_size() -> None:
    model = decoder_model((None, 2, None, 4), (0, 2, 0, 4))
    (entry,) = planned(model, generate="only")
    assert shapes_of(entry) == {
        "input_ids": (1, 128),
        "attention_mask": (1, 128),
        "past.key": (1, 2, 0, 4),
        "past.value": (1, 2, 0, 4),
    }


@pytest.mark.parametrize("windows", [(8, 0), (8, 8)], ids=["one", "all"])
def test_a_window_is_as_long_whatever_the_past(windows: tuple[int, int]) -> None:
    """The total is what was read: of the past where something holds all of it, and the tokens."""
    model = decoder_model(sizes=(0, 2, 0, 4), implied_dims={"w": 8})
    decoder = model.decoder
    assert decoder is not None
    shapes = [("b", "h", "w" if window else "p", "d") for window in windows]
    cached = zip(model.inputs[2:], shapes, strict=True)
    inputs = (*model.inputs[:2], *(replace(info, shape=shape) for info, shape in cached))
    cache = tuple(
        replace(tensor, window=window)
        for tensor, window in zip(decoder.cache, windows, strict=True)
    )
    model = replace(model, inputs=inputs, decoder=replace(decoder, cache=cache))
    (entry,) = planned(model, generate="off", dims={"s": (3,)})
    shapes_fed = shapes_of(entry)
    past = 0 if all(windows) else 128
    assert shapes_fed["attention_mask"] == (1, past + 3)
    fed = [shapes_fed[name] for name in ("past.key", "past.value")]
    assert fed == [(1, 2, window or past, 4) for window in windows]


def test_a_model_that_is_to_generate_and_is_no_decoder_is_refused_once() -> None:
    model = decoder_model()
    entries = planned(
        Model(
            name="m",
            path="/m.onnx",
            source="file",
            digest="0" * 64,
            size_bytes=1,
            inputs=(*model.inputs, TensorInfo(name="mood", type=INT64, shape=("b",))),
            outputs=model.outputs,
        ),
        generate="only",
    )
    (entry,) = entries
    assert entry.refusal is not None
    assert entry.case.knobs == {"workload": "generate"}


def test_what_an_encoder_said_has_a_length_of_its_own() -> None:
    own = decoder_model(("b", 2, "p", 4), (0, 2, 0, 4))
    assert own.decoder is not None
    cross = TensorInfo(name="past.encoder.key", type="tensor(float)", shape=("b", 2, "e", 4))
    of_encoder = replace(
        own.decoder.cache[0], past=cross.name, present="present.encoder.key", is_of_encoder=True
    )
    model = replace(
        own,
        inputs=(*own.inputs, cross),
        decoder=replace(own.decoder, cache=(of_encoder, *own.decoder.cache)),
    )
    axes = ModelAxes(model)
    assert axes.cache == ("p", "s")
    assert "e" not in axes.ties


@pytest.mark.parametrize("name", ["p", "s", "all"])
def test_a_size_that_a_request_sets_itself_is_in_no_id_of_one(name: str) -> None:
    model = decoder_model(("b", 2, "p", 8), (0, 2, 0, 8))
    asked: dict[str, Any] = {"dims": {name: (5, 6)}, "prompt_tokens": (4,), "new_tokens": (2,)}
    (entry,) = planned(model, generate="only", **asked)
    assert entry.refusal is None
    assert entry.case.dims == {}
    assert shapes_of(entry)["attention_mask"] == (1, 4)
    # Whoever sets it asks for inferences of that size.
    inferences = planned(model, **asked)
    assert inferences
    assert all(other.case.generation is None for other in inferences)
    assert {other.case.dims[name] for other in inferences} == {5, 6}


def test_that_such_a_size_has_no_effect_is_noted() -> None:
    model = decoder_model(("b", 2, "p", 8), (0, 2, 0, 8))
    request = PlanRequest(models=("m",), dims={"p": (5,)}, generate="only")
    assert len(list(configuration_notes([model], request))) == 1
    for other in (replace(request, dims={"b": (2,)}), replace(request, generate="auto")):
        assert list(configuration_notes([model], other)) == []
