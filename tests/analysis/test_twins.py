"""Models beside forms of themselves without a trait, and what is said of their weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.twins import pruned_pairs, unfolded_pairs
from pytest_ortbench.core.model import SubnormalWeight
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.weights import weight_lines
from tests.results_factory import make_case, make_model, make_result, make_run


def at(name: str, zeros: float | None, ms: float, **case: Any) -> CaseResult:
    model = replace(
        make_model(name),
        zero_share=zeros,
        size_bytes=14_000_000,
        compressed_bytes=6_000_000 if zeros and zeros > 0.5 else None,
    )
    return make_result(
        case=make_case(model=model, **case),
        median_ns=round(ms * 1e6),
    )


def pairs(*results: CaseResult) -> list[tuple[str, str | None, bool | None]]:
    return [
        (
            pair.marked.case_id,
            None if pair.plain is None else pair.plain.case_id,
            None if pair.latency is None else pair.latency.tie,
        )
        for pair in pruned_pairs([summarise(result) for result in results])
    ]


def test_a_pruned_model_stands_beside_its_dense_form_under_the_same_settings() -> None:
    found = pairs(
        at("dense", 0.0, 4.0),
        at("pruned", 0.7, 4.0),
        at("pruned", 0.7, 9.0, batch=8),
        at("dense", 0.0, 8.0, batch=8),
    )
    assert found == [
        ("pruned/native/cpu/b1", "dense/native/cpu/b1", True),
        ("pruned/native/cpu/b8", "dense/native/cpu/b8", False),
    ]


def test_the_ratio_is_pruned_by_dense() -> None:
    (pair,) = pruned_pairs([summarise(r) for r in (at("d", 0.0, 4.0), at("p", 0.7, 2.0))])
    assert pair.latency is not None
    assert pair.latency.value == pytest.approx(0.5, rel=0.01)


def test_other_structures_and_converted_files_are_no_dense_forms() -> None:
    other = at("other", 0.0, 4.0)
    model = replace(other.case.model, parameters=other.case.model.parameters + 1)
    other = replace(other, case=replace(other.case, model=model))
    assert pairs(other, at("pruned", 0.7, 4.0)) == [("pruned/native/cpu/b1", None, None)]
    assert pairs(at("d", 0.0, 4.0), at("p", 0.7, 4.0, precision="int8-dynamic")) == []


def test_what_nobody_counted_or_pruned_is_not_told() -> None:
    assert pairs(at("a", None, 4.0), at("b", 0.02, 4.0)) == []
    assert weight_lines(shown_run(make_run([at("a", None, 4.0), at("b", 0.02, 4.0)]))) == []


def test_zeros_are_a_number_of_the_file_as_it_is() -> None:
    as_it_is = summarise(at("p", 0.7, 4.0))
    assert as_it_is.quantities["weight_zeros"].value == 0.7
    converted = summarise(at("p", 0.7, 4.0, precision="fp16"))
    assert "weight_zeros" in converted.missing


@pytest.mark.parametrize(
    ("results", "line"),
    [
        (
            [at("dense", 0.0, 4.0), at("pruned", 0.7, 4.0)],
            "pruned/native/cpu/b1 against dense/native/cpu/b1: 70 % zeros, dense kernels: same "
            "speed (×1.00); 6.00 MB compressed, 14.0 MB as it is",
        ),
        (
            [at("dense", 0.0, 4.0), at("pruned", 0.4, 2.0)],
            "pruned/native/cpu/b1 against dense/native/cpu/b1: 40 % zeros, dense kernels: ×2.00 "
            "faster",
        ),
        (
            [at("pruned", 0.4, 2.0)],
            "pruned: 40 % zeros, dense kernels: zeros are computed like other weights",
        ),
    ],
)
def test_wording(results: list[CaseResult], line: str) -> None:
    assert weight_lines(shown_run(make_run(results))) == [line]


def listed(name: str, count: int, ms: float, **case: Any) -> CaseResult:
    model = replace(make_model(name), weights_as_inputs=count)
    return make_result(
        case=make_case(model=model, **case),
        median_ns=round(ms * 1e6),
    )


def made(result: CaseResult, base: str) -> CaseResult:
    variant = replace(result.case.variant, recipe={"base": base})
    return replace(result, case=replace(result.case, variant=variant))


@pytest.mark.parametrize(
    ("results", "line"),
    [
        (
            [listed("dirty", 5, 4.4), listed("clean", 0, 2.0)],
            "dirty/native/cpu/b1 against clean/native/cpu/b1: 5 weights are also inputs, so ONNX "
            "Runtime does not fold them: ×2.20 slower",
        ),
        (
            [listed("dirty", 5, 4.4)],
            "dirty: 5 weights are also inputs, so ONNX Runtime does not fold them: "
            "--ort-precisions=native,cleaned measures what that costs",
        ),
    ],
)
def test_weights_that_are_inputs_are_told_with_what_they_cost(
    results: list[CaseResult], line: str
) -> None:
    assert weight_lines(shown_run(make_run(results))) == [line]


def test_a_graph_that_was_made_of_the_file_is_a_clean_form_of_it() -> None:
    results = [
        listed("m", 1, 4.0),
        made(listed("m", 1, 3.0, precision="optimized"), "optimized"),
        made(listed("m", 1, 2.0, precision="cleaned"), "cleaned"),
        made(listed("m", 1, 1.0, precision="fp16"), "fp16"),
    ]
    (pair,) = unfolded_pairs([summarise(result) for result in results])
    assert pair.plain is not None
    assert pair.plain.variant.precision == "cleaned"
    assert pair.latency is not None
    assert pair.latency.value == pytest.approx(2.0, rel=0.01)


SLOW = SubnormalWeight(name="w", node="mm", op_type="MatMul", values=262_144, value_share=1.0)


def with_slow(result: CaseResult, **session: str) -> CaseResult:
    case = result.case
    model = replace(case.model, subnormal_weights=(SLOW, replace(SLOW, name="v")))
    config = replace(case.session, entries=session)
    return replace(result, case=replace(case, model=model, session=config))


def test_subnormal_weights_are_told_with_their_node_and_what_helps() -> None:
    result = with_slow(listed("m", 0, 4.0))
    (line,) = weight_lines(shown_run(make_run([result])))
    assert line.startswith("m: w of MatMul 'mm' holds 262 k subnormal values (100 %) (and 1 more ")
    assert "--ort-session-option=session.set_denormal_as_zero=1" in line


def test_subnormal_weights_are_no_matter_where_they_are_not_computed_with() -> None:
    off = {"session.set_denormal_as_zero": "1"}
    result = listed("m", 0, 4.0)
    others = [
        with_slow(result, **off),
        with_slow(listed("m", 0, 4.0, provider="cuda")),
        made(with_slow(listed("m", 0, 4.0, precision="fp16")), "fp16"),
    ]
    for other in others:
        assert weight_lines(shown_run(make_run([other]))) == []
