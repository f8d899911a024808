"""The networks themselves: sizes, interfaces, and that they behave."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from _pytest.mark import ParameterSet
from numpy.typing import NDArray

from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.models.builders import BUILDERS, build
from pytest_ortbench.models.builders.graph_writer import BLOCK_OUTPUT, CONSTANT_PREFIX
from tests.generation.decoding import continued, difference

pytestmark = pytest.mark.live

Feeds: TypeAlias = dict[str, NDArray[np.generic]]
Built: TypeAlias = Callable[[str], Path]

#: Of the official implementations (and, for the others, counted by hand from their layers).
PARAMETERS = {
    "mobilenet_v2": 3_504_872,
    "resnet50": 25_557_032,
    "vit_b16": 86_567_656,
    "detector_n": 3_157_184,
    "unet": 1_942_628,
    "bert_tiny": 4_385_920,
    "bert_base": 109_482_240,
    "decoder": 5_518_848,
    "llm_15m": 2 * 8192 * 384 + 6 * (384 * (2 * 384 + 2 * 128 + 3 * 1024) + 2 * 384) + 384,
    "llm_125m": 2 * 32_000 * 768 + 12 * (768 * (2 * 768 + 2 * 256 + 3 * 2048) + 2 * 768) + 768,
    "llm_1b": 2 * 32_000 * 2048 + 22 * (2048 * (2 * 2048 + 2 * 256 + 3 * 5632) + 2 * 2048) + 2048,
    "llm_long": 2 * 4096 * 256 + 2 * (256 * (2 * 256 + 2 * 256 + 3 * 768) + 2 * 256) + 256,
    "speech_encoder": 2_485_760,
    "speech_decoder": 4_056_064,
    "translation_encoder": 2_743_296,
    "translation_decoder": 4_319_232,
    "lstm_tagger": 1_548_561,
    "gbdt": 200 * (63 + 64),
    "linear": 10 * 32 + 10,
    "canary": 64 * 64 * 9 + 2 * 64 + 28 * 28 * 192,
}

IMAGE = {"image": ("batch", 3, 224, 224)}
FREE_IMAGE = {"image": ("batch", 3, "height", "width")}
TEXT = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), ("batch", "seq"))
PROMPT: dict[str, tuple[int | str, ...]] = {
    "input_ids": ("batch_size", "sequence_length"),
    "attention_mask": ("batch_size", "total_sequence_length"),
}
CACHE = [f"{layer}.{kind}" for layer in range(4) for kind in ("key", "value")]


def _past(*, layers: int, heads: int) -> dict[str, tuple[int | str, ...]]:
    """The cache as onnxruntime-genai's builder declares it."""
    shape = ("batch_size", heads, "past_sequence_length", 64)
    return {
        f"past_key_values.{layer}.{kind}": shape
        for layer in range(layers)
        for kind in ("key", "value")
    }


def _present(*, layers: int, heads: int) -> dict[str, tuple[int | str, ...]]:
    """The cache that goes with it, longer by what was read."""
    shape = ("batch_size", heads, "total_sequence_length", 64)
    return {
        name.replace("past_key_values", "present"): shape
        for name in _past(layers=layers, heads=heads)
    }


def _caches(when: str, role: str, length: str) -> dict[str, tuple[int | str, ...]]:
    """A cache of the two networks for speech."""
    return {
        f"{when}_{kind}_{role}_{layer}": ("batch_size", 4, length, 64)
        for layer in range(2)
        for kind in ("key", "value")
    }


READ: tuple[int | str, ...] = ("batch_size", "encoder_sequence_length")


def _written(when: str, length: str) -> dict[str, tuple[int | str, ...]]:
    """The cache of the network that translates."""
    return {
        f"{when}.{layer}.decoder.{kind}": ("batch_size", 4, length, 64)
        for layer in range(2)
        for kind in ("key", "value")
    }


