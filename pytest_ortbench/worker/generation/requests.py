"""Requests to a decoder: prompts that are drawn anew, tokens that are chosen greedily."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import Decoder, GeneratedRequest, Generation

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]


def nothing() -> None:
    """Do nothing: what a request calls where nobody waits for its first token."""


class RequestEngine(Protocol):
    """What carries out requests, one at a time."""

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on."""

    def request(
        self, prompt: Ids, new_tokens: int, *, at_first: Callable[[], object] = nothing
    ) -> GeneratedRequest:
        """Read a prompt ``[batch, tokens]``, and write so many tokens after it.

        Args:
            prompt: The tokens that are read.
            new_tokens: How many are written.
            at_first: Called once the first one is chosen, outside the times of steps.
        """

    @property
    def written(self) -> Ids:
        """Tokens that the last request wrote, ``[batch, new tokens]``."""


class LastWritten:
    """Keeps what a library wrote in its last request."""

    _written: Ids | None = None

    @property
    def written(self) -> Ids:
        """Tokens that the last request wrote, ``[batch, new tokens]``.

        Raises:
            RuntimeError: before any request.
        """
        if self._written is None:
            raise RuntimeError("no request was run")
        return self._written


class Prompts:
    """Draws tokens that a model knows and that end no text.

    Args:
        case: Its request and its model.
        seed: Of the drawing; another one for every process.
    """

    def __init__(self, case: Case, *, seed: int) -> None:
        import numpy as np

        self._batch = case.batch
        self._random = np.random.default_rng([case.seed, seed])
        known = np.arange(known_tokens(case))
        self._known = known[~np.isin(known, decoder_in(case).end_tokens)]

    def draw(self, tokens: int) -> Ids:
        """Return ``[batch, tokens]`` drawn tokens."""
        chosen: Ids = self._random.choice(self._known, size=(self._batch, tokens))
        return chosen


def decoder_in(case: Case) -> Decoder:
    """Return the decoder of a case that generates.

    Raises:
        ValueError: for a case that does not.
    """
    if case.model.decoder is None:
        raise ValueError(f"model {case.model.name!r} is no decoder")
    return case.model.decoder


def generation_in(case: Case) -> Generation:
    """Return the request of a case that generates.

    Raises:
        ValueError: for a case that does not.
    """
    if case.generation is None:
        raise ValueError(f"{case.case_id} times inferences")
    return case.generation


def known_tokens(case: Case) -> int:
    """Return how many tokens the model can read and write: its table may be the shorter one."""
    decoder = decoder_in(case)
    for spec in case.inputs:
        if spec.name == decoder.ids and spec.hint.kind == "integers":
            return min(decoder.vocabulary, int(spec.hint.high) + 1)
    return decoder.vocabulary


class TokenChoice:
    """Chooses tokens greedily, of those that a model knows and that end no text.

    Args:
        case: Its model.
    """

    def __init__(self, case: Case) -> None:
        self._known = known_tokens(case)
        self._ends = [end for end in decoder_in(case).end_tokens if end < self._known]

    def likeliest(self, scores: npt.NDArray[Any]) -> Ids:
        """Return the likeliest token of each row of scores, ``[..., vocabulary]``."""
        scores = scores[..., : self._known]
        if self._ends:
            scores = scores.copy()
            scores[..., self._ends] = -float("inf")
        chosen: Ids = scores.argmax(axis=-1)
        return chosen


