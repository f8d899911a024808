"""Which variant to use in fifteen words, how sure that is, and the bars beside it."""

from __future__ import annotations

import itertools

import pytest

from pytest_ortbench.analysis.certainty import Certainty, certainty_of
from pytest_ortbench.analysis.headline import headline
from pytest_ortbench.analysis.variant_bars import MOST_BARS, Rank
from pytest_ortbench.core.outcome import CaseResult
from tests.analysis.test_answers import at, only
from tests.results_factory import make_case, make_failure, make_result


def failed(provider: str) -> CaseResult:
    return make_result(
        case=make_case(provider=provider), status="unavailable", failure=make_failure()
    )


def ranks(*results: CaseResult) -> list[list[tuple[str, Rank, str]]]:
    return [
        [(bar.label, bar.rank, bar.reason) for bar in group.bars] for group in only(*results).bars
    ]


@pytest.mark.parametrize(
    ("results", "certainty", "winner"),
    [
        pytest.param([at("cpu", 3.0), at("openvino", 1.8)], Certainty.CLEAR, "native/openvino"),
        pytest.param([at("cpu", 3.0), at("openvino", 3.0)], Certainty.TIE, "native/cpu"),
        pytest.param(
            [at("cpu", 3.0, "UNSTEADY"), at("openvino", 9.0)], Certainty.DOUBTFUL, "native/cpu"
        ),
        pytest.param([at("cpu", 3.0), at("openvino", 9.0, "ONE-WORKER")], Certainty.ONE_WORKER, ""),
        pytest.param([at("cpu", 3.0)], Certainty.SINGLE, ""),
        pytest.param([at("cpu", 3.0, "ONE-WORKER")], Certainty.SINGLE, ""),
        pytest.param(
            [at("cpu", 3.0), at("openvino", 1.8, "EMULATED")], Certainty.ALONE, "native/cpu"
        ),
        pytest.param([at("cpu", 3.0, "EMULATED")], Certainty.NONE, ""),
        pytest.param(
            [at("cpu", 3.0, precision="fp32"), at("cpu", 1.0, precision="int8-static")],
            Certainty.UNPROVEN,
            "fp32/cpu",
        ),
    ],
)
def test_the_headline_names_the_variant_and_how_sure_it_is(results, certainty, winner):
    answer = only(*results)
    told = headline(answer)
    assert certainty_of(answer) is certainty
    assert told.winner == winner
    assert told.about == "mobilenet_v2: "


def test_a_headline_has_at_most_fifteen_words():
    """Whatever mixture of speeds, precisions, batches and flags: fifteen words behind the name."""
    speeds = (1.0, 1.004, 2.0)
    barred = (("EMULATED",), ("UNJUDGED",))
    for fast, slow, flags, precision, batch, photos in itertools.product(
        speeds,
        speeds,
        ((), ("UNSTEADY",), ("CPU-SHARE", "STEAL"), ("ONE-WORKER",), *barred),
        ("fp32", "int8-static"),
        (1, 8),
        ("", "photos.npz"),
    ):
        answer = only(
            at("cpu", 2.0, *(flags if flags in barred else ()), precision="fp32"),
            at("openvino", fast, *flags, precision=precision, inputs_file=photos),
            at("cuda", slow, precision="fp16"),
            at("cpu", 5.0, precision="fp32", batch=batch + 1),
            at("openvino", 5.0 * slow, precision=precision, batch=batch + 1),
        )
        told = headline(answer)
        assert len(told.removeprefix(told.about).split()) <= 15, told


def test_one_row_and_rows_too_noisy_to_tell_have_at_most_fifteen_words():
    """Whatever is left of a comparison: one row, one that was ranked, or none that can be told."""
    noisy = make_result(case=make_case(precision="fp32", provider="openvino"), spread=0.9, count=9)
    for results in (
        [at("cpu", 2.0)],
        [at("cpu", 2.0), at("cpu", 9.0, batch=8)],
        [at("cuda", 2.0, precision="fp16"), at("cpu", 3.0, "UNJUDGED"), at("dnnl", 3.0, "SHAPES")],
        [noisy],
        [noisy, at("cpu", 3.0, "CPU-SHARE", "STEAL", "UNSTEADY"), at("cuda", 3.0)],
    ):
        told = headline(only(*results))
        assert len(told.removeprefix(told.about).split()) <= 15, told


def test_each_batch_size_has_bars_with_the_fastest_first_and_what_is_not_ranked_last():
    assert ranks(
        at("cpu", 3.0),
        at("openvino", 1.0, "EMULATED"),
        failed("cuda"),
        at("dnnl", 2.0),
        at("cpu", 9.0, batch=8),
    ) == [
        [
            ("native/dnnl", Rank.RECOMMENDED, ""),
            ("native/cpu", Rank.RANKED, ""),
            ("native/openvino", Rank.UNRANKED, "EMULATED"),
            ("native/cuda", Rank.UNRANKED, "unavailable"),
        ],
        [("native/cpu", Rank.RECOMMENDED, "")],
    ]


def test_the_time_of_one_process_has_no_interval_beside_others():
    (group,) = only(at("cpu", 3.0), at("openvino", 9.0, "ONE-WORKER")).bars
    assert [bar.one_worker for bar in group.bars] == [False, True]
    assert [bar.quantity.low is None for bar in group.bars if bar.quantity] == [False, True]
    (alone,) = only(at("cpu", 3.0, "ONE-WORKER")).bars
    assert alone.bars[0].quantity is not None
    assert alone.bars[0].quantity.low is not None


def test_the_variant_to_use_may_differ_by_batch_size():
    groups = ranks(
        at("cpu", 1.0), at("openvino", 2.0), at("cpu", 9.0, batch=8), at("openvino", 4.0, batch=8)
    )
    assert [
        [label for label, rank, _ in group if rank is Rank.RECOMMENDED] for group in groups
    ] == [
        ["native/cpu"],
        ["native/openvino"],
    ]


def test_a_faster_variant_without_proof_is_marked_only_where_it_is_faster():
    groups = ranks(
        at("cpu", 3.0, precision="fp32"),
        at("cpu", 1.0, precision="int8-static"),
        at("cpu", 9.0, precision="fp32", batch=8),
        at("cpu", 20.0, precision="int8-static", batch=8),
    )
    assert [[rank for _, rank, _ in group] for group in groups] == [
        [Rank.UNPROVEN, Rank.RECOMMENDED],
        [Rank.RECOMMENDED, Rank.RANKED],
    ]


def test_many_variants_are_cut_and_the_recommended_one_stays():
    many = [at(f"ep{index}", 5.0 + index) for index in range(12)]
    (group,) = only(*many, failed("cuda")).bars
    assert len(group.bars) == MOST_BARS
    assert group.left_out == 5
    assert [bar.label for bar in group.bars if bar.rank is Rank.RECOMMENDED] == ["native/ep0"]
    assert [bar.reason for bar in group.bars if bar.rank is Rank.UNRANKED] == ["unavailable"]