INPUTS: dict[str, dict[str, tuple[int | str, ...]]] = {
    "mobilenet_v2": IMAGE,
    "resnet50": IMAGE,
    "vit_b16": IMAGE,
    "detector_n": FREE_IMAGE,
    "unet": FREE_IMAGE,
    "bert_tiny": TEXT,
    "bert_base": TEXT,
    "decoder": {
        "input_ids": ("batch", "seq"),
        "attention_mask": ("batch", "past + seq"),
        **{f"past.{part}": ("batch", 4, "past", 64) for part in CACHE},
    },
    "llm_15m": {**PROMPT, **_past(layers=6, heads=2)},
    "llm_125m": {**PROMPT, **_past(layers=12, heads=4)},
    "llm_1b": {**PROMPT, **_past(layers=22, heads=4)},
    "llm_long": {**PROMPT, **_past(layers=2, heads=4)},
    "speech_encoder": {"audio_features": ("batch_size", 80, "num_frames")},
    "speech_decoder": {
        "input_ids": ("batch_size", "sequence_length"),
        **_caches("past", "self", "past_sequence_length"),
        **_caches("past", "cross", "encoder_sequence_length"),
    },
    "translation_encoder": dict.fromkeys(("input_ids", "attention_mask"), READ),
    "translation_decoder": {
        "input_ids": ("batch_size", "decoder_sequence_length"),
        "encoder_hidden_states": (*READ, 256),
        "encoder_attention_mask": READ,
        **_written("past_key_values", "past_decoder_sequence_length"),
    },
    "lstm_tagger": {"input_ids": ("batch", "seq")},
    "gbdt": {"features": ("batch", 32)},
    "linear": {"features": ("batch", 32)},
    "canary": {"input": (1, 64, 28, 28)},
}

OUTPUTS: dict[str, dict[str, tuple[int | str, ...]]] = {
    "mobilenet_v2": {"logits": ("batch", 1000)},
    "resnet50": {"logits": ("batch", 1000)},
    "vit_b16": {"logits": ("batch", 1000)},
    "detector_n": {"boxes": ("batch", "cells", 4), "scores": ("batch", "cells", 80)},
    "unet": {"logits": ("batch", 4, "height", "width")},
    "bert_tiny": {"last_hidden_state": ("batch", "seq", 128), "pooler_output": ("batch", 128)},
    "bert_base": {"last_hidden_state": ("batch", "seq", 768), "pooler_output": ("batch", 768)},
    "decoder": {
        "logits": ("batch", "seq", 8192),
        **{f"present.{part}": ("batch", 4, "past + seq", 64) for part in CACHE},
    },
    "llm_15m": {"logits": (*PROMPT["input_ids"], 8192), **_present(layers=6, heads=2)},
    "llm_125m": {"logits": (*PROMPT["input_ids"], 32_000), **_present(layers=12, heads=4)},
    "llm_1b": {"logits": (*PROMPT["input_ids"], 32_000), **_present(layers=22, heads=4)},
    "llm_long": {"logits": (*PROMPT["input_ids"], 4096), **_present(layers=2, heads=4)},
    "speech_encoder": {
        "hidden_states": ("batch_size", "num_frames / 2", 256),
        **_caches("present", "cross", "num_frames / 2"),
    },
    "speech_decoder": {
        "logits": ("batch_size", "sequence_length", 4096),
        **_caches("present", "self", "total_sequence_length"),
    },
    "translation_encoder": {"last_hidden_state": (*READ, 256)},
    "translation_decoder": {
        "logits": ("batch_size", "decoder_sequence_length", 4096),
        **_written("present", "past_decoder_sequence_length + decoder_sequence_length"),
    },
    "lstm_tagger": {"logits": ("batch", "seq", 17)},
    "gbdt": {"label": ("batch",), "probabilities": ("batch", 10)},
    "linear": {"label": ("batch",), "probabilities": ("batch", 10)},
    "canary": {"output": (64, 192)},
}

