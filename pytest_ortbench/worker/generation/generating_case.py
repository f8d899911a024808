"""Cases whose timed unit is a request to a language model."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.generation.consistency import require_consistent
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from pytest_ortbench.worker.generation.first_step import FirstStep
from pytest_ortbench.worker.generation.listening import RunEncoder
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestEngine,
    RequestLoop,
    SessionEngine,
    decoder_in,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import Scorer, SessionScorer
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """What the cache of all sequences takes.

    Attributes:
        tokens: Tokens of a sequence that it has room for.
        bound_bytes: What the bound values take.
        computed_bytes: What so many tokens take by the shapes of keys and values.
    """

    tokens: int
    bound_bytes: int
    computed_bytes: int


class RequestCase(MeasuredCase, ABC):
    """A case whose timed loop carries out requests, each with a fresh prompt."""

    def take_requests(self) -> tuple[GeneratedRequest, ...]:
        """Return what the requests of the last timed loop took."""
        return tuple(self.live_requests().requests)

    def calls(self) -> list[Callable[[], object]]:
        """Return what carries out one request."""
        return [self.live_requests().carry_out]

    def live_requests(self) -> RequestLoop:
        """Return what carries out requests.

        Raises:
            RuntimeError: if there is none: the case is not open, or its session was released.
        """
        loop = self.live_loop()
        if not isinstance(loop, RequestLoop):
            raise RuntimeError("the timed loop carries out inferences, and no requests")
        return loop

    @abstractmethod
    def scorer(self, length: int | None = None) -> Scorer:
        """Return what scores tokens with a cache of its own.

        Args:
            length: The most tokens of a sequence; by default those of a request.
        """

    def cache(self) -> CacheUse | None:
        """Return what the cache takes at the end of a request; ``None`` where nobody can see it."""
        return None

    def _first_request(self, engine: RequestEngine) -> int:
        """Time the first request, and refuse a decoder that is fed wrongly."""
        prompts = Prompts(self.case, seed=os.getpid())
        self._loop = RequestLoop(engine, prompts, generation_in(self.case))
        first_ns = self.run_timed(1)[0]
        # The last token of a request is not read.
        require_consistent(self.scorer(generation_in(self.case).length - 1), self.case)
        return first_ns


class GeneratingCase(RequestCase):
    """A case whose requests run on a session of ONNX Runtime, with the cache fed back."""

    #: The decoder of the timed loop; it holds a cache.
    _timed: SessionDecoder | None = None
    #: Session of the file of the first step.
    _first: InferenceSession | None = None

    def _first_inference(self) -> int:
        """Time the first request."""
        self._timed = self._decoder(self.live(), generation_in(self.case).length)
        return self._first_request(SessionEngine(self._timed, self.case, self._encoder()))

    def _encoder(self) -> RunEncoder | None:
        """Open the encoder of the case, if its requests have one."""
        encoder = self.case.model.encoder
        if encoder is None or not self.case.encoder_inputs:
            return None
        options = session_options(self.case.session, threads=self.threads)
        with self.watch.counted():
            session, _ = create(encoder.path, self.case.provider, options)
        return RunEncoder(session, encoder, self.case)

    def cache(self) -> CacheUse | None:
        """Return what the cache takes at the end of a request; ``None`` once it was released."""
        if self._timed is None:
            return None
        return CacheUse(
            tokens=self._timed.cache_tokens,
            bound_bytes=self._timed.cache_bytes,
            computed_bytes=self._timed.computed_cache_bytes,
        )

    def release(self) -> None:
        """Let go of the measured session and of its cache; no block can follow."""
        self._timed = self._first = None
        super().release()

    def unused_decoder(self, length: int) -> SessionDecoder:
        """Release the measured session, and return a decoder on one that ran nothing.

        Args:
            length: The most tokens of a sequence.
        """
        self.release()
        options = session_options(self.case.session, threads=self.threads)
        self.session, _ = create(self.case.variant.path, self.uncaptured, options)
        return self._decoder(self.session, length)

    def scorer(self, length: int | None = None) -> SessionScorer:
        """Return what scores tokens with a cache of its own.

        Args:
            length: The most tokens of a sequence; by default those of a request.
        """
        wanted = generation_in(self.case).length if length is None else length
        return SessionScorer(self._decoder(self.live(), wanted))

    def _decoder(self, session: InferenceSession, length: int) -> SessionDecoder:
        return SessionDecoder(
            session,
            decoder_in(self.case),
            self.case.provider,
            batch=self.case.batch,
            length=length,
            heard={**self.feeds, **make_feeds(self.case.first_inputs, seed=self.case.seed)},
            run=with_added_work(session.run_with_iobinding, self.case.added_work),
            first=self._first_step(),
        )

    def _first_step(self) -> FirstStep | None:
        """Return what reads prompts, where that is another file; its session is made once."""
        case, file = self.case, self.case.model.first_step
        if file is None:
            return None
        if self._first is None:
            options = session_options(case.session, threads=self.threads)
            with self.watch.counted():
                self._first, _ = create(file.path, self.uncaptured, options)
        run = with_added_work(self._first.run_with_iobinding, case.added_work)
        return FirstStep(self._first, file, case.provider, batch=case.batch, run=run)
