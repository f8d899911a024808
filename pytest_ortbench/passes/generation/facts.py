"""Whether what a decoder writes is right, and what its cache takes. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.generation import Consistency


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Scores of tokens against those of the reference, both after the reference's own tokens.

    Attributes:
        sequences: How many there are.
        tokens: Tokens of each that were scored: those that the reference writes.
        sqnr_db: Signal to noise ratio over all of them, each token's scores less their mean; 300
            where there is no difference, -200 where one side holds NaN or infinity.
        kl_nats: Mean divergence of the case from the reference (Kullback and Leibler); ``None``
            where one side holds NaN or infinity everywhere.
        kl_uniform_nats: That of a model that knows nothing, to which all tokens are as likely.
        same_top: Scores whose likeliest token is the reference's.
        same_greedy: Tokens that the case writes by itself as the reference does, of all sequences.
        same_until: Tokens of each sequence that are the reference's before the first that is not.
        nonfinite: Tokens whose scores hold NaN or infinity on either side; they are never the same.
    """

    sequences: int
    tokens: int
    sqnr_db: float
    kl_nats: float | None
    kl_uniform_nats: float | None
    same_top: int
    same_greedy: int
    same_until: tuple[int, ...]
    nonfinite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """How well a text was foreseen, in windows that each begin with an empty cache.

    Attributes:
        tokens: Tokens that were foreseen, by window: all but its first.
        nats: What each window was worth to the case: the sum of -log of each token's probability.
        reference_nats: To the reference, likewise; empty without one.
        vocabulary: How many tokens there are: a model that knows nothing gives each the same.
        reason: Why nothing was scored; empty otherwise.
    """

    tokens: tuple[int, ...] = ()
    nats: tuple[float, ...] = ()
    reference_nats: tuple[float, ...] = ()
    vocabulary: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGrowth:
    """Resident memory while a cache grows token by token, in a session that ran nothing before.

    Attributes:
        tokens: Tokens of each sequence in the cache, at each reading.
        resident_bytes: Resident size then, once free memory was given back.
        peak_bytes: Its highest value since the first reading; empty where nothing tells it.
        cache_bytes: Bytes of the bound cache of all sequences then.
        source: How sizes are read.
        reason: Why nothing was read; empty otherwise.
    """

    tokens: tuple[int, ...] = ()
    resident_bytes: tuple[int, ...] = ()
    peak_bytes: tuple[int, ...] = ()
    cache_bytes: tuple[int, ...] = ()
    source: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationCheck:
    """What a language model was seen to write, or why it was not looked at.

    Attributes:
        after: After how many tokens its scores were compared with its own of one run over all.
        consistent_db: How near they are, for each of these, of the worst sequence.
        at_end: The same at the end of a request as it was asked for; ``None`` in documents of
            earlier releases.
        reference: What is right, for people.
        likeness: How near it is to the reference; ``None`` without one.
        reference_reason: Why there is none; empty otherwise.
        text: How well it foresees the user's text; ``None`` where none was named.
        cache_bytes: Bytes of the cache at the end of a request, as it is bound; ``None`` where the
            engine keeps it to itself.
        cache_tokens: Tokens of a sequence that it has room for then; likewise.
        cache_computed_bytes: Bytes that so many tokens take by the shapes of keys and values.
        growth: Memory as the context grows; ``None`` in documents of earlier releases.
        reason: Why nothing was looked at; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    after: tuple[int, ...] = ()
    consistent_db: tuple[float, ...] = ()
    at_end: Consistency | None = None
    reference: str = ""
    likeness: Likeness | None = None
    reference_reason: str = ""
    text: TextScore | None = None
    cache_bytes: int | None = None
    cache_tokens: int | None = None
    cache_computed_bytes: int | None = None
    growth: ContextGrowth | None = None
    reason: str = ""
    interrupted: bool = False