VOCABULARY = {
    "bert_tiny": 30522,
    "bert_base": 30522,
    "decoder": 8192,
    "llm_15m": 8192,
    "llm_125m": 32_000,
    "llm_1b": 32_000,
    "speech_decoder": 4096,
    "translation_encoder": 4096,
    "translation_decoder": 4096,
    "llm_long": 4096,
    "lstm_tagger": 10000,
}

#: Sizes to test at: small where the size is free, since one run proves as much as a long one.
SIZES = {
    "seq": 24,
    "past": 8,
    "past + seq": 32,
    "sequence_length": 32,
    "past_sequence_length": 0,
    "total_sequence_length": 32,
    "num_frames": 60,
    "encoder_sequence_length": 30,
    "decoder_sequence_length": 32,
    "past_decoder_sequence_length": 0,
    "height": 256,
    "width": 192,
}

#: Symbols that follow from others, or that every model has.
IMPLIED = {"batch", "batch_size", "past + seq", "total_sequence_length"}

#: Of half a gigabyte and more.
LARGE = {"llm_125m", "llm_1b"}

#: Those with operators of ONNX Runtime's own.
LANGUAGE = ("llm_15m", "llm_125m", "llm_1b", "llm_long", "speech_decoder", "translation_decoder")

#: Sets of operators beside ONNX's own.
OPSETS = {
    "gbdt": {"ai.onnx.ml": 3},
    "linear": {"ai.onnx.ml": 3},
    **{name: {"com.microsoft": 1} for name in LANGUAGE},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Builds a network once for all tests; the files (a gigabyte) are gone afterwards."""
    folder = tmp_path_factory.mktemp("builtin")
    yield functools.cache(lambda name: build(name, folder))
    for path in folder.iterdir():
        path.unlink()


def _feeds(name: str, batch: int, *, seed: int = 0, sizes: dict[str, int] | None = None) -> Feeds:
    rng = np.random.default_rng(seed)
    known = {**SIZES, **(sizes or {}), "batch": batch, "batch_size": batch}
    feeds: Feeds = {}
    for key, axes in INPUTS[name].items():
        shape = [known[axis] if isinstance(axis, str) else axis for axis in axes]
        if key == "input_ids":
            element = np.int32 if name == "speech_decoder" else np.int64
            feeds[key] = rng.integers(0, VOCABULARY[name], shape, dtype=element)
        elif key.endswith("attention_mask"):
            feeds[key] = np.ones(shape, dtype=np.int64)
        elif key == "token_type_ids":
            feeds[key] = rng.integers(0, 2, shape)
        else:
            feeds[key] = rng.standard_normal(shape).astype(np.float32)
    return feeds


def _session(model: Path | bytes, *, optimise: bool = True) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _run(session: ort.InferenceSession, feeds: Feeds) -> dict[str, NDArray[np.generic]]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _parameters(model: onnx.ModelProto) -> int:
    """Trainable elements: float initialisers that are neither constants, statistics nor tables."""
    count = sum(
        int(np.prod(tensor.dims))
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
        and not tensor.name.startswith(CONSTANT_PREFIX)
        and ".running_" not in tensor.name
        and not tensor.name.endswith("_cache")
    )
    for node in model.graph.node:
        values = {item.name: item for item in node.attribute}
        if node.op_type == "TreeEnsembleClassifier":
            splits = sum(mode != b"LEAF" for mode in values["nodes_modes"].strings)
            count += splits + len(values["class_weights"].floats)
        if node.op_type == "LinearClassifier":
            count += len(values["coefficients"].floats) + len(values["intercepts"].floats)
    return count


def _shapes(values: object) -> dict[str, tuple[int | str, ...]]:
    return {
        value.name: tuple(
            axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim
        )
        for value in values  # type: ignore[attr-defined]
    }


def _each(*left_out: str) -> list[ParameterSet]:
    """All networks but some; those that are large in their own tier."""
    return [
        pytest.param(name, marks=pytest.mark.heavy if name in LARGE else ())
        for name in BUILDERS
        if name not in left_out
    ]


@pytest.mark.parametrize("name", _each())
def test_file_is_what_the_registry_says(name: str, built: Built) -> None:
    path = built(name)
    weights = BUILDERS[name].weights_name
    beside = ((weights, path.with_name(weights)),) if weights else ()
    assert file_digest(path, beside) == BUILDERS[name].digest
    model = onnx.load(str(path), load_external_data=False)
    if "com.microsoft" not in OPSETS.get(name, {}):  # it knows none of their operators
        onnx.checker.check_model(str(path))
    assert _parameters(model) == PARAMETERS[name] == BUILDERS[name].parameters
    assert model.ir_version <= 8
    opsets = {item.domain: item.version for item in model.opset_import}
    assert opsets.pop("") <= 17
    assert opsets == OPSETS.get(name, {})
    assert _shapes(model.graph.input) == INPUTS[name]
    assert _shapes(model.graph.output) == OUTPUTS[name]
    symbols = {axis for axes in INPUTS[name].values() for axis in axes if isinstance(axis, str)}
    assert set(BUILDERS[name].default_dims) == symbols - IMPLIED


@pytest.mark.parametrize("name", _each("gbdt", "linear"))
def test_activations_stay_in_range(name: str, built: Built) -> None:
    """Every block's deviation within 0.1 … 10, and all far from what float16 can't hold."""
    path = built(name)
    model = onnx.load(str(path), load_external_data=False)
    blocks = [
        output
        for node in model.graph.node
        for output in node.output
        if output.endswith(BLOCK_OUTPUT)
    ]
    assert blocks
    for block in blocks:
        model.graph.output.add().name = block
    batch = 1 if name in ("canary", "vit_b16", "bert_base", *LARGE) else 2
    shown = path.with_name(f"{name}-blocks.onnx")
    shown.write_bytes(model.SerializeToString())
    session = _session(shown)
    shown.unlink()
    for tensor, values in _run(session, _feeds(name, batch)).items():
        assert np.isfinite(values).all(), tensor
        assert np.abs(values).max() < 1024, tensor
        if tensor.endswith(BLOCK_OUTPUT):
            assert 0.1 < values.std() < 10, tensor


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("mobilenet_v2", "logits"),
        ("resnet50", "logits"),
        ("vit_b16", "logits"),
        ("bert_tiny", "pooler_output"),
        ("gbdt", "probabilities"),
        ("linear", "probabilities"),
    ],
)
def test_inputs_fall_into_different_classes(name: str, output: str, built: Built) -> None:
    """At least 8 classes over 32 inputs; no more inputs are run than it takes to see that."""
    session = _session(built(name))
    classes: set[int] = set()
    for seed in range(16):
        classes |= set(_run(session, _feeds(name, 2, seed=seed))[output].argmax(axis=1).tolist())
        if len(classes) >= 8:
            break
    assert len(classes) >= 8


@pytest.mark.parametrize(
    ("name", "output", "floor"),
    [
        ("mobilenet_v2", "logits", 40.0),
        ("resnet50", "logits", 40.0),
        ("detector_n", "scores", 40.0),
        ("unet", "logits", 40.0),
        ("bert_tiny", "last_hidden_state", 50.0),
        ("decoder", "logits", 50.0),
        ("llm_15m", "logits", 50.0),
        ("lstm_tagger", "logits", 50.0),
        ("canary", "output", 60.0),
    ],
)
def test_float16_agrees(name: str, output: str, floor: float, built: Built) -> None:
    """Every tensor rounded to float16 (no optimiser drops the casts): SQNR in dB."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load(str(built(name)))
    halved = convert_float_to_float16(model, keep_io_types=True)
    feeds = _feeds(name, 1 if name == "canary" else 2)
    exact = _run(_session(built(name)), feeds)[output].astype(np.float64)
    rounded = _run(_session(halved.SerializeToString(), optimise=False), feeds)[output]
    assert np.isfinite(rounded).all()
    noise = np.square(rounded - exact).sum()
    assert 10 * np.log10(np.square(exact).sum() / noise) > floor


@pytest.mark.parametrize(
    "name", ["mobilenet_v2", "bert_tiny", "lstm_tagger", "gbdt", "decoder", "llm_15m"]
)
def test_items_of_a_batch_do_not_mix(name: str, built: Built) -> None:
    session = _session(built(name))
    feeds = _feeds(name, 3)
    together = _run(session, feeds)
    last = _run(session, {key: values[2:] for key, values in feeds.items()})
    for output, values in together.items():
        np.testing.assert_allclose(values[2:], last[output], rtol=1e-3, atol=1e-4)


def test_decoding_token_by_token_equals_prefill(built: Built) -> None:
    session = _session(built("decoder"))
    feeds = _feeds("decoder", 2, sizes={"past": 0, "seq": 6, "past + seq": 6})
    whole = _run(session, feeds)
    cache: Feeds = {key: values for key, values in feeds.items() if key.startswith("past.")}
    for position in range(6):
        step = _run(
            session,
            {
                "input_ids": feeds["input_ids"][:, position : position + 1],
                "attention_mask": np.ones((2, position + 1), dtype=np.int64),
                **cache,
            },
        )
        expected = whole["logits"][:, position : position + 1]
        np.testing.assert_allclose(step["logits"], expected, rtol=1e-3, atol=1e-3)
        cache = {f"past.{part}": step[f"present.{part}"] for part in CACHE}


def test_writing_token_by_token_equals_writing_at_once(built: Built) -> None:
    """What the encoder calls present is what the decoder calls past; the sound counts."""
    listener, writer = _session(built("speech_encoder")), _session(built("speech_decoder"))
    feeds = _feeds("speech_decoder", 2, sizes={"sequence_length": 6})
    own = {key: values for key, values in feeds.items() if "_self_" in key}
    logits = []
    for seed in (0, 1):
        heard = {
            key.replace("present", "past"): values
            for key, values in _run(listener, _feeds("speech_encoder", 2, seed=seed)).items()
            if "_cross_" in key
        }
        assert set(heard) | set(own) | {"input_ids"} == set(INPUTS["speech_decoder"])
        logits.append(_run(writer, {"input_ids": feeds["input_ids"], **own, **heard})["logits"])
    assert np.abs(logits[0] - logits[1]).max() > 0.1 * np.abs(logits[0]).max()
    cache = own
    for position in range(6):
        ids = feeds["input_ids"][:, position : position + 1]
        step = _run(writer, {"input_ids": ids, **cache, **heard})
        expected = logits[1][:, position : position + 1]
        assert np.abs(step["logits"] - expected).max() < 1e-5 * np.abs(expected).max()
        cache = {key: step[key.replace("past", "present")] for key in cache}


def test_a_translation_written_token_by_token_equals_that_at_once(built: Built) -> None:
    """States count, but those that the mask hides; hidden tokens count for no state either."""
    reader = _session(built("translation_encoder"))
    writer = _session(built("translation_decoder"))
    read = _feeds("translation_encoder", 2, sizes={"encoder_sequence_length": 8})
    read["attention_mask"][:, 6:] = 0
    feeds = _feeds(
        "translation_decoder",
        2,
        sizes={
            "encoder_sequence_length": 8,
            "decoder_sequence_length": 6,
            "past_decoder_sequence_length": 0,
        },
    )
    feeds["encoder_attention_mask"] = read["attention_mask"]
    logits = []
    for change in (0, 0, 1):
        # First what is hidden changes, then what is seen.
        read["input_ids"][:, 7 if not change else 2] = 9 + len(logits)
        feeds["encoder_hidden_states"] = _run(reader, read)["last_hidden_state"]
        logits.append(_run(writer, feeds)["logits"])
    largest = np.abs(logits[0]).max()
    assert np.abs(logits[0] - logits[1]).max() < 1e-4 * largest
    assert np.abs(logits[1] - logits[2]).max() > 0.01 * largest
    step = dict(feeds)
    for position in range(6):
        step["input_ids"] = feeds["input_ids"][:, position : position + 1]
        given = _run(writer, step)
        expected = logits[2][:, position : position + 1]
        assert np.abs(given["logits"] - expected).max() < 1e-5 * largest
        step |= {
            name.replace("present", "past_key_values"): value
            for name, value in given.items()
            if name.startswith("present")
        }


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(LARGE))
def test_large_models_write_with_a_cache_what_they_read_without(name: str, built: Built) -> None:
    session = _session(built(name))
    ids = np.random.default_rng(0).integers(0, VOCABULARY[name], (1, 12))
    whole, parts = (continued(session, ids, lengths) for lengths in ([12], [8, 1, 1, 1, 1]))
    assert (difference(parts["logits"], whole["logits"]) < 1e-5).all()


