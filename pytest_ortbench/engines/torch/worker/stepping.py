"""A language model of transformers that is run step by step, with its cache fed back."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.generation import MOST_AT_ONCE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]

#: ``past_key_values.3.key``, ``present.3.value``, ``present_key_3``.
_LAYER = re.compile(r"(?<!\d)(\d+)(?!\d)")
_KEY_OR_VALUE = re.compile(r"(?<![a-z])(key|value)(?![a-z])")

#: ONNX Runtime's spelling of PyTorch's types.
_SPELT = {
    "float32": "tensor(float)",
    "float16": "tensor(float16)",
    "bfloat16": "tensor(bfloat16)",
}


def layer_of(name: str) -> tuple[int, str] | None:
    """Return layer, and ``keys`` or ``values``, of a tensor of the cache; ``None`` for others.

    Args:
        name: Of an input or output of an ONNX file.
    """
    layer = _LAYER.search(name)
    # ``past_key_values`` is what all of them are called.
    kinds = _KEY_OR_VALUE.findall(name.replace("key_values", ""))
    if layer is None or len(kinds) != 1:
        return None
    return int(layer.group(1)), f"{kinds[0]}s"


def new_cache(model: Any) -> Any:
    """Return an empty cache, as transformers makes it for a model."""
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def word_for_cache(model: Any) -> str:
    """Return what the forward pass of a model calls its cache: releases of transformers differ."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def copied(cache: Any) -> Any:
    """Return a cache that holds the same tensors, and to which tokens are added apart.

    Its layers put new tensors in the place of old ones, and write into none.
    """
    other = copy.copy(cache)
    other.layers = [copy.copy(layer) for layer in cache.layers]
    return other


class CachedModel:
    """A model with its cache: what :class:`~.requests.SteppedDecoder` asks for.

    Args:
        model: On its device.
        device: Where that is, as PyTorch writes it.
        whole: Whether scores are computed after every token of a run, and not, as ``generate``
            does, after the last alone.
    """

    def __init__(self, model: Any, device: str, *, whole: bool) -> None:
        import torch

        self._model = model
        self._device = device
        self._keeps = {} if whole else {"logits_to_keep": 1}
        self._word = word_for_cache(model)
        self._base = new_cache(model)
        self._cache = copied(self._base)
        self._scores: Any = None
        #: Where the device has a queue of its own, a token is there once that is empty.
        self._wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else None

    @property
    def past(self) -> int:
        """Tokens of a sequence in the cache."""
        return int(self._cache.get_seq_length())

    @property
    def cache_bytes(self) -> int:
        """Bytes of keys and values."""
        tensors = [
            tensor
            for layer in self._cache.layers
            for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None))
            if tensor is not None
        ]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def number_type(self) -> str:
        """ONNX Runtime's spelling of the type of a number in the cache."""
        return _SPELT.get(str(self._model.dtype).removeprefix("torch."), "")

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on."""
        self._base = new_cache(self._model)
        self.rewind()
        for start in range(0, ids.shape[1], MOST_AT_ONCE):
            self.read(ids[:, start : start + MOST_AT_ONCE])
        self._base = copied(self._cache)

    def filled(self) -> Any:
        """Return the cache with what stands before every prompt; nothing may be added to it."""
        return self._base

    def rewind(self) -> None:
        """Forget all tokens but those that stand before every prompt."""
        self._cache = copied(self._base)

    def hear(self, heard: Mapping[str, object]) -> None:
        """Take what an encoder said: there is none.

        Raises:
            ValueError: if there is something.
        """
        if heard:
            raise ValueError(f"a decoder alone hears nothing: {', '.join(heard)}")

    def read(self, ids: Ids) -> int:
        """Run the model on the next tokens of each sequence.

        Returns:
            Nanoseconds of the forward pass alone, until its scores are there.
        """
        import torch

        tokens = torch.from_numpy(ids).to(self._device, torch.int64)
        with torch.inference_mode():
            started = perf_counter_ns()
            output = self._model(
                input_ids=tokens, use_cache=True, **{self._word: self._cache}, **self._keeps
            )
            if self._wait is not None:
                self._wait()
            took = perf_counter_ns() - started
        self._scores = output.logits
        return took

    def scores(self) -> npt.NDArray[Any]:
        """Return the logits of the last run, ``[batch, tokens or 1, vocabulary]``."""
        scores: npt.NDArray[Any] = self._scores.float().cpu().numpy()
        return scores
