"""Which variant to ship, said in one sentence: the fastest one, and of those that can't be told
apart by their speed the one that is nearest to the original."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_ortbench.analysis.proof import ROUNDING_DB, Proof, needed_proof
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import CHAIN, Provider
from pytest_ortbench.core.quantity import Quantity

#: Ratios nearer than this are not told apart.
STEP_DB = 10.0
#: Sizes nearer than this are not mentioned.
SMALLER = 1.05


class Tie(Enum):
    """How a variant stands to those that it can't be told from."""

    NONE = "none"
    EVEN = "even"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A case that is the fastest of its batch size, or can't be told from it.

    Attributes:
        variant: What would be shipped, without the batch: ``fp16/openvino:GPU``.
        label: With the batch.
        summary: Its numbers.
    """

    variant: str
    label: str
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Which variant to ship, and what speaks for it.

    Attributes:
        variant: ``int8-static/cpu``.
        label: Its case at the smallest batch size.
        batches: Batch sizes at which none is faster.
        tied_at: Those of them at which another variant can't be told from it.
        elsewhere: Batch size and variant where another one is faster.
        ties: Variants that are as fast at the smallest batch size.
        nearest: Whether it was chosen among them for its accuracy.
        smaller: How many times smaller than fp32, else native; ``None`` if it is not.
        error: Relative error of the worst output against the reference (root mean square, 0.01 is
            one per cent); ``None`` where it is the original, exact or not compared.
        top1: Share of inputs whose most likely class stayed the same, with its exact interval.
        drawn_inputs: Whether the verdict on its answers rests on random inputs alone.
        needs: What it needs before it may be preferred to another precision; ``None`` for nothing.
        on_calibration: Whether it was compared on the inputs that it was calibrated on.
        tie: What it has at the smallest batch size with those that are as fast.
        rivals: Number of variants that were ranked.
        blurred_by: Flags that make it less certain.
        idle: Links of its chain of providers that computed nothing at the smallest batch size.
        working: The chain without them, as it is written; empty where every link computed.
        one_worker: Variants that it was chosen among and that a single process measured. How far
            processes of these differ was not seen, so nothing is recommended.
    """

    variant: str
    label: str
    batches: tuple[int, ...]
    tied_at: tuple[int, ...] = ()
    elsewhere: tuple[tuple[int, str], ...] = ()
    ties: tuple[str, ...] = ()
    nearest: bool = False
    smaller: float | None = None
    error: float | None = None
    top1: Quantity | None = None
    drawn_inputs: bool = False
    needs: Proof | None = None
    on_calibration: bool = False
    tie: Tie = Tie.NONE
    rivals: int = 1
    blurred_by: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    working: str = ""
    one_worker: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether the numbers allow a recommendation: each of several processes, and told apart."""
        return not self.one_worker and self.tie is not Tie.UNKNOWN


def advise(
    pools: Sequence[Sequence[Contender]],
    *,
    rivals: int,
    original_bytes: float | None,
    blurred_by: tuple[str, ...] = (),
    unsure: bool = False,
    one_worker: tuple[str, ...] = (),
) -> Advice:
    """Choose among the fastest.

    Args:
        pools: For each batch size, smallest first: the fastest, then those that tie with it.
        rivals: Number of variants that were ranked at all.
        original_bytes: Size of the fp32 variant, else of the native one.
        blurred_by: Flags of the fastest case of the smallest batch size.
        unsure: Whether their numbers there are too noisy to say that those that tie are even.
        one_worker: Variants that a single process measured.
    """
    first = pools[0]
    chosen = min(
        enumerate(first),
        key=lambda pair: (
            sum(pair[1].variant not in _variants(pool) for pool in pools[1:]),
            bool(pair[1].summary.idle_links),
            -_nearness(pair[1].summary),
            pair[0],
        ),
    )[1]
    case, size = chosen.summary.case, chosen.summary.quantities.get("model_size")
    shrunk = original_bytes / size.value if original_bytes and size and size.value > 0 else 0.0
    mine = [pool for pool in pools if chosen.variant in _variants(pool)]
    others = [candidate for candidate in first if candidate.variant != chosen.variant]
    worst_db = chosen.summary.worst_db
    top1 = chosen.summary.quantities.get("accuracy_top1")
    idle = chosen.summary.idle_links
    converted = case.variant.precision not in ("fp32", "native")
    return Advice(
        variant=chosen.variant,
        label=chosen.label,
        batches=tuple(_batch(pool) for pool in mine),
        tied_at=tuple(_batch(pool) for pool in mine if len(_variants(pool)) > 1),
        elsewhere=tuple(
            (_batch(pool), pool[0].variant)
            for pool in pools
            if chosen.variant not in _variants(pool)
        ),
        ties=tuple(dict.fromkeys(other.variant for other in others)),
        nearest=bool(others)
        and all(_nearness(other.summary) < _nearness(chosen.summary) for other in others),
        smaller=shrunk if shrunk >= SMALLER else None,
        error=10 ** (-worst_db / 20) if converted and worst_db is not None else None,
        top1=top1 if converted else None,
        drawn_inputs=chosen.summary.on_drawn_inputs,
        needs=needed_proof(chosen.summary),
        on_calibration=case.variant.on_calibration,
        tie=Tie.NONE if not others else Tie.UNKNOWN if unsure else Tie.EVEN,
        rivals=rivals,
        blurred_by=blurred_by,
        idle=idle,
        working=_working(case.provider, idle) if idle else "",
        one_worker=one_worker,
    )


def _working(chain: Provider, idle: Collection[str]) -> str:
    return CHAIN.join(link.label for link in chain.links if link.label not in idle)


def _batch(pool: Sequence[Contender]) -> int:
    return pool[0].summary.case.batch


def _variants(pool: Sequence[Contender]) -> set[str]:
    return {candidate.variant for candidate in pool}


def _nearness(summary: Summary) -> float:
    """How near the outputs are to the original's, in steps; -1 where nobody compared them."""
    if summary.case.variant.precision in ("fp32", "native"):
        return ROUNDING_DB
    worst_db = summary.worst_db
    if worst_db is None:
        return ROUNDING_DB if summary.exact else -1.0
    return min(ROUNDING_DB, worst_db // STEP_DB * STEP_DB)