def test_hidden_tokens_do_not_count(built: Built) -> None:
    session = _session(built("bert_tiny"))
    feeds = _feeds("bert_tiny", 1)
    feeds["attention_mask"][:, 16:] = 0
    before = _run(session, feeds)["last_hidden_state"][:, :16]
    feeds["input_ids"][:, 16:] = 7
    after = _run(session, feeds)["last_hidden_state"]
    np.testing.assert_allclose(after[:, :16], before, rtol=1e-4, atol=1e-5)


def test_detector_covers_the_image_it_gets(built: Built) -> None:
    session = _session(built("detector_n"))
    for height, width in ((64, 96), (320, 320)):
        feeds = _feeds("detector_n", 1, sizes={"height": height, "width": width})
        found = _run(session, feeds)
        cells = sum((height // stride) * (width // stride) for stride in (8, 16, 32))
        boxes, scores = found["boxes"], found["scores"]
        assert boxes.shape == (1, cells, 4)
        assert scores.shape == (1, cells, 80)
        left, top, right, bottom = np.moveaxis(boxes[0], -1, 0)
        # The distances to a cell's centre are at least 0 and at most 15 cells.
        assert (right >= left).all()
        assert (bottom >= top).all()
        strides = np.concatenate([np.full((height // s) * (width // s), s) for s in (8, 16, 32)])
        assert ((right - left) <= 30 * strides).all()
        first, second = 0, (height // 8) * (width // 8)
        for cell, stride in ((first, 8), (second, 16)):
            assert left[cell] <= stride / 2 <= right[cell]
            assert top[cell] <= stride / 2 <= bottom[cell]
        assert ((scores > 0) & (scores < 1)).all()
        assert len(set(scores[0].argmax(axis=1).tolist())) >= 8


def test_unet_uses_every_class(built: Built) -> None:
    logits = _run(_session(built("unet")), _feeds("unet", 1))["logits"]
    assert logits.shape == (1, 4, 256, 192)
    shares = np.bincount(logits.argmax(axis=1).ravel(), minlength=4) / (256 * 192)
    assert (shares > 0.02).all()


def test_tagger_uses_most_tags(built: Built) -> None:
    logits = _run(_session(built("lstm_tagger")), _feeds("lstm_tagger", 32))["logits"]
    assert len(set(logits.argmax(axis=2).ravel().tolist())) >= 12


@pytest.mark.parametrize("name", ["gbdt", "linear"])
def test_labels_are_the_likeliest_classes(name: str, built: Built) -> None:
    found = _run(_session(built(name)), _feeds(name, 64))
    np.testing.assert_array_equal(found["label"], found["probabilities"].argmax(axis=1))
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)
