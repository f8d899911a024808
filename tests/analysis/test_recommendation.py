"""What to ship: speed first, then nearness to the original, and why in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.answers import ALL_PROVIDERS
from pytest_ortbench.analysis.certainty import Certainty, certainty_of, doubts_of
from pytest_ortbench.analysis.headline import headline
from pytest_ortbench.analysis.proof import Proof, lack_words
from pytest_ortbench.analysis.recommendation import Advice, Tie
from pytest_ortbench.analysis.sentences import (
    as_asked,
    noise_words,
    sentences,
    tie_text,
    verdicts,
    without_idle,
)
from pytest_ortbench.analysis.variant_bars import Rank
from pytest_ortbench.core.compilation import WAYS, Compilation
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import CaseResult, Flag, Placement
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.planning.providers import parse_provider
from tests.results_factory import make_accuracy, make_case, make_result, make_run
from tests.summarised import answers_of


def at(
    precision: str,
    ms: float,
    *flags: str,
    batch: int = 1,
    sqnr_db: float | None = None,
    variant_bytes: int = 14_000_000,
    provider: str = "cpu",
    drawn: bool = False,
) -> CaseResult:
    case = make_case(
        precision=precision,
        provider=provider,
        batch=batch,
        variant_bytes=variant_bytes,
        inputs_file="" if drawn else "/data/photos.npz",
    )
    return make_result(
        case=case,
        median_ns=round(ms * 1e6),
        accuracy=make_accuracy(sqnr_db=sqnr_db),
        flags=[Flag(name=name) for name in flags],
    )


def advice(*results: CaseResult) -> Advice:
    (answer,) = answers_of(make_run(list(results)))
    assert answer.advice is not None
    return answer.advice


def first_sentence(*results: CaseResult) -> str:
    (answer,) = answers_of(make_run(list(results)))
    return sentences(answer)[0].removeprefix("mobilenet_v2: ")


def test_the_fastest_is_shipped_with_what_it_saves_and_costs() -> None:
    small = at("fp16", 1.0, sqnr_db=40.0, variant_bytes=3_500_000)
    found = advice(at("fp32", 2.0), small)
    assert found.variant == "fp16/cpu"
    assert found.smaller == 4.0
    assert found.error == pytest.approx(0.01)
    text = first_sentence(at("fp32", 2.0), small)
    assert text.startswith("recommended: fp16/cpu, fastest, ×2.000 [")
    assert "faster than fp32/cpu/b1, ×4.00 smaller, output error 1.0 %" in text


def test_a_model_is_not_smaller_than_what_was_compiled_of_it() -> None:
    plain, compiled = at("native", 1.0), at("native", 2.0, provider="qnn", variant_bytes=28_000_000)
    made = Compilation(
        file="model.onnx",
        digest="aa",
        size_bytes=28_000_000,
        way=WAYS[0],
        compile_ns=1,
        compiled_nodes=1,
        other_nodes=0,
        made_at="2026-11-30T00:00:00+00:00",
    )
    case = compiled.case
    ahead = replace(compiled, case=replace(case, variant=replace(case.variant, compilation=made)))
    assert advice(plain, ahead).smaller is None


def test_of_equally_fast_ones_the_nearest_to_the_original_is_shipped() -> None:
    fast = at("int8-dynamic", 2.98, "STEAL", sqnr_db=30.0, variant_bytes=3_500_000)
    found = advice(fast, at("fp16", 3.0, sqnr_db=55.0), at("fp32", 3.0))
    assert (found.variant, found.nearest, found.error) == ("fp32/cpu", True, None)
    assert found.ties == ("int8-dynamic/cpu", "fp16/cpu")
    text = first_sentence(fast, at("fp16", 3.0, sqnr_db=55.0), at("fp32", 3.0))
    assert text.startswith("recommended: fp32/cpu, as fast as any, and closest to the original")


def test_differences_of_rounding_do_not_decide() -> None:
    found = advice(at("fp16", 3.0, sqnr_db=61.0), at("bf16", 3.001, sqnr_db=90.0))
    assert (found.variant, found.nearest) == ("fp16/cpu", False)


def test_the_one_that_is_fastest_at_more_batch_sizes_goes_before_the_nearer_one() -> None:
    results = (
        at("fp32", 3.0),
        at("fp16", 3.0, sqnr_db=55.0),
        at("fp32", 9.0, batch=8),
        at("fp16", 5.0, batch=8, sqnr_db=55.0),
    )
    found = advice(*results)
    assert (found.variant, found.batches, found.elsewhere) == ("fp16/cpu", (1, 8), ())
    assert "recommended: fp16/cpu, as fast as any at batch 1, fastest at batch 8" in first_sentence(
        *results
    )


def test_a_tie_at_a_larger_batch_size_is_not_called_a_victory() -> None:
    results = (
        at("fp32", 2.0),
        at("fp16", 3.0, sqnr_db=55.0),
        at("fp32", 9.0, batch=8),
        at("fp16", 9.0, batch=8, sqnr_db=55.0),
    )
    assert advice(*results).tied_at == (8,)
    text = first_sentence(*results)
    assert text.startswith("recommended: fp32/cpu, fastest at batch 1, ×1.500 [")
    assert text.endswith(" faster than fp16/cpu/b1, as fast as any at batch 8")


def test_another_variant_for_another_batch_size_is_named() -> None:
    results = (
        at("fp32", 2.0),
        at("fp16", 3.0, sqnr_db=55.0),
        at("fp32", 9.0, batch=8),
        at("fp16", 5.0, batch=8, sqnr_db=55.0),
    )
    assert advice(*results).elsewhere == ((8, "fp16/cpu"),)
    text = first_sentence(*results)
    # The runner-up stands in for the reference, which the winner itself is.
    assert text.startswith("recommended: fp32/cpu, fastest at batch 1, ×1.500 [")
    assert text.endswith(" faster than fp16/cpu/b1; for batch 8 fp16/cpu is faster")


def test_what_was_not_ranked_is_never_shipped() -> None:
    found = advice(at("fp32", 2.0), at("int8-static", 1.0, "INACCURATE"), at("fp16", 3.0))
    assert found.variant == "fp32/cpu"


def test_without_rivals_there_is_nothing_to_choose() -> None:
    assert advice(at("fp32", 2.0), at("fp16", 1.0, "EMULATED")).rivals == 1
    (answer,) = answers_of(make_run([at("fp32", 2.0, "NONFINITE")]))
    assert answer.advice is None


def test_drawn_inputs_alone_never_recommend_another_precision() -> None:
    results = (
        at("fp32", 3.0, drawn=True),
        at("fp32", 2.0, drawn=True, provider="openvino"),
        at("int8-static", 1.0, drawn=True, sqnr_db=40.0),
    )
    (answer,) = answers_of(make_run(list(results)))
    assert answer.advice is not None
    assert answer.withheld is not None
    assert (answer.advice.variant, answer.withheld.variant) == ("fp32/openvino", "int8-static/cpu")
    assert answer.withheld.factor is not None
    assert answer.withheld.factor.value == pytest.approx(2.0)
    assert answer.withheld.factor.reference == "fp32/openvino/b1"
    assert answer.withheld.error == pytest.approx(0.01)
    assert (answer.advice.drawn_inputs, answer.advice.error) == (True, None)
    # What is fastest stays a fact.
    assert answer.fastest[0].label == "int8-static/cpu/b1"
    said = sentences(answer)
    assert (
        said[0]
        .removeprefix("mobilenet_v2: ")
        .startswith("recommended: fp32/openvino, fastest in the original's precision")
    )
    assert (
        said[1]
        .removeprefix("mobilenet_v2: ")
        .startswith("not recommended yet: int8-static/cpu, ×2.000 [")
    )
    assert "random inputs alone; use real inputs (--ort-inputs) or labels" in said[1]


def test_nothing_is_recommended_where_every_precision_needs_real_inputs() -> None:
    results = (
        at("int8-dynamic", 1.0, drawn=True, sqnr_db=30.0),
        at("int8-static", 2.0, drawn=True, sqnr_db=40.0),
    )
    (answer,) = answers_of(make_run(list(results)))
    assert answer.advice is None
    assert answer.withheld is not None
    assert (answer.withheld.variant, answer.withheld.factor) == ("int8-dynamic/cpu", None)


def test_one_that_is_left_out_of_the_ranking_proves_no_other_one() -> None:
    results = (
        at("fp32", 2.0, "WARMUP", drawn=True),
        at("int8-static", 1.0, drawn=True),
        at("int8-static", 1.5, drawn=True, provider="openvino"),
        at("fp32", 2.0, "EMULATED", drawn=True, batch=8),
    )
    (answer,) = answers_of(make_run([results[3], *results[1:3]]))
    assert (answer.advice, answer.withheld is None) == (None, False)


def test_within_one_precision_drawn_inputs_choose_the_provider() -> None:
    found = advice(
        at("int8-static", 1.0, drawn=True, sqnr_db=40.0),
        at("int8-static", 2.0, drawn=True, sqnr_db=40.0, provider="openvino"),
    )
    assert (found.variant, found.drawn_inputs) == ("int8-static/cpu", True)
    assert found.error == pytest.approx(0.01)


def test_a_faster_precision_at_one_batch_size_only_is_withheld_there() -> None:
    results = (
        at("fp32", 2.0, drawn=True),
        at("fp16", 3.0, drawn=True, sqnr_db=55.0),
        at("fp32", 9.0, drawn=True, batch=8),
        at("fp16", 5.0, drawn=True, batch=8, sqnr_db=55.0),
    )
    (answer,) = answers_of(make_run(list(results)))
    assert answer.advice is not None
    assert answer.withheld is not None
    assert (answer.advice.variant, answer.advice.elsewhere) == ("fp32/cpu", ())
    assert (answer.withheld.variant, answer.withheld.batch) == ("fp16/cpu", 8)


def test_another_graph_of_the_original_is_recommended_on_drawn_inputs() -> None:
    found = advice(at("native", 2.0, drawn=True), at("simplified", 1.0, drawn=True))
    assert found.variant == "simplified/cpu"


LABELS = TaskAccuracy(
    dataset="d.npz", metric="top-1", samples=2000, score_sum=1800.0, largest=1.0,
    reference="fp32", reference_sum=1800.0, difference_squares=0.0,
)  # fmt: skip


@pytest.mark.parametrize("precision", ["int8-static", "int8-dynamic", "int4"])
@pytest.mark.parametrize("sqnr_db", [16.0, 19.5, 45.0])
def test_a_precision_that_loses_much_waits_for_labels(precision: str, sqnr_db: float) -> None:
    fast = at(precision, 1.0, sqnr_db=sqnr_db)
    (answer,) = answers_of(make_run([at("fp32", 2.0), fast]))
    assert answer.advice is not None
    assert answer.withheld is not None
    assert (answer.advice.variant, answer.withheld.variant) == ("fp32/cpu", f"{precision}/cpu")
    assert answer.withheld.needs is Proof.LABELS
    assert certainty_of(answer) is Certainty.UNLABELLED
    (labelled,) = answers_of(make_run([at("fp32", 2.0), replace(fast, task=LABELS)]))
    assert labelled.advice is not None
    assert (labelled.advice.variant, labelled.withheld) == (f"{precision}/cpu", None)
    assert certainty_of(labelled) is Certainty.CLEAR


def test_what_differs_by_rounding_needs_no_labels() -> None:
    for fast in (at("int8-dynamic", 1.0, sqnr_db=80.0), at("fp16", 1.0, sqnr_db=45.0)):
        (answer,) = answers_of(make_run([at("fp32", 2.0), fast]))
        assert (answer.withheld, certainty_of(answer)) == (None, Certainty.CLEAR)


def test_a_file_of_the_user_that_is_far_from_the_original_waits_for_labels() -> None:
    near, far = (at("pruned", 1.0, sqnr_db=sqnr_db) for sqnr_db in (45.0, 25.0))
    for own, needs in ((near, None), (far, Proof.LABELS)):
        variant = replace(own.case.variant, recipe={"file": "pruned.onnx", "holds": "fp32"})
        result = replace(own, case=replace(own.case, variant=variant))
        (answer,) = answers_of(make_run([at("fp32", 2.0), result]))
        assert (answer.withheld.needs if answer.withheld else None) is needs


def test_providers_of_one_unlabelled_precision_are_compared_and_it_stays_unproven() -> None:
    results = (
        at("int8-static", 1.0, sqnr_db=30.0),
        at("int8-static", 2.0, sqnr_db=30.0, provider="openvino"),
    )
    (answer,) = answers_of(make_run(list(results)))
    assert answer.advice is not None
    assert (answer.advice.variant, answer.advice.needs) == ("int8-static/cpu", Proof.LABELS)
    assert certainty_of(answer) is Certainty.UNLABELLED


def test_being_compared_on_the_calibration_inputs_is_part_of_the_verdict() -> None:
    fast = at("int8-static", 1.0, sqnr_db=30.0)
    on_calibration = replace(
        fast, case=replace(fast.case, variant=replace(fast.case.variant, on_calibration=True))
    )
    (answer,) = answers_of(make_run([at("fp32", 2.0), on_calibration]))
    assert answer.withheld is not None
    assert (answer.withheld.on_calibration, answer.withheld.needs) == (True, Proof.LABELS)
    words = lack_words(Proof.LABELS, on_calibration=True)
    assert any(words in told for told in sentences(answer))


def test_even_numbers_are_a_tie_and_noisy_ones_are_unknown() -> None:
    even = advice(at("fp32", 3.0), at("fp16", 3.0, sqnr_db=55.0))
    assert even.tie is Tie.EVEN
    results = [noisy_at("fp32", 13.0, "STEAL"), noisy_at("fp16", 12.0)]
    (answer,) = answers_of(make_run(results))
    assert answer.advice is not None
    assert answer.advice.tie is Tie.UNKNOWN
    assert certainty_of(answer) is Certainty.NOISY
    ranks = [bar.rank for group in answer.bars for bar in group.bars]
    assert Rank.RECOMMENDED not in ranks
    assert answer.fastest[0].noisy == ("STEAL",)
    assert all(noise_words(answer) in told for told in (headline(answer), sentences(answer)[0]))


def test_who_lacked_cpus_is_said_wherever_the_answer_is() -> None:
    results = [noisy_at("fp32", 13.0, "CPU-SHARE"), noisy_at("fp16", 12.0)]
    (answer,) = answers_of(make_run(results))
    (alone,) = answers_of(make_run(results[:1]))
    for told in (answer, alone):
        assert told.lacked is not None
        assert told.lacked.label == "fp32/cpu/b1"
        assert all(told.lacked.time.words in text for text in (headline(told), sentences(told)[0]))


def noisy_at(precision: str, ms: float, *flags: str) -> CaseResult:
    """Workers whose medians lie far apart."""
    result = at(precision, ms, *flags)
    apart = [
        make_result(median_ns=round(ms * factor * 1e6)).measurements[0]
        for factor in (0.4, 1.0, 2.0)
    ]
    return replace(
        result,
        measurements=tuple(replace(entry, worker=number) for number, entry in enumerate(apart)),
    )


def test_a_lead_over_a_flagged_or_noisy_rival_is_not_clear() -> None:
    (flagged,) = answers_of(make_run([at("fp32", 3.0, "CPU-SHARE"), at("fp16", 1.0, sqnr_db=55.0)]))
    assert certainty_of(flagged) is Certainty.DOUBTFUL
    assert doubts_of(flagged) == ("CPU-SHARE",)
    (wide,) = answers_of(make_run([noisy_at("fp32", 30.0), at("fp16", 1.0, sqnr_db=55.0)]))
    assert wide.runner_up is not None
    assert not wide.runner_up.is_clear
    assert certainty_of(wide) is Certainty.DOUBTFUL
    (clear,) = answers_of(make_run([at("fp32", 3.0), at("fp16", 1.0, sqnr_db=55.0)]))
    assert certainty_of(clear) is Certainty.CLEAR


def test_no_line_says_faster_and_no_difference() -> None:
    results = [at("fp32", 9.0), at("fp16", 3.0, sqnr_db=55.0), at("bf16", 3.0, sqnr_db=55.0)]
    (answer,) = answers_of(make_run(results))
    assert answer.fastest[0].ties
    assert answer.fastest[0].factor is not None
    ties = tie_text(answer.fastest[0].ties)
    tied = [told for told in sentences(answer) if ties in told]
    assert len(tied) >= 2
    assert not [told for told in tied if "×" in told]


def test_one_that_is_left_by_elimination_is_no_recommendation() -> None:
    (answer,) = answers_of(make_run([at("fp32", 2.0, "UNJUDGED"), at("fp16", 3.0, sqnr_db=55.0)]))
    assert certainty_of(answer) is Certainty.ALONE
    assert answer.asked == 2
    assert headline(answer).winner == "fp16/cpu"
    assert headline(answer).endswith("] (fp32/cpu: UNJUDGED)")


def test_an_unlabelled_precision_that_is_left_by_elimination_is_withheld() -> None:
    (answer,) = answers_of(
        make_run([at("fp32", 2.0, "UNJUDGED"), at("int8-static", 3.0, sqnr_db=30.0)])
    )
    assert answer.advice is None
    assert certainty_of(answer) is Certainty.UNLABELLED
    assert [told.winner for told in sentences(answer)[:2]] == [
        "int8-static/cpu/b1",
        "int8-static/cpu",
    ]


def test_one_row_says_its_number_and_what_makes_a_comparison() -> None:
    (answer,) = answers_of(make_run([at("native", 2.0)]))
    assert certainty_of(answer) is Certainty.SINGLE
    assert headline(answer).endswith(
        f"{as_asked(answer)}; add {ALL_PROVIDERS} --ort-precisions=fp32,int8-static to compare"
    )


def chained(spec: str, ms: float, executed: dict[str, int]) -> CaseResult:
    """A case on a chain of providers, whose nodes were computed where ``executed`` says."""
    result, chain = at("native", ms), parse_provider(spec)
    links = tuple(
        LinkPlacement(
            provider=link.name, label=link.label, idle="" if link.name in executed else "none"
        )
        for link in chain.links
    )
    return replace(
        result,
        case=replace(result.case, provider=chain),
        placement=Placement(provider=chain.name, executed=executed, links=links),
        flags=(),
    )


def test_a_recommended_chain_names_its_idle_link_and_what_remains() -> None:
    on_two = {"TensorrtExecutionProvider": 3, CPU: 1}
    results = (chained("tensorrt~cuda~cpu", 1.0, on_two), at("native", 2.0))
    found = advice(*results)
    assert (found.variant, found.idle, found.working) == (
        "native/tensorrt~cuda~cpu",
        ("cuda",),
        "tensorrt~cpu",
    )
    (answer,) = answers_of(make_run(list(results)))
    words = without_idle(found)
    assert [name for name in (*found.idle, found.working) if name not in words] == []
    assert words in sentences(answer)[0]
    assert "cuda idle" in headline(answer)


def test_of_equally_fast_ones_the_chain_without_an_idle_link_is_shipped() -> None:
    found = advice(chained("cpu~openvino", 2.999, {CPU: 4}), at("native", 3.0))
    assert (found.variant, found.idle, found.working) == ("native/cpu", (), "")
    assert found.ties == ("native/cpu~openvino",)


def test_a_chain_whose_links_all_computed_has_none_to_leave_out() -> None:
    found = advice(
        chained("openvino~cpu", 1.0, {"OpenVINOExecutionProvider": 1, CPU: 1}), at("native", 3.0)
    )
    assert (found.variant, found.idle, without_idle(found)) == ("native/openvino~cpu", (), "")


@pytest.mark.parametrize("single", [("fp32",), ("fp16",), ("fp32", "fp16")])
@pytest.mark.parametrize("slower_ms", [3.3, 12.0, 300.0])
def test_what_one_process_measured_is_neither_recommended_nor_beaten(
    single: tuple[str, ...], slower_ms: float
) -> None:
    """Its interval holds nothing of how far processes differ, however narrow it looks."""
    results = [
        at(precision, ms, *(["ONE-WORKER"] if precision in single else []), sqnr_db=90.0)
        for precision, ms in (("fp32", 3.0), ("fp16", slower_ms))
    ]
    (answer,) = answers_of(make_run(results))
    assert answer.advice is not None
    assert answer.advice.one_worker == tuple(f"{precision}/cpu" for precision in single)
    assert not answer.advice.is_settled
    assert certainty_of(answer) is Certainty.ONE_WORKER
    assert [told.winner for told in (headline(answer), verdicts(answer)[0])] == ["", ""]
    ranks = [bar.rank for group in answer.bars for bar in group.bars]
    assert Rank.RECOMMENDED not in ranks


def test_the_original_that_is_left_because_others_lack_proof_needs_no_second_process() -> None:
    results = [at("fp32", 3.0, "ONE-WORKER"), at("int8-static", 1.0, sqnr_db=30.0)]
    (answer,) = answers_of(make_run(results))
    assert answer.advice is not None
    assert (answer.advice.variant, answer.advice.one_worker) == ("fp32/cpu", ())
    assert certainty_of(answer) is Certainty.UNLABELLED
