"""What the open case writes, against itself and against its reference."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import EXACT_DB, NOISE_DB
from pytest_ortbench.core.precision import computed_precision
from pytest_ortbench.passes.generation.facts import GenerationCheck, Likeness, TextScore
from pytest_ortbench.passes.generation.questions import CheckGeneration
from pytest_ortbench.passes.generation.worker.growth import growth_of_context
from pytest_ortbench.passes.generation.worker.reference import Continuation, read_continuation
from pytest_ortbench.passes.generation.worker.text import log_shares, nats_of_window
from pytest_ortbench.worker.generation.consistency import (
    LEAST_DB,
    consistency,
    consistency_at_end,
)
from pytest_ortbench.worker.generation.decoding import cache_bytes
from pytest_ortbench.worker.generation.generating_case import RequestCase
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    TokenChoice,
    decoder_in,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import Scorer, step_by_step

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ortbench.worker.measured import MeasuredCase

    Ids = npt.NDArray[np.integer[Any]]

#: Tokens that are compared one by one with a run over all, the first after the prompt.
_STEPS = 8


def check_generation(question: CheckGeneration, measured: MeasuredCase) -> GenerationCheck:
    """Look at what the open case writes.

    Raises:
        TypeError: for a case that times inferences.
    """
    if not isinstance(measured, RequestCase):
        raise TypeError(f"{measured.case.case_id} times inferences")
    measured.enter("generation")
    check = _looked_at(question, measured)
    # Last: it releases the measured session.
    growth = growth_of_context(measured, prompt_tokens=question.prompt_tokens)
    return replace(check, growth=growth)


def _looked_at(question: CheckGeneration, measured: RequestCase) -> GenerationCheck:
    """Say what the open case writes, and what its cache takes."""
    case, prompt, new = measured.case, question.prompt_tokens, question.new_tokens
    cache = measured.cache()
    scorer = measured.scorer(max(prompt + new, *(len(window) - 1 for window in question.text), 0))
    ids = Prompts(case, seed=1).draw(prompt + min(new, _STEPS))
    seen = consistency(scorer, ids, prompt, LEAST_DB[computed_precision(case)])
    right = (
        read_continuation(Path(question.reference), case.runtime) if question.reference else None
    )
    return GenerationCheck(
        after=seen.after,
        consistent_db=seen.sqnr_db,
        at_end=consistency_at_end(measured.scorer(generation_in(case).length - 1), case),
        reference="" if right is None else right.label,
        likeness=None if right is None else likeness(scorer, right, TokenChoice(case)),
        text=text_score(scorer, question.text, case, right) if question.text else None,
        cache_bytes=None if cache is None else cache.bound_bytes,
        cache_tokens=None if cache is None else cache.tokens,
        cache_computed_bytes=_computed_bytes(case) if cache is None else cache.computed_bytes,
    )


def _computed_bytes(case: Case) -> int:
    """Return what the cache of a request takes where nobody can see it."""
    own = [tensor for tensor in decoder_in(case).cache if not tensor.is_of_encoder]
    return cache_bytes(own, case.batch, generation_in(case).length, {})


def text_score(
    scorer: Scorer, text: tuple[tuple[int, ...], ...], case: Case, right: Continuation | None
) -> TextScore:
    """Say how well a text is foreseen.

    Args:
        scorer: Of the case.
        text: Tokens, in windows.
        case: The case.
        right: What the reference makes of it.
    """
    nats = [nats_of_window(scorer, window, case.batch) for window in text]
    reference = () if right is None else right.text_nats
    if not all(map(math.isfinite, (*nats, *reference))):
        return TextScore(reason="logits hold NaN or infinity")
    return TextScore(
        tokens=tuple(len(window) - 1 for window in text),
        nats=tuple(nats),
        reference_nats=reference,
        vocabulary=decoder_in(case).vocabulary,
    )


def likeness(scorer: Scorer, right: Continuation, choice: TokenChoice) -> Likeness:
    """Compare scores after the reference's tokens, and tokens that are written without it.

    Args:
        scorer: Of the case.
        right: What the reference writes.
        choice: Chooses tokens.
    """
    import numpy as np

    sequences, new, _ = right.scores.shape
    prompt = right.ids.shape[1] - new
    scores = step_by_step(scorer, right.ids[:, :-1], prompt)
    finite = np.isfinite(right.scores).all(axis=-1) & np.isfinite(scores).all(axis=-1)
    same = (choice.likeliest(scores) == right.ids[:, prompt:]) & finite
    until = np.where(same.all(axis=1), new, same.argmin(axis=1))
    kl = divergences(right.scores, scores)
    return Likeness(
        sequences=sequences,
        tokens=new,
        sqnr_db=pooled_db(right.scores, scores),
        kl_nats=None if kl is None else kl[0],
        kl_uniform_nats=None if kl is None else kl[1],
        same_top=int(same.sum()),
        same_greedy=_same_greedy(scorer, right, choice, same),
        same_until=tuple(int(count) for count in until),
        nonfinite=int((~finite).sum()),
    )


def _same_greedy(
    scorer: Scorer, right: Continuation, choice: TokenChoice, same: npt.NDArray[np.bool_]
) -> int:
    """Return how many tokens of the case's own continuation stand at their place in the right one.

    Up to the first other token of any sequence both have read the same, so that only what follows
    is written anew.
    """
    import numpy as np

    if same.all():
        return int(same.size)
    new = same.shape[1]
    prompt = right.ids.shape[1] - new
    ids = right.ids[:, :prompt]
    scores = scorer.begin(ids)
    for _ in range(new):
        ids = np.concatenate([ids, choice.likeliest(scores)[:, None]], axis=1)
        if ids.shape[1] < right.ids.shape[1]:
            scores = scorer.follow(ids[:, -1:])
    return int((ids == right.ids)[:, prompt:].sum())


def pooled_db(right: npt.NDArray[np.floating[Any]], other: npt.NDArray[np.floating[Any]]) -> float:
    """Return the signal to noise ratio over all tokens, each token's scores less their mean.

    What all tokens of a place have in common moves no probability, and neither excuses noise nor
    makes any.
    """
    import numpy as np

    if not (np.isfinite(right).all() and np.isfinite(other).all()):
        return NOISE_DB
    signal = noise = 0.0
    for first, second in _rows(right, other):
        first, second = first - first.mean(), second - second.mean()
        signal += float(first @ first)
        noise += float((first - second) @ (first - second))
    if not noise:
        return EXACT_DB
    if not signal:
        return NOISE_DB
    return float(np.clip(10 * np.log10(signal / noise), NOISE_DB, EXACT_DB))


def divergences(
    right: npt.NDArray[np.floating[Any]], other: npt.NDArray[np.floating[Any]]
) -> tuple[float, float] | None:
    """Return mean divergences from the right distribution, of the other one and of a uniform one.

    Both in nats; ``None`` where every place holds NaN or infinity on one side.
    """
    import numpy as np

    own: list[float] = []
    uniform: list[float] = []
    for first, second in _rows(right, other):
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            continue
        first, second = log_shares(first), log_shares(second)
        shares = np.exp(first)
        own.append(max(0.0, float(shares @ (first - second))))
        uniform.append(max(0.0, float(np.log(len(first)) + shares @ first)))
    return (float(np.mean(own)), float(np.mean(uniform))) if own else None


def _rows(*scores: npt.NDArray[np.floating[Any]]) -> Any:
    """Yield the scores of each place, in float64, one place at a time."""
    import numpy as np

    flat = [values.reshape(-1, values.shape[-1]) for values in scores]
    for rows in zip(*flat, strict=True):
        yield tuple(row.astype(np.float64) for row in rows)
