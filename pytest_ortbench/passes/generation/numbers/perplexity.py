"""Perplexity of a text, and whether a case foresees it as well as its reference does.

Perplexity is e to the mean of -log of the probability of each token. Tokens of one window are not
independent of each other: an interval comes from drawing whole windows anew, the same ones on both
sides, so that the ratio is known far better than either perplexity is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.passes.generation.facts import TextScore

METRICS = ("perplexity", "perplexity_ratio")
#: By how much the perplexity may rise. A choice: careful 4-bit weights cost some per cent of it,
#: and broken ones make it several times as large.
MOST_RATIO = 1.25
#: Nats a token that the reference must foresee better than a model that knows nothing, for its
#: perplexity to say something: random weights foresee nothing, whatever is done to them.
LEAST_NATS = 1.0
#: Windows that an interval needs, and how often they are drawn anew.
_FEWEST, _DRAWS = 4, 1000

#: What is judged.
OF = "accuracy"


def add_perplexity(collector: Collector, text: TextScore | None) -> None:
    """Add the perplexity of a text, and its ratio to the reference's."""
    if text is None or text.reason or not text.tokens:
        reason = "no text was given (--ort-text)" if text is None else text.reason
        collector.reject(METRICS, reason or "no token was predicted")
        return
    for name, nats, why_none in (
        ("perplexity", text.nats, ""),
        ("perplexity_ratio", differences(text), "the reference predicted no text"),
    ):
        if not nats:
            collector.add(name, None, reason=why_none)
            continue
        ends = nats_interval(nats, text.tokens)
        low, high = (None, None) if ends is None else map(_capped_exp, ends)
        value = _capped_exp(sum(nats) / sum(text.tokens))
        collector.add(name, value, low=low, high=high, samples=len(nats))


def judge_text(text: TextScore | None) -> Judgement:
    """Judge whether a text is foreseen as well as the reference foresees it.

    Bad where the perplexity is more than :data:`MOST_RATIO` times the reference's for certain, good
    where it is less for certain. Not judged in between, with few windows, and where even the
    reference foresees the text little better than chance.
    """
    if text is None or text.reason or not text.tokens or not text.reference_nats:
        return unjudged(
            OF, "no text was predicted" if text is None else text.reason or "no reference"
        )
    known = math.log(text.vocabulary) - sum(text.reference_nats) / sum(text.tokens)
    if known < LEAST_NATS:
        return unjudged(
            OF,
            f"the reference predicts the text only {known:.2g} nats per token better than chance",
        )
    ends = nats_interval(differences(text), text.tokens)
    if ends is None:
        return unjudged(OF, f"the text has fewer than {_FEWEST} windows")
    low, high = map(_capped_exp, ends)
    if high <= MOST_RATIO:
        return good(OF)
    if low <= MOST_RATIO:
        return unjudged(
            OF, f"its perplexity is between {low:.3g} and {high:.3g} times the reference's"
        )
    return bad(
        OF,
        f"the perplexity of the text is at least {low:.3g} times the reference's, and at most "
        f"{MOST_RATIO:g} times is allowed",
    )


def differences(text: TextScore) -> tuple[float, ...]:
    """Return by how many nats more each window is worth to the case; empty without a reference."""
    if not text.reference_nats:
        return ()
    pairs = zip(text.nats, text.reference_nats, strict=True)
    return tuple(own - right for own, right in pairs)


def nats_interval(nats: Sequence[float], tokens: Sequence[int]) -> tuple[float, float] | None:
    """Return the 95 % interval of nats a token, from windows drawn anew; ``None`` of too few.

    Args:
        nats: Of each window.
        tokens: Of each window.
    """
    count = len(nats)
    if count < _FEWEST:
        return None
    draw = random.Random(0)
    means = []
    for _ in range(_DRAWS):
        drawn = draw.choices(range(count), k=count)
        means.append(sum(nats[index] for index in drawn) / sum(tokens[index] for index in drawn))
    means.sort()
    edge = round(0.025 * _DRAWS)
    value = sum(nats) / sum(tokens)
    return min(means[edge], value), max(means[-1 - edge], value)


def _capped_exp(nats: float) -> float:
    """Return e to a number, at most what a document may hold."""
    return math.exp(min(nats, 600.0))
