"""The answer is one text, wherever it stands."""

from __future__ import annotations

import dataclasses

from pytest_ortbench.core.outcome import Accuracy
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.entries import shown_run
from tests import results_factory as factory
from tests.report import sample_runs
from tests.summarised import answers_of


def test_every_sentence_starts_with_its_model() -> None:
    lines = answer_lines(shown_run(sample_runs.ten_cases()))
    assert [line.partition(": ")[0] for line in lines] == [
        *["mobilenet_v2"] * 6,
        *["lstm_tagger (seq 128)"] * 2,
        "lstm_tagger/native/openvino/b1/seq:128",
    ]
    assert (
        "recommended: native/openvino, fastest in the original's precision at batch 1" in lines[0]
    )
    assert lines[0].endswith("; for batch 8 native/cpu is faster")
    assert "not recommended yet: int8-static/cpu, ×1.30 [" in lines[1]
    # Student's t of the workers' medians, 6.0809, 6.1289 and 6.1272 ms: 6.1123 times or divided by
    # 1.01114 is 6.0450 to 6.1804.
    assert "6.13 ms [6.04, 6.18]" in lines[2]


def test_names_are_inert() -> None:
    for line in answer_lines(shown_run(sample_runs.hostile())):
        assert "\x1b" not in line
        assert "\u202e" not in line
        assert "\n" not in line


def test_what_the_stream_cannot_write_gets_a_stand_in() -> None:
    lines = answer_lines(shown_run(sample_runs.ten_cases()), encoding="ascii")
    # 12.2390 / 6.1804 and 12.4830 / 6.0450.
    assert ", x2.02 [x1.98, x2.07] faster than " in lines[2]


def test_a_run_without_cases_has_no_answer() -> None:
    assert answer_lines(shown_run(factory.make_run([]))) == []


def test_what_could_not_be_judged_is_counted_with_its_reasons() -> None:
    """Cases of one reason are named together, and each case is counted once."""
    reason = "the graph draws random numbers (RandomNormal)"
    results = [
        factory.make_result(case=factory.make_case(model=name), accuracy=Accuracy(reason=reason))
        for name in ("one", "other")
    ]
    both = dataclasses.replace(results[1], placement=None)
    run = factory.make_run([factory.make_result(), results[0], both])
    assert answer_lines(shown_run(run))[-1] == (
        "2 of 3 cases could not be judged: accuracy of one/native/cpu/b1, other/native/cpu/b1: "
        f"{reason}; placement of other/native/cpu/b1: no profiled run"
    )


def test_what_could_not_be_judged_is_never_ranked_even_without_its_flag() -> None:
    """A document of an earlier version has no such flag."""
    unknown = dataclasses.replace(factory.make_result(), accuracy=None, flags=())
    (answer,) = answers_of(factory.make_run([unknown]))
    assert answer.ranked == 0
    assert answer.left_out == (
        ("native/cpu/b1", "accuracy: outputs were not compared with a reference"),
    )
