"""A case whose requests a service carries out, of which texts and times alone are known."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from pytest_ortbench.core.case import Case
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.seam import EngineRefusal, Sender
from pytest_ortbench.worker.engine_case import EngineCase
from pytest_ortbench.worker.generation.generating_case import RequestCase
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestEngine,
    RequestLoop,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import Scorer

if TYPE_CHECKING:
    from array import array


class AskedWriter(Protocol):
    """What an engine does more that has a service carry out requests."""

    def requests(self, case: Case) -> RequestEngine:
        """Return what carries out the requests of a case."""

    def sender_of(
        self, case: Case, *, timeout_s: float, percents: Sequence[float], holds_failures: bool
    ) -> Sender:
        """Return what sends the requests of a case as they arrive."""


def only_text(lacking: str) -> EngineRefusal:
    """Return the refusal of what the answer of a service does not hold: it is a text.

    Args:
        lacking: What is asked for of its tokens.
    """
    return EngineRefusal(
        f"the endpoint answers with text only, but the measurement needs the {lacking} of tokens",
        hint="To measure the model file itself, leave --ort-endpoint out. If --ort-providers names "
        "endpoint, leave that out, too",
    )


class EndpointRequestCase(RequestCase, EngineCase):
    """A case whose requests a service carries out."""

    #: What carries them out, made with the session.
    _requests: RequestEngine | None = None

    def scorer(self, length: int | None = None) -> Scorer:
        """Refuse to score tokens.

        Raises:
            EngineRefusal: always.
        """
        del length
        raise only_text("scores")

    def outputs(self) -> Sequence[object]:
        """Return no outputs: an answer is a text."""
        return ()

    def sender(
        self,
        *,
        timeout_s: float,
        percents: Sequence[float],
        holds_failures: bool,
        reference: str = "",
    ) -> Sender | None:
        """Return what sends requests as they arrive, each with a fresh prompt."""
        del reference
        return self._asked(
            lambda: self._writer().sender_of(
                self.case, timeout_s=timeout_s, percents=percents, holds_failures=holds_failures
            ),
            phase="load",
        )

    def run_timed(self, iterations: int) -> array[int]:
        """Time requests in a row; one that fails says so in the words of the exchange."""
        return self._asked(lambda: super(EndpointRequestCase, self).run_timed(iterations))

    def release(self) -> None:
        """Let go of the connections; no block can follow."""
        self._requests = None
        super().release()

    def _target(self, kind: EngineKind) -> str:
        return kind.writer

    def _create(self) -> int:
        opening_ns = super()._create()
        started = time.perf_counter_ns()
        self._requests = self._asked(lambda: self._writer().requests(self.case))
        return opening_ns + time.perf_counter_ns() - started

    def _first_inference(self) -> int:
        if self._requests is None:
            raise RuntimeError("no endpoint is open")
        prompts = Prompts(self.case, seed=os.getpid())
        self._loop = RequestLoop(self._requests, prompts, generation_in(self.case))
        return self.run_timed(1)[0]

    def _writer(self) -> AskedWriter:
        return cast("AskedWriter", self._engine)
