"""What a decoder scores its tokens with, for all that is no timing: checks and quality.

Each engine fills :class:`Scorer`; what is found out of it is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pytest_ortbench.core.generation import EXACT_DB, NOISE_DB
from pytest_ortbench.worker.generation.requests import SteppedDecoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]
    #: Scores of all tokens that there are, in the type that the model gives them.
    Logits = npt.NDArray[Any]


class Scorer(Protocol):
    """A decoder that is asked for the scores of its tokens; it has a cache of its own."""

    def begin(self, ids: Ids) -> Logits:
        """Forget all tokens, read ``[batch, tokens]`` at once; return the scores after the last.

        The cache is empty before, and the scores are ``[batch, vocabulary]``, here and below.
        """

    def follow(self, ids: Ids) -> Logits:
        """Read further tokens of each sequence, ``[batch, tokens]``, with the cache fed back.

        Returns the scores after the last.
        """

    def every(self, ids: Ids) -> Logits | None:
        """Forget all tokens, read ``[batch, tokens]`` at once; return the scores after each.

        They are ``[batch, tokens, vocabulary]``; ``None`` where only those after the last token are
        to be had.
        """


class SessionScorer:
    """The scorer of a decoder that is run step by step.

    Attributes:
        decoder: Nothing stands before its prompts.
    """

    def __init__(self, decoder: SteppedDecoder) -> None:
        self.decoder = decoder

    def begin(self, ids: Ids) -> Logits:
        """Forget all tokens and read these at once."""
        self.decoder.rewind()
        return self.follow(ids)

    def follow(self, ids: Ids) -> Logits:
        """Read further tokens with the cache fed back."""
        self.decoder.read(ids)
        scores: Logits = self.decoder.scores()[:, -1].copy()
        return scores

    def every(self, ids: Ids) -> Logits | None:
        """Forget all tokens and read these at once."""
        self.decoder.rewind()
        self.decoder.read(ids)
        scores = self.decoder.scores()
        return scores.copy() if scores.shape[1] == ids.shape[1] else None


def step_by_step(scorer: Scorer, ids: Ids, prompt: int) -> Logits:
    """Return the scores after a prompt and after each later token, which is read by itself.

    Args:
        scorer: Of the model.
        ids: ``[batch, tokens]``.
        prompt: How many of these are read at once.

    Returns:
        ``[batch, later tokens + 1, vocabulary]``.
    """
    import numpy as np

    scores = [scorer.begin(ids[:, :prompt])]
    scores += [scorer.follow(ids[:, at : at + 1]) for at in range(prompt, ids.shape[1])]
    return np.stack(scores, axis=1)


def at_once(scorer: Scorer, ids: Ids, lengths: Sequence[int]) -> Logits:
    """Return the scores after so many tokens, all of which are read at once.

    Args:
        scorer: Of the model.
        ids: ``[batch, tokens]``.
        lengths: After how many tokens.

    Returns:
        ``[batch, lengths, vocabulary]``.
    """
    import numpy as np

    every = scorer.every(ids)
    if every is not None:
        scores: Logits = every[:, [length - 1 for length in lengths]]
        return scores
    return np.stack([scorer.begin(ids[:, :length]) for length in lengths], axis=1)


def centred(scores: Logits) -> npt.NDArray[np.float64]:
    """Return scores less their mean, which no probability depends on."""
    import numpy as np

    wide = scores.astype(np.float64)
    less: npt.NDArray[np.float64] = wide - wide.mean(axis=-1, keepdims=True)
    return less


def sqnr_db(right: Logits, other: Logits) -> npt.NDArray[np.float64]:
    """Return the signal to noise ratio of each row of scores, 20·log10(‖right‖ ÷ ‖difference‖).

    Both are centred. A row that holds NaN or infinity on one side only is noise; on both sides it
    says nothing, and is NaN.
    """
    import numpy as np

    finite = np.isfinite(right).all(axis=-1), np.isfinite(other).all(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = centred(right), centred(other)
        signal, noise = (first**2).sum(axis=-1), ((first - second) ** 2).sum(axis=-1)
        ratio = 10 * np.log10(signal / noise)
    ratio = np.where(noise == 0, EXACT_DB, np.clip(ratio, NOISE_DB, EXACT_DB))
    ratio = np.where(finite[0] & finite[1], ratio, NOISE_DB)
    both: npt.NDArray[np.float64] = np.where(~finite[0] & ~finite[1], np.nan, ratio)
    return both
