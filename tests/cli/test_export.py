from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.rows import COLUMNS
from tests.results_factory import make_case, make_model, make_result, make_run
from tests.summarised import rows_of

RUN = make_run()
#: The first columns, whose order and meaning are fixed.
FIXED = (
    "case_id,model,precision,provider,device,runtime,batch,dims,threads,concurrency,status,"
    "workers,samples,latency_p50_s,latency_p50_low_s,latency_p50_high_s,latency_p90_s,"
    "latency_p95_s,latency_p99_s,latency_mean_s,latency_min_s,throughput_per_s,"
    "session_create_s,first_inference_s,warmup_s,peak_rss_bytes,process_peak_rss_bytes,"
    "session_rss_bytes,device_memory_bytes,model_bytes,cpu_utilisation,cpu_s_per_inference,power_w,"
    "energy_per_inference_j,nodes_on_provider,nodes_total,partitions,ops_elsewhere,"
    "time_on_provider,precision_executed,accuracy_finite,accuracy_max_abs,accuracy_cosine,"
    "accuracy_sqnr_db,accuracy_top1,flags,message,"
)


def test_csv_holds_the_columns_and_every_number_exactly(tool, store):
    ended = tool("export", store(RUN), "--format=csv")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(FIXED)
    read = list(csv.DictReader(io.StringIO(ended.out)))
    assert len(read) == 3
    for got, wanted in zip(read, rows_of(RUN), strict=True):
        assert list(got) == list(COLUMNS)
        for name, value in wanted.items():
            assert got[name] == ("" if value is None else str(value))


def test_json_is_a_list_of_rows_with_null_for_what_is_not_known(tool, store):
    ended = tool("export", store(RUN), "--format=json")
    read = json.loads(ended.out)
    assert read == rows_of(RUN)
    assert list(read[0]) == list(COLUMNS)
    assert read[0]["power_w"] is None
    assert read[2]["status"] == "unavailable"


def test_markdown_is_a_table_of_the_same_rows(tool, store):
    lines = tool("export", store(RUN), "--format=md").out.splitlines()
    assert len(lines) == 2 + 3
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == list(COLUMNS)
    first = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert first[COLUMNS.index("case_id")] == "mobilenet_v2/native/cpu/b1"
    assert float(first[COLUMNS.index("latency_p50_s")]) == rows_of(RUN)[0]["latency_p50_s"]
    assert first[COLUMNS.index("power_w")] == ""


def test_csv_is_what_comes_without_a_format(tool, store):
    path = store(RUN)
    assert tool("export", path).out == tool("export", path, "--format=csv").out


def test_several_runs_stand_below_each_other(tool, store):
    other = make_run(run_id="20260103T030405Z-bench-2-0a1b")
    ended = tool("export", store(RUN), store(other), "--format=json")
    ids = [row["run_id"] for row in json.loads(ended.out)]
    assert ids == [RUN.run_id] * 3 + [other.run_id] * 3


def test_a_filter_chooses_rows(tool, store):
    ended = tool("export", store(RUN), "--format=json", "--filter=status!=measured")
    assert [row["provider"] for row in json.loads(ended.out)] == ["cuda"]


def test_a_file_is_written_as_a_whole(tool, store, tmp_path):
    path = store(RUN)
    output = tmp_path / "deep" / "rows.csv"
    ended = tool("export", path, "--output", output)
    assert (ended.code, ended.out) == (0, f"{output}: 3 rows\n")
    assert output.read_text() == tool("export", path).out


def test_a_file_that_can_not_be_written_is_told(tool, store, tmp_path):
    (tmp_path / "file").write_text("")
    ended = tool("export", store(RUN), "-o", tmp_path / "file" / "rows.csv")
    assert ended.code == 2
    assert ended.error.place.endswith("rows.csv")


@pytest.mark.parametrize(
    "command",
    [
        ("export", "--format=csv"),
        ("export", "--format=run", "--redact"),
        ("report",),
        ("compare", "--format=md"),
        ("badge", "mobilenet_v2", "--format=json"),
    ],
)
def test_a_run_is_not_written_over_by_what_is_made_of_it(tool, store, command):
    path, other = store(RUN), store(replace(RUN, run_id="20260304T050600Z-lab-1-0a1c"))
    before = path.read_bytes()
    name, *options = command
    runs = [path, other] if name == "compare" else [path]
    ended = tool(name, *runs, *options, f"--output={path}")
    assert (ended.code, ended.error.place) == (2, "--output")
    assert path.read_bytes() == before


def test_nothing_to_export_still_gives_the_columns(tool, store):
    ended = tool("export", store(make_run([])))
    assert ended.code == 3
    assert ended.out == ",".join(COLUMNS) + "\n"
    assert ended.err.count("\n") == 1
    ended = tool("export", store(RUN), "--filter=dml", "--format=json")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "[]\n", 1)


@pytest.mark.parametrize("form", ["csv", "json", "md"])
def test_a_hostile_name_is_inert_in_every_format(tool, store, form):
    model = make_model("=cmd|'/C calc'!A0\x1b[2J\x7f<script>alert(1)</script>")
    path = store(make_run([make_result(case=make_case(model=model))]))
    ended = tool("export", path, f"--format={form}")
    assert ended.code == 0
    assert not {"\x1b", "\x7f"} & set(ended.out)
    if form == "csv":
        [row] = csv.DictReader(io.StringIO(ended.out))
        assert row["model"].startswith("'=cmd|")
    if form == "json":
        assert json.loads(ended.out)[0]["model"] == model.name
    if form == "md":
        assert len(ended.out.splitlines()[2].split(" | ")) == len(COLUMNS)
        assert "<script>" not in ended.out
