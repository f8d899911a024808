"""``genai_config.json`` beside a model: what it tells, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.model import Model
from pytest_ortbench.models.genai_config import read_genai_config
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from tests.generation.folders import TINY, change_config, end_token, write_folder
from tests.refused import refused

CONFIG = "genai_config.json"


def only(folder: Path, spec: str = "llm") -> Model | BrokenModel:
    (found,) = resolve_models([spec], root=folder)
    return found


def decoder_at(folder: Path, spec: str = "llm") -> Decoder:
    found = only(folder, spec)
    assert isinstance(found, Model)
    assert found.decoder is not None
    return found.decoder


def error_of(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_genai_config(folder)
    assert caught.value.place == str(folder / CONFIG)
    return caught.value.message


@pytest.mark.live
@pytest.mark.parametrize("spec", ["llm", "llm/", "llm/genai_config.json"])
def test_a_folder_is_its_decoder_and_is_called_as_the_folder(spec: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    (folder / "other.onnx").write_bytes(b"")
    found = only(tmp_path, spec)
    assert isinstance(found, Model)
    assert (found.name, found.path) == ("llm", str(folder / "model.onnx"))
    decoder = found.decoder
    assert decoder is not None
    assert decoder.folder == str(folder)
    assert (decoder.context, decoder.end_tokens) == (TINY.context, (end_token(TINY),))
    assert decoder.shares_buffers
    assert found.notes == ()


@pytest.mark.live
def test_a_file_of_the_folder_is_called_as_the_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    found = only(tmp_path, "llm/model.onnx")
    assert found.name == "llm/model"
    assert decoder_at(tmp_path, "llm/model.onnx").folder == str(folder)
    (folder / CONFIG).unlink()
    alone = decoder_at(tmp_path, "llm/model.onnx")
    assert (alone.folder, alone.end_tokens, alone.is_complete) == ("", (), True)


def test_a_folder_without_it_is_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "llm").mkdir()
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / "llm" / name).write_bytes(b"")
    found = resolve_models(["llm"], root=tmp_path)
    assert [model.name for model in found] == ["llm/a", "llm/b"]


def test_names_of_folders(tmp_path: Path) -> None:
    for place in ("llm", "models/llm", "bert_tiny"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / CONFIG).write_text("{}")
    assert [only(tmp_path, place).name for place in ("llm", "models/llm")] == ["llm", "models/llm"]
    # Names that another path or a model that ships has.
    assert only(tmp_path, "bert_tiny").name == "bert_tiny/"
    (tmp_path / "llm.onnx").write_bytes(b"")
    assert only(tmp_path, "llm").name == "llm/"
    here = only(tmp_path / "models" / "llm", ".")
    assert here.name == "llm"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ("JSON",)),
        ("[]", ("object",)),
        ("{}", ("'model'",)),
        ('{"model": {}}', ("'decoder'",)),
        ('{"model": {"decoder": {}}}', ("model.decoder.filename",)),
        ('{"model": {"decoder": {"filename": 3}}}', ("model.decoder.filename", "3")),
        ('{"model": {"decoder": {"filename": ["a.onnx"]}}}', ("model.decoder.filename", "a.onnx")),
        ('{"model": {"decoder": {"filename": null}}}', ("model.decoder.filename",)),
        ('{"model": {"decoder": {"filename": "a\\u0000b"}}}', ("model.decoder.filename",)),
        ('{"model": null}', ("'model'",)),
        ('{"model": {"decoder": null}}', ("'decoder'",)),
        ('{"model": {"decoder": {"filename": "gone.onnx"}}}', ("'gone.onnx'",)),
        ('{"model": {"decoder": {"pipeline": []}}}', ("pipeline",)),
    ],
)
def test_what_is_wrong_with_it(content: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(content)
    message = error_of(tmp_path)
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("decoder", "files", "value", "hint"),
    [
        ('{"filename": ""}', (), "empty", '"filename": "model.onnx"'),
        ("{}", ("b.onnx",), "missing", '"filename": "b.onnx"'),
        ("{}", ("b.onnx", "a.onnx"), "missing", "This folder has a.onnx, b.onnx"),
        ('{"filename": "modle.onnx"}', ("model.onnx",), "'modle.onnx'", "'model.onnx'"),
        ('{"filename": "x.onnx"}', ("decoder.onnx",), "'x.onnx'", "This folder has decoder.onnx"),
        ("3", (), "'decoder' in the section 'model' is 3", "builder"),
    ],
)
def test_the_next_step_is_that_of_the_fault(
    decoder: str, files: tuple[str, ...], value: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / CONFIG).write_text(f'{{"model": {{"decoder": {decoder}}}}}')
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with refused(ModelError, value, place=str(tmp_path / CONFIG), hint=hint):
        read_genai_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "files", "hint"),
    [
        ("[]", (), "whole folder"),
        ("[]", ("m.onnx",), "m.onnx"),
        ('{"model": {"encoder": {}}}', ("m.onnx",), "one by one"),
        ('{"model": {"encoder": {}}}', (), "builder"),
    ],
)
def test_files_beside_it_decide_the_next_step(
    content: str, files: tuple[str, ...], hint: str, tmp_path: Path
) -> None:
    (tmp_path / CONFIG).write_text(content)
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with refused(ModelError, place=str(tmp_path / CONFIG), hint=hint):
        read_genai_config(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_another_encoding_is_called_so(encoding: str, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_bytes('{"model": {"é": {}}}'.encode(encoding))
    assert "UTF-8" in error_of(tmp_path)


def test_a_wrong_one_is_a_model_that_can_not_be_had(tmp_path: Path) -> None:
    folder = tmp_path / "llm"
    folder.mkdir()
    (folder / CONFIG).write_text('{"model": {"decoder": {"filename": "gone.onnx"}}}')
    found = only(tmp_path)
    assert isinstance(found, BrokenModel)
    assert (found.name, found.path) == ("llm", str(folder / CONFIG))


@pytest.mark.live
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda decoder: decoder["inputs"].update(input_ids="tokens"), "'tokens'"),
        (lambda decoder: decoder["outputs"].update(logits="scores"), "'scores'"),
        (lambda decoder: decoder["inputs"].update(past_key_names="past.%d.k"), "'past.0.k'"),
        (lambda decoder: decoder["outputs"].update(present_value_names="new.%d"), "'new.%d'"),
        (lambda decoder: decoder["outputs"].update(present_value_names="new.%d"), "'new.0'"),
    ],
)
def test_names_that_the_decoder_lacks(
    change: Callable[[dict[str, Any]], object], name: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "llm")
    change_config(folder, lambda content: change(content["model"]["decoder"]))
    found = only(tmp_path)
    assert isinstance(found, BrokenModel)
    assert name in found.error.message


@pytest.mark.live
def test_names_of_caches_that_are_near_are_entries_for_each_layer(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    rename(folder / "model.onnx", {"present.": "presents."})

    def without(content: dict[str, Any]) -> None:
        for key in ("present_key_names", "present_value_names"):
            content["model"]["decoder"]["outputs"].pop(key, None)

    change_config(folder, without)
    found = only(tmp_path)
    assert isinstance(found, BrokenModel)
    entries = found.error.hint.removeprefix("Write ").partition(" into ")[0]
    assert json.loads(f"{{{entries}}}") == {
        "present_key_names": "presents.%d.key",
        "present_value_names": "presents.%d.value",
    }


@pytest.mark.live
def test_what_it_tells_beside_a_file_with_other_names(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    rename(folder / "model.onnx", {"input_ids": "tokens", "logits": "scores", "present.": "new."})

    def told(content: dict[str, Any]) -> None:
        decoder = content["model"]["decoder"]
        decoder["inputs"]["input_ids"] = "tokens"
        decoder["outputs"] = {
            "logits": "scores",
            "present_key_names": "new.%d.key",
            "present_value_names": "new.%d.value",
        }
        content["model"]["eos_token_id"] = [3, 5, 1_000_000, -1]

    change_config(folder, told)
    decoder = decoder_at(tmp_path)
    assert (decoder.ids, decoder.logits) == ("tokens", "scores")
    assert [tensor.present for tensor in decoder.cache][:2] == ["new.0.key", "new.0.value"]
    assert decoder.end_tokens == (3, 5)


def rename(file: Path, names: dict[str, str]) -> None:
    import onnx

    proto = onnx.load(file)
    for node in proto.graph.node:
        for part in (node.input, node.output):
            for index, name in enumerate(part):
                part[index] = renamed(name, names)
    for value in (*proto.graph.input, *proto.graph.output):
        value.name = renamed(value.name, names)
    onnx.save(proto, file)


def renamed(name: str, names: dict[str, str]) -> str:
    for before, after in names.items():
        if name == before or (before.endswith(".") and name.startswith(before)):
            return after + name[len(before) :]
    return name


@pytest.mark.live
def test_notes_of_what_is_missing_beside_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    (folder / "tokenizer.json").unlink()
    found = only(tmp_path)
    assert isinstance(found, Model)
    assert len(found.notes) == 1
    assert "tokenizer" in found.notes[0]


@pytest.mark.live
def test_a_wrong_one_beside_a_named_file_is_a_note(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    (folder / CONFIG).write_text("nothing")
    found = only(tmp_path, "llm/model.onnx")
    assert isinstance(found, Model)
    assert found.decoder is not None
    assert CONFIG in found.notes[0]


@pytest.mark.live
def test_end_tokens_of_a_framework(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "llm")
    (folder / CONFIG).unlink()
    config = {"eos_token_id": 7, "max_position_embeddings": 100}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [8, 9]}))
    decoder = decoder_at(tmp_path, "llm/model.onnx")
    assert decoder.end_tokens == (8, 9)
    assert (decoder.context, decoder.context_from) == (100, "config.json")


def test_a_model_of_several_parts_is_its_files(tmp_path: Path) -> None:
    for name in ("encoder_fp32.onnx", "decoder_fp32.onnx", "other.onnx"):
        (tmp_path / name).write_bytes(b"")
    parts = {part: {"filename": f"{part}_fp32.onnx"} for part in ("encoder", "decoder")}
    (tmp_path / CONFIG).write_text(json.dumps({"model": {"type": "whisper", **parts}}))
    found = resolve_models(["."], root=tmp_path)
    assert [model.name for model in found] == ["encoder_fp32", "decoder_fp32"]
