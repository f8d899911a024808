"""Folders as onnxruntime-genai's builder writes them, made with ``onnx`` alone.

Each holds ``model.onnx``, ``genai_config.json``, ``tokenizer.json`` and ``tokenizer_config.json``.
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from pytest_ortbench.models.builders.generative import LlmSizes, write_language_model
from pytest_ortbench.models.builders.graph_writer import GraphWriter

#: 2 layers, 290,000 parameters: a token takes a fraction of a millisecond.
TINY = LlmSizes(layers=2, width=128, key_heads=1, inner=256, vocabulary=512, context=512)

#: Tokens that end a text, and that fill a batch: the last of a vocabulary.
END, PADDING = "<|end|>", "<|pad|>"


def model_bytes(
    sizes: LlmSizes, *, name: str = "tiny", cached: bool = True, packed: bool = True
) -> bytes:
    """Return the file of a language model; equal names give equal weights.

    Args:
        sizes: Of the network.
        name: Chooses the weights.
        cached: Whether it takes and gives a cache.
        packed: Whether one product makes queries, keys and values.
    """
    writer = GraphWriter(name, version=1)
    write_language_model(writer, sizes, cached=cached, packed=packed)
    return writer.serialise()


def windowed(content: bytes, windows: Mapping[int, int]) -> bytes:
    """Return a language model some of whose layers look back over a window, and keep no more.

    Args:
        content: The file of a model that takes and gives a cache.
        windows: Tokens of a window, by layer.
    """
    model = onnx.load_model_from_string(content)
    layers = [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]
    for layer, window in windows.items():
        (given,) = [item for item in layers[layer].attribute if item.name == "local_window_size"]
        given.i = window
        layers[layer].attribute.append(helper.make_attribute("sliding_window_cache", 1))
        for info in (*model.graph.input, *model.graph.output):
            if f".{layer}." in info.name:
                when = "past" if info.name.startswith("past") else "total"
                info.type.tensor_type.shape.dim[2].dim_param = f"{when}_sliding_length"
    serialised: bytes = model.SerializeToString()
    return serialised


def write_folder(folder: Path, sizes: LlmSizes = TINY, *, name: str = "tiny") -> Path:
    """Write a folder that onnxruntime-genai loads, and return it.

    Args:
        folder: Made if it is missing.
        sizes: Of the network.
        name: Chooses the weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model_bytes(sizes, name=name))
    write_json(folder / "genai_config.json", genai_config(sizes))
    write_tokenizer(folder, sizes.vocabulary)
    return folder


def write_json(path: Path, content: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what ``genai_config.json`` of a folder says.

    Args:
        folder: Where the file is.
        change: Is given its content, and changes it in place.
    """
    path = folder / "genai_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    write_json(path, content)


def end_token(sizes: LlmSizes) -> int:
    """Return the token that ends a text."""
    return sizes.vocabulary - 2


def genai_config(sizes: LlmSizes) -> dict[str, Any]:
    """Return what ``genai_config.json`` says of a model."""
    head_size = sizes.width // sizes.heads
    return {
        "model": {
            "bos_token_id": end_token(sizes),
            "context_length": sizes.context,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": "model.onnx",
                "head_size": head_size,
                "hidden_size": sizes.width,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
                "num_attention_heads": sizes.heads,
                "num_hidden_layers": sizes.layers,
                "num_key_value_heads": sizes.key_heads,
            },
            "eos_token_id": end_token(sizes),
            "pad_token_id": sizes.vocabulary - 1,
            "type": "phi3" if sizes.original else "llama",
            "vocab_size": sizes.vocabulary,
        },
        "search": {
            "diversity_penalty": 0.0,
            "do_sample": False,
            "early_stopping": True,
            "length_penalty": 1.0,
            "max_length": sizes.context,
            "min_length": 0,
            "no_repeat_ngram_size": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": True,
            "repetition_penalty": 1.0,
            "temperature": 1.0,
            "top_k": 1,
            "top_p": 1.0,
        },
    }


def write_tokenizer(folder: Path, vocabulary: int) -> None:
    """Write the two files of a byte-level BPE tokenizer with so many tokens.

    The tokens are the 256 bytes, then pairs and triples of letters, then the special ones.
    """
    merged = _merges(vocabulary - 256 - 2)
    tokens = [*_bytes_as_letters(), *(first + second for first, second in merged)]
    special = [
        {
            "id": len(tokens) + index,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, content in enumerate((END, PADDING))
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": special,
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": {token: index for index, token in enumerate(tokens)},
                "merges": [f"{first} {second}" for first, second in merged],
            },
        },
    )
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_prefix_space": False,
            "added_tokens_decoder": {str(item["id"]): item for item in special},
            "bos_token": END,
            "eos_token": END,
            "pad_token": PADDING,
            "model_max_length": 1_000_000,
            "tokenizer_class": "GPT2Tokenizer",
        },
    )


def _bytes_as_letters() -> list[str]:
    """Return how byte-level BPE spells each byte: itself where it can be seen, else shifted up."""
    seen = {*range(33, 127), *range(161, 173), *range(174, 256)}
    shifted = itertools.count(256)
    return [chr(byte if byte in seen else next(shifted)) for byte in range(256)]


def _merges(count: int) -> list[tuple[str, str]]:
    """Return pairs to merge: a blank or letter with a letter, then such pairs with a letter."""
    letters = string.ascii_lowercase
    blank = _bytes_as_letters()[ord(" ")]
    pairs = [(first, second) for first in blank + letters for second in letters]
    triples = [("".join(pair), letter) for pair in pairs for letter in letters]
    return [*pairs, *triples][:count]
