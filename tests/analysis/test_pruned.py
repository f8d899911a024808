"""Pruned models beside their dense forms, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.pruned import pruned_pairs
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.pruned import pruned_lines
from tests.results_factory import make_case, make_model, make_result, make_run


def at(name: str, zeros: float | None, ms: float, **case: object) -> CaseResult:
    model = replace(
        make_model(name),
        zero_share=zeros,
        size_bytes=14_000_000,
        compressed_bytes=6_000_000 if zeros and zeros > 0.5 else None,
    )
    return make_result(
        case=make_case(model=model, **case),  # type: ignore[arg-type]
        median_ns=round(ms * 1e6),
    )


def pairs(*results: CaseResult) -> list[tuple[str, str | None, bool | None]]:
    return [
        (
            pair.pruned.case_id,
            None if pair.dense is None else pair.dense.case_id,
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
    assert pruned_lines(shown_run(make_run([at("a", None, 4.0), at("b", 0.02, 4.0)]))) == []


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
    assert pruned_lines(shown_run(make_run(results))) == [line]
