"""Inputs that belong together, and what shows it: a prompt and a step, clicks, frames, patches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, ValueInfoProto

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.planning.default_sizes import Place, default_size
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.models.graphs import (
    FLOAT,
    INT64,
    Sizes,
    constant,
    hint_of,
    input_of,
    model,
    node,
    read,
    run,
    value,
    weight,
)

pytestmark = pytest.mark.live  # shapes are inferred in a process


def _identities(*inputs: ValueInfoProto) -> ModelProto:
    nodes = [node("Identity", [info.name], [f"{info.name}_out"]) for info in inputs]
    outputs = [value(f"{info.name}_out", None, info.type.tensor_type.elem_type) for info in inputs]
    return model(nodes, inputs, outputs)


def _fed(proto: ModelProto, folder: Path) -> dict[str, InputSpec]:
    return {spec.name: spec for spec in resolve_inputs(read(proto, folder), batch=None, dims={})}


def _shapes(proto: ModelProto, folder: Path) -> dict[str, tuple[int, ...]]:
    return {name: spec.shape for name, spec in _fed(proto, folder).items()}


def _numbers(proto: ModelProto, folder: Path, name: str) -> list[Any]:
    feeds, _ = run(read(proto, folder), batch=None)
    numbers: list[Any] = feeds[name].tolist()
    return numbers


def _filtered(shape: Sizes, window: Sequence[int], name: str = "x") -> ModelProto:
    return model(
        [node("Conv", [name, "w"], ["y"])],
        [value(name, shape)],
        [value("y", None)],
        [weight("w", *window)],
    )


def test_a_diffusion_step_is_fed_a_latent_picture_and_a_prompt(tmp_path: Path) -> None:
    proto = model(
        [
            node("Conv", ["sample", "w"], ["y"]),
            node("Identity", ["timestep"], ["t"]),
            node("Identity", ["encoder_hidden_states"], ["e"]),
        ],
        [
            value("sample", ["b", "channels", "height", "width"]),
            value("timestep", ["b"]),
            value("encoder_hidden_states", ["b", "sequence", 768]),
        ],
        [value(name, None) for name in "yte"],
        [weight("w", 4, 4, 3, 3)],
    )
    assert _shapes(proto, tmp_path) == {
        "sample": (1, 4, 64, 64),
        "timestep": (1,),
        "encoder_hidden_states": (1, 77, 768),
    }


@pytest.mark.parametrize(
    ("name", "window", "shape", "expected"),
    [
        ("latent_sample", (3, 4, 3, 3), ("b", "c", "height_latent", "width_latent"), (64, 64)),
        # Pixels, and features that no diffusion starts from.
        ("sample", (4, 3, 3, 3), ("b", "c", "height", "width"), (224, 224)),
        ("features", (4, 4, 3, 3), ("b", 4, "height", "width"), (224, 224)),
    ],
)
def test_only_what_a_diffusion_starts_from_is_a_latent_picture(
    name: str,
    window: tuple[int, ...],
    shape: tuple[int | str, ...],
    expected: tuple[int, int],
    tmp_path: Path,
) -> None:
    assert _shapes(_filtered(shape, window, name), tmp_path)[name][2:] == expected


def test_clicks_on_a_picture_are_few(tmp_path: Path) -> None:
    proto = _identities(
        value("image_embeddings", [1, 256, 64, 64]),
        value("point_coords", ["num_labels", "num_points", 2]),
        value("point_labels", ["num_labels", "num_points"]),
        value("mask_input", [1, 1, 256, 256]),
        value("has_mask_input", [1]),
        value("orig_im_size", [2]),
    )
    shapes = _shapes(proto, tmp_path)
    assert (shapes["point_coords"], shapes["point_labels"]) == ((1, 2, 2), (1, 2))
    feeds, _ = run(read(proto, tmp_path), batch=None)
    assert feeds["point_labels"].tolist() == [[1, 1]]
    assert feeds["has_mask_input"].tolist() == [0]
    assert feeds["orig_im_size"].tolist() == [1024, 1024]


def test_key_points_with_descriptors_are_those_of_a_picture(tmp_path: Path) -> None:
    sides = [value(f"kpts{side}", [1, f"num_keypoints{side}", 2]) for side in (0, 1)]
    descriptors = [value(f"desc{side}", [1, f"num_keypoints{side}", 256]) for side in (0, 1)]
    shapes = _shapes(_identities(*sides, *descriptors), tmp_path)
    assert {shape[1] for shape in shapes.values()} == {512}


@pytest.mark.parametrize("patches", ["num_patches", "patches"])
def test_a_grid_of_patches_has_as_many_as_there_are(patches: str, tmp_path: Path) -> None:
    pixels, grid = value("pixel_values", [patches, 1176]), value("image_grid_thw", [1, 3], INT64)
    feeds, _ = run(read(_identities(pixels, grid), tmp_path), batch=None)
    frames, rows, columns = feeds["image_grid_thw"][0].tolist()
    assert frames * rows * columns == len(feeds["pixel_values"]) == 256
    assert (frames, rows) == (1, 16)


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("orig_target_sizes", INT64, ["N", 2]),
        ("im_shape", FLOAT, [None, 2]),
        ("target_size", INT64, [2]),
        ("image_size", FLOAT, [1, 2]),
    ],
)
def test_the_size_of_a_picture_is_that_of_the_picture(
    name: str, kind: int, shape: list[int | str | None], tmp_path: Path
) -> None:
    picture, size = value("image", ["N", 3, 320, 480]), value(name, shape, kind)
    # A sum over the rows must not make a count of them.
    nodes = [
        node("ReduceSum", [name], ["sum"], keepdims=0),
        node("Conv", ["image", "w"], ["y"]),
    ]
    outputs = [value("sum", None, kind), value("y", None)]
    proto = model(nodes, [picture, size], outputs, [weight("w", 4, 3, 3, 3)])
    numbers = _numbers(proto, tmp_path, name)
    sides = [480, 320] if name == "orig_target_sizes" else [320, 480]
    assert (numbers[0] if isinstance(numbers[0], list) else numbers) == sides
    assert _shapes(proto, tmp_path)[name][0] in (1, 2)


def test_what_a_result_is_resized_to_follows_the_picture(tmp_path: Path) -> None:
    picture, size = value("image", [1, 3, 96, 64]), value("target_size", [2], INT64)
    nodes = [
        node("Concat", ["first", "target_size"], ["sizes"], axis=0),
        node("Resize", ["image", "", "", "sizes"], ["y"]),
    ]
    first = constant("first", [1, 3])
    _, (output,) = run(read(model(nodes, [picture, size], [value("y", None)], [first]), tmp_path))
    assert output.shape == (1, 3, 96, 64)


@pytest.mark.parametrize("axes", [("c", "num_frames"), ("num_frames", "c")])
def test_a_video_has_few_frames_and_pixels(axes: tuple[str, str], tmp_path: Path) -> None:
    front = [] if axes[0] == "c" else [node("Transpose", ["v"], ["t"], perm=[0, 2, 1, 3, 4])]
    proto = model(
        [*front, node("Conv", ["t" if front else "v", "w"], ["y"])],
        [value("v", ["b", *axes, 224, 224])],
        [value("y", None)],
        [weight("w", 4, 3, 2, 16, 16)],
    )
    (spec,) = _fed(proto, tmp_path).values()
    assert dict(zip(("b", *axes), spec.shape, strict=False)) == {"b": 1, "c": 3, "num_frames": 16}
    assert (spec.hint.kind, spec.hint.low, spec.hint.high) == ("uniform", -1, 1)


def test_channels_that_only_weights_fix_make_a_picture(tmp_path: Path) -> None:
    proto = _filtered(["b", "num_channels", "height", "width"], (8, 3, 16, 16), "pixel_values")
    hint = hint_of(read(proto, tmp_path), "pixel_values")
    assert (hint.kind, hint.low, hint.high) == ("uniform", -1, 1)


def test_a_detector_whose_channels_only_weights_fix_is_fed_as_one(tmp_path: Path) -> None:
    proto = model(
        [
            node("Conv", ["pixel_values", "w"], ["c"], strides=[8, 8], pads=[1, 1, 1, 1]),
            node("Reshape", ["c", "flat"], ["y"]),
        ],
        [value("pixel_values", ["b", "num_channels", "height", "width"])],
        [value("y", None)],
        [weight("w", 8, 3, 3, 3), constant("flat", [0, 8, -1])],
    )
    assert _shapes(proto, tmp_path)["pixel_values"] == (1, 3, 640, 640)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mask", ("uniform", 0, 1)),
        ("trimap", ("uniform", 0, 1)),
        ("noise", ("normal", 0, 1)),
    ],
)
def test_a_mask_over_a_picture_lies_between_0_and_1(
    name: str, expected: tuple[str, float, float], tmp_path: Path
) -> None:
    inputs = value("image", ["b", 3, "h", "w"]), value(name, ["b", 1, "h", "w"])
    hint = hint_of(read(_identities(*inputs), tmp_path), name)
    assert (hint.kind, hint.low, hint.high) == expected


@pytest.mark.parametrize("shape", [[], [1]])
@pytest.mark.parametrize("op", ["Mul", "Div"])
def test_one_number_that_multiplies_changes_nothing(
    op: str, shape: list[int], tmp_path: Path
) -> None:
    proto = model(
        [node(op, ["x", "input.7"], ["y"])],
        [value("x", ["n", 8]), value("input.7", shape)],
        [value("y", None)],
    )
    assert set(_numbers(proto, tmp_path, "input.7") if shape else [1.0]) == {1.0}
    assert hint_of(read(proto, tmp_path), "input.7").choices == ("1",)


def test_one_number_that_is_all_there_is_gets_drawn(tmp_path: Path) -> None:
    proto = model([node("Mul", ["x", "s"], ["y"])], [value("x", [1]), value("s", [])],
                  [value("y", None)])  # fmt: skip
    assert {hint_of(read(proto, tmp_path), name).kind for name in "xs"} == {"normal"}


@pytest.mark.parametrize("name", ["pitch_shift", "shift", "f0_up_key"])
def test_a_shift_is_none(name: str, tmp_path: Path) -> None:
    proto = _identities(value("x", ["n", 8]), value(name, [1]))
    assert _numbers(proto, tmp_path, name) == [0.0]


def _positions(rows: int, *cache: ValueInfoProto) -> ModelProto:
    nodes = [
        node("Gather", ["words", "input_ids"], ["e"]),
        node("Gather", ["table", "position_ids"], ["p"]),
        node("Add", ["e", "p"], ["y"]),
        *(node("Identity", [info.name], [f"{info.name}_out"]) for info in cache),
    ]
    ids = [value(name, ["b", "seq"], INT64) for name in ("input_ids", "position_ids")]
    outputs = [value("y", None), *(value(f"{info.name}_out", None) for info in cache)]
    weights = [weight("words", 100, 4), weight("table", rows, 4)]
    return model(nodes, [*ids, *cache], outputs, weights)


def test_a_text_is_no_longer_than_its_table_of_positions(tmp_path: Path) -> None:
    assert _shapes(_positions(64), tmp_path)["input_ids"] == (1, 64)
    assert _shapes(_positions(512), tmp_path)["input_ids"] == (1, 128)


def test_a_cache_leaves_a_position_for_the_next_token(tmp_path: Path) -> None:
    past = value("past.key", ["b", 2, "past_len", 4])
    shapes = _shapes(_positions(64, past), tmp_path)
    assert (shapes["input_ids"], shapes["past.key"]) == ((1, 1), (1, 2, 63, 4))


@pytest.mark.parametrize(
    ("name", "shape", "symbol", "size"),
    [
        ("ecg", (1, 12, "samples"), "samples", 1_000),
        ("audio", (1, 2, "samples"), "samples", 16_000),
        ("x", (1, 1, "samples"), "samples", 16_000),
        ("input_values", ("b", "sequence_length"), "sequence_length", 16_000),
        ("input_values", ("b", 1024, "frames"), "frames", 100),
        ("input_features", ("b", 80, "encoder_sequence_length"), "encoder_sequence_length", 3_000),
        ("input_features", ("b", "sequence_length", 160), "sequence_length", 128),
        ("codes", ("b", "num_quantizers", "t"), "num_quantizers", 8),
        ("codes", ("nb_chunks", "b", 8, "t"), "nb_chunks", 1),
        ("grid", ("b", "oh", "ow", 2), "oh", 224),
    ],
)
def test_the_other_axes_say_what_a_name_means(
    name: str, shape: tuple[int | str, ...], symbol: str, size: int
) -> None:
    info = TensorInfo(name=name, type="tensor(float)", shape=shape)
    place = Place(info=info, shape=shape, axis=shape.index(symbol))
    assert default_size(symbol, [place])[0] == size


def test_bands_of_a_spectrum_are_no_sound(tmp_path: Path) -> None:
    for shape, kind in ((["b", 80, "t"], "normal"), (["b", 1, "t"], "uniform")):
        proto = _identities(value("audio_signal", shape))
        assert input_of(read(proto, tmp_path), "audio_signal").hint is not None
        assert hint_of(read(proto, tmp_path), "audio_signal").kind == kind
