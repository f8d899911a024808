"""What a reader wants to know of a run: per model the fastest, the most per second, the smallest.

Only comparable rows are ranked: measured, without a flag that bars them, with the same sizes, the
same preset (a language model's prefill is other work than its decode), the same inputs and outputs
in the timed region, and the same number of callers. Requests of a language model, of the same
lengths, are ranked by their time per token; the best first token is named beside it. Latencies of
different batches are never ranked with each other; throughputs are, and name their batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ortbench.analysis.against_engines import EngineAnswer, engine_answers
from pytest_ortbench.analysis.candidates import (
    Candidate,
    are_even,
    are_tied,
    doubts,
    speed_metric,
)
from pytest_ortbench.analysis.cpu_time import CpuTime
from pytest_ortbench.analysis.other_precisions import precision_to_try
from pytest_ortbench.analysis.proof import Proof, needed_proof
from pytest_ortbench.analysis.ranked import (
    SEPARATING_KNOBS,
    Factor,
    factor_between,
    label_of,
    why_not_ranked,
    workload_of,
)
from pytest_ortbench.analysis.recommendation import (
    Advice,
    Contender,
    advise,
)
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.analysis.variant_bars import BatchBars, batch_bars
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.registry import unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The best of the ranked cases in one respect.

    Attributes:
        metric: Name of the metric that ranks.
        label: The case without its model: ``fp16/openvino:GPU/b1``; for the smallest variant its
            precision.
        case_id: Full id.
        runtime: Label of its runtime.
        batch: Its batch size.
        quantity: Its number.
        ties: Labels of cases that can't be told from it, best first.
        unsure: Those of them that are not known to be alike, since a number is too noisy.
        noisy: Flags that blur any of these numbers.
        ranked: Number of cases that were ranked here, itself included.
        factor: Against fp32 (else native) on the CPU; ``None`` if it is that, ties with it, or
            there is none.
        blurred_by: Names of flags that blur its number.
    """

    metric: str
    label: str
    case_id: str
    runtime: str
    batch: int
    quantity: Quantity
    ties: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    noisy: tuple[str, ...] = ()
    ranked: int = 1
    factor: Factor | None = None
    blurred_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A variant that is faster, and that nothing but its speed recommends yet.

    Attributes:
        needs: What it needs first.
        on_calibration: Whether it was compared on the inputs that it was calibrated on.
        variant: ``int8-static/cpu``.
        label: Its fastest case where it wins: ``int8-static/cpu/b1``.
        batch: The batch size of that.
        factor: How much faster it is there than what is recommended; ``None`` where nothing is.
        error: Relative error of its worst output; ``None`` where it is exact or not compared.
    """

    needs: Proof
    on_calibration: bool = False
    variant: str
    label: str
    batch: int
    factor: Factor | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacked:
    """A case that did not get its CPUs.

    Attributes:
        label: As of a winner.
        time: What it got of them.
        share: Lower end of its time, as a share of it.
    """

    label: str
    time: CpuTime
    share: float


#: A time of which less than this share may be enough on an idle machine is no sure one.
_OPEN = 0.8

#: What gives a row rivals; beside it, another precision that suits the model.
ALL_PROVIDERS = "--ort-providers=all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """The answer for one model at one set of sizes.

    Attributes:
        model: Name of the model.
        dims: Sizes of its symbolic dimensions, where they form an axis.
        io: ``end-to-end`` or ``device``.
        workload: What is part of the workload, knobs and whether it is done over the network:
            ``{"workload": "decode"}``.
        speed: What the metric is called that ranks.
        ranked: Number of cases that could be ranked.
        fastest: One a batch size, smallest batch first.
        soonest: The same for the first token of requests; none where inferences are timed.
        first: What that metric is called.
        throughput: Over all batch sizes.
        smallest: Over all variants that can be ranked.
        advice: Which variant to ship; ``None`` if none can be ranked, or recommended.
        withheld: What is faster than that, and needs real inputs or labels first.
        asked: Number of variants that were asked for.
        precision: That of the first of them.
        provider: Likewise, as it is called in ids.
        untried: Options that would give it rivals, as they are written; none where the run was made
            to compare with another side.
        runner_up: How much faster the fastest of the smallest batch size is than the next variant
            that does not tie with it.
        lacked: The ranked case whose time lack of CPUs leaves most open; ``None`` where there is
            none.
        left_out: Label and reason of each case that could not be ranked.
        engines: ONNX Runtime beside each other engine and framework.
        bars: Its variants as bars, one group a batch size.
    """

    model: str
    dims: dict[str, int] = field(default_factory=dict)
    io: str = "end-to-end"
    workload: dict[str, str] = field(default_factory=dict)
    speed: str = "p50"
    ranked: int = 0
    fastest: tuple[Winner, ...] = ()
    soonest: tuple[Winner, ...] = ()
    first: str = ""
    throughput: Winner | None = None
    smallest: Winner | None = None
    advice: Advice | None = None
    withheld: Withheld | None = None
    asked: int = 1
    precision: str = "native"
    provider: str = ""
    untried: tuple[str, ...] = ()
    runner_up: Factor | None = None
    lacked: Lacked | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    engines: tuple[EngineAnswer, ...] = ()
    bars: tuple[BatchBars, ...] = ()


def answers(run: Run, summaries: Sequence[Summary]) -> list[ModelAnswer]:
    """Answer for every model and set of sizes of a run, in the order of measuring.

    Args:
        run: Any run.
        summaries: One for each of its cases, in their order.
    """
    several = len({result.case.runtime.label for result in run.cases}) > 1
    groups: dict[tuple[object, ...], list[tuple[CaseResult, Summary]]] = {}
    for result, summary in zip(run.cases, summaries, strict=True):
        groups.setdefault(workload_of(result.case), []).append((result, summary))
    return [
        _answer(members, runtimes=several, untried=_untried(run, members[0][0].case))
        for members in groups.values()
    ]


def _untried(run: Run, case: Case) -> tuple[str, ...]:
    """Name options that the run was called without, and that suit its model."""
    if run.gate:
        return ()
    providers = () if run.options.get("providers") == "all" else (ALL_PROVIDERS,)
    other = "" if "precisions" in run.options else precision_to_try(case)
    return (*providers, *((f"--ort-precisions=fp32,{other}",) if other else ()))


def _answer(
    members: Sequence[tuple[CaseResult, Summary]], *, runtimes: bool, untried: tuple[str, ...]
) -> ModelAnswer:
    candidates: list[Candidate] = []
    left_out: list[tuple[str, str]] = []
    for result, summary in members:
        label = label_of(result, runtimes=runtimes)
        reason = why_not_ranked(summary)
        if reason:
            left_out.append((label, reason))
        else:
            candidates.append(
                Candidate(summary, label, label_of(result, runtimes=runtimes, batch=False))
            )
    case = members[0][0].case
    batches = sorted({candidate.batch for candidate in candidates})
    by_batch = [
        [candidate for candidate in candidates if candidate.batch == batch] for batch in batches
    ]
    unit = unit_of(case)
    fastest = _best_of_batches(candidates, speed_metric(case))
    precisions = {result.case.variant.precision for result, _ in members}
    advice, withheld = _recommended(candidates, fastest, several=len(precisions) > 1)
    return ModelAnswer(
        model=case.model.name,
        dims=case.dims,
        io=case.io,
        workload={
            **{name: case.knobs[name] for name in SEPARATING_KNOBS if name in case.knobs},
            **({"where": "over the network"} if case.provider.is_endpoint else {}),
        },
        speed="p50" if unit is None else unit.speed[1],
        ranked=len(candidates),
        fastest=fastest,
        soonest=() if unit is None else _best_of_batches(candidates, unit.first[0]),
        first="" if unit is None else unit.first[1],
        throughput=_winner(candidates, "throughput" if unit is None else unit.rate)
        if candidates
        else None,
        smallest=_smallest(candidates) if candidates else None,
        advice=advice,
        withheld=withheld,
        asked=len({label_of(result, runtimes=runtimes, batch=False) for result, _ in members}),
        precision=case.variant.precision,
        provider=case.provider.described,
        untried=untried,
        runner_up=_runner_up(by_batch[0], fastest[0]) if candidates else None,
        lacked=_lacked(candidates),
        left_out=tuple(left_out),
        engines=engine_answers(members, runtimes=runtimes),
        bars=batch_bars(
            members,
            advice if advice is not None and advice.is_settled else None,
            unproven=None if withheld is None else (withheld.variant, withheld.needs),
            runtimes=runtimes,
        ),
    )


def _lacked(candidates: Sequence[Candidate]) -> Lacked | None:
    """The case that may be faster by the most with all of its CPUs, if that is worth a word."""
    known = [
        Lacked(
            label=candidate.label,
            time=candidate.summary.lacked,
            share=candidate.speed.low / candidate.speed.value,
        )
        for candidate in candidates
        if candidate.summary.lacked is not None and candidate.speed.low is not None
    ]
    least = min(known, key=lambda lacked: lacked.share, default=None)
    return least if least is not None and least.share < _OPEN else None


def _best_of_batches(candidates: Sequence[Candidate], metric: str) -> tuple[Winner, ...]:
    """The best of each batch size, smallest batch first."""
    batches = sorted({candidate.batch for candidate in candidates})
    return tuple(
        _winner([candidate for candidate in candidates if candidate.batch == batch], metric)
        for batch in batches
    )


def _recommended(
    candidates: Sequence[Candidate], fastest: Sequence[Winner], *, several: bool
) -> tuple[Advice | None, Withheld | None]:
    """Which variant to ship, and which faster one needs real inputs or labels first.

    Args:
        candidates: What may be ranked.
        fastest: The fastest of each batch size.
        several: Whether more than one precision was asked for.
    """
    if not candidates:
        return None, None
    rivals = len({candidate.variant for candidate in candidates})
    advice = _advice(candidates, fastest, rivals)
    needs: dict[str, Proof] = {}
    for candidate in candidates:
        proof = needed_proof(candidate.summary)
        if proof is not None:
            needs.setdefault(candidate.variant, proof)
    preferred = (advice.variant, *(variant for _, variant in advice.elsewhere))
    unproven = [variant for variant in preferred if variant in needs]
    if not several or not unproven:
        return advice, None
    sound = [candidate for candidate in candidates if candidate.variant not in needs]
    return (
        _advice(sound, _best_of_batches(sound, speed_metric(sound[0].summary.case)), rivals)
        if sound
        else None,
        _withheld(unproven[0], needs[unproven[0]], candidates, fastest, sound),
    )


def _withheld(
    variant: str,
    needs: Proof,
    candidates: Sequence[Candidate],
    fastest: Sequence[Winner],
    sound: Sequence[Candidate],
) -> Withheld:
    by_label = {candidate.label: candidate for candidate in candidates}
    best = next(
        by_label[label]
        for winner in fastest
        for label in (winner.label, *winner.ties)
        if by_label[label].variant == variant
    )
    rivals = [candidate for candidate in sound if candidate.batch == best.batch]
    next_best = min(rivals, key=lambda rival: rival.speed.value, default=None)
    worst_db = best.summary.worst_db
    return Withheld(
        needs=needs,
        on_calibration=best.summary.case.variant.on_calibration,
        variant=variant,
        label=best.label,
        batch=best.batch,
        factor=None
        if next_best is None
        else factor_between(best, next_best, speed_metric(best.summary.case)),
        error=None if worst_db is None else 10 ** (-worst_db / 20),
    )


def _advice(candidates: Sequence[Candidate], fastest: Sequence[Winner], rivals: int) -> Advice:
    """Which variant to ship: the fastest ones of each batch size decide."""
    by_label = {candidate.label: candidate for candidate in candidates}
    pools = [
        [
            Contender(variant=winning.variant, label=label, summary=winning.summary)
            for label in (winner.label, *winner.ties)
            for winning in (by_label[label],)
        ]
        for winner in fastest
    ]
    sizes = {
        candidate.summary.case.variant.precision: candidate.summary.quantities["model_size"].value
        for candidate in candidates
        # What a provider compiled ahead is no original.
        if candidate.summary.case.variant.compilation is None
    }
    return advise(
        pools,
        rivals=rivals,
        original_bytes=sizes.get("fp32", sizes.get("native")),
        blurred_by=fastest[0].blurred_by,
        unsure=bool(fastest[0].unsure),
        one_worker=_in_one_worker(candidates),
    )


def _in_one_worker(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Name the variants that one process measured; none where there is nothing to choose among."""
    if len({candidate.variant for candidate in candidates}) < 2:
        return ()
    return tuple(
        dict.fromkeys(candidate.variant for candidate in candidates if candidate.one_worker)
    )


