"""Which models are taken for decoders, and where the sizes of their caches come from."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.model import Model
from pytest_ortbench.models.decoders import decoder_of, is_cache_of
from tests.generation.folders import TINY, model_bytes, windowed
from tests.models.decoder_graphs import HEADS, KV, SIZE, VOCABULARY, WIDTH, grouped, joined
from tests.models.graphs import BOOL, INT32, INT64, constant, node, read, value

pytestmark = pytest.mark.live  # shapes are inferred in a process of their own

FLOAT16 = 10


def decoder_in(model: Model) -> Decoder:
    assert model.decoder is not None, decoder_of(model.inputs, model.outputs).reason
    return model.decoder


def test_the_size_of_a_head_is_told_by_its_operator(tmp_path: Path) -> None:
    found = read(grouped(), tmp_path)
    decoder = decoder_in(found)
    assert found.implied_dims == {"kv_cache_dim": SIZE}
    assert [tensor.shape for tensor in decoder.cache] == [(0, KV, 0, SIZE)] * 2
    assert (decoder.mask, decoder.vocabulary) == ("attention_mask", VOCABULARY)


@pytest.mark.parametrize(
    "past",
    [
        ("batch_size", "kv_heads", "past_sequence_length", "kv_cache_dim"),
        ("B", "H", "P", "D"),
        (None, None, None, None),
        (1, KV, "past_len", "head"),
    ],
)
def test_all_open_sizes_of_a_grouped_cache_are_told(
    past: tuple[int | str | None, ...], tmp_path: Path
) -> None:
    decoder = decoder_in(read(grouped(past, None), tmp_path))
    for tensor in decoder.cache:
        assert (tensor.shape, tensor.batch_axis, tensor.length_axis) == ((0, KV, 0, SIZE), 0, 2)


def test_weights_of_four_bits_tell_how_wide_packed_queries_are(tmp_path: Path) -> None:
    proto = grouped()
    attention = next(item for item in proto.graph.node if item.op_type == "GroupQueryAttention")
    attention.input[:3] = ["packed", "", ""]
    width = (HEADS + 2 * KV) * SIZE
    names = ["x", "packed_weight", "packed_scales"]
    sizes = {"K": WIDTH, "N": width, "bits": 4, "block_size": 32}
    product = node("MatMulNBits", names, ["packed"], domain="com.microsoft", **sizes)
    proto.graph.node.insert(1, product)
    for name in names[1:]:
        proto.graph.initializer.append(constant(name, [0], "uint8"))
    assert decoder_in(read(proto, tmp_path)).cache[0].shape == (0, KV, 0, SIZE)


@pytest.mark.parametrize(
    ("past", "along", "shape"),
    [
        (("batch_size", "heads", "past_sequence_length", "size"), 2, (0, HEADS, 0, SIZE)),
        (("b", "h", "p", "d"), 2, (0, HEADS, 0, SIZE)),
        (("batch_size", "past_sequence_length", "heads", "size"), 1, (0, 0, HEADS, SIZE)),
        (("b", "s1", "s2", "s3"), 1, (0, 0, HEADS, SIZE)),
        (("batch_size", "past_sequence_length", HEADS, SIZE), 1, (0, 0, HEADS, SIZE)),
    ],
)
def test_what_is_appended_tells_layout_and_sizes(
    past: tuple[int | str, ...], along: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    found = read(joined(past, None, along=along), tmp_path)
    for tensor in decoder_in(found).cache:
        assert (tensor.shape, tensor.length_axis) == (shape, along)


def test_an_output_that_fixes_a_size_tells_it(tmp_path: Path) -> None:
    past = ("batch_size", "heads", "past_sequence_length", "size")
    proto = joined(past, ("batch_size", HEADS, "total_sequence_length", SIZE))
    # Nothing else tells: the new keys come from an operator that nobody knows.
    for index, item in enumerate(proto.graph.node):
        if item.op_type == "Transpose":
            proto.graph.node[index].domain = "of.somebody"
    proto.opset_import.add(domain="of.somebody", version=1)
    found = read(proto, tmp_path)
    assert found.implied_dims == {"heads": HEADS, "size": SIZE}
    assert decoder_in(found).cache[0].shape == (0, HEADS, 0, SIZE)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("config.json", {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 24}),
        ("config.json", {"n_head": 8, "n_embd": 192}),
        ("config.json", {"text_config": {"num_attention_heads": 8, "hidden_size": 192}}),
    ],
)
def test_a_configuration_beside_it_tells_what_the_graph_does_not(
    name: str, config: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(json.dumps(config))
    decoder = decoder_in(read(opaque(), tmp_path))
    assert decoder.is_complete
    assert decoder.cache[0].shape == (0, 8, 0, 24)


def test_sizes_that_nothing_tells_stay_open(tmp_path: Path) -> None:
    decoder = decoder_in(read(opaque(), tmp_path))
    assert not decoder.is_complete
    assert decoder.cache[0].open_axes == (1, 3)


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("past_key_self_0 past_value_self_0 present_key_self_0 present_value_self_0", 2),
        ("past_0.key past_0.value present_0.key present_0.value", 2),
        ("past.0.key past.0.value present.0.key present.0.value", 2),
        ("past_key_0 past_value_0 present_key_0 present_value_0", 2),
        ("key_cache.0 value_cache.0 updated_key_cache.0 updated_value_cache.0", 2),
        ("past_key_values.0.k past_key_values.0.v present.0.k present.0.v", 2),
    ],
)
def test_names_of_caches(names: str, parts: int, tmp_path: Path) -> None:
    found = read(grouped(names=names.split()), tmp_path)
    cache = decoder_in(found).cache
    assert [(tensor.past, tensor.present) for tensor in cache] == list(
        zip(names.split()[:parts], names.split()[parts:], strict=True)
    )


@pytest.mark.parametrize(
    "names",
    [
        "kv_in.0 kv_in.1 kv_out.0 kv_out.1",
        "cache_k_0 cache_v_0 new_k_0 new_v_0",
        "cache_k_0 cache_v_0 cache_k_0_out cache_v_0_out",
        # Names that say the opposite, and none at all.
        "in_a in_b out_b out_a",
        "keys values keys_next values_next",
        "state_1 state_2 y1 y2",
    ],
)
def test_a_renamed_cache_is_told_by_what_the_graph_does_with_it(names: str, tmp_path: Path) -> None:
    past = ("batch_size", "h", "past_sequence_length", "d")
    for index, proto in enumerate(
        (grouped(past, None, names=names.split()), joined(past, None, names=names.split()))
    ):
        found = read(proto, tmp_path, f"m{index}")
        cache = decoder_in(found).cache
        assert [(tensor.past, tensor.present) for tensor in cache] == list(
            zip(names.split()[:2], names.split()[2:], strict=True)
        )
        heads = KV if index == 0 else HEADS
        assert [tensor.shape for tensor in cache] == [(0, heads, 0, SIZE)] * 2
        assert decoder_in(found).shares_buffers == (index == 0)
        assert is_cache_of(found, names.split()[0])
        assert not is_cache_of(found, "input_ids")


def test_a_cache_that_two_outputs_go_on_with_is_asked_for(tmp_path: Path) -> None:
    past = ("batch_size", HEADS, "past_sequence_length", SIZE)
    proto = joined(past, None, names=("kv_in.0", "kv_in.1", "kv_out.0", "kv_out.1"))
    again = next(item for item in proto.graph.node if item.op_type == "Concat")
    proto.graph.node.append(node("Concat", list(again.input), ["kv_out.2"], axis=2))
    proto.graph.output.append(value("kv_out.2", past))
    found = read(proto, tmp_path)
    assert found.decoder is None
    reason = decoder_of(found.inputs, found.outputs).reason
    assert "'kv_in.0'" in reason
    assert "past_key_names" in reason


def test_types_of_tokens_and_of_the_cache(tmp_path: Path) -> None:
    assert decoder_in(read(grouped(ids_kind=INT32), tmp_path)).ids_type == "tensor(int32)"
    past = ("batch_size", "h", "past_sequence_length", "d")
    half = decoder_in(read(joined(past, None, kind=FLOAT16), tmp_path))
    assert {tensor.type for tensor in half.cache} == {"tensor(float16)"}


def test_further_inputs_with_one_value(tmp_path: Path) -> None:
    past = ("batch_size", HEADS, "past_sequence_length", SIZE)
    extra = [value("num_logits_to_keep", [], INT64), value("use_cache_branch", [1], BOOL)]
    decoder = decoder_in(read(joined(past, None, extra=extra), tmp_path))
    assert decoder.constants == {"num_logits_to_keep": 1}
    assert (decoder.cache_flag, decoder.cache_flag_first) == ("use_cache_branch", False)
    first = decoder_in(read(joined(past, None, extra=[value("is_first_step", [], BOOL)]), tmp_path))
    assert (first.cache_flag, first.cache_flag_first) == ("is_first_step", True)


def test_an_input_that_nobody_knows_is_named(tmp_path: Path) -> None:
    past = ("batch_size", HEADS, "past_sequence_length", SIZE)
    found = read(joined(past, None, extra=[value("mood", ["batch_size"])]), tmp_path)
    assert found.decoder is None
    assert "'mood'" in decoder_of(found.inputs, found.outputs).reason


def test_a_vocabulary_that_the_scores_leave_open(tmp_path: Path) -> None:
    logits = ("batch_size", "sequence_length", "vocab")
    assert decoder_in(read(grouped(logits=logits), tmp_path)).vocabulary == VOCABULARY


def opaque():
    """A decoder whose cache goes into an operator that nobody knows."""
    past = ("batch_size", "heads", "past_sequence_length", "size")
    proto = joined(past, ("batch_size", "heads", "total_sequence_length", "size"))
    for item in proto.graph.node:
        if item.op_type == "Transpose":
            item.domain = "of.somebody"
    proto.opset_import.add(domain="of.somebody", version=1)
    return proto


def test_a_layer_with_a_window_is_told_from_one_that_keeps_all(tmp_path: Path) -> None:
    proto = onnx.load_model_from_string(windowed(model_bytes(TINY), {0: 24}))
    model = read(proto, tmp_path)
    decoder = decoder_in(model)
    assert [tensor.window for tensor in decoder.cache] == [24, 24, 0, 0]
    assert decoder.window == 24
    assert decoder.shares_buffers
    assert model.implied_dims["past_sliding_length"] == 24
    assert "past_sequence_length" not in model.implied_dims
    first, _, second, _ = decoder.cache
    assert (first.sized(2, 0)[2], second.sized(2, 5)[2]) == (24, 5)
