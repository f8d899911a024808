"""What files beside a language model tell: its heads, vocabulary, context and end of text.

``genai_config.json`` speaks of the file that it names; ``config.json`` and
``generation_config.json`` come from the framework that the model was exported from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.generation import ConfigFault
from pytest_ortbench.core.model import ToldSize
from pytest_ortbench.core.model_spec import GENAI_CONFIG
from pytest_ortbench.models.files_beside import folders_beside, object_in
from pytest_ortbench.models.genai_config import GenaiConfig, has_genai_config, read_genai_config
from pytest_ortbench.models.genai_faults import whole

_CONFIG = "config.json"
_GENERATION = "generation_config.json"
#: Names of the same number in configurations of different families.
_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads")
_ALL_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
_HEAD_SIZE = ("head_dim", "head_size")
_CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "max_seq_len")
#: No number of a configuration is larger.
_LARGEST = 10_000_000
_CAUSAL = ("CausalLM", "LMHeadModel")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageConfig:
    """What is told.

    Attributes:
        heads: Heads of keys and values, 0 where nothing says it; likewise the next two.
        head_size: Size of each.
        vocabulary: Number of tokens.
        sizes_from: The file that tells them, for people.
        context: The most tokens, ``None`` where nothing says it.
        context_from: The file that tells it.
        end_tokens: Tokens that end a text.
        ends_from: The file that tells them.
        is_causal: Whether a file says that the model predicts the next token.
        genai: The configuration of onnxruntime-genai that names the file.
        notes: What a reader should know of these files.
        faults: Why a ``genai_config.json`` beside it can't be used at all.
    """

    heads: int = 0
    head_size: int = 0
    vocabulary: int = 0
    sizes_from: str = ""
    context: int | None = None
    context_from: str = ""
    end_tokens: tuple[int, ...] = ()
    ends_from: str = ""
    is_causal: bool = False
    genai: GenaiConfig | None = None
    notes: tuple[str, ...] = ()
    faults: tuple[ConfigFault, ...] = ()

    @property
    def told_sizes(self) -> dict[str, ToldSize]:
        """Its sizes of a cache, by what they are the size of."""
        sizes = {"heads": self.heads, "head_size": self.head_size}
        return {
            kind: ToldSize(size=size, why=self.sizes_from) for kind, size in sizes.items() if size
        }


def language_config(path: Path) -> LanguageConfig:
    """Return what files beside a model tell of it as a language model.

    Args:
        path: The model file.
    """
    told = LanguageConfig()
    if has_genai_config(path.parent):
        told = _of_genai(path)
    for folder in folders_beside(path):
        config = object_in(folder / _CONFIG)
        text = config.get("text_config")
        for part in (config, text if isinstance(text, dict) else {}):
            told = _joined(told, part)
        told = _with_ends(told, object_in(folder / _GENERATION), _GENERATION)
        told = _with_ends(told, config, _CONFIG)
    return told


def _of_genai(path: Path) -> LanguageConfig:
    try:
        genai = read_genai_config(path.parent)
    except ModelError as error:
        told = f"{GENAI_CONFIG} beside it can't be used: {error.message}"
        return LanguageConfig(faults=(ConfigFault(told=told, remedy=error.hint),))
    if genai.decoder_file.resolve() != path.resolve():
        return LanguageConfig()
    notes: tuple[str, ...] = ()
    if not any((genai.folder / name).is_file() for name in _TOKENIZERS):
        notes = (
            f"there is no tokenizer beside the model ({', '.join(_TOKENIZERS[:2])}), so text "
            "can't be read",
        )
    sizes = genai.decoder
    context = _number(genai.model.get("context_length")) or None
    return LanguageConfig(
        heads=_number(sizes.get("num_key_value_heads")),
        head_size=_number(sizes.get("head_size")),
        vocabulary=_number(genai.model.get("vocab_size")),
        sizes_from=GENAI_CONFIG,
        context=context,
        context_from=GENAI_CONFIG if context else "",
        end_tokens=tuple(_tokens(genai.model.get("eos_token_id"))),
        ends_from=GENAI_CONFIG,
        is_causal=len(genai.files) == 1,
        genai=genai,
        notes=notes,
    )


def _joined(told: LanguageConfig, config: Mapping[str, Any]) -> LanguageConfig:
    """Fill in what the configuration of a framework tells and no file before it did."""
    every, width = _first(config, _ALL_HEADS), _first(config, _WIDTH)
    heads = _first(config, _HEADS) or every
    size = _first(config, _HEAD_SIZE)
    if not size and every and width % every == 0:
        size = width // every
    context = _first(config, _CONTEXT) or None
    names = config.get("architectures")
    architectures = [str(name) for name in names] if isinstance(names, list) else []
    causal = any(name.endswith(_CAUSAL) for name in architectures)
    return replace(
        told,
        heads=told.heads or heads,
        head_size=told.head_size or size,
        vocabulary=told.vocabulary or _number(config.get("vocab_size")),
        sizes_from=told.sizes_from or (_CONFIG if heads or size else ""),
        context=told.context or context,
        context_from=told.context_from or (_CONFIG if context else ""),
        is_causal=told.is_causal or causal,
    )


def _with_ends(told: LanguageConfig, config: Mapping[str, Any], file: str) -> LanguageConfig:
    if told.end_tokens:
        return told
    ends = tuple(_tokens(config.get("eos_token_id")))
    return replace(told, end_tokens=ends, ends_from=file)


def _tokens(value: object) -> Iterator[int]:
    """Token ids of a configuration: one, or several."""
    for item in value if isinstance(value, list) else [value]:
        token = whole(item)
        if token is not None and 0 <= token <= _LARGEST:
            yield token


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((number for name in names if (number := _number(config.get(name)))), 0)


def _number(value: object) -> int:
    """A number that makes sense, else 0."""
    number = whole(value)
    return number if number is not None and 0 < number <= _LARGEST else 0
