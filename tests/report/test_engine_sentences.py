"""What is said of ONNX Runtime beside other engines, in the terminal and on the page."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.outcome import CaseResult, OutputAccuracy
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html.page import build_page
from tests.results_factory import (
    make_accuracy,
    make_case,
    make_engine_result,
    make_memory,
    make_result,
    make_run,
)

CLASSIC = make_engine_result(
    alias="torch",
    title="PyTorch",
    role="framework",
    median_ns=9_900_000,
    compile_ns=None,
    startup={"import_ns": 500_000_000},
    memory=make_memory(peak_bytes=273_000_000),
    accuracy=make_accuracy(sqnr_db=126.0),
)


def line_of(*results: CaseResult) -> str:
    lines = answer_lines(shown_run(make_run(results)))
    (line,) = [line for line in lines if "ONNX Runtime" in line]
    return line


def test_the_classic_claim_in_one_sentence() -> None:
    line = line_of(make_result(), CLASSIC)
    for part in (
        "mobilenet_v2: ONNX Runtime (native/cpu/b1) is 3.3",
        "as fast as the framework PyTorch (native/torch/b1)",
        "its process takes 67 %",
        "less memory",
        "it is ready 410 ms earlier",
        "the export is exact to 126 dB",
    ):
        assert part in line


def test_only_a_near_export_is_called_exact() -> None:
    far = replace(CLASSIC, accuracy=make_accuracy(sqnr_db=62.0))
    assert "the export agrees with its source to 62.0 dB" in line_of(make_result(), far)


def test_what_is_slower_is_called_slower() -> None:
    fast = make_engine_result(median_ns=1_000_000, memory=make_memory(peak_bytes=10_000_000))
    line = line_of(make_result(), fast)
    assert "is slower: it takes 3.0" in line
    assert "as long as the engine tract (native/tract/b1), its process takes" in line
    assert "more memory" in line
    assert "the outputs of both agree with the reference to 120 dB" in line


def test_further_batches_follow() -> None:
    eight = make_case(batch=8)
    line = line_of(
        make_result(),
        make_result(case=eight, median_ns=9_000_000),
        make_engine_result(median_ns=6_000_000),
        make_engine_result(case=eight, median_ns=9_000_000),
    )
    assert "at batch 8 it shows no clear difference from" in line


def test_no_evidence_is_no_good_result() -> None:
    unknown = make_engine_result(memory=make_memory(peak_bytes=None), seed=1)
    line = line_of(make_result(), unknown)
    assert "shows no clear difference from the engine tract" in line
    assert "the memory of one of the processes was not measured" in line
    barred = make_engine_result(status="unsupported")
    line = line_of(make_result(), barred)
    assert "ONNX Runtime is not compared with the engine tract: native/tract/b1 (engine)" in line


def test_a_small_lead_has_its_digits() -> None:
    measured = make_engine_result(seed=1).measurements[0].memory
    assert measured.process_peak_bytes is not None
    slightly = replace(measured, process_peak_bytes=round(1.002 * measured.process_peak_bytes))
    line = line_of(make_result(), make_engine_result(memory=slightly))
    assert "takes 0.2 % less memory" in line


def test_labels_stand_beside_probabilities() -> None:
    exact = make_accuracy(sqnr_db=None, agree=8)
    labels = OutputAccuracy(name="labels", kind="integer", finite=True, agree=795, rows=800)
    wrong = replace(make_accuracy(), outputs=(*make_accuracy().outputs, labels))
    line = line_of(make_result(accuracy=exact), make_engine_result(accuracy=wrong))
    assert "rows of labels that agree with the reference: 795/800 (≥99 %), and numbers to" in line


def test_page_and_job_summary_say_the_same() -> None:
    shown = shown_run(make_run([make_result(), CLASSIC]))
    sentence = build_page(shown).answers[0].beside[0]
    assert [part.text for part in sentence.parts if part.kind == "winner"] == ["ONNX Runtime"]
    fast = make_engine_result(median_ns=1_000_000)
    slower = build_page(shown_run(make_run([make_result(), fast]))).answers[0].beside[0]
    assert [part.text for part in slower.parts if part.kind == "winner"] == ["tract"]
    equal = build_page(shown_run(make_run([make_result(), make_engine_result(seed=1)])))
    assert not [part for part in equal.answers[0].beside[0].parts if part.kind == "winner"]
    assert "as fast as the framework PyTorch" in run_summary(shown)
