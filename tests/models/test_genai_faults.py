"""Values of a ``genai_config.json`` that break its rules, or that the graph contradicts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.generation import CacheTensor, ConfigFault, Decoder, Generation
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.genai_config import read_genai_config
from pytest_ortbench.models.genai_faults import config_faults
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.decoder_notes import configuration_notes
from pytest_ortbench.planning.engines import engine_refusal
from pytest_ortbench.planning.request import PlanRequest
from tests.generation.folders import TINY, change_config, end_token, genai_config, write_folder

PAST = "past_key_values.0.key"
SHAPE: tuple[int | str, ...] = ("batch_size", TINY.key_heads, "past_sequence_length", 64)
#: Takes the key away.
GONE = ...


def decoder(shape: tuple[int, ...] = (0, TINY.key_heads, 0, 64)) -> Decoder:
    cache = CacheTensor(past=PAST, present="present.0.key", type="tensor(float)", shape=shape)
    return Decoder(
        ids="input_ids", logits="logits", vocabulary=TINY.vocabulary, cache=(cache,), folder="here"
    )


def faults_in(
    folder: Path, content: object, declared: tuple[int | str, ...] = SHAPE, mark: str = ""
) -> tuple[ConfigFault, ...]:
    (folder / "model.onnx").write_bytes(b"")
    (folder / "genai_config.json").write_text(mark + json.dumps(content), encoding="utf-8")
    inputs = [TensorInfo(name=PAST, type="tensor(float)", shape=declared)]
    return config_faults(read_genai_config(folder), decoder(), inputs)


def changed(key: str, value: object) -> dict[str, Any]:
    content = copy.deepcopy(genai_config(TINY))
    *sections, name = key.split(".")
    section = content
    for part in sections:
        section = section[part]
    if value is GONE:
        section.pop(name, None)
    else:
        section[name] = value
    return content


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.vocab_size", 100),
        ("model.vocab_size", "512"),
        ("model.vocab_size", -3),
        ("model.vocab_size", 0),
        ("model.vocab_size", None),
        ("model.vocab_size", GONE),
        ("model.vocab_size", 512.5),
        ("model.vocab_size", True),
        ("model.vocab_size", [512]),
        ("model.context_length", -5),
        ("model.context_length", "long"),
        ("model.context_length", 10**12),
        ("model.context_length", 1e400),
        ("model.context_length", GONE),
        ("model.eos_token_id", 512),
        ("model.eos_token_id", -1),
        ("model.eos_token_id", "2"),
        ("model.eos_token_id", None),
        ("model.eos_token_id", [2, 600]),
        ("model.eos_token_id", [[2]]),
        ("model.eos_token_id", [2, None]),
        ("model.pad_token_id", "0"),
        ("model.bos_token_id", None),
        ("model.type", 5),
        ("model.type", GONE),
        ("model.decoder.head_size", -1),
        ("model.decoder.head_size", 10**15),
        ("model.decoder.num_key_value_heads", "2"),
        ("model.decoder.num_hidden_layers", 2.5),
        ("model.decoder.num_hidden_layers", None),
        ("model.decoder.session_options", None),
        ("model.decoder.session_options.provider_options", None),
        ("model.decoder.inputs", None),
        ("model.decoder.inputs", "ids"),
        ("model.decoder.inputs.input_ids", None),
        ("model.decoder.inputs.attention_mask", 3),
        ("model.decoder.inputs.past_key_names", "past.key"),
        ("model.decoder.inputs.past_value_names", "past.%d.%d"),
        ("model.decoder.outputs.present_key_names", "present.%s"),
        ("search.top_k", None),
        ("search.max_length", "long"),
        ("search.temperature", float("nan")),
        ("search.do_sample", 0),
        ("search.top_p", [1.0]),
    ],
)
def test_what_onnxruntime_genai_does_not_take(key: str, value: object, tmp_path: Path) -> None:
    (fault,) = faults_in(tmp_path, changed(key, value))
    assert fault.stops_genai
    assert key in fault.told
    assert fault.remedy
    refusal = engine_refusal(
        Decoder(ids="i", logits="l", vocabulary=9, folder="x", config_faults=(fault,)),
        Generation(engine="genai", prompt_tokens=1, new_tokens=2),
        1,
    )
    assert refusal is not None
    assert fault.told in refusal.message


@pytest.mark.parametrize(
    ("key", "may_go"), [("model.vocab_size", False), ("model.decoder.head_size", True)]
)
def test_a_key_that_is_needed_is_not_to_be_removed(key: str, may_go: bool, tmp_path: Path) -> None:
    (fault,) = faults_in(tmp_path, changed(key, "many"))
    assert ("remove" in fault.remedy) == may_go


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.vocab_size", 512.0),
        ("model.eos_token_id", []),
        ("model.eos_token_id", GONE),
        ("model.eos_token_id", [2.0, 3]),
        ("model.pad_token_id", -7),
        ("model.bos_token_id", 10**6),
        ("model.decoder.head_size", 0),
        ("model.decoder.head_size", GONE),
        ("model.decoder.num_hidden_layers", 7),
        ("model.decoder.inputs", GONE),
        ("search", None),
        ("search", GONE),
        ("search.temperature", -1),
        ("other", None),
    ],
)
def test_what_it_takes_is_no_fault(key: str, value: object, tmp_path: Path) -> None:
    assert faults_in(tmp_path, changed(key, value)) == ()


@pytest.mark.parametrize("name", ["head_size", "num_key_value_heads"])
def test_sizes_that_the_graph_declares_win(name: str, tmp_path: Path) -> None:
    content = changed(f"model.decoder.{name}", 77)
    (fault,) = faults_in(tmp_path, content)
    assert not fault.stops_genai
    # Where the graph has a symbol, onnxruntime-genai goes by its configuration.
    (fault,) = faults_in(tmp_path, content, ("b", "heads", "past", "size"))
    assert fault.stops_genai


@pytest.mark.parametrize("value", [0, GONE])
def test_a_size_that_the_graph_leaves_open_must_be_told(value: object, tmp_path: Path) -> None:
    content = changed("model.decoder.head_size", value)
    (fault,) = faults_in(tmp_path, content, ("b", TINY.key_heads, "past", "size"))
    assert fault.stops_genai
    assert faults_in(tmp_path, content) == ()


def test_negative_sizes_that_nobody_needs_are_told(tmp_path: Path) -> None:
    (fault,) = faults_in(tmp_path, changed("model.decoder.hidden_size", -5))
    assert not fault.stops_genai


def test_a_byte_order_mark_is_read_and_told(tmp_path: Path) -> None:
    (fault,) = faults_in(tmp_path, genai_config(TINY), mark="\ufeff")
    assert fault.stops_genai


def test_what_stops_comes_first_and_all_is_told(tmp_path: Path) -> None:
    content = changed("model.decoder.head_size", 77)
    content["model"] |= {"vocab_size": 100, "eos_token_id": 9_999}
    faults = faults_in(tmp_path, content)
    assert [fault.stops_genai for fault in faults] == [True, True, False]


@pytest.mark.live
def test_nothing_is_lost_of_a_folder_whose_values_are_odd(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")

    def odd(content: dict[str, Any]) -> None:
        content["model"] |= {"vocab_size": "512", "eos_token_id": [end_token(TINY), 9_999]}
        content["model"]["decoder"]["head_size"] = 77
        content["model"]["decoder"]["inputs"]["past_key_names"] = "past.key"

    change_config(folder, odd)
    (model,) = resolve_models(["llm"], root=tmp_path)
    assert isinstance(model, Model)
    assert model.decoder is not None
    assert model.decoder.is_complete
    assert model.decoder.vocabulary == TINY.vocabulary
    assert model.decoder.end_tokens == (end_token(TINY),)
    assert len(model.decoder.config_faults) == 4
    assert all(fault.told in model.notes for fault in model.decoder.config_faults)
    # What a refused row says is not said twice.
    assert len(list(configuration_notes([model], PlanRequest(models=())))) == 1
    alone = PlanRequest(models=(), engines=("session",))
    assert len(list(configuration_notes([model], alone))) == 4
    assert list(configuration_notes([model], PlanRequest(models=(), generate="off"))) == []


@pytest.mark.live
def test_one_that_can_not_be_read_is_told_beside_its_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    change_config(folder, lambda content: content["model"]["decoder"].update(filename=5))
    (model,) = resolve_models(["llm/model.onnx"], root=tmp_path)
    assert isinstance(model, Model)
    assert len(list(configuration_notes([model], PlanRequest(models=())))) == 1


@pytest.mark.live
def test_a_run_tells_that_there_is_no_tokenizer(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    asked = PlanRequest(models=())
    (complete,) = resolve_models(["llm"], root=tmp_path)
    (folder / "tokenizer.json").unlink()
    (without,) = resolve_models(["llm"], root=tmp_path)
    assert isinstance(complete, Model)
    assert isinstance(without, Model)
    assert list(configuration_notes([complete], asked)) == []
    (note,) = configuration_notes([without], asked)
    assert note.text.endswith(without.notes[0])
    assert without.decoder is not None
    assert without.decoder.config_faults == ()
