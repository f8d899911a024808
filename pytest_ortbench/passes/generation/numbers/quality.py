"""How near a decoder writes to its reference, what its context takes, and when it is inaccurate.

Of the figures only the signal to noise ratio of the logits is compared with a floor. Agreement of
tokens and divergence depend on how sure a model is: where logits are flat, as those of random
weights are, the likeliest token changes with the smallest noise, and a distribution of noise is as
near as any other; where they are steep, neither sees much. The ratio is that of powers, so that
flat and steep models are held to the same, and a mean that all tokens share counts on neither side.

A text of the user's goes before it, as labels do: what foresees real text as well as the reference
is accurate, whatever its decibels.
"""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.generation import EXACT_DB
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.units import counted, decimals_apart
from pytest_ortbench.passes.generation.facts import ContextGrowth, GenerationCheck, Likeness
from pytest_ortbench.passes.generation.numbers.perplexity import METRICS as OF_TEXT
from pytest_ortbench.passes.generation.numbers.perplexity import add_perplexity, judge_text

#: Metrics that a reference is needed for.
OF_REFERENCE = (
    "logits_sqnr",
    "logits_kl",
    "logits_top1",
    "greedy_agreement",
    "greedy_prefix",
)
OF_CACHE = ("cache_bytes", "cache_computed", "cache_per_token", "memory_per_token")

#: The least that a cache must grow by: counters of the kernel and lists of Python wander by some
#: hundred kilobytes.
_LEAST_BYTES = 1 << 20


def add_check(collector: Collector, result: CaseResult) -> None:
    """Add what a case was seen to write, and what its cache takes."""
    check = result.generation
    if check is None or check.reason:
        reason = "it was not checked" if check is None else check.reason
        collector.reject((*OF_REFERENCE, *OF_CACHE, *OF_TEXT), reason)
        return
    add_perplexity(collector, check.text)
    _add_likeness(collector, check)
    unseen = "the engine does not show its cache"
    collector.add("cache_bytes", check.cache_bytes, reason=unseen)
    collector.add("cache_computed", check.cache_computed_bytes, reason=unseen)
    decoder = result.case.model.decoder
    _add_memory(
        collector,
        check,
        tokens=check.cache_tokens or _tokens_of_request(result),
        window=0 if decoder is None else decoder.window,
    )


def _tokens_of_request(result: CaseResult) -> int:
    """Return the tokens of a sequence at the end of a request, for a cache that nobody can see."""
    return 0 if result.case.generation is None else result.case.generation.length


def miss_of_tokens(result: CaseResult, floor: Floor) -> tuple[str, str]:
    """Say how what a case writes misses its floor, and why that can't be told; empty if neither.

    Args:
        result: The case.
        floor: What it must keep.
    """
    check = result.generation
    if check is None:
        return "", ""
    if check.reason:
        return "", f"the generated text was not checked: {check.reason}"
    if check.likeness is not None and check.likeness.nonfinite:
        places = counted(check.likeness.nonfinite, "token")
        return f"scores of {places} that were written hold NaN or infinity", ""
    end = check.at_end
    if end is not None and end.is_wrong and end.median_db is not None:
        return (
            f"at the end of a request, after {end.after[-1]} tokens, its logits with the cache "
            f"are {decimals_apart(end.median_db, end.least_db)} dB from those of one run over all "
            f"tokens, below the minimum of {end.least_db:g} dB",
            "",
        )
    unknown = ""
    if end is not None and not end.is_known and not end.reason:
        unknown = "at the end of a request, no score is a number"
    by_text = judge_text(check.text)
    if by_text.is_bad:
        return by_text.reason, ""
    if by_text.is_good:
        return "", unknown
    if result.case.is_source:  # where a file and its source differ the source is right
        return "", unknown
    if check.likeness is None:
        reason = check.reference_reason or "there is no reference"
        return "", f"the generated text can't be compared with anything: {reason}"
    if check.likeness.sqnr_db >= floor.sqnr_db:
        return "", unknown
    return (
        f"logits of {_places(check.likeness)} that were written one by one: SQNR "
        f"{decimals_apart(check.likeness.sqnr_db, floor.sqnr_db)} dB, below the minimum of "
        f"{floor.sqnr_db:g} dB for {floor.of}",
        "",
    )


def _places(likeness: Likeness) -> str:
    return counted(likeness.sequences * likeness.tokens, "token")


def _add_likeness(collector: Collector, check: GenerationCheck) -> None:
    likeness = check.likeness
    if likeness is None:
        collector.reject(OF_REFERENCE, check.reference_reason or "there is no reference")
        return
    places = likeness.sequences * likeness.tokens
    if likeness.nonfinite:
        collector.reject(
            OF_REFERENCE, f"scores of {likeness.nonfinite} of {places} tokens hold NaN or infinity"
        )
        return
    if likeness.sqnr_db >= EXACT_DB:
        collector.reject(("logits_sqnr",), "exact: no difference from the reference")
    else:
        collector.add("logits_sqnr", likeness.sqnr_db, samples=places)
    collector.add(
        "logits_kl",
        likeness.kl_nats,
        reason="logits hold NaN or infinity everywhere",
        samples=places,
    )
    low, high = proportion_interval(likeness.same_top, places)
    collector.add("logits_top1", likeness.same_top / places, low=low, high=high, samples=places)
    # Tokens of one sequence follow from each other: no interval can be had of them.
    collector.add("greedy_agreement", likeness.same_greedy / places, samples=likeness.sequences)
    collector.add("greedy_prefix", min(likeness.same_until), samples=likeness.sequences)


def _add_memory(collector: Collector, check: GenerationCheck, *, tokens: int, window: int) -> None:
    """Add what a token of all sequences takes.

    Args:
        collector: Takes the numbers.
        check: What was seen.
        tokens: Of a sequence, in the cache whose bytes were computed.
        window: Tokens that a part of the cache has room for, however long the text; 0 without one.
    """
    computed = 0 if window else check.cache_computed_bytes
    collector.add(
        "cache_per_token",
        computed / tokens if computed and tokens else None,
        reason=f"a part of the cache is as long as a window of {window} tokens, however long the "
        "text is"
        if window
        else "there is no cache",
    )
    growth = check.growth
    reason = "it was not checked" if growth is None else _why_no_memory(growth)
    if growth is None or reason:
        collector.reject(("memory_per_token",), reason)
        return
    rise = growth.resident_bytes[-1] - growth.resident_bytes[0]
    collector.add(
        "memory_per_token",
        rise / (growth.tokens[-1] - growth.tokens[0]),
        samples=len(growth.tokens),
    )


def _why_no_memory(growth: ContextGrowth) -> str:
    """Return why memory per token can't be told; empty if it can."""
    if growth.reason:
        return growth.reason
    if len(growth.tokens) < 2:
        return "the context did not grow while memory was watched"
    by = growth.cache_bytes[-1] - growth.cache_bytes[0]
    if by < _LEAST_BYTES:
        return (
            f"the cache grew by {by / 1e6:.2g} MB, less than the noise of resident memory; use "
            "more sequences or new tokens"
        )
    if growth.resident_bytes[-1] - growth.resident_bytes[0] < by:
        return (
            "memory rose by less than the cache, which reused memory that the process already had"
        )
    return ""