class RequestLoop:
    """The timed loop of a case that generates: fills durations with one request each.

    Attributes:
        engine: What carries them out.
        requests: What each request of the last call took.

    Args:
        engine: Carries them out.
        prompts: Draws what they read.
        asked: How long they are.
    """

    def __init__(self, engine: RequestEngine, prompts: Prompts, asked: Generation) -> None:
        self.engine = engine
        self.requests: list[GeneratedRequest] = []
        self._prompts = prompts
        self._asked = asked
        if asked.depth:
            engine.fill(prompts.draw(asked.depth))

    def __call__(self, durations: array[int]) -> None:
        """Carry out as many requests as there is room for durations."""
        self.requests = []
        for index in range(len(durations)):
            request = self.carry_out()
            durations[index] = request.wall_ns
            self.requests.append(request)

    def carry_out(self, at_first: Callable[[], object] = nothing) -> GeneratedRequest:
        """Carry out one request with a fresh prompt.

        Args:
            at_first: Called once its first token is chosen.
        """
        prompt = self._prompts.draw(self._asked.prompt_tokens)
        return self.engine.request(prompt, self._asked.new_tokens, at_first=at_first)


class SessionEngine:
    """Carries out requests on a session of ONNX Runtime.

    Args:
        decoder: The model with its cache.
        case: Its request and its model.
        encoder: What the decoder listens to, run at the beginning of each request; ``None`` where
            it listens to nothing, or to what was drawn.
    """

    def __init__(
        self, decoder: SteppedDecoder, case: Case, encoder: SaidOnce | None = None
    ) -> None:
        self._decoder = decoder
        self._encoder = encoder
        self._choice = TokenChoice(case)
        self._written: list[Ids] = []

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on.

        What an encoder says is the same in every request, and they were written listening to it.
        """
        if self._encoder is not None:
            self._encoder.listen()
            self._decoder.hear(self._encoder.said())
        self._decoder.fill(ids)

    def request(
        self, prompt: Ids, new_tokens: int, *, at_first: Callable[[], object] = nothing
    ) -> GeneratedRequest:
        """Read a prompt ``[batch, tokens]``, and write so many tokens after it.

        Args:
            prompt: The tokens that are read.
            new_tokens: How many are written.
            at_first: Called once the first one is chosen, outside the times of steps.
        """
        clock, read = perf_counter_ns, self._decoder.read
        self._decoder.rewind()
        started, encoder_ns = clock(), None
        if self._encoder is not None:
            encoder_ns = self._encoder.listen()
            self._decoder.hear(self._encoder.said())
        steps = [read(prompt)]
        choosing = clock()
        written = [self._likeliest()]
        chosen_ns = clock() - choosing
        at_first()
        for _ in range(new_tokens - 1):
            steps.append(read(written[-1]))
            written.append(self._likeliest())
        wall_ns = clock() - started
        self._written = written
        return GeneratedRequest(
            steps_ns=tuple(steps),
            chosen_ns=chosen_ns,
            encoder_ns=encoder_ns,
            wall_ns=wall_ns,
            prompt_tokens=prompt.shape[1],
            new_tokens=len(written),
        )

    @property
    def written(self) -> Ids:
        """Tokens that the last request wrote, ``[batch, new tokens]``."""
        import numpy as np

        return np.concatenate(self._written, axis=1)

    def _likeliest(self) -> Ids:
        """Return the likeliest next token of each sequence, ``[batch, 1]``."""
        return self._choice.likeliest(self._decoder.scores()[:, -1:])


class SaidOnce(Protocol):
    """An encoder that is run once for each request, see :class:`.listening.RunEncoder`."""

    def listen(self) -> int:
        """Run it, and return the nanoseconds."""

    def said(self) -> Mapping[str, object]:
        """Return what it said, by inputs of the decoder."""


class SteppedDecoder(Protocol):
    """A decoder that is run step by step, see :class:`.decoding.SessionDecoder`."""

    def fill(self, ids: Ids) -> None:
        """Read tokens that stand before every prompt."""

    def rewind(self) -> None:
        """Forget all other tokens."""

    def hear(self, heard: Mapping[str, object]) -> None:
        """Take what an encoder said, by name of the input."""

    def read(self, ids: Ids) -> int:
        """Run the model on the next tokens, and return the nanoseconds."""

    def scores(self) -> npt.NDArray[Any]:
        """Return the logits of the last run."""
