"""Texts read by a decoder in parts, with its cache handed on: a loop by hand, for tests."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Values: TypeAlias = dict[str, NDArray[np.generic]]


def session(content: bytes) -> ort.InferenceSession:
    """Return a session for the CPU."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def empty_cache(model: ort.InferenceSession, batch: int) -> Values:
    """Return the cache before the first token."""
    return {
        info.name: np.zeros((batch, info.shape[1], 0, info.shape[3]), np.float32)
        for info in model.get_inputs()
        if info.name.startswith("past_key_values.")
    }


def continued(model: ort.InferenceSession, ids: NDArray[np.int64], lengths: list[int]) -> Values:
    """Return the logits of a text, and the cache after it.

    Args:
        model: A decoder with a cache.
        ids: The text, [batch, tokens].
        lengths: Tokens that are read at a time.
    """
    names = [info.name for info in model.get_outputs()]
    cache = empty_cache(model, len(ids))
    parts, past = [], 0
    for length in lengths:
        total = past + length
        mask = np.ones((len(ids), total), np.int64)
        feeds = {"input_ids": ids[:, past:total], "attention_mask": mask, **cache}
        outputs = dict(zip(names, model.run(names, feeds), strict=True))
        cache = {name: outputs[name.replace("past_key_values", "present")] for name in cache}
        parts.append(outputs["logits"])
        past = total
    return {"logits": np.concatenate(parts, axis=1), **cache}


def difference(actual: NDArray[np.generic], expected: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return the largest difference at each position, relative to the largest logit."""
    scale = np.abs(expected).max()
    largest: NDArray[np.float32] = np.abs(actual - expected).max(axis=(0, 2)) / scale
    return largest
