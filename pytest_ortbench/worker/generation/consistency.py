"""Whether a decoder is fed rightly: token by token it scores as over all tokens at once.

Mathematically both are equal. A mask that is too short, a cache of another length and positions
that are off by one make them differ, and so does a kernel that is wrong for one token. What is
wrong in the same way on both sides can't be seen by this.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.generation import MOST_AT_ONCE, NOISE_DB, Consistency
from pytest_ortbench.core.precision import computed_precision
from pytest_ortbench.core.units import decimals_apart
from pytest_ortbench.worker.generation.requests import Prompts, decoder_in, generation_in
from pytest_ortbench.worker.generation.scoring import (
    Scorer,
    at_once,
    sqnr_db,
    step_by_step,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]
    #: Logits, in the type that the model gives them.
    Logits = npt.NDArray[Any]

#: Tokens that are read at once and one by one; short, since it is done before any request is timed.
PROMPT, LATER = 8, 6
#: Smallest signal to noise ratio in dB. Seen on the CPU: 120 to 135 (fp32), 71 and exact (fp16),
#: 40 (int4 on 8-bit activations), 29 (int8-dynamic, whose scales depend on the other tokens of a
#: run); fed wrongly 12 to 25.
LEAST_DB = {"fp32": 60.0, "fp16": 40.0, "bf16": 30.0, "int4": 30.0, "int8": 25.0}
#: Logits of a whole request that are held at a time, in bytes.
_MOST_BYTES = 1 << 28


def require_consistent(scorer: Scorer, case: Case) -> None:
    """Refuse to time a decoder that scores otherwise token by token than at once.

    Raises:
        WorkerError: for one that does.
    """
    asked = generation_in(case)
    prompt, later = min(PROMPT, asked.prompt_tokens), min(LATER, asked.new_tokens - 1)
    ids = Prompts(case, seed=0).draw(prompt + later)
    seen = consistency(scorer, ids, prompt, LEAST_DB[computed_precision(case)])
    if not seen.is_wrong:
        return
    ratios = ", ".join(decimals_apart(ratio, seen.least_db) for ratio in seen.sqnr_db)
    raise case_error(
        "token by token, with its cache, the model gives other logits than for all tokens at once. "
        f"After {prompt} to {prompt + later} tokens, the signal to noise ratios of the two are "
        f"{ratios} dB, but their median must be at least {seen.least_db:g} dB",
        "Check the attention mask, the positions and the cache of the export. To measure single "
        "inferences only, use --ort-generate=off",
        kind="error",
        phase="first",
    )


def consistency(scorer: Scorer, ids: Ids, prompt: int, least_db: float) -> Consistency:
    """Compare scores token by token with those of one run over all tokens.

    Args:
        scorer: Of the model.
        ids: ``[batch, tokens]``.
        prompt: How many of these are read at once; what follows it is judged.
        least_db: Signal to noise ratio that the later ones must reach.
    """
    after = range(prompt, ids.shape[1] + 1)
    return _compared(scorer, ids, after, step_by_step(scorer, ids, prompt), least_db, judged=1)


def consistency_at_end(scorer: Scorer, case: Case) -> Consistency:
    """Compare the last scores of a request, as it is carried out, with those of one run.

    The cache is filled in the same parts: a model that computes otherwise from some length on (two
    sets of rotations) differs there, and nowhere before.

    Args:
        scorer: Of the model.
        case: Its request.
    """
    asked, decoder = generation_in(case), decoder_in(case)
    tokens = asked.length - 1  # the last one is not read
    if 4 * case.batch * tokens * decoder.vocabulary > _MOST_BYTES:
        return Consistency(reason=f"scores of {tokens} tokens at once take too much memory")
    ids = Prompts(case, seed=2).draw(tokens)
    at_once_most = MOST_AT_ONCE if asked.engine == "session" else max(1, asked.depth)
    starts = [*range(0, asked.depth, at_once_most), asked.depth]
    starts += range(asked.depth + asked.prompt_tokens, tokens)
    parts = [ids[:, start:end] for start, end in pairwise([*starts, tokens])]
    scores = [scorer.begin(parts[0]), *(scorer.follow(part) for part in parts[1:])][-LATER:]
    after = range(tokens - len(scores) + 1, tokens + 1)
    least_db = LEAST_DB[computed_precision(case)]
    return _compared(scorer, ids, after, _as_one(scores), least_db, judged=0)


def _as_one(scores: Sequence[Logits]) -> Logits:
    """Return the scores after each token as one, ``[batch, tokens, vocabulary]``."""
    import numpy as np

    return np.stack(scores, axis=1)


def _compared(
    scorer: Scorer,
    ids: Ids,
    after: Sequence[int],
    steps: Logits,
    least_db: float,
    *,
    judged: int,
) -> Consistency:
    """Compare scores after so many tokens; the first ones are only told, not judged."""
    import numpy as np

    whole = at_once(scorer, ids, after)
    ratios = sqnr_db(whole, steps)
    median = worst_median(ratios[:, judged:])
    own = None
    if median is not None and median < least_db:
        alone = _as_one([scorer.begin(ids[:, :length]) for length in after[judged:]])
        own = worst_median(sqnr_db(whole[:, judged:], alone))
    return Consistency(
        after=tuple(after),
        sqnr_db=tuple(float(ratio) for ratio in np.nan_to_num(ratios, nan=NOISE_DB).min(axis=0)),
        median_db=median,
        own_db=own,
        least_db=least_db,
    )


def worst_median(ratios: npt.NDArray[np.float64]) -> float | None:
    """Return the smallest of the medians over tokens that are known; ``None`` where none is."""
    import numpy as np

    known = [row[~np.isnan(row)] for row in ratios]
    return min((float(np.median(row)) for row in known if len(row)), default=None)
