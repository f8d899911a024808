"""Whether a decoder is fed rightly: token by token it scores as over all tokens at once.

Mathematically both are equal. A mask that is too short, a cache of another length and positions
that are off by one make them differ, and so does a kernel that is wrong for one token. What is
wrong in the same way on both sides can't be seen by this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.precision import computed_precision
from pytest_ortbench.worker.generation.requests import Prompts, generation_in
from pytest_ortbench.worker.generation.scoring import (
    NOISE_DB,
    Scorer,
    at_once,
    sqnr_db,
    step_by_step,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]

#: Tokens that are read at once and one by one; short, since it is done before any request is timed.
PROMPT, LATER = 8, 6
#: Smallest signal to noise ratio in dB. Seen on the CPU: 120 to 135 (fp32), 71 and exact (fp16),
#: 40 (int4 on 8-bit activations), 29 (int8-dynamic, whose scales depend on the other tokens of a
#: run); fed wrongly 12 to 25.
LEAST_DB = {"fp32": 60.0, "fp16": 40.0, "bf16": 30.0, "int4": 30.0, "int8": 25.0}
#: Below that a file may still be no nearer to itself than so many dB more.
_SLACK_DB = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """How near scores token by token are to those over all tokens at once.

    Attributes:
        after: After how many tokens the scores are; the first is the prompt.
        sqnr_db: Signal to noise ratio after each, of the worst sequence.
        median_db: Of the later ones; of the worst sequence.
        own_db: How near the file is to itself where further tokens follow in one run, likewise;
            ``None`` where nobody had to know.
        least_db: What the median must reach.
    """

    after: tuple[int, ...]
    sqnr_db: tuple[float, ...]
    median_db: float
    own_db: float | None
    least_db: float

    @property
    def is_right(self) -> bool:
        """Whether nothing speaks for a wrong feed."""
        if not self.median_db < self.least_db:  # NaN, too: there is nothing to compare
            return True
        return self.own_db is not None and self.median_db >= self.own_db - _SLACK_DB


def require_consistent(scorer: Scorer, case: Case) -> None:
    """Refuse to time a decoder that scores otherwise token by token than at once.

    Raises:
        WorkerError: for one that does.
    """
    asked = generation_in(case)
    prompt, later = min(PROMPT, asked.prompt_tokens), min(LATER, asked.new_tokens - 1)
    ids = Prompts(case, seed=0).draw(prompt + later)
    seen = consistency(scorer, ids, prompt, LEAST_DB[computed_precision(case)])
    if seen.is_right:
        return
    ratios = ", ".join(f"{ratio:.1f}" for ratio in seen.sqnr_db)
    raise WorkerError(
        Failure(
            kind="error",
            phase="first",
            message="token by token its logits are not those of one run over all tokens: "
            f"{ratios} dB after {prompt} to {prompt + later} tokens, where {seen.least_db:g} dB "
            "are the least; so it is fed wrongly, or computes wrongly with a cache",
            hint="Look at what the file expects of mask, positions and cache; --ort-generate=off "
            "times single inferences",
        )
    )


def consistency(scorer: Scorer, ids: Ids, prompt: int, least_db: float) -> Consistency:
    """Compare scores token by token with those of one run over all tokens.

    Args:
        scorer: Of the model.
        ids: ``[batch, tokens]``.
        prompt: How many of these are read at once.
        least_db: Signal to noise ratio that the later ones must reach.
    """
    import numpy as np

    after = tuple(range(prompt, ids.shape[1] + 1))
    whole = at_once(scorer, ids, after)
    ratios = sqnr_db(whole, step_by_step(scorer, ids, prompt))
    median = _worst_median(ratios[:, 1:])
    own = None
    if median < least_db:
        alone = np.stack([scorer.begin(ids[:, :length]) for length in after[1:]], axis=1)
        own = _worst_median(sqnr_db(whole[:, 1:], alone))
    return Consistency(
        after=after,
        sqnr_db=tuple(float(ratio) for ratio in np.nan_to_num(ratios, nan=NOISE_DB).min(axis=0)),
        median_db=median,
        own_db=own,
        least_db=least_db,
    )


def _worst_median(ratios: npt.NDArray[np.float64]) -> float:
    """Return the smallest of the medians over tokens; NaN where no sequence has one."""
    import numpy as np

    medians = np.median(ratios, axis=1)
    known = medians[~np.isnan(medians)]
    return float(known.min()) if len(known) else float("nan")
