"""How near a decoder writes to its reference: figures, the floor, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.generation import Consistency, Decoder, Generation
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.generation.facts import GenerationCheck, Likeness
from pytest_ortbench.passes.generation.numbers.quality import OF_REFERENCE
from pytest_ortbench.passes.generation.report import nearness_of_tokens, unseen_ends
from pytest_ortbench.passes.generation.run import checked_request
from pytest_ortbench.passes.generation.worker.check import divergences, likeness, pooled_db
from pytest_ortbench.passes.generation.worker.reference import Continuation
from pytest_ortbench.schema.meaning import faults_of
from pytest_ortbench.worker.generation.requests import TokenChoice
from tests.passes.generation.generated import make_generated, make_generating_case, make_request

ALIKE = Likeness(
    sequences=2,
    tokens=10,
    sqnr_db=24.0,
    kl_nats=0.01,
    kl_uniform_nats=2.0,
    same_top=19,
    same_greedy=14,
    same_until=(10, 4),
)
CHECK = GenerationCheck(
    after=(16, 17),
    consistent_db=(300.0, 120.0),
    reference="m",
    likeness=ALIKE,
    cache_bytes=4096,
    cache_tokens=19,
    cache_computed_bytes=4096,
)


def result_of(check: GenerationCheck | None, *, precision: str = "int4") -> CaseResult:
    """A case that was measured, and what it was seen to write."""
    case = make_generating_case(precision=precision, batch=2)
    return replace(make_generated([[make_request((9, 2, 2, 2))] * 3], case=case), generation=check)


def values(summary: Summary) -> dict[str, float]:
    return {name: quantity.value for name, quantity in summary.quantities.items()}


def test_figures_are_of_all_tokens_of_all_sequences() -> None:
    summary = summarise(result_of(CHECK))
    seen = values(summary)
    assert seen["logits_sqnr"] == 24
    assert seen["logits_kl"] == 0.01
    assert seen["greedy_agreement"] == 0.7
    assert seen["greedy_prefix"] == 4
    top1 = summary.quantities["logits_top1"]
    assert (top1.value, top1.samples) == (0.95, 20)
    # Clopper and Pearson for 19 of 20.
    assert (top1.low, top1.high) == (
        pytest.approx(0.7513, abs=1e-4),
        pytest.approx(0.9987, abs=1e-4),
    )
    assert (seen["cache_bytes"], seen["cache_computed"]) == (4096, 4096)


def test_no_difference_is_no_ratio() -> None:
    summary = summarise(result_of(replace(CHECK, likeness=replace(ALIKE, sqnr_db=300.0))))
    assert "logits_sqnr" not in summary.quantities
    assert summary.missing["logits_sqnr"].startswith("exact")


@pytest.mark.parametrize(
    ("precision", "sqnr_db", "flagged"),
    [
        ("int4", 12.0, False),
        ("int4", 4.0, True),
        ("int8-dynamic", 12.0, True),
        ("fp32", 90.0, False),
        ("fp32", 45.0, True),
        ("int4", -200.0, True),
    ],
)
def test_what_writes_below_the_floor_of_its_precision_is_inaccurate(
    precision: str, sqnr_db: float, flagged: bool
) -> None:
    check = replace(CHECK, likeness=replace(ALIKE, sqnr_db=sqnr_db))
    result = result_of(check, precision=precision)
    assert ("INACCURATE" in {flag.name for flag in flags_of(result)}) is flagged
    assert judge_accuracy(result).is_bad is flagged


def test_flat_logits_condemn_nobody_by_their_likeliest_tokens() -> None:
    """Where a model is sure of nothing, its likeliest token is chance: that is no error."""
    flat = replace(ALIKE, sqnr_db=17.0, same_top=3, same_greedy=0, same_until=(0, 0))
    assert judge_accuracy(result_of(replace(CHECK, likeness=flat))).is_good


@pytest.mark.parametrize(
    "check",
    [
        GenerationCheck(reason="crash: it died"),
        GenerationCheck(after=(16,), consistent_db=(300.0,), reference_reason="no memory left"),
    ],
)
def test_without_evidence_nothing_is_judged(check: GenerationCheck) -> None:
    result = result_of(check)
    assert judge_accuracy(result).is_unjudged
    assert "logits_sqnr" in summarise(result).missing


def test_energy_of_a_request_is_shared_by_its_new_tokens() -> None:
    window = EnergyWindow(
        source="rapl", device="package", duration_ns=5 * 10**9, inferences=10, energy_j=400.0
    )
    result = replace(result_of(CHECK), energy=Energy(windows=(window,)))
    seen = values(summarise(result))
    # 40 J a request; 4 tokens for each of 2 sequences.
    assert seen["energy_per_inference"] == 40
    assert seen["energy_per_token"] == 5


def test_facts_that_contradict_each_other_are_seen() -> None:
    sound = result_of(CHECK)
    assert not list(faults_of(sound))
    for wrong in (
        replace(CHECK, after=(16,)),
        replace(CHECK, likeness=replace(ALIKE, same_top=21)),
        replace(CHECK, likeness=replace(ALIKE, same_until=(10,))),
        replace(CHECK, likeness=replace(ALIKE, same_until=(11, 0))),
        replace(CHECK, likeness=replace(ALIKE, kl_nats=-1.0)),
    ):
        assert list(faults_of(replace(sound, generation=wrong)))


# -- what is compared ---------------------------------------------------------------------------


class TableScorer:
    """Scores by a table: the likeliest token after a token is the next one, or as it was told."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def begin(self, ids: Any) -> Any:
        return self.table[ids[:, -1]]

    def follow(self, ids: Any) -> Any:
        return self.table[ids[:, -1]]

    def every(self, ids: Any) -> Any:
        return self.table[ids]


