"""Folders of transformers: which is beside an ONNX file, and which is not loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ortbench.models.transformers_folder import (
    exported_in,
    folder_at,
    folder_beside,
    is_saved_model,
)

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
INDEX = "model.safetensors.index.json"


def saved(folder: Path, config: object = CONFIG, weights: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / weights).write_bytes(b"weights")
    return folder


def test_what_is_read_of_a_folder_is_its_small_files_and_its_weights(tmp_path: Path) -> None:
    folder = saved(tmp_path / "llama")
    for name in ("tokenizer.json", "chat_template.jinja", "model.onnx", "genai_config.json"):
        (folder / name).write_text("{}")
    found = folder_at(folder)
    assert not found.refusal
    assert {file.name for file in found.files} == {
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "model.safetensors",
    }


def test_the_digest_follows_the_weights(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    before = folder_at(folder).source()
    assert (before.framework, before.library, before.path) == (
        "torch",
        "transformers",
        str(tmp_path),
    )
    (folder / "model.safetensors").write_bytes(b"others!")
    after = folder_at(folder).source()
    assert after.digest != before.digest
    assert after.files == before.files


@pytest.mark.parametrize(
    ("config", "weights", "is_right_folder"),
    [
        ({}, "model.safetensors", False),
        ({"architectures": []}, "model.safetensors", False),
        ({**CONFIG, "is_encoder_decoder": True}, "model.safetensors", True),
        (CONFIG, "pytorch_model.bin", True),
        (CONFIG, "adapter_model.safetensors", False),
    ],
)
def test_what_is_no_decoder_with_safetensors_is_not_loaded(
    tmp_path: Path, config: object, weights: str, is_right_folder: bool
) -> None:
    found = folder_at(saved(tmp_path, config, weights))
    assert found.refusal
    assert not found.files
    # Nobody is told to name another folder where this is the one.
    assert bool(found.remedy) is is_right_folder


@pytest.mark.parametrize(
    ("names", "is_whole"),
    [
        (["a.safetensors", "b.safetensors"], True),
        (["a.safetensors", "c.safetensors"], False),
        (["../a.safetensors"], False),
        ([], False),
    ],
)
def test_weights_in_parts_are_all_there_and_in_the_folder(
    tmp_path: Path, names: list[str], is_whole: bool
) -> None:
    saved(tmp_path, weights="a.safetensors")
    (tmp_path / "b.safetensors").write_bytes(b"b")
    index = {"weight_map": {f"layer.{number}": name for number, name in enumerate(names)}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    found = folder_at(tmp_path)
    assert bool(found.refusal) is not is_whole
    if is_whole:
        assert {file.name for file in found.files} == {"config.json", INDEX, *names}


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
def test_the_folder_of_a_file_is_its_own_or_that_above_onnx(tmp_path: Path, place: str) -> None:
    saved(tmp_path / "llama")
    found = folder_beside(tmp_path / "llama" / place)
    assert found is not None
    assert found.path == tmp_path / "llama"


def test_no_other_folder_is_one(tmp_path: Path) -> None:
    saved(tmp_path)
    assert folder_beside(tmp_path / "other" / "model.onnx") is None
    assert folder_beside(tmp_path / "onnx" / "int4" / "model.onnx") is None


def test_a_folder_of_pickled_weights_beside_a_file_says_so(tmp_path: Path) -> None:
    saved(tmp_path, weights="pytorch_model.bin")
    found = folder_beside(tmp_path / "model.onnx")
    assert found is not None
    assert found.refusal


@pytest.mark.parametrize(
    ("config", "is_one"),
    [
        (CONFIG, True),
        ({"model_type": "bert"}, True),
        ({"model_type": 3}, False),
        ({"name": "a web site"}, False),
        ([], False),
    ],
)
def test_a_configuration_of_something_else_makes_no_folder_of_transformers(
    tmp_path: Path, config: object, is_one: bool
) -> None:
    assert is_saved_model(saved(tmp_path, config)) is is_one


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["onnx/model.onnx", "onnx/model_fp16.onnx", "model.onnx"], "onnx/model.onnx"),
        (["onnx/net.onnx"], "onnx/net.onnx"),
        (["net.onnx"], "net.onnx"),
        (["onnx/genai_config.json", "onnx/model.onnx"], "onnx/genai_config.json"),
        (["onnx/encoder_model.onnx", "onnx/decoder_model.onnx", "model.onnx"], ""),
        (["onnx/deep/model.onnx"], ""),
        ([], ""),
    ],
)
def test_the_file_that_stands_for_a_folder_is_the_only_one_or_the_main_one(
    tmp_path: Path, files: list[str], expected: str
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"")
    assert exported_in(tmp_path) == (tmp_path / expected if expected else None)
