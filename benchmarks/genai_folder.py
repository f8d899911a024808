"""A folder as onnxruntime-genai takes it, from a decoder of the catalogue."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from pytest_ortbench.models.resolve import resolve_models


def write_genai_folder(name: str, folder: Path) -> Path:
    """Write a model and the ``genai_config.json`` that onnxruntime-genai needs for it.

    Args:
        name: A model of the catalogue that writes text, such as ``builtin:llm_15m``.
        folder: Where to write; it exists.

    Returns:
        The folder.
    """
    (model,) = resolve_models((name,), root=folder)
    shutil.copy(model.path, folder / "model.onnx")
    decoder = model.decoder
    assert decoder is not None
    names = {"key": decoder.cache[0], "value": decoder.cache[1]}
    _, heads, _, size = decoder.cache[0].shape
    content = {
        "model": {
            "type": "llama",
            "context_length": decoder.context,
            "vocab_size": decoder.vocabulary,
            "bos_token_id": decoder.vocabulary - 1,
            "eos_token_id": decoder.vocabulary - 1,
            "pad_token_id": decoder.vocabulary - 1,
            "decoder": {
                "filename": "model.onnx",
                "session_options": {"provider_options": []},
                "head_size": size,
                "hidden_size": heads * size,
                "num_attention_heads": heads,
                "num_key_value_heads": heads,
                "num_hidden_layers": len(decoder.cache) // 2,
                "inputs": {
                    "input_ids": decoder.ids,
                    "attention_mask": decoder.mask,
                    **{f"past_{key}_names": t.past.replace("0", "%d") for key, t in names.items()},
                },
                "outputs": {
                    "logits": decoder.logits,
                    **{
                        f"present_{key}_names": t.present.replace("0", "%d")
                        for key, t in names.items()
                    },
                },
            },
        },
        "search": {"max_length": decoder.context, "past_present_share_buffer": True},
    }
    (folder / "genai_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
