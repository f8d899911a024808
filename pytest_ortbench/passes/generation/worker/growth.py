"""Resident memory as the cache of the open case grows, token by token.

It grows in a session that ran nothing before: the arena of one that carried out requests holds
freed memory, which the cache would take without a rise. Cache tensors that are made anew for each
token exist twice in a step, as past and as present, so that memory rises by twice the cache at
least. What an arena keeps of earlier, smaller tensors comes on top, and so does the memory pattern
that ONNX Runtime keeps for each length that it has seen.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import class_and_line
from pytest_ortbench.passes.generation.facts import ContextGrowth
from pytest_ortbench.worker.binding import device_of
from pytest_ortbench.worker.generation.decoding import cache_bytes
from pytest_ortbench.worker.generation.engine_requests import EngineRequestCase
from pytest_ortbench.worker.generation.generating_case import GeneratingCase, RequestCase
from pytest_ortbench.worker.generation.requests import Prompts, decoder_in, generation_in
from pytest_ortbench.worker.memory import ResidentSource, best_source, give_back_free_memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]

#: Seconds of decoding, and bytes that a cache grows by, at most.
_SECONDS, _MOST_BYTES = 1.5, 1 << 26
#: How often sizes are read.
_READINGS = 5
#: Single tokens that are read before the first size: a first step makes room for its logits.
_WARM = 2


class GrowingDecoder(Protocol):
    """A decoder whose cache grows, see :class:`~.decoding.SessionDecoder`."""

    @property
    def past(self) -> int:
        """Tokens of a sequence in the cache."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the bound cache."""

    def read(self, ids: Ids) -> int:
        """Run the model on the next tokens of each sequence."""


def growth_of_context(measured: RequestCase, *, prompt_tokens: int) -> ContextGrowth:
    """Let the cache of a case grow, and watch resident memory.

    Args:
        measured: The case; its measured session is released.
        prompt_tokens: Tokens that are read at once before.
    """
    case = measured.case
    if not isinstance(measured, GeneratingCase | EngineRequestCase):
        return ContextGrowth(reason="the engine does not show its cache")
    reason = why_not_seen(case)
    if reason:
        return ContextGrowth(reason=reason)
    decoder, asked = decoder_in(case), generation_in(case)
    own = [tensor for tensor in decoder.cache if not tensor.is_of_encoder]
    start = prompt_tokens + _WARM
    # Past the end of a request only where the context is known: positions may end there.
    room = decoder.context or asked.length
    none, one = (cache_bytes(own, case.batch, tokens, {}) for tokens in (0, 1))
    longest = min(room, start + _MOST_BYTES // max(1, one - none))
    if longest <= start:
        return ContextGrowth(
            reason=f"a context of {room} tokens is too short to watch the cache grow"
        )
    draw = Prompts(case, seed=2).draw
    try:
        growing = ToldDecoder(_told(lambda: measured.unused_decoder(longest)))
        growing.read(draw(prompt_tokens))
        for _ in range(_WARM):
            growing.read(draw(1))
        return grow(growing, draw, longest=longest, source=best_source())
    except ModelFailedError as error:
        # No request went so far; what was found out before stays.
        return ContextGrowth(reason=f"a later step of decoding failed: {error}")


class ModelFailedError(Exception):
    """The model could not be opened, or could not read a token; says why in one line."""


_T = TypeVar("_T")


def _told(step: Callable[[], _T]) -> _T:
    """Carry out a step of the model's, whose errors are told from those of whoever drives it."""
    try:
        return step()
    except Exception as error:
        # Native errors have no common base class.
        raise ModelFailedError(class_and_line(error)) from error


class ToldDecoder:
    """A decoder whose errors are told from those of whoever drives it.

    Args:
        decoder: What is driven.
    """

    def __init__(self, decoder: GrowingDecoder) -> None:
        self._decoder = decoder

    @property
    def past(self) -> int:
        """Tokens of a sequence in the cache."""
        return self._decoder.past

    @property
    def cache_bytes(self) -> int:
        """Bytes of the bound cache."""
        return self._decoder.cache_bytes

    def read(self, ids: Ids) -> int:
        """Run the model on the next tokens of each sequence.

        Raises:
            ModelFailedError: if it can't.
        """
        return _told(lambda: self._decoder.read(ids))


def why_not_seen(case: Case) -> str:
    """Return why resident memory does not tell how the cache of a case grows; empty if it does."""
    decoder, provider = decoder_in(case), case.provider
    elsewhere = f"the cache lies in the memory of {provider.alias}'s device, not of the process"
    if not provider.is_execution_provider:
        return "" if provider.computes_on_host else elsewhere
    if not decoder.cache:
        return "the decoder has no cache: each token reads all earlier ones again"
    if decoder.shares_buffers:
        return "the cache is one buffer as long as the context: it does not grow"
    if device_of(provider)[0] != "cpu":
        return elsewhere
    return ""


def grow(
    decoder: GrowingDecoder,
    draw: Callable[[int], Ids],
    *,
    longest: int,
    source: ResidentSource,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> ContextGrowth:
    """Read token by token, and note resident sizes on the way.

    Args:
        decoder: It has read its prompt.
        draw: Draws so many tokens for each sequence.
        longest: The most tokens of a sequence in the cache.
        source: Where sizes come from.
        seconds: How long at most.
        clock: Seconds; a test sets its own time.
    """
    if source.read().now is None:
        return ContextGrowth(reason=f"resident memory can't be read ({source.name})")
    tokens: list[int] = []
    resident: list[int] = []
    peaks: list[int] = []
    caches: list[int] = []
    start, began = decoder.past, clock()
    for reading in range(_READINGS):
        share = reading / (_READINGS - 1)
        until, due = start + share * (longest - start), began + share * seconds
        while decoder.past < until and clock() < due:
            decoder.read(draw(1))
        if tokens and decoder.past == tokens[-1]:
            continue
        peak = source.read().peak
        # Each step leaves objects and free parts of the heap behind, which are no cache.
        gc.collect()
        give_back_free_memory()
        if not tokens:
            source.reset_peak()
        size = source.read()
        if size.now is None:
            continue
        tokens.append(decoder.past)
        resident.append(size.now)
        caches.append(decoder.cache_bytes)
        if peak is not None and size.peak is not None:
            peaks.append(size.peak if len(tokens) == 1 else peak)
    return ContextGrowth(
        tokens=tuple(tokens),
        resident_bytes=tuple(resident),
        peak_bytes=tuple(peaks),
        cache_bytes=tuple(caches),
        source=source.name,
    )