def _runner_up(same_batch: Sequence[Candidate], fastest: Winner) -> Factor | None:
    beaten = [
        candidate
        for candidate in same_batch
        if candidate.label not in (fastest.label, *fastest.ties)
    ]
    if not beaten:
        return None
    best = next(candidate for candidate in same_batch if candidate.label == fastest.label)
    second = min(beaten, key=lambda candidate: candidate.speed.value)
    return factor_between(best, second, speed_metric(best.summary.case))


def _winner(candidates: Sequence[Candidate], metric: str) -> Winner:
    """The best of at least one candidate, and those that can't be told from it."""
    higher = METRICS[metric].better == "higher"
    ordered = sorted(
        candidates, key=lambda candidate: candidate.summary.quantities[metric].value, reverse=higher
    )
    best, others = ordered[0], ordered[1:]
    tied = [other for other in others if are_tied(best, other, metric)]
    reference = _reference(candidates, best, metric)
    summary = best.summary
    return Winner(
        metric=metric,
        label=best.label,
        case_id=summary.case.case_id,
        runtime=summary.case.runtime.label,
        batch=best.batch,
        quantity=summary.quantities[metric],
        ties=tuple(other.label for other in tied),
        unsure=tuple(other.label for other in tied if not are_even(best, other, metric)),
        noisy=tuple(
            dict.fromkeys(flag for candidate in (best, *tied) for flag in candidate.blurred_by)
        ),
        ranked=len(candidates),
        factor=(
            None
            if reference is None or reference is best or reference in tied
            else factor_between(best, reference, metric)
        ),
        blurred_by=(*best.blurred_by, *doubts(best, others, metric)),
    )


