"""Blocks of the passes: the same numbers in the terminal, on the page and in a stored document."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.samples import Samples
from pytest_ortbench.passes.processes.facts import OneOfSeveral, ProcessPoint
from pytest_ortbench.passes.profile.report import run_profile_lines
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.stages.facts import Stages, StageWorker
from pytest_ortbench.passes.startup.facts import ShapeStart, StartTrial, StartUps
from pytest_ortbench.report.blocks import block_lines, pass_sentences, pass_tables
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.document import decode_run, encode_run
from tests.passes.profile.profiled_runs import profile_of
from tests.report.page_reader import html_without_figures
from tests.results_factory import (
    make_case,
    make_engine_result,
    make_result,
    make_run,
    make_samples,
)

MS = 1_000_000


def samples(ms: float, count: int = 400) -> Samples:
    return make_samples([round(ms * MS)] * count)


def stages(file: str = "own.py") -> Stages:
    worker = StageWorker(
        frame=samples(8), inference=samples(5), preprocess=samples(3), overlapped=100,
        overlapped_ns=100 * 5 * MS,
    )  # fmt: skip
    functions = ("frames", "preprocess")
    return Stages(
        file=file, digest="ab" * 32, functions=functions, frames=4, workers=(worker, worker)
    )


def trial(page_cache: str, create_ms: int, reason: str = "") -> StartTrial:
    return StartTrial(
        page_cache=page_cache,
        resident=0.0 if page_cache == "cold" else 1.0,
        import_ns=300 * MS,
        session_create_ns=create_ms * MS,
        first_inference_ns=9 * MS,
        again_ns=2 * MS,
        shapes=(
            ShapeStart(label="b8", first_ns=40 * MS, again_ns=20 * MS),
            ShapeStart(label="b9", reason="it was refused"),
        ),
        reason=reason,
    )


def full() -> CaseResult:
    at = tuple(range(0, 20_000, 100))
    return replace(
        make_result(case=make_case(batch=1)),
        stages=stages(),
        start_ups=StartUps(trials=(trial("cold", 80), trial("warm", 20), trial("warm", 40))),
        processes=(
            ProcessPoint(
                asked=2, threads=2,
                processes=(OneOfSeveral(samples=samples(4), peak_bytes=3_000_000),) * 2,
            ),
            ProcessPoint(asked=4, reason="out_of_memory: it is full"),
        ),
        soak=Soak(seconds=60.0, inferences=at[-1], at=at, resident_bytes=(10**8,) * len(at)),
    )  # fmt: skip


RUN = make_run([full()])


def test_the_stages_of_a_frame() -> None:
    [table] = [
        table for table in pass_tables(shown_run(RUN)) if table.title.startswith("stages of")
    ]
    assert table.title.endswith("(own.py, 800 frames (4 different ones) in 2 worker processes)")
    # Two workers that agree: 5 % each way.
    assert table.rows == (
        ("preprocess", "3.00 ms", "[2.85 ms, 3.15 ms]", "3.00 ms", "3.00 ms"),
        ("inference", "5.00 ms", "[4.75 ms, 5.25 ms]", "5.00 ms", "5.00 ms"),
        ("frame", "8.00 ms", "[7.60 ms, 8.40 ms]", "8.00 ms", "8.00 ms"),
    )
    assert table.remarks == (
        "frames per second: 125 one after the other; 200 with a thread for each stage (1.60 times "
        "as many)",
    )


def test_starts_under_each_condition() -> None:
    [table] = [
        table for table in pass_tables(shown_run(RUN)) if table.title.startswith("start-up of")
    ]
    assert table.rows == (
        ("from disk", "1", "300 ms", "80.0 ms", "[80.0 ms, 80.0 ms]", "9.00 ms", "2.00 ms"),
        ("in the page cache", "2", "300 ms", "30.0 ms", "[20.0 ms, 40.0 ms]", "9.00 ms", "2.00 ms"),
    )
    assert table.remarks == (
        "b8: first inference 40.0 ms, next one 20.0 ms",
        "b9: no first inference: it was refused",
    )


def test_starts_of_a_framework_have_its_building_apart() -> None:
    trials = tuple(replace(trial("warm", 20), build_ns=ms * MS) for ms in (70, 90, 80))
    result = replace(make_engine_result(role="framework"), start_ups=StartUps(trials=trials))
    [table] = pass_tables(shown_run(decode_run(encode_run(make_run([result])), "run.json")))
    [row] = table.rows
    shown = dict(zip(table.headings, row, strict=True))
    assert shown["build"] == "80.0 ms"
    assert shown["create"] == "20.0 ms"
    assert shown["range of build + create"] == "[90.0 ms, 110 ms]"


def test_files_that_could_not_be_dropped_are_no_row() -> None:
    start_ups = StartUps(trials=(trial("cold", 80, reason="they stayed"), trial("warm", 20)))
    run = make_run([replace(make_result(), start_ups=start_ups)])
    [table] = pass_tables(shown_run(run))
    assert [row[0] for row in table.rows] == ["in the page cache"]
    assert table.remarks[-1] == "not from disk: they stayed"


def test_processes_at_a_time() -> None:
    [table] = [
        table for table in pass_tables(shown_run(RUN)) if table.title.startswith("processes of")
    ]
    assert table.title.endswith(": highest throughput 500 /s with 2 processes")
    [row] = table.rows
    assert (row[0], row[1], row[2], row[3], row[6]) == ("2", "4", "500", "100 %", "6.00 MB")
    assert table.remarks == ("4 processes: out_of_memory: it is full",)


def test_processes_of_a_case_that_may_not_be_ranked() -> None:
    nan = (Flag(name="NONFINITE", detail="64 values in the first run"),)
    run = replace(RUN, cases=tuple(replace(result, flags=nan) for result in RUN.cases))
    [table] = [
        table for table in pass_tables(shown_run(run)) if table.title.startswith("processes of")
    ]
    assert table.title.endswith(": not ranked, as the case itself is not")
    assert [row[2] for row in table.rows] == ["500"]


def test_rates_of_processes_have_one_unit() -> None:
    def point(asked: int, ms: float) -> ProcessPoint:
        one = OneOfSeveral(samples=samples(ms), peak_bytes=1)
        return ProcessPoint(asked=asked, threads=2, processes=(one,) * asked)

    run = make_run([replace(make_result(), processes=(point(1, 2), point(2, 1)))])
    [table] = pass_tables(shown_run(run))
    assert table.headings[2] == "items/s"
    assert [row[2] for row in table.rows] == ["500", "2000"]


def test_a_pass_without_numbers_says_why() -> None:
    results = [
        replace(make_result(), stages=Stages(file="own.py", reason="own.py:3: it broke")),
        replace(make_result(), start_ups=StartUps(reason="crash: it died")),
    ]
    lines = [line for line in block_lines(shown_run(make_run(results))) if line]
    assert [line.partition(": ")[2] for line in lines] == ["crash: it died", "own.py:3: it broke"]


def test_terminal_and_page_show_the_same() -> None:
    lines = block_lines(shown_run(RUN))
    page = html_without_figures(RUN)
    for table in pass_tables(shown_run(RUN)):
        assert table.title in lines
        assert table.title in page
        for row in table.rows:
            assert any(all(cell in line for cell in row) for line in lines)
            assert all(cell in page for cell in row)
    [sentence] = pass_sentences(shown_run(RUN))
    assert sentence.startswith("soak of ")
    assert sentence in lines
    assert sentence in page
    assert '<a href="#passes">' in page
    assert '<a href="#passes">' not in html_without_figures(make_run([make_result()]))


def test_a_name_of_a_file_is_inert_on_the_page() -> None:
    result = replace(make_result(), stages=stages("<script>alert(1)</script>.py"))
    page = html_without_figures(make_run([result]))
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.py" in page


def test_a_document_keeps_all_of_it() -> None:
    assert decode_run(encode_run(RUN), "here") == RUN


def test_every_pass_names_the_runtime_where_there_are_several() -> None:
    """As the table of cases does, so that both can be told apart."""
    older = full()
    older = replace(
        older,
        case=replace(older.case, runtime=Runtime(label="onnxruntime-1.20.1")),
        profile=profile_of("p", 5 * MS),
    )
    newer = replace(full(), profile=profile_of("p", 5 * MS))
    run = make_run([newer, older])
    said = [
        *block_lines(shown_run(run)),
        *(
            line
            for line in run_profile_lines(shown_run(run), width=200)
            if not line.startswith(" ")
        ),
    ]
    case = newer.case.case_id
    for what in ("soak of ", "stages of ", "start-up of ", "processes of ", ""):
        for label in ("current", "onnxruntime-1.20.1"):
            start = f"{what}{case}+{label}"
            assert [line for line in said if line.startswith(start)], start
    # One runtime alone is no news.
    alone = [
        *block_lines(shown_run(make_run([older]))),
        *run_profile_lines(shown_run(make_run([older])), width=200),
    ]
    assert not [line for line in alone if "+onnxruntime" in line]
