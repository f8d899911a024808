"""How well a decoder foresees a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.worker.generation.scoring import Scorer, at_once

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def nats_of_window(scorer: Scorer, window: Sequence[int], batch: int) -> float:
    """Return the sum of -log of the probability of each token but the first.

    Args:
        scorer: Of the model.
        window: Tokens, which begin with an empty cache.
        batch: Sequences that the model takes; all are fed the same, and the first counts.

    Returns:
        Nats; infinite where the scores hold NaN or infinity.
    """
    import numpy as np

    # The last one is only foreseen.
    ids = np.broadcast_to(np.array(window[:-1], dtype=np.int64), (batch, len(window) - 1))
    scores = at_once(scorer, ids, range(1, len(window)))[0]
    if not np.isfinite(scores).all():
        return math.inf
    return sum(
        -float(log_shares(row.astype(np.float64))[token])
        for row, token in zip(scores, window[1:], strict=True)
    )


def log_shares(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of each token's probability."""
    import numpy as np

    less = scores - scores.max()
    shares: npt.NDArray[np.float64] = less - np.log(np.exp(less).sum())
    return shares