def continuation(table: Any, starts: tuple[int, ...], new: int) -> Continuation:
    """What a table writes after prompts of one token."""
    ids = np.array(starts)[:, None]
    scores = []
    for _ in range(new):
        scores.append(table[ids[:, -1]])
        ids = np.concatenate([ids, scores[-1].argmax(axis=-1)[:, None]], axis=1)
    return Continuation(label="table", ids=ids, scores=np.stack(scores, axis=1))


def choice_of(vocabulary: int) -> TokenChoice:
    case = make_generating_case(batch=2)
    decoder = Decoder(ids="input_ids", logits="logits", vocabulary=vocabulary)
    return TokenChoice(replace(case, model=replace(case.model, decoder=decoder)))


def test_greedy_tokens_part_after_the_first_other_one() -> None:
    """In a ring of eight tokens one place errs: the next token is as right as ever, but later."""
    table = 10.0 * np.roll(np.eye(8), 1, axis=1)
    other = table.copy()
    other[5] = table[0]  # after 5 comes 1
    right = continuation(table, (0, 6), 6)
    assert right.ids[:, 1:].tolist() == [[1, 2, 3, 4, 5, 6], [7, 0, 1, 2, 3, 4]]
    seen = likeness(TableScorer(other), right, choice_of(8))
    assert (seen.sequences, seen.tokens) == (2, 6)
    assert seen.same_top == 11
    assert seen.same_until == (5, 6)
    assert seen.same_greedy == 11
    same = likeness(TableScorer(table), right, choice_of(8))
    assert (same.sqnr_db, same.kl_nats, same.same_greedy) == (300.0, 0.0, 12)


def test_scores_that_are_no_numbers_are_never_the_same() -> None:
    table = np.full((8, 8), np.nan)
    seen = likeness(TableScorer(table), continuation(table, (0, 6), 6), choice_of(8))
    assert (seen.nonfinite, seen.same_top, seen.sqnr_db) == (12, 0, -200.0)
    quantities = values(summarise(result_of(replace(CHECK, likeness=seen))))
    assert not quantities.keys() & set(OF_REFERENCE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "tokens 24.0 dB"),
        ({"sqnr_db": 300.0}, ""),
        ({"sqnr_db": -200.0, "nonfinite": 3}, "tokens NaN/Inf"),
    ],
)
def test_an_exact_prompt_does_not_hide_what_is_written(changes: dict[str, Any], words: str) -> None:
    check = replace(CHECK, likeness=replace(ALIKE, **changes))
    assert nearness_of_tokens(result_of(check)) == words


