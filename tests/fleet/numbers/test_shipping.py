"""What to ship where: one sentence a model, and where the mean over all is contradicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.proof import Proof
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.fleet.numbers.evenness import single_cells, single_sides
from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.headlines import model_headline, overall_headline
from pytest_ortbench.fleet.numbers.matrix import by_case, by_workload
from pytest_ortbench.fleet.numbers.sentences import best_overall, conclusions
from pytest_ortbench.fleet.numbers.sides import lay_out_sides
from pytest_ortbench.fleet.report.view import NOISY, cell_texts, overall_mark
from tests.fleet.numbers.runs import case, exact, latency, run


def said_of(
    runs: Sequence[RunFacts], axis: str = "machine", metric: str = "latency_p50"
) -> list[Told]:
    layout = lay_out_sides(runs, axis)
    return conclusions(by_workload(layout, metric), by_case(layout, metric), axis)


def two_models(slow: float, fast: float) -> list[RunFacts]:
    """On a, the small model takes ``slow``; everywhere else b is twice as fast."""
    return [
        run("a", case(latency(4, 4, 4)), case(latency(*exact(slow)), model="tiny")),
        run("b", case(latency(2, 2, 2)), case(latency(*exact(fast)), model="tiny")),
    ]


def test_each_model_has_a_sentence_with_its_variant_and_where_it_runs() -> None:
    said = said_of(two_models(0.9, 1.0))
    assert said[:3] == [
        "net: recommended: native/cpu on b, fastest, ×2.000 [×2.000, ×2.000] faster than a "
        "(native/cpu)",
        "tiny: recommended: native/cpu on a, fastest, ×1.111 [×1.111, ×1.111] faster than b "
        "(native/cpu)",
        "overall: b is fastest; the next one, a, takes ×1.342 [×1.342, ×1.342] as long, geometric "
        "mean of latency p50 over the 2 cases that every side has; except tiny b1 (a)",
    ]
    assert [text.lead for text in said[:3]] == [True, True, False]


def test_no_exception_is_said_where_there_is_none() -> None:
    assert not any("except" in text for text in said_of(two_models(2.0, 1.0)))


def test_the_choice_is_the_one_that_is_best_at_most_batch_sizes_and_says_where_it_is_not() -> None:
    runs = [
        run("a", *(case(latency(4, 4, 4), batch=batch) for batch in (1, 8)),
            case(latency(1, 1, 1), batch=32)),
        run("b", *(case(latency(2, 2, 2), batch=batch) for batch in (1, 8, 32))),
    ]  # fmt: skip
    assert said_of(runs)[0] == (
        "net: recommended: native/cpu on b, fastest at batch 1 and 8, ×2.000 [×2.000, ×2.000] "
        "faster than a (native/cpu) at batch 1; for batch 32 native/cpu on a is faster"
    )


def test_providers_are_named_by_the_variant_alone() -> None:
    runs = [
        run("a", case(latency(4, 4, 4)), case(latency(2, 2, 2), provider="cuda")),
    ]
    assert said_of(runs, "provider")[0].startswith("net: recommended: native/cuda, fastest, ×2.000")


def test_rates_are_highest_and_memory_is_lowest() -> None:
    spans = {"throughput": exact(100), "peak_rss": exact(3e6)}
    more = {"throughput": exact(200), "peak_rss": exact(6e6)}
    runs = [run("a", case(spans)), run("b", case(more))]
    assert said_of(runs, metric="throughput")[0] == (
        "net: recommended: native/cpu on b, highest throughput, ×2.000 [×2.000, ×2.000] that of "
        "a (native/cpu)"
    )
    assert said_of(runs, metric="throughput")[1].startswith(
        "overall: b has the highest throughput; the next one, a, has ×0.500"
    )
    assert said_of(runs, metric="peak_rss")[0].startswith(
        "net: recommended: native/cpu on a, lowest peak rss, ×2.000"
    )


def test_what_blurs_the_choice_is_said() -> None:
    runs = [
        run("a", case(latency(4, 4, 4))),
        run("b", case(latency(2, 2, 2), blurred_by=["UNSTEADY"])),
    ]
    assert said_of(runs)[0].endswith("(not certain: UNSTEADY)")


def test_models_beyond_the_limit_are_counted() -> None:
    runs = [
        run(host, *(case(latency(*exact(value)), model=f"m{i}") for i in range(10)))
        for host, value in (("a", 4.0), ("b", 2.0))
    ]
    assert said_of(runs)[8] == "and 2 further models: see the table"


def test_the_winner_is_marked_where_it_stands_whatever_it_is_called() -> None:
    runs = [run("a", case(latency(2, 2, 2))), run("st", case(latency(4, 4, 4)))]
    said = said_of(runs)
    assert [(text.about, text.winner) for text in said[:3]] == [
        ("net: ", "native/cpu on a"),
        ("overall: ", "a"),
        ("net b1: ", "a with native/cpu"),
    ]
    assert all(f"{t.about}{t.before}{t.winner}{t.after}" == t for t in said)


def three_at_two_batches() -> list[RunFacts]:
    """a, b and c tie at batch 1, only a and b at batch 8."""
    near, far = latency(2.9, 3, 3.1), latency(8, 9, 10)
    return [
        run("a", *(case(near, batch=batch) for batch in (1, 8))),
        run("b", *(case(near, batch=batch) for batch in (1, 8))),
        run("c", case(near, batch=1), case(far, batch=8)),
    ]


def test_a_tie_names_those_that_tie_at_every_batch_size_and_why_one_is_picked() -> None:
    assert said_of(three_at_two_batches())[0] == (
        "net: recommended: native/cpu on a, as fast as any at batch 1 and 8 (no clear difference "
        "from b; chosen for the better number)"
    )


def test_of_sides_too_noisy_to_tell_none_is_recommended() -> None:
    runs = [
        run("a", case(latency(2, 3, 4), blurred_by=["CPU-SHARE"])),
        run("b", case(latency(2.5, 3.5, 5))),
    ]
    told = said_of(runs)[0]
    assert (told.winner, told.lead) == ("", True)
    assert told.after == ""
    assert told.endswith("too noisy (CPU-SHARE)")


def test_of_sides_that_did_as_well_in_all_the_first_is_picked() -> None:
    """Each has the better number at one batch size."""
    a, b = latency(2.9, 3, 3.2), latency(2.9, 3.1, 3.2)
    runs = [
        run("a", case(a, batch=1), case(b, batch=8)),
        run("b", case(b, batch=1), case(a, batch=8)),
    ]
    assert said_of(runs)[0] == (
        "net: recommended: native/cpu on a, as fast as any at batch 1 and 8 (no clear difference "
        "from b; chosen as the first in order)"
    )


def test_where_the_ties_are_others_at_each_batch_size_none_is_named() -> None:
    near, far = latency(2.9, 3, 3.1), latency(8, 9, 10)
    runs = [
        run("a", *(case(near, batch=batch) for batch in (1, 8))),
        run("b", case(near, batch=1), case(far, batch=8)),
        run("c", case(far, batch=1), case(near, batch=8)),
    ]
    assert said_of(runs)[0] == (
        "net: recommended: native/cpu on a, as fast as any at batch 1 and 8 (no clear difference "
        "from others)"
    )


def test_a_converted_model_is_not_shipped_without_what_it_costs_in_accuracy() -> None:
    spans = {**latency(2, 2, 2), "accuracy_sqnr": exact(40.0)}
    runs = [
        run("a", case(latency(4, 4, 4), precision="fp32")),
        run("b", case(spans, precision="int8-dynamic", batch=1)),
    ]
    assert said_of(runs)[0].endswith("faster than a (fp32/cpu); output error 1.0 %")
    runs[1] = run("b", case(latency(2, 2, 2), precision="int8-dynamic"))
    assert said_of(runs)[0].endswith("; its accuracy was not measured")


def test_a_faster_precision_that_only_drawn_inputs_speak_for_is_named_and_not_shipped() -> None:
    runs = [
        run(
            host,
            case(latency(*exact(4 * pace))),
            case(latency(*exact(pace)), precision="int8-static", needs=Proof.REAL_INPUTS),
        )
        for host, pace in (("a", 1.0), ("b", 0.5))
    ]
    matrix = by_workload(lay_out_sides(runs, "machine"), "latency_p50")
    assert [cell.variant for cell in matrix.rows[0].cells] == ["native/cpu"] * 2
    assert [cell.withheld for cell in matrix.rows[0].cells] == [False, False]
    said = said_of(runs)
    assert said[0].startswith("net: recommended: native/cpu on b, fastest")
    assert said[1] == (
        "net: not recommended yet: int8-static/cpu on b, ×4.000 [×4.000, ×4.000] faster than "
        "native/cpu on b, judged on random inputs alone; use real inputs (--ort-inputs) or "
        "labels (--ort-labels, --ort-dataset)"
    )


def test_sides_of_one_precision_are_compared_whatever_it_was_judged_on() -> None:
    runs = [
        run(host, case(latency(*exact(ms)), precision="int8-static", needs=Proof.REAL_INPUTS))
        for host, ms in (("a", 4.0), ("b", 2.0))
    ]
    assert said_of(runs)[0].startswith("net: recommended: int8-static/cpu on b, fastest")


def test_a_side_with_only_such_a_precision_keeps_its_ratio_and_is_never_the_best() -> None:
    runs = [
        run("a", case(latency(*exact(4.0)))),
        run("b", case(latency(*exact(2.0)), precision="int8-static", needs=Proof.REAL_INPUTS)),
    ]
    first, second = by_workload(lay_out_sides(runs, "machine"), "latency_p50").rows[0].cells
    assert (second.withheld, second.best, first.best) == (True, False, False)
    assert second.ratio is not None
    assert second.ratio.value == 0.5
    assert said_of(runs)[0].startswith("net: not recommended yet: int8-static/cpu on b, ×2.000")


@pytest.mark.parametrize("metric", ["latency_p50", "throughput"])
@pytest.mark.parametrize("single", [(True, False), (False, True), (True, True)])
def test_no_side_is_the_best_where_one_process_measured_a_side(
    single: tuple[bool, bool], metric: str
) -> None:
    runs = [
        run(host, replace(case({metric: exact(value)}), one_worker=is_single))
        for host, value, is_single in zip("ab", (2.0, 9.0), single, strict=True)
    ]
    layout = lay_out_sides(runs, "machine")
    best, cases = by_workload(layout, metric), by_case(layout, metric)
    of_one = tuple(index for index in range(2) if single[index])
    assert (single_cells(best.rows[0], metric), single_sides(cases)) == (of_one, of_one)
    told = conclusions(best, cases, "machine")
    assert [sentence.winner for sentence in told if sentence.lead] == [""]
    assert best_overall(best, cases).winner == ""
    assert overall_headline(cases).winner == model_headline(cases.rows, cases).winner == ""
    marks = {text.mark for text in cell_texts(cases.rows[0], cases)}
    assert marks | {overall_mark(cases, index) for index in range(2)} <= {NOISY, ""}


def test_sizes_are_compared_however_many_processes_measured_them() -> None:
    runs = [
        run(host, replace(case({"model_size": exact(value)}), one_worker=True))
        for host, value in (("a", 2e6), ("b", 9e6))
    ]
    layout = lay_out_sides(runs, "machine")
    assert single_sides(by_case(layout, "model_size")) == ()
