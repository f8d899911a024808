"""A case whose requests another engine carries out, in a process that never loads ONNX Runtime."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from pytest_ortbench.core.case import Case
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.worker.engine_case import EngineCase
from pytest_ortbench.worker.generation.consistency import LATER, PROMPT
from pytest_ortbench.worker.generation.decoding import cache_bytes
from pytest_ortbench.worker.generation.endpoint_requests import EndpointRequestCase
from pytest_ortbench.worker.generation.generating_case import CacheUse, RequestCase
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestEngine,
    SteppedDecoder,
    TokenChoice,
    decoder_in,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import Scorer, SessionScorer

if TYPE_CHECKING:
    import numpy.typing as npt

#: Two tokens are as likely if their scores are less apart than this share of the spread of all.
_TIE = 0.02


class CountedDecoder(SteppedDecoder, Protocol):
    """A decoder that is run step by step, and tells what its cache takes."""

    @property
    def past(self) -> int:
        """Tokens of a sequence in the cache."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of keys and values."""

    @property
    def number_type(self) -> str:
        """ONNX Runtime's spelling of the type of a number in the cache; empty for no known one."""


class WritingEngine(Protocol):
    """What an :class:`~pytest_ortbench.engines.seam.Engine` does more that carries out requests."""

    def requests(self, case: Case) -> RequestEngine:
        """Return what carries out the requests of a case, ready for the first.

        Raises:
            EngineRefusal: if it can't.
        """

    def stepped(self, *, whole: bool) -> CountedDecoder:
        """Return the model with a cache of its own.

        Args:
            whole: Whether scores after every token of a run are wanted, not after the last alone.
        """


def is_another(
    scores: npt.NDArray[Any], likeliest: npt.NDArray[Any], chosen: npt.NDArray[Any]
) -> bool:
    """Return whether a chosen token is clearly less likely than the likeliest.

    Rounding may turn the order of two that are nearly as likely.

    Args:
        scores: ``[batch, vocabulary]``.
        likeliest: ``[batch, 1]``, of those that may be chosen.
        chosen: ``[batch, 1]``.
    """
    import numpy as np

    best, own = (np.take_along_axis(scores, ids, axis=1) for ids in (likeliest, chosen))
    return bool((best - own > _TIE * scores.std(axis=1, keepdims=True)).any())


class EngineRequestCase(RequestCase, EngineCase):
    """A case whose requests another engine carries out."""

    #: What carries them out, made with the session.
    _requests: RequestEngine | None = None

    def scorer(self, length: int | None = None) -> Scorer:
        """Return what scores tokens with a cache of its own.

        Args:
            length: The most tokens of a sequence, which nothing here has to know.
        """
        del length
        return SessionScorer(self._writing().stepped(whole=True))

    def cache(self) -> CacheUse | None:
        """Return what the cache takes at the end of a request, in a run of as many tokens."""
        case = self.case
        tensors = decoder_in(case).cache
        if self.session is None or not tensors:
            return None
        counted = self._writing().stepped(whole=False)
        # The last token of a request is not read.
        counted.read(Prompts(case, seed=3).draw(generation_in(case).length - 1))
        types = {tensor.past: counted.number_type or tensor.type for tensor in tensors}
        return CacheUse(
            tokens=counted.past,
            bound_bytes=counted.cache_bytes,
            computed_bytes=cache_bytes(tensors, case.batch, counted.past, types),
        )

    def unused_decoder(self, length: int) -> CountedDecoder:
        """Release the measured model, and return one that ran nothing.

        Args:
            length: The most tokens of a sequence, which nothing here has to know.
        """
        del length
        self.release()
        self._asked(self._engine.build)
        return self._writing().stepped(whole=False)

    def release(self) -> None:
        """Let go of the model; no block can follow."""
        self._requests = None
        super().release()

    def _target(self, kind: EngineKind) -> str:
        return kind.writer

    def _create(self) -> int:
        opening_ns = super()._create()
        with self.watch.counted():
            started = time.perf_counter_ns()
            self._requests = self._asked(lambda: self._writing().requests(self.case))
            return opening_ns + time.perf_counter_ns() - started

    def _first_inference(self) -> int:
        requests = self._requests
        if requests is None:
            raise RuntimeError("no engine is open")
        first_ns = self._asked(lambda: self._first_request(requests), phase="first")
        self._asked(self._require_own_tokens, phase="first")
        return first_ns

    def _require_own_tokens(self) -> None:
        """Refuse an engine that writes other tokens than its model scores as the likeliest.

        Scores are those of the forward pass: what is found out of them is true of what the engine
        writes only if it chooses by them.
        """
        prompt = Prompts(self.case, seed=4).draw(
            min(PROMPT, generation_in(self.case).prompt_tokens)
        )
        engine = self._writing().requests(self.case)
        engine.request(prompt, LATER)
        written = engine.written
        scorer, choice = self.scorer(), TokenChoice(self.case)
        scores = scorer.begin(prompt)
        for place in range(LATER):
            chosen = written[:, place : place + 1]
            if is_another(scores, choice.likeliest(scores)[:, None], chosen):
                raise EngineRefusal(
                    f"{self._kind.title} wrote token {place + 1} after the prompt, although its "
                    "own scores rate another token higher. So its quality can't be judged",
                    kind="error",
                    hint=f"Leave {self.case.provider.alias} out of --ort-providers for this model, "
                    f"and report this to the makers of {self._kind.title}",
                )
            scores = scorer.follow(chosen)

    def _writing(self) -> WritingEngine:
        return cast("WritingEngine", self._engine)


def request_case_of(case: Case) -> type[RequestCase]:
    """Return what measures the requests of a case that no session of ONNX Runtime carries out."""
    return EndpointRequestCase if case.provider.is_endpoint else EngineRequestCase
