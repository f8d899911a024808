"""Sizes that files beside a model and its metadata tell."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.models.told_sizes import told_sizes
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.models.graphs import INT64, model, node, value, weight


def _told(folder: Path, metadata: dict[str, str] | None = None) -> dict[str, int]:
    found = told_sizes(folder / "model.onnx", metadata or {})
    return {kind: told.size for kind, told in found.items()}


def _write(folder: Path, name: str, content: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "content", "sizes"),
    [
        (
            "preprocessor_config.json",
            {"size": {"height": 384, "width": 512}},
            {"height": 384, "width": 512},
        ),
        (
            "preprocessor_config.json",
            {"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": True},
            {"height": 224, "width": 224},
        ),
        ("preprocessor_config.json", {"size": 448}, {"height": 448, "width": 448}),
        (
            "preprocessor_config.json",
            {"sampling_rate": 24000, "feature_size": 80, "nb_max_frames": 3000},
            {"samples": 24000, "mels": 80, "frames": 3000},
        ),
        ("config.json", {"image_size": [320, 480]}, {"height": 320, "width": 480}),
        (
            "config.json",
            {"vision_config": {"image_size": 336, "num_channels": 1}},
            {"height": 336, "width": 336, "channels": 1},
        ),
        ("config.json", {"max_position_embeddings": 77}, {"longest": 77}),
        ("config.json", {"num_frames": 8}, {"frames of a video": 8}),
        ("tokenizer_config.json", {"model_max_length": 64}, {"longest": 64}),
        ("tokenizer_config.json", {"model_max_length": 10**30}, {}),
        ("config.json", {"image_size": -3, "num_mel_bins": "many"}, {}),
        ("config.json", ["no object"], {}),
    ],
)
def test_what_files_tell(name: str, content: object, sizes: dict[str, int], tmp_path: Path) -> None:
    _write(tmp_path, name, content)
    assert _told(tmp_path) == sizes
    assert {told.why for told in told_sizes(tmp_path / "m.onnx", {}).values()} <= {name}


def test_files_above_a_folder_called_onnx_count_and_metadata_goes_first(tmp_path: Path) -> None:
    _write(tmp_path, "config.json", {"image_size": 336})
    _write(tmp_path / "onnx", "other.json", {})
    _write(tmp_path / "weights", "other.json", {})
    assert _told(tmp_path / "onnx") == {"height": 336, "width": 336}
    assert _told(tmp_path / "weights") == {}
    assert _told(tmp_path / "onnx", {"imgsz": "[640, 480]"}) == {"height": 640, "width": 480}


def test_damaged_files_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff{")
    assert _told(tmp_path, {"imgsz": "[640"}) == {}


def _fed(proto: onnx.ModelProto, folder: Path) -> tuple[InputSpec, ...]:
    onnx.save(proto, folder / "m.onnx")
    return resolve_inputs(
        read_model(folder / "m.onnx", name="m", source="file"), batch=None, dims={}
    )


@pytest.mark.live
def test_images_and_texts_are_fed_at_the_sizes_that_are_told(tmp_path: Path) -> None:
    _write(tmp_path, "preprocessor_config.json", {"size": {"height": 384, "width": 512}})
    _write(tmp_path, "tokenizer_config.json", {"model_max_length": 40})
    proto = model(
        [
            node("GlobalAveragePool", ["x"], ["p"]),
            node("Gather", ["words", "ids"], ["e"]),
            node("ReduceMean", ["e"], ["m"], axes=[1, 2], keepdims=0),
        ],
        [value("x", ["N", 3, None, None]), value("ids", ["N", "seq"], INT64)],
        [value("p", None), value("m", None)],
        [weight("words", 50, 4)],
    )
    image, text = _fed(proto, tmp_path)
    assert (image.shape, text.shape) == ((1, 3, 384, 512), (1, 40))
    assert [size.origin for size in image.resolved] == ["batch", "default", "default"]
    assert "preprocessor_config.json" in image.sizes_text
    assert "tokenizer_config.json" in text.sizes_text