def test_an_end_that_the_cache_makes_otherwise_is_inaccurate() -> None:
    end = Consistency(after=(64,), sqnr_db=(25.0,), median_db=25.0, own_db=120.0, least_db=60.0)
    wrong = result_of(replace(CHECK, at_end=end))
    assert judge_accuracy(wrong).is_bad
    right = replace(end, sqnr_db=(90.0,), median_db=90.0)
    assert judge_accuracy(result_of(replace(CHECK, at_end=right))).is_good


def test_an_end_whose_scores_are_no_numbers_is_not_judged() -> None:
    end = Consistency(after=(64,), sqnr_db=(-200.0,), least_db=60.0)
    assert judge_accuracy(result_of(replace(CHECK, at_end=end))).is_unjudged
    worse = replace(CHECK, at_end=end, likeness=replace(ALIKE, sqnr_db=1.0))
    assert judge_accuracy(result_of(worse)).is_bad


def test_an_end_that_takes_too_much_memory_is_said() -> None:
    unseen = result_of(replace(CHECK, at_end=Consistency(reason="much memory")))
    assert judge_accuracy(unseen).is_good
    (sentence,) = unseen_ends(unseen)
    assert sentence.endswith("much memory")
    assert unseen_ends(result_of(CHECK)) == unseen_ends(result_of(None)) == []


def test_scores_that_hold_no_numbers_are_wrong_whatever_stands_beside_them() -> None:
    odd = replace(CHECK, likeness=replace(ALIKE, sqnr_db=300.0, nonfinite=4))
    assert judge_accuracy(result_of(odd)).is_bad


def test_divergence_is_that_of_two_known_distributions() -> None:
    right = np.log(np.array([[[0.5, 0.25, 0.25]]])) + 7
    other = np.log(np.array([[[0.25, 0.5, 0.25]]])) - 3
    found = divergences(right, other)
    assert found is not None
    assert found[0] == pytest.approx(0.25 * np.log(2))
    assert found[1] == pytest.approx(np.log(3) - 1.5 * np.log(2))
    assert divergences(right, np.full_like(right, np.nan)) is None


def test_a_ratio_over_tokens_knows_no_offset_of_theirs() -> None:
    right = np.array([[[1.0, -1.0], [10.0, 8.0]]])
    assert pooled_db(right, right + np.array([[[5.0], [-9.0]]])) == 300
    # Signal 2 + 2, noise 0 + 0.02.
    near = right + np.array([[[0.0, 0.0], [0.1, -0.1]]])
    assert pooled_db(right, near) == pytest.approx(10 * np.log10(4 / 0.02))
    assert pooled_db(right, np.full_like(right, np.inf)) == -200


@pytest.mark.parametrize(
    ("asked", "context", "vocabulary", "lengths"),
    [
        ((512, 64, 4096), 8192, 1000, (16, 32)),
        ((8, 4, 0), 24, 1000, (12, 11)),
        ((8, 4, 0), None, 1000, (6, 5)),
        ((128, 32, 0), 2048, 10_000_000, (16, 3)),
    ],
)
def test_the_compared_request_is_short_and_fits(
    asked: tuple[int, int, int], context: int | None, vocabulary: int, lengths: tuple[int, int]
) -> None:
    prompt, new, depth = asked
    decoder = Decoder(ids="ids", logits="logits", vocabulary=vocabulary, context=context)
    generation = Generation(engine="genai", prompt_tokens=prompt, new_tokens=new, depth=depth)
    looked_at = checked_request(decoder, generation, batch=2)
    assert (looked_at.prompt_tokens, looked_at.new_tokens, looked_at.depth) == (*lengths, 0)
