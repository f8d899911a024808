"""The terminal table: what it shows at which width, and what it does with hostile names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rich.cells import cell_len

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.outcome import BudgetShare, Flag
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.cells import ALL_COLUMNS
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.legend import failure_groups
from pytest_ortbench.report.table import render_table
from tests import results_factory as factory
from tests.report import sample_runs


def plain(width: int = 200, **options: Any) -> str:
    return render_table(shown_run(sample_runs.ten_cases()), width=width, color=False, **options)


def line_with(text: str, *words: str) -> str:
    found = [line for line in text.splitlines() if all(word in line for word in words)]
    assert len(found) == 1, found
    return found[0]


def test_a_line_shows_every_number_of_a_case_in_peoples_units() -> None:
    line = line_with(plain(), "native/cpu/b1 ", "12.4 ms", "ok")
    # Medians of 12.3923, 12.3851 and 12.3039 ms give 12.239 to 12.483 by Student's t.
    assert " ".join(line.split()) == (
        "native/cpu/b1 12.4 ms [12.2, 12.5] 12.6 ms 15.8 ms 80.1 68.8 ms 27.2 ms 60.0 MB 100 % "
        "96.3 dB ok"
    )


def test_too_few_samples_give_no_percentile() -> None:
    assert " n<368 " in line_with(plain(), "native/cpu/b8 ")


def test_cases_of_a_model_share_a_unit() -> None:
    run = factory.make_run(
        [
            factory.make_result(median_ns=900_000),
            factory.make_result(case=factory.make_case(batch=2), median_ns=950_000),
            factory.make_result(case=factory.make_case(batch=4), median_ns=1_100_000),
        ]
    )
    text = render_table(shown_run(run), width=200, color=False)
    assert re.search(r"native/cpu/b1 +(899|90\d)(\.\d)? µs", text)
    assert re.search(r"native/cpu/b4 +1[01]\d\d µs", text)


def test_columns_line_up() -> None:
    lines = plain().splitlines()
    heading = lines[0]
    rows = [line for line in lines if re.match(r"  \S+/\S+/b\d", line)]
    assert len(rows) == 7
    for name in ("p50", "p90", "p99", "items/s", "peak RSS", "accuracy"):
        end = heading.index(name) + len(name)
        for row in rows:
            assert row[end - 1] != " "
            assert row[end : end + 2] == "  "


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("run", [sample_runs.ten_cases, sample_runs.hostile, sample_runs.one_case])
def test_no_line_is_wider_than_allowed(width: int, run: Callable[[], Run]) -> None:
    text = render_table(shown_run(run()), width=width, color=False)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_narrow_tables_fold_their_rows_and_leave_out_details_alone() -> None:
    text = plain(80)
    first, second = text.splitlines()[:2]
    assert first.split() == ["case", "p50", "95", "%", "interval", "p99", "items/s", "status"]
    assert second.split() == ["peak", "RSS", "placed", "accuracy"]
    lines = text.splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("  native/cpu/b1 "))
    assert lines[row + 1].split() == ["60.0", "MB", "100", "%", "96.3", "dB"]
    left_out = " ".join(text.split("\ncolumns")[1].split())
    assert left_out == ("no room for p90, create, first; 'ortbench show --columns=…' shows them")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_width_costs_what_was_measured_of_the_answers(width: int) -> None:
    text = plain(width)
    assert "accuracy" in text
    assert text.count("96.3 dB") == 4


def wide_cases() -> Run:
    """Cases of one model that differ in a batch in the midst of long labels."""
    return factory.make_run(
        [
            factory.make_result(
                case=dataclasses.replace(
                    factory.make_case(batch=batch),
                    dims={"height": 320, "width": 320},
                    knobs={"threads": "1", "opt": opt},
                )
            )
            for batch in (1, 8)
            for opt in ("all", "basic")
        ]
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_two_rows_are_never_equal_and_what_is_alike_stands_in_the_head(width: int) -> None:
    text = render_table(shown_run(wide_cases()), width=width, color=False)
    assert " ".join(text.split()).count("all rows height:320 width:320 threads:1") == 1
    # A label may be folded: what stands in its column, line after line, is the whole of it.
    lines = text.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("  native/")]
    heading = lines[0].index("p50")
    column = min(heading, 34)
    labels = [
        "".join(line[2:column].split(" ")[0] for line in lines[start : start + 2])
        for start in starts
    ]
    assert len(labels) == len(set(labels)) == 4
    assert "…" not in "".join(labels)


def test_columns_on_request_fold_too() -> None:
    text = plain(40, columns=["p95", "workers", "size"])
    assert [line.split() for line in text.splitlines()[:2]] == [
        ["case", "p95", "workers"],
        ["model", "size"],
    ]
    assert plain(60, columns=["p95", "workers", "size"]).splitlines()[0].split() == [
        *("case", "p95", "workers", "model", "size"),
    ]


def test_without_a_number_no_column_is_missed() -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case(), "crash")])
    text = render_table(shown_run(run), width=80, color=False)
    assert "crash  native/cpu/b1" in text
    assert "no room for" not in text


def test_wide_tables_leave_nothing_out() -> None:
    assert "no room for" not in plain(200)


def test_columns_on_request() -> None:
    text = plain(60, columns=["p95", "workers", "size"])
    line = line_with(text, "native/cpu/b8 ")
    assert " ".join(line.split()) == "native/cpu/b8 83.4 ms 3 14.0 MB"


def test_an_unknown_column_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"--columns: 'p98' is not a column\. Did you mean"):
        plain(columns=["p98"])


def test_failures_stand_below_their_model_once_for_all_that_share_the_reason() -> None:
    lines = plain(200).splitlines()
    index = lines.index("  unavailable  native/cuda/b1, native/cuda/b8")
    assert lines[index + 1] == (
        "      libcudnn.so.9 can't be loaded (cuDNN 9, for CUDA 12) (creating the session). "
        "Install 'onnxruntime-gpu[cuda,cudnn]'."
    )


def test_many_failures_are_counted() -> None:
    run = factory.make_run(
        [sample_runs.failed(sample_runs.case(batch=batch), "crash") for batch in range(1, 301)]
    )
    lines = render_table(shown_run(run), width=100, color=False).splitlines()
    assert lines[1] == "  crash  native/cpu/b1, native/cpu/b2, native/cpu/b3 and 297 more"
    assert lines[2] == "      the worker died, SIGSEGV (measuring)."


def test_the_legend_explains_the_flags_that_appear_gravest_first() -> None:
    text = plain(250)
    flags = re.findall(r"^([A-Z-]+) +1 case: ", text, re.MULTILINE)
    assert flags == ["EMULATED", "INACCURATE", "PARTIAL", "SPREAD"]
    assert "Rely on the interval, not on the value. More --ort-workers narrow the interval." in text
    assert "UNSTEADY" not in text


def test_the_legend_says_what_the_numbers_include_and_where_they_come_from() -> None:
    text = plain(300)
    for sentence in (
        "Latency: one inference, host arrays in and out (end-to-end); closed loop, one caller; "
        "profiler off; warm-up excluded.",
        "3 fresh worker processes a case; ",
        "Threads of one operator: 2 (affinity).",
        "runtimes    current: onnxruntime 1.32.0, Python 3.11.9, numpy 2.4.0",
        "machine     bench-1: cpu_model Example CPU 3000",
        "left out    azure: takes no node of a local model",
    ):
        assert sentence in text


def test_the_runtime_is_named_only_where_there_are_several() -> None:
    results = [
        factory.make_result(case=factory.make_case(runtime=runtime))
        for runtime in ("current", "onnxruntime-1.20.1")
    ]
    several = render_table(shown_run(factory.make_run(results)), width=200, color=False)
    assert "native/cpu/b1+onnxruntime-1.20.1 " in several
    assert "native/cpu/b1+" not in render_table(
        shown_run(factory.make_run(results[:1])), width=200, color=False
    )


def test_names_are_inert() -> None:
    text = render_table(shown_run(sample_runs.hostile()), width=300, color=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    assert text.splitlines()[1].startswith(
        "=<script>alert(1)</script>|`[bold]x[/bold]\\x1b[31m\\u202e \"'&{{7*7}}$x$"
    )


def test_colour_only_on_request() -> None:
    run = sample_runs.ten_cases()
    coloured = render_table(shown_run(run), width=120, color=True)
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_table(
        shown_run(run), width=120, color=False
    )


def test_what_the_stream_cannot_write_gets_a_stand_in() -> None:
    run = factory.make_run(
        [factory.make_result(case=factory.make_case(model="größe_模型"), median_ns=900)],
        skips=sample_runs.SKIPS,
    )
    text = render_table(shown_run(run), width=120, color=False, encoding="ascii")
    text.encode("ascii")
    assert "gr\\xf6\\xdfe_\\u6a21\\u578b" in text
    assert re.search(r"90\d(\.\d)? ns", text)
    assert "gbdt x fp16" in text


def test_wide_characters_keep_columns_aligned() -> None:
    run = factory.make_run(
        [factory.make_result(case=factory.make_case(dims={"长度": size})) for size in (8, 128)]
    )
    lines = render_table(shown_run(run), width=200, color=False).splitlines()
    ends = {cell_len(line[: line.index("ms")]) for line in lines[2:4]}
    assert len(ends) == 1


def test_a_flag_of_a_later_version_does_no_harm() -> None:
    result = factory.make_result(flags=[Flag(name="FROM-THE-FUTURE")])
    text = render_table(shown_run(factory.make_run([result])), width=200, color=False)
    assert re.search(r"^FROM-THE-FUTURE +1 case: not known here", text, re.MULTILINE)


def test_a_run_without_cases_says_so() -> None:
    text = render_table(
        shown_run(factory.make_run([], skips=sample_runs.SKIPS)), width=80, color=False
    )
    assert "cases     none was measured" in text
    assert "left out  azure: takes no node of a local model" in text


def test_flags_that_do_not_fit_are_counted() -> None:
    flags = [Flag(name=name) for name in ("CPU-SHARE", "RESOLUTION", "BIMODAL", "SPREAD")]
    run = factory.make_run([factory.make_result(flags=flags)])
    assert line_with(
        render_table(shown_run(run), width=200, color=False), "  native/cpu/b1"
    ).endswith("  CPU-SHARE RESOLUTION BIMODAL SPREAD")
    assert line_with(
        render_table(shown_run(run), width=110, color=False), "  native/cpu/b1"
    ).endswith("  CPU-SHARE +3")


@pytest.mark.parametrize(("width", "is_named"), [(200, False), (110, True), (80, True)])
def test_flags_that_were_only_counted_are_named_below(width: int, is_named: bool) -> None:
    names = ("CPU-SHARE", "RESOLUTION", "BIMODAL", "SPREAD")
    cases = [factory.make_case(batch=batch) for batch in (1, 8, 16)]
    flags = [Flag(name=name) for name in names]
    results = [factory.make_result(case=case, flags=flags) for case in cases[:2]]
    run = factory.make_run([*results, factory.make_result(case=cases[2], flags=flags[:1])])
    text = " ".join(render_table(shown_run(run), width=width, color=False).split())
    labels = ", ".join(case.case_id for case in cases[:2])
    assert (f"flags {' '.join(names)}: {labels} CPU-SHARE 3 cases" in text) == is_named


@pytest.mark.parametrize(
    ("share", "word"),
    [
        (None, "timeout"),
        (BudgetShare(given_s=9.0), "timeout"),
        (BudgetShare(given_s=9.0, ended=True), "budget"),
        (BudgetShare(given_s=0.0), "budget"),
    ],
)
def test_a_case_that_the_time_of_the_run_left_out_is_no_timeout_of_its_own(
    share: BudgetShare | None, word: str
) -> None:
    result = factory.make_result(status="timeout", failure=factory.make_failure("timeout"))
    result = dataclasses.replace(result, budget=share)
    (entry,) = shown_run(factory.make_run([result])).entries
    assert entry.failed_as == word
    (group,) = failure_groups([entry])
    assert group.status == word


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_shapes_that_a_model_was_fed_are_never_cut(width: int) -> None:
    text = render_table(
        shown_run(factory.make_run([factory.make_result()])), width=width, color=False
    )
    assert "input [1, 3, 224, 224]" in " ".join(text.split())
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_what_was_left_out_can_be_left_out() -> None:
    assert "left out" in plain()
    assert "left out" not in plain(skips=False)


def test_the_gravest_flag_is_named_in_a_narrow_cell() -> None:
    names = ("CPU-SHARE", "RESOLUTION", "ONE-WORKER", "NONFINITE")
    result = dataclasses.replace(
        factory.make_result(), flags=tuple(Flag(name=name) for name in names)
    )
    assert "NONFINITE" in line_with(
        render_table(shown_run(factory.make_run([result])), width=80, color=False), "native/cpu/b1 "
    )


def _first_line(wanted: Sequence[str], width: int) -> str:
    shown = shown_run(factory.make_run([factory.make_result()]))
    table = render_table(shown, width=width, color=False, wanted=wanted)
    return table.partition("\n")[0]


def test_what_was_asked_for_stays_in_the_first_line_where_there_is_little_room() -> None:
    assert "accuracy" not in _first_line((), 80)
    assert "accuracy" in _first_line(("accuracy_sqnr",), 80)
    assert "create" in _first_line(("session_create", "first_inference"), 80)
    assert "p95" in _first_line(("latency_p95",), 120)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_everything_asked_for_at_once_makes_no_line_too_long(width: int) -> None:
    wanted = tuple(column.metric for column in ALL_COLUMNS.values() if column.metric)
    shown = shown_run(factory.make_run([factory.make_result()]))
    table = render_table(shown, width=width, color=False, wanted=wanted)
    assert max(map(len, table.splitlines())) <= width
