"""What to ship: speed first, then nearness to the original, and why in one sentence."""

from __future__ import annotations

import pytest

from pytest_ortbench.analysis.recommendation import Advice
from pytest_ortbench.analysis.sentences import sentences
from pytest_ortbench.core.outcome import CaseResult, Flag
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
    small = at("int8-static", 1.0, sqnr_db=40.0, variant_bytes=3_500_000)
    found = advice(at("fp32", 2.0), small)
    assert found.variant == "int8-static/cpu"
    assert found.smaller == 4.0
    assert found.error == pytest.approx(0.01)
    text = first_sentence(at("fp32", 2.0), small)
    assert text.startswith("recommended: int8-static/cpu, fastest, ×2.000 [")
    assert "faster than fp32/cpu/b1, ×4.00 smaller, output error 1.0 %" in text


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
