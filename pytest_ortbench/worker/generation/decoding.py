"""A decoder on a session of ONNX Runtime: a prompt, then token by token with the cache fed back.

The cache stays in bound values, on the device where the provider has memory of its own. Logits come
to the host, where the likeliest token is chosen: outside the time of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.element_types import ELEMENT_TYPES
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.generation import MOST_AT_ONCE, CacheTensor, Decoder
from pytest_ortbench.worker.binding import device_of
from pytest_ortbench.worker.generation.first_step import FirstStep, bound
from pytest_ortbench.worker.generation.step_inputs import FLOATS, StepInputs
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from onnxruntime import InferenceSession, IOBinding, OrtValue

    Ids = npt.NDArray[np.integer[Any]]


def cache_bytes(
    cache: Sequence[CacheTensor], batch: int, tokens: int, types: Mapping[str, str]
) -> int:
    """Return the bytes of keys and values by their shapes.

    For equal layers that is 2 x layers x heads of keys x head size x tokens x bytes of a number
    x sequences.

    Args:
        cache: Its tensors.
        batch: Number of sequences.
        tokens: Of each.
        types: Types of inputs by name, where they are others than the decoder's file has.
    """
    bits = 0
    for tensor in cache:
        name = types.get(tensor.past, tensor.type)[len("tensor(") : -1]
        bits += prod(tensor.sized(batch, tokens)) * ELEMENT_TYPES[name].bits
    return bits // 8


class SessionDecoder:
    """A decoder with its cache.

    Args:
        session: Of the decoder's file.
        decoder: What its inputs and outputs mean.
        provider: Where it runs.
        batch: Number of sequences.
        length: The most tokens of a sequence, past and present.
        heard: Values of the inputs that hold what an encoder said, by name.
        run: What runs the session on a binding; the session's own where it is ``None``.
        first: What reads a prompt with an empty cache, where that is another file.
    """

    def __init__(
        self,
        session: InferenceSession,
        decoder: Decoder,
        provider: Provider,
        *,
        batch: int,
        length: int,
        heard: Mapping[str, object] | None = None,
        run: Callable[[IOBinding], object] | None = None,
        first: FirstStep | None = None,
    ) -> None:
        self._ort, _ = load()
        self._decoder = decoder
        self._batch = batch
        self._length = length
        self._device = device_of(provider)
        self._inputs = StepInputs(session, decoder, batch=batch)
        self._types = self._inputs.types
        self._binding = session.io_binding()
        self._run = run or session.run_with_iobinding
        self._first = first
        self._heard: dict[str, OrtValue] = {}
        self.hear(heard or {})
        #: By number of tokens: where the logits of a run go, once their shape is known.
        self._logits: dict[int, npt.NDArray[Any]] = {}
        self._cache = self._base = [self._empty(tensor) for tensor in decoder.cache]
        self._past = self._depth = 0
        #: What windows held when the cache was filled, by place: requests push it out.
        self._windows: dict[int, npt.NDArray[Any]] = {}
        #: Tokens that were read, where there is no cache and each step reads them again.
        self._read: Ids | None = None

    def hear(self, heard: Mapping[str, object]) -> None:
        """Take what an encoder said, by name of the input; it stays where the provider has it.

        Keys and values that a first step of its own makes of it are bound when it has run.
        """
        if self._first is not None:
            self._first.hear(heard)
        given = () if self._first is None else self._first.takers
        names = [name for name in self._decoder.heard if name not in given]
        self._bind_heard(
            {n: bound(self._ort, self._inputs, n, heard[n], self._device) for n in names}
        )

    def _bind_heard(self, values: Mapping[str, OrtValue]) -> None:
        #: They must live as long as they are bound.
        self._heard = {**self._heard, **values}
        for name, value in values.items():
            self._binding.bind_ortvalue_input(name, value)

    @property
    def past(self) -> int:
        """Tokens of a sequence in the cache."""
        return self._past

    @property
    def cache_bytes(self) -> int:
        """Bytes of the bound cache of what was read and written, without what an encoder said."""
        return sum(
            value.tensor_size_in_bytes()
            for tensor, value in zip(self._decoder.cache, self._cache, strict=True)
            if not tensor.is_of_encoder
        )

    @property
    def cache_tokens(self) -> int:
        """Tokens of a sequence that the bound cache has room for, beside its windows."""
        return self._length if self._decoder.shares_buffers else self._past

    @property
    def computed_cache_bytes(self) -> int:
        """Bytes of so many tokens by the shapes of keys and values, not by what is bound."""
        own = [tensor for tensor in self._decoder.cache if not tensor.is_of_encoder]
        return cache_bytes(own, self._batch, self.cache_tokens, self._types)

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on."""
        self._base, self._depth = [self._empty(tensor) for tensor in self._decoder.cache], 0
        self._windows = {}
        self.rewind()
        for start in range(0, ids.shape[1], MOST_AT_ONCE):
            self.read(ids[:, start : start + MOST_AT_ONCE])
        self._base, self._depth = self._cache, self._past
        if self._decoder.shares_buffers:
            self._windows = {
                place: self._base[place].numpy().copy()
                for place, tensor in enumerate(self._decoder.cache)
                if tensor.window
            }

    def rewind(self) -> None:
        """Forget all tokens but those that stand before every prompt."""
        self._cache, self._past = self._base, self._depth
        for place, values in self._windows.items():
            self._base[place].update_inplace(values)

    def read(self, ids: Ids) -> int:
        """Run the model on the next tokens of each sequence.

        Args:
            ids: Tokens, ``[batch, tokens]``.

        Returns:
            Nanoseconds of the run alone, until its outputs are there.
        """
        if self._first is not None and not self._past:
            return self._read_first(ids, self._first)
        tokens = ids.shape[1]
        fed = self._with_earlier(ids)
        self._bind_inputs(fed)
        self._bind_outputs(tokens)
        clock, run, synchronise = perf_counter_ns, self._run, self._binding.synchronize_outputs
        started = clock()
        run(self._binding)
        synchronise()
        took = clock() - started
        outputs = self._binding.get_outputs()
        if not self._decoder.cache:
            self._logits = {tokens: outputs[0].numpy()[:, -tokens:]}
        elif tokens not in self._logits:
            self._logits[tokens] = outputs[0].numpy()
        if not self._decoder.shares_buffers:
            self._cache = [
                earlier if tensor.is_of_encoder and self._past else later
                for tensor, earlier, later in zip(
                    self._decoder.cache, self._cache, outputs[1:], strict=True
                )
            ]
        self._past += tokens
        self._scores = self._logits[tokens]
        return took

    def _read_first(self, ids: Ids, first: FirstStep) -> int:
        """Run the file of the first step, whose outputs the later steps go on with."""
        took, self._scores = first.read(ids)
        self._cache = [first.given[tensor.past] for tensor in self._decoder.cache]
        self._bind_heard({n: first.given[n] for n in self._decoder.heard if n in first.given})
        self._past = ids.shape[1]
        return took

    def scores(self) -> npt.NDArray[Any]:
        """Return the logits of the last run, ``[batch, tokens or 1, vocabulary]``; not a copy."""
        return self._scores

    def _with_earlier(self, ids: Ids) -> Ids:
        """Return the tokens that a step is fed: without a cache, all of those before as well."""
        import numpy as np

        if self._decoder.cache:
            return ids
        earlier = ids[:, :0] if self._read is None else self._read[:, : self._past]
        self._read = np.concatenate([earlier, ids], axis=1)
        return self._read

    def _bind_inputs(self, ids: Ids) -> None:
        decoder, binding = self._decoder, self._binding
        given = self._inputs.of(ids, before=self._past if decoder.cache else 0)
        for name, value in given.items():
            binding.bind_cpu_input(name, value)
        for tensor, value in zip(decoder.cache, self._cache, strict=True):
            binding.bind_ortvalue_input(tensor.past, value)
        #: They must live as long as the run.
        self._given = given

    def _bind_outputs(self, tokens: int) -> None:
        decoder, binding = self._decoder, self._binding
        binding.clear_binding_outputs()
        logits = self._logits.get(tokens) if decoder.cache else None
        if logits is None:
            binding.bind_output(decoder.logits, "cpu", 0)
        else:
            binding.bind_output(
                decoder.logits, "cpu", 0, logits.dtype, logits.shape, logits.ctypes.data
            )
        for tensor, value in zip(decoder.cache, self._cache, strict=True):
            if decoder.shares_buffers:
                binding.bind_ortvalue_output(tensor.present, value)
            else:
                binding.bind_output(tensor.present, *self._device)

    def _empty(self, tensor: CacheTensor) -> OrtValue:
        import numpy as np

        kind = FLOATS.get(self._types[tensor.past])
        if kind is None:
            raise case_error(
                f"the cache {tensor.past!r} is {self._types[tensor.past]}, which numpy lacks",
                "Export the model with a cache of float or float16",
            )
        shape = tensor.sized(self._batch, self._length if self._decoder.shares_buffers else 0)
        empty = np.zeros(shape, dtype=kind)
        return self._ort.OrtValue.ortvalue_from_numpy(empty, *self._device)
