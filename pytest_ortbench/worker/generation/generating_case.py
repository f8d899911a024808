"""A case whose timed unit is a request to a language model."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.generation.consistency import require_consistent
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestLoop,
    SessionEngine,
    decoder_in,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import Scorer, SessionScorer
from pytest_ortbench.worker.measured import MeasuredCase

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class GeneratingCase(MeasuredCase):
    """A case on a session whose timed loop carries out requests, each with a fresh prompt."""

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

    def _first_inference(self, session: InferenceSession) -> int:
        """Time the first request."""
        asked = generation_in(self.case)
        decoder = self._decoder(session, asked.length)
        prompts = Prompts(self.case, seed=os.getpid())
        self._loop = RequestLoop(SessionEngine(decoder, self.case), prompts, asked)
        first_ns = self.run_timed(1)[0]
        require_consistent(self.scorer(), self.case)
        return first_ns

    def scorer(self, length: int | None = None) -> Scorer:
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
            run=with_added_work(session.run_with_iobinding, self.case.added_work),
        )
