"""Ratios between precisions on the same provider."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.precisions import PrecisionRow
from pytest_ortbench.core.outcome import CaseResult, Flag
from tests.results_factory import make_accuracy, make_case, make_result, make_run
from tests.summarised import answers_of, blocks_of


def at(
    precision: str,
    ms: float,
    *flags: str,
    provider: str = "cpu",
    mb: float = 14.0,
    sqnr_db: float | None = 120.0,
    **case: object,
) -> CaseResult:
    return make_result(
        case=make_case(
            precision=precision,
            provider=provider,
            variant_bytes=round(mb * 1e6),
            **case,  # type: ignore[arg-type]
        ),
        median_ns=round(ms * 1e6),
        accuracy=make_accuracy(sqnr_db=sqnr_db),
        flags=[Flag(name=name) for name in flags],
    )


def rows(*results: CaseResult) -> dict[str, PrecisionRow]:
    (block,) = blocks_of(make_run(list(results)))
    return {f"{row.precision}@{row.provider}": row for row in block.rows}


def test_ratios_are_contender_by_baseline_with_an_interval() -> None:
    found = rows(at("fp32", 4.0, mb=16), at("int8-static", 2.0, mb=4, sqnr_db=31.0))
    fast = found["int8-static@cpu"]
    assert found["fp32@cpu"].is_reference
    assert found["fp32@cpu"].latency_ratio is None
    assert fast.latency_ratio is not None
    assert fast.latency_ratio.value == pytest.approx(0.5, rel=0.01)
    assert fast.latency_ratio.low is not None
    assert fast.latency_ratio.high is not None
    assert fast.latency_ratio.low < fast.latency_ratio.value < fast.latency_ratio.high
    assert fast.latency_ratio.certain
    assert fast.size_ratio is not None
    assert fast.size_ratio.value == 0.25
    assert fast.memory_ratio is not None
    assert fast.memory_ratio.value == 1.0
    assert fast.sqnr_db == 31.0


def test_each_provider_has_its_own_baseline() -> None:
    found = rows(
        at("fp32", 4.0),
        at("fp32", 1.0, provider="cuda"),
        at("fp16", 4.4),
        at("fp16", 0.5, provider="cuda"),
    )
    on_cpu, on_gpu = found["fp16@cpu"].latency_ratio, found["fp16@cuda"].latency_ratio
    assert on_cpu is not None
    assert on_gpu is not None
    assert on_cpu.value == pytest.approx(1.1, rel=0.01)
    assert on_gpu.value == pytest.approx(0.5, rel=0.01)


def test_the_file_as_it_is_stands_in_for_fp32() -> None:
    found = rows(at("native", 4.0), at("int8-dynamic", 8.0))
    assert found["native@cpu"].is_reference
    slower = found["int8-dynamic@cpu"].latency_ratio
    assert slower is not None
    assert slower.value == pytest.approx(2.0, rel=0.01)


def test_without_either_there_is_no_ratio() -> None:
    found = rows(at("fp16", 4.0), at("int8-dynamic", 8.0))
    assert [row.latency_ratio for row in found.values()] == [None, None]


def test_the_same_numbers_are_not_told_apart() -> None:
    ratio = rows(at("fp32", 4.0), at("fp16", 4.0))["fp16@cpu"].latency_ratio
    assert ratio is not None
    assert not ratio.certain


def test_flagged_cases_keep_their_ratio() -> None:
    row = rows(at("fp32", 4.0), at("fp16", 5.0, "EMULATED"))["fp16@cpu"]
    assert row.flags == ("EMULATED",)
    assert row.latency_ratio is not None


def test_a_failed_one_keeps_its_reason() -> None:
    failed = make_result(case=make_case(precision="bf16"), status="unsupported")
    row = rows(at("fp32", 4.0), failed)["bf16@cpu"]
    assert (row.status, row.reason, row.latency_ratio) == (
        "unsupported",
        "the worker died",
        None,
    )


def test_other_sizes_knobs_and_runtimes_are_blocks_of_their_own() -> None:
    blocks = blocks_of(
        make_run(
            [
                at(precision, ms, batch=batch, knobs=knobs)
                for batch, knobs in ((1, {}), (8, {}), (1, {"threads": "2"}))
                for precision, ms in (("fp32", 4.0), ("fp16", 3.0))
            ]
        )
    )
    assert [block.at for block in blocks] == ["b1", "b8", "b1, threads:2"]
    assert {len(block.rows) for block in blocks} == {2}


def test_a_model_in_one_precision_has_no_block() -> None:
    run = make_run([at("fp32", 4.0), at("fp32", 2.0, provider="cuda")])
    assert blocks_of(run) == []


def test_how_it_was_made_comes_along() -> None:
    made = at("fp16", 4.0)
    variant = replace(made.case.variant, recipe={"base": "fp16"}, notes=("clamped",))
    made = replace(made, case=replace(made.case, variant=variant))
    row = rows(at("fp32", 4.0), made)["fp16@cpu"]
    assert (row.recipe, row.notes) == ({"base": "fp16"}, ("clamped",))


@pytest.mark.parametrize(("status", "notes"), [("measured", ()), ("error", ("not run",))])
def test_a_variant_that_was_measured_was_run(status: str, notes: tuple[str, ...]) -> None:
    made = make_result(case=make_case(precision="fp16"), status=status)
    variant = replace(made.case.variant, unchecked="not run")
    made = replace(made, case=replace(made.case, variant=variant))
    assert rows(at("fp32", 4.0), made)["fp16@cpu"].notes == notes


def test_the_same_file_is_no_faster_and_no_slower_than_itself() -> None:
    again = at("native", 4.2)
    original = at("fp32", 4.0)
    variant = replace(again.case.variant, digest=original.case.variant.digest)
    again = replace(again, case=replace(again.case, variant=variant))
    ratio = rows(original, again)["native@cpu"].latency_ratio
    assert ratio is not None
    assert ratio.same_file
    assert not ratio.certain


@pytest.mark.parametrize(
    ("ms", "flag", "tie", "certain"),
    [
        (4.16, "ONE-WORKER", True, False),
        (4.4, "ONE-WORKER", False, False),
        (9.0, "ONE-WORKER", False, False),
        (4.16, "", False, True),
        (4.16, "UNSTEADY", True, False),
    ],
)
def test_a_tie_is_what_ranking_calls_one(ms: float, flag: str, tie: bool, certain: bool) -> None:
    """Intervals are apart in each of these; a process, or a blurred number, proves less."""
    run = make_run([at("fp32", 4.0), at("fp16", ms, *([flag] if flag else []))])
    [block] = blocks_of(run)
    ratio = block.rows[1].latency_ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.low > 1
    assert (ratio.tie, ratio.certain) == (tie, certain)
    [answer] = answers_of(run)
    assert (answer.fastest[0].ties == ("fp16/cpu/b1",)) is tie