def _reference(candidates: Sequence[Candidate], best: Candidate, metric: str) -> Candidate | None:
    """The case on the CPU in fp32, else in the file's own precision, that is nearest to ``best``.

    Nearest means the same runtime and the same knobs, then the better number.
    """
    sign = -1 if METRICS[metric].better == "higher" else 1
    case = best.summary.case
    for precision in ("fp32", "native"):
        nearest = [
            candidate
            for candidate in candidates
            if candidate.summary.case.provider.label == "cpu"
            and candidate.summary.case.variant.precision == precision
        ]
        if nearest:
            return min(
                nearest,
                key=lambda rival: (
                    rival.summary.case.runtime.label != case.runtime.label,
                    rival.summary.case.knobs != case.knobs,
                    sign * rival.summary.quantities[metric].value,
                ),
            )
    return None


def _smallest(candidates: Sequence[Candidate]) -> Winner:
    """The smallest variant; each counts once, however many providers ran it."""
    variants: dict[str, Candidate] = {}
    for candidate in candidates:
        variants.setdefault(candidate.summary.case.variant.precision, candidate)
    winner = _winner(
        [Candidate(variant.summary, precision) for precision, variant in variants.items()],
        "model_size",
    )
    baseline = variants.get("fp32") or variants.get("native")
    factor = None
    if baseline is not None and baseline.summary.case.variant.precision != winner.label:
        size = baseline.summary.quantities["model_size"].value
        if size > winner.quantity.value > 0:
            factor = Factor(
                value=size / winner.quantity.value,
                low=None,
                high=None,
                reference=baseline.summary.case.variant.precision,
            )
    return Winner(
        metric=winner.metric,
        label=winner.label,
        case_id=winner.case_id,
        runtime=winner.runtime,
        batch=winner.batch,
        quantity=winner.quantity,
        ties=winner.ties,
        ranked=winner.ranked,
        factor=factor,
    )
