"""Who wins, who ties, and how it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.answers import ALL_PROVIDERS, ModelAnswer
from pytest_ortbench.analysis.sentences import sentences, with_interval
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.quantity import Quantity
from tests.results_factory import make_case, make_failure, make_result, make_run
from tests.summarised import answers_of

#: What the answer about one row ends with.
ADD = f"add {ALL_PROVIDERS} to compare"
#: What suits products of matrices in fp32.
OTHER_PRECISIONS = "--ort-precisions=fp32,int8-dynamic"


def only(*results: CaseResult) -> ModelAnswer:
    found = answers_of(make_run(list(results)))
    assert len(found) == 1
    return found[0]


def at(provider: str, ms: float, *flags: str, batch: int = 1, **case: object) -> CaseResult:
    return make_result(
        case=make_case(provider=provider, batch=batch, **case),  # type: ignore[arg-type]
        median_ns=round(ms * 1e6),
        flags=[Flag(name=name) for name in flags],
    )


def test_fastest_has_its_factor_against_the_cpu_with_an_interval():
    answer = only(at("cpu", 3.0), at("openvino", 1.8))
    (winner,) = answer.fastest
    assert winner.label == "native/openvino/b1"
    assert winner.case_id == "mobilenet_v2/native/openvino/b1"
    assert winner.ties == ()
    assert winner.factor is not None
    assert winner.factor.reference == "native/cpu/b1"
    assert winner.factor.value == pytest.approx(3.0 / 1.8, rel=0.01)
    assert winner.factor.low is not None
    assert winner.factor.high is not None
    assert winner.factor.low < winner.factor.value < winner.factor.high


def test_fp32_is_the_reference_before_native():
    answer = only(at("cpu", 3.0), at("cpu", 2.9, precision="fp32"), at("cuda", 1.0))
    assert answer.fastest[0].factor is not None
    assert answer.fastest[0].factor.reference == "fp32/cpu/b1"


def test_the_reference_itself_has_no_factor():
    answer = only(at("cpu", 1.0), at("openvino", 2.0))
    assert answer.fastest[0].label == "native/cpu/b1"
    assert answer.fastest[0].factor is None


def test_without_a_cpu_case_there_is_no_factor():
    assert only(at("cuda", 1.0), at("tensorrt", 2.0)).fastest[0].factor is None


def test_overlapping_intervals_are_a_tie_without_a_factor():
    answer = only(at("cpu", 3.0), at("openvino", 3.0))
    (winner,) = answer.fastest
    assert len(winner.ties) == 1
    assert winner.factor is None


def test_a_blurred_gap_is_a_tie_and_a_wide_one_is_not():
    close = only(at("cpu", 3.1, "STEAL"), at("openvino", 3.0))
    assert close.fastest[0].ties == ("native/cpu/b1",)
    assert only(at("cpu", 3.1), at("openvino", 3.0)).fastest[0].ties == ()
    wide = only(at("cpu", 4.0, "STEAL"), at("openvino", 3.0, "UNSTEADY"))
    assert wide.fastest[0].ties == ()
    assert wide.fastest[0].blurred_by == ("UNSTEADY",)


def test_a_single_process_does_not_beat_another_by_less_than_five_per_cent():
    near = only(at("cpu", 3.1, "ONE-WORKER"), at("openvino", 3.0))
    assert near.fastest[0].ties == ("native/cpu/b1",)
    assert near.fastest[0].factor is None
    assert near.throughput is not None
    assert near.throughput.ties == ("native/cpu/b1",)
    # The flag itself adds no more; the interval of a real single process is wide by itself.
    far = only(at("cpu", 3.2, "ONE-WORKER"), at("openvino", 3.0, "ONE-WORKER"))
    assert far.fastest[0].ties == ()


@pytest.mark.parametrize(
    ("other_ms", "flags", "doubts"),
    [
        (3.5, ("ONE-WORKER",), ("ONE-WORKER",)),
        (3.5, (), ()),
        # However far apart: one process shows nothing of the next one.
        (4.5, ("ONE-WORKER",), ("ONE-WORKER",)),
        (300.0, ("ONE-WORKER",), ("ONE-WORKER",)),
        # A tie says so itself.
        (3.1, ("ONE-WORKER",), ()),
        (3.5, ("ONE-WORKER", "PARTIAL"), ("ONE-WORKER",)),
    ],
)
def test_a_win_over_a_single_process_is_not_certain_however_large_it_is(
    other_ms: float, flags: tuple[str, ...], doubts: tuple[str, ...]
):
    for first, second in (((), flags), (flags, ())):
        answer = only(at("cpu", other_ms, *first), at("openvino", 3.0, *second))
        assert answer.fastest[0].blurred_by == doubts
        assert answer.throughput is not None
        assert answer.throughput.blurred_by == doubts


def test_the_smallest_is_exact_whatever_the_workers():
    answer = only(
        at("cpu", 3.0, "ONE-WORKER", variant_bytes=1_000_000),
        at("cpu", 3.0, "ONE-WORKER", precision="fp16", variant_bytes=990_000),
    )
    assert answer.smallest is not None
    assert (answer.smallest.label, answer.smallest.ties) == ("fp16", ())


def test_notes_do_not_blur():
    assert only(at("cpu", 3.1, "PARTIAL"), at("openvino", 3.0)).fastest[0].ties == ()


def test_barred_cases_are_never_ranked():
    answer = only(at("cpu", 3.0), at("cpu", 1.0, "INACCURATE", precision="fp16"))
    assert answer.ranked == 1
    assert answer.fastest[0].label == "native/cpu/b1"
    assert answer.left_out == (("fp16/cpu/b1", "INACCURATE"),)


def test_batches_are_ranked_apart_for_latency_and_together_for_throughput():
    """T4: latencies of different batches are never ranked; the best batch is named."""
    answer = only(
        at("cpu", 3.0), at("openvino", 4.0), at("cpu", 20.0, batch=8), at("openvino", 16.0, batch=8)
    )
    assert [winner.label for winner in answer.fastest] == ["native/cpu/b1", "native/openvino/b8"]
    assert answer.throughput is not None
    assert answer.throughput.label == "native/openvino/b8"
    assert answer.throughput.quantity.value == pytest.approx(500, rel=0.01)
    assert answer.throughput.factor is not None
    # Against the CPU's own best batch.
    assert answer.throughput.factor.reference == "native/cpu/b8"
    assert answer.throughput.factor.value == pytest.approx(1.25, rel=0.01)


def test_smallest_counts_each_variant_once():
    answer = only(
        at("cpu", 3.0),
        at("openvino", 2.0),
        at("cpu", 2.0, precision="int8-static", variant_bytes=3_500_000),
    )
    assert answer.smallest is not None
    assert (answer.smallest.label, answer.smallest.ranked) == ("int8-static", 2)
    assert answer.smallest.factor is not None
    assert answer.smallest.factor.value == 4.0


def test_presets_of_a_model_are_never_ranked_with_each_other_and_threads_are():
    found = answers_of(
        make_run(
            [
                at("cpu", 90.0, knobs={"workload": "prefill", "threads": "1"}),
                at("cpu", 9.0, knobs={"workload": "decode", "threads": "1"}),
                at("cpu", 50.0, knobs={"workload": "prefill", "threads": "2"}),
                at("cpu", 12.0, knobs={"workload": "decode", "threads": "2"}),
            ]
        )
    )
    assert [answer.workload for answer in found] == [
        {"workload": "prefill"},
        {"workload": "decode"},
    ]
    assert [answer.fastest[0].label for answer in found] == [
        "native/cpu/b1/threads:2",
        "native/cpu/b1/threads:1",
    ]
    assert [sentences(answer)[0].split(":")[0] for answer in found] == [
        "mobilenet_v2 (prefill)",
        "mobilenet_v2 (decode)",
    ]


def test_sizes_io_and_callers_are_never_mixed():
    found = answers_of(
        make_run(
            [
                at("cpu", 3.0, dims={"seq": 128}),
                at("cpu", 9.0, dims={"seq": 512}),
                at("cpu", 2.0, dims={"seq": 128}, io="device"),
                at("cpu", 2.5, dims={"seq": 128}, knobs={"concurrency": "4"}),
                at("cpu", 3.0, model="other"),
            ]
        )
    )
    assert [answer.ranked for answer in found] == [1, 1, 1, 1, 1]
    assert [sentences(answer)[0].split(":")[0] for answer in found] == [
        "mobilenet_v2 (seq 128)",
        "mobilenet_v2 (seq 512)",
        "mobilenet_v2 (seq 128, device I/O)",
        "mobilenet_v2 (seq 128, concurrency 4)",
        "other",
    ]


def test_knobs_and_runtimes_are_named_and_the_nearest_reference_is_taken():
    answer = only(
        at("cpu", 3.0, knobs={"threads": "1"}),
        at("cpu", 2.0, knobs={"threads": "2"}),
        at("openvino", 1.0, knobs={"threads": "1"}, runtime="ov"),
    )
    (winner,) = answer.fastest
    assert winner.label == "native/openvino/b1/threads:1+ov"
    assert winner.factor is not None
    assert winner.factor.reference == "native/cpu/b1/threads:1+current"


# -- sentences --------------------------------------------------------------------------------


def said(*results: CaseResult) -> list[str]:
    return sentences(only(*results))


def test_sentences_of_a_clear_case():
    lines = said(
        at("cpu", 3.0),
        at("openvino", 1.8),
        at("cpu", 5.0, precision="int8-static", variant_bytes=3_500_000),
    )
    # Medians of the CPU's workers are 3001999, 3000333 and 3000088 ns: Student's lower end is
    # 2998225, their own lowest 2998405; 2998225 / 1802388 is 1.66347.
    assert lines == [
        "mobilenet_v2: recommended: native/openvino, fastest, ×1.667 [×1.663, ×1.670] faster than "
        "native/cpu/b1",
        "mobilenet_v2: fastest native/openvino/b1, p50 1.800 ms [1.799, 1.802], "
        "×1.667 [×1.663, ×1.670] faster than native/cpu/b1",
        "mobilenet_v2: highest throughput native/openvino/b1, 554.8 /s [554.4, 555.2], "
        "×1.667 [×1.664, ×1.669] that of native/cpu/b1",
        "mobilenet_v2: smallest int8-static, 3.50 MB, ×4.00 smaller than native",
    ]


def test_sentences_of_a_tie():
    lines = said(at("cpu", 3.05, "STEAL"), at("openvino", 3.0))
    assert lines[0] == "mobilenet_v2: recommended: native/openvino, as fast as any"
    assert lines[1].endswith("; no clear difference from native/cpu/b1")


def test_sentences_of_a_blurred_winner_name_the_flag():
    lines = said(at("cpu", 3.0, "STEAL"), at("openvino", 9.0))
    assert lines[0].endswith(" faster than native/openvino/b1 (not certain: STEAL)")
    assert lines[1].endswith(" (STEAL)")


def test_sentences_of_a_single_case():
    (line,) = said(at("cpu", 3.0))
    assert line.startswith("mobilenet_v2: on cpu as it is: p50 3.000 ms [")
    assert f"/s [332.6, 333.1]; {ADD}" in line


@pytest.mark.parametrize(
    ("options", "weights", "untried"),
    [
        ({}, {"float": 10}, (ALL_PROVIDERS, OTHER_PRECISIONS)),
        ({"providers": "all"}, {"float": 10}, (OTHER_PRECISIONS,)),
        ({"providers": "cpu"}, {"float": 10}, (ALL_PROVIDERS, OTHER_PRECISIONS)),
        ({"providers": "all", "precisions": "fp32,fp16"}, {"float": 10}, ()),
        # A file in int8 has no lower precision that it could be compared with.
        ({"providers": "all"}, {"int8": 10_000, "float": 10}, ()),
    ],
)
def test_only_what_was_not_tried_and_suits_the_file_is_advised(
    options: dict[str, str], weights: dict[str, int], untried: tuple[str, ...]
) -> None:
    result = at("cpu", 3.0)
    ops = {"QLinearConv": 9} if "int8" in weights else {"MatMul": 9}
    model = replace(result.case.model, weight_types=weights, op_types=ops)
    result = replace(result, case=replace(result.case, model=model))
    (answer,) = answers_of(replace(make_run([result]), options=options))
    assert answer.untried == untried
    assert [
        option for option in (ALL_PROVIDERS, OTHER_PRECISIONS) if option in sentences(answer)[0]
    ] == [*untried]


def test_sentences_of_several_batches_without_rivals_skip_the_fastest():
    only_one, line = said(at("cpu", 3.0), at("cpu", 20.0, batch=8))
    assert only_one == (
        "mobilenet_v2: on cpu as it is: p50 3.000 ms [2.998, 3.004] at batch 1, "
        f"p50 20.00 ms [19.99, 20.03] at batch 8; {ADD}"
    )
    assert line.startswith("mobilenet_v2: highest throughput native/cpu/b8, ")


def test_sentences_where_nothing_can_be_ranked():
    lines = said(
        make_result(status="crash"), at("openvino", 3.0, "NONFINITE"), make_result(
            case=make_case(provider="cuda"), count=1
        ),
    )  # fmt: skip
    assert lines == [
        "mobilenet_v2: no case can be ranked: native/cpu/b1: crash: the worker died; "
        "native/openvino/b1: NONFINITE; native/cuda/b1: n<6"
    ]


def test_long_lists_are_cut():
    results = [
        make_result(case=make_case(batch=batch), status="unsupported") for batch in range(1, 7)
    ]
    (line,) = said(*results)
    assert line.endswith(
        "/b1, native/cpu/b2, native/cpu/b3 and 3 more: unsupported: the worker died"
    )
    reasons = ("INACCURATE", "NONFINITE", "EMULATED", "SHAPES")
    (line,) = said(*(at("cpu", 3.0, reason, precision=reason.lower()) for reason in reasons))
    assert line.endswith("; emulated/cpu/b1: EMULATED: computed in float32; and 1 more")
    many = said(*(at("cpu", 3.0, knobs={"threads": str(count)}) for count in range(1, 7)))
    assert many[1].endswith(" and 2 more")


def test_long_reasons_are_cut_and_stay_on_one_line():
    failure = make_failure("error", message="no kernel\nfor " + "Conv " * 100)
    (line,) = said(make_result(status="error", failure=failure))
    assert "\n" not in line
    assert "error: no kernel for Conv Conv" in line
    assert line.endswith("Conv …")
    assert len(line) < 160


def test_left_out_cases_are_named_beside_the_ranked():
    lines = said(at("cpu", 3.0), make_result(case=make_case(provider="cuda"), status="timeout"))
    assert lines[-1] == "mobilenet_v2: not ranked: native/cuda/b1: timeout: the worker died"


def test_no_run_has_no_answer():
    assert answers_of(make_run([])) == []


def test_intervals_share_the_unit_of_the_value():
    wide = Quantity(value=1.1e-3, unit="s", low=0.9e-3, high=1.3e-3)
    assert with_interval(wide) == "1.10 ms [0.900, 1.30]"
    assert with_interval(Quantity(value=3.5e6, unit="bytes")) == "3.50 MB"
