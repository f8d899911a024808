from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.procurement.mix import parse_rate
from tests.counted_calls import counted
from tests.report.sample_runs import case, measured
from tests.results_factory import make_machine, make_run

TABLE = """
currency = "EUR"
power_price = 0
[machines.desk]
price = 1000
[machines.rack]
price_per_hour = 0.1
"""


def of(host: str, factor: float, day: int = 1, *, cpus: int = 1):
    """A run of two cases on a machine, on inputs that were given."""
    results = [
        measured(case(precision=precision, inputs_file="a.npz"), 0.004 * factor * share)
        for precision, share in (("native", 1.0), ("int8-static", 0.4))
    ]
    results = [
        dataclasses.replace(
            result,
            measurements=tuple(dataclasses.replace(one, cpus=cpus) for one in result.measurements),
        )
        for result in results
    ]
    return make_run(
        results,
        run_id=f"202601{day:02d}T030405Z-{host}-0a1b",
        machine=make_machine(host, cpu=f"CPU of {host}"),
    )


def overall_of(text: str) -> list[str]:
    """The machines of the line that ranks them over all models, the best first."""
    ranked = re.search(r"overall: (\w+) is fastest(?:; the next one, (\w+))?", text)
    assert ranked is not None
    return [name for name in ranked.groups() if name]


def test_the_answer_is_in_the_last_lines(tool, store):
    ended = tool("compare", store(of("desk", 1.0)), store(of("rack", 0.5)))
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("latency p50 of 2 ")
    last = " ".join(lines[-8:])
    assert "recommended: int8-static/cpu on rack, " in last
    assert overall_of(last) == ["rack", "desk"]
    assert "rack with int8-static/cpu" in last
    assert "\x1b" not in ended.out


def test_every_command_wraps_its_answer_by_the_same_rule(tool, store, monkeypatch, empty_figures):
    paths = store(of("desk", 1.0)), store(of("rack", 0.5))
    calls = (("show", paths[0]), ("report", paths[0]), ("compare", *paths))
    for call in calls:
        whole = tool(*call).out
        sentence = next(line for line in whole.splitlines() if "recommended: " in line)
        assert len(sentence) > 60
        monkeypatch.setenv("COLUMNS", "60")
        lines = tool(*call).out.splitlines()
        monkeypatch.delenv("COLUMNS")
        first = next(i for i, line in enumerate(lines) if "recommended: " in line)
        assert all(len(line) <= 60 for line in lines[first : first + 4])
        assert sentence in " ".join(lines)


def test_runs_go_by_their_id_and_a_filter_chooses_cases(tool, store):
    for run in (of("desk", 1.0), of("rack", 0.5)):
        store(run)
    ended = tool(
        "compare",
        "20260101T030405Z-desk-0a1b",
        "20260101T030405Z-rack-0a1b",
        "--format=csv",
        "--filter=precision=native",
    )
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [(row["side"], row["case_id"]) for row in rows] == [
        ("desk", "mobilenet_v2/native/cpu/b1"),
        ("rack", "mobilenet_v2/native/cpu/b1"),
    ]


def test_each_case_is_summarised_once(tool, store, empty_figures):
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    with counted() as compared:
        assert tool("compare", *runs, "--filter=precision=native", "--format=csv").code == 0
    with counted() as reported:
        assert tool("report", *runs).code == 0
    # Two cases a run; a filter looks at all of them.
    assert compared["summarise"] == reported["summarise"] == 2 * 2


def test_a_run_named_twice_counts_once(tool, store):
    path = store(of("desk", 1.0))
    ended = tool("compare", path, path, store(of("rack", 0.5)), "--format=csv")
    assert "20260101T030405Z-desk-0a1b" in ended.err
    assert len(ended.out.splitlines()) == 1 + 2 * 2 + 2


def test_one_run_compares_what_it_holds(tool, store):
    ended = tool("compare", store(of("desk", 1.0)), "--metric=throughput")
    assert ended.out.startswith("throughput of 2 ")
    assert "int8-static" in re.findall(r"highest\s+(\S+)", ended.out)


def test_p99_is_computed_where_it_is_asked_for(tool, store):
    ended = tool(
        "compare",
        store(of("desk", 1.0)),
        store(of("rack", 0.5)),
        "--metric=latency_p99",
        "--format=csv",
    )
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert all(float(row["value"]) > 0 for row in rows)


def test_pages_figures_and_markdown(tool, store, tmp_path):
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    page = tmp_path / "machines.html"
    ended = tool("compare", *runs, "--format=html", "--output", page, "--plots", tmp_path / "plots")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == f"{page}: 2 runs"
    assert page.read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in (tmp_path / "plots").glob("*.png")) == [
        "overall.png",
        "workloads.png",
    ]
    assert tool("compare", *runs, "--format=md").out.startswith("## latency p50 ")


def test_figures_that_can_not_be_written_are_one_line_below_the_comparison(tool, store, tmp_path):
    (tmp_path / "taken").touch()
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    ended = tool("compare", *runs, "--plots=taken/plots")
    assert ended.code == 2
    assert (ended.error.place, "--plots" in ended.error.hint) == ("taken/plots", True)
    assert ended.err.count("\n") == 1
    assert overall_of(ended.out)[0] == "rack"


def test_machines_with_prices(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(TABLE)
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    ended = tool("compare", *runs, "--machines=machines.toml", "--rate=300", "--p99=50ms")
    text = ended.out.replace("\n", " ")
    # 1.6 ms a request: one desk serves 300 a second half busy; a rented rack is 2630 in 3 years.
    cheapest = re.search(r"cheapest (\w+) with (\S+), (\d+) machine, (\d+) EUR over (\d+)", text)
    assert cheapest is not None
    assert cheapest.groups() == ("desk", "int8-static/cpu", "1", "1000", "3")
    assert "×0.380 of rack" in text
    assert "M/G/1" in text
    yearly = tool(
        "compare", *runs, "--machines=machines.toml", "--rate=300", "--p99=50ms", "--years=1"
    )
    assert "cheapest rack" in yearly.out
    assert re.search(r"877\s+EUR\s+over\s+1", yearly.out)


def test_several_cpus_of_which_one_queue_was_measured_give_bounds(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(TABLE)
    runs = [store(of("desk", 1.0, cpus=8)), store(of("rack", 0.5))]
    ended = tool(
        *("compare", *runs, "--machines=machines.toml", "--rate=1200", "--p99=50ms"),
        "--format=csv",
    )
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    shown = {
        row["machine"]: (row["served_at_a_time_most"], row["bounds_only"], row["rank"])
        for row in rows
        if row["best_of_machine"] == "1"
    }
    # desk: three machines, or one where its CPUs don't slow each other; rack: 2630 of rent.
    assert shown == {"desk": ("8", "1", "open"), "rack": ("1", "0", "open")}


def test_a_wrong_rate_ends_with_the_next_step(tool, tmp_path: Path):
    """The parser of options would leave it out."""
    ended = tool("compare", tmp_path, "--rate=fast")
    assert ended.code == 2
    with pytest.raises(UsageError) as refused:
        parse_rate("fast", "--rate")
    assert refused.value.hint
    assert refused.value.hint in ended.err


def test_a_mix_is_one_workload_with_one_bill(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(TABLE)
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    asked = ("compare", *runs, "--machines=machines.toml", "--p99=50ms", "--format=csv")
    name = case().model.name
    ended = tool(*asked, f"--mix={name}:300/s")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert {row["model"] for row in rows} == {f"{name} 300/s"}
    assert {row["machines_needed"] for row in rows if row["rank"]} == {"1.0"}
    both = tool(*asked, f"--mix={name}:300/s", "--rate=4")
    assert (both.code, "--rate" in both.error.place) == (2, True)
    assert tool("compare", *runs, "--mix=net:4/s").code == 2


def test_a_target_needs_both_numbers_and_prices(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(TABLE)
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    alone = tool("compare", *runs, "--rate=300")
    assert (alone.code, "--machines=machines.toml" in alone.err) == (2, True)
    half = tool("compare", *runs, "--machines=machines.toml", "--rate=300")
    assert (half.code, "p99" in half.error.message) == (2, True)
    wrong = tool("compare", *runs, "--machines=machines.toml", "--rate=300", "--p99=5MB")
    assert (wrong.code, wrong.error.place) == (2, "--p99")
    assert "'MB'" in wrong.error.message


def test_a_table_of_machines_that_can_not_be_read_is_one_line(tool, store, tmp_path):
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    steps = []
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    for name in ("none.toml", "latin.toml"):
        ended = tool("compare", *runs, f"--machines={name}")
        assert (ended.code, ended.error.place) == (2, "--machines")
        steps.append(ended.error.hint)
    assert ["price_per_hour" in step for step in steps] == [True, False]


def test_what_is_wrong_is_one_line(tool, store):
    path = store(of("desk", 1.0))
    for arguments, words in (
        (["--by=machine"], "there is only one machine"),
        (["--metric=speed"], "'speed' is not a metric"),
        (["--baseline=fp16"], "'fp16' is not a precision of these runs"),
    ):
        ended = tool("compare", path, *arguments)
        assert ended.code == 2
        assert words in ended.err
        assert ended.err.count("\n") == 1
    assert tool("compare", path, "--filter=nothing").code == 3
    assert tool("compare", *[path] * 51).code == 2


def test_report_of_one_run_lies_beside_it(tool, store):
    path = store(of("desk", 1.0))
    ended = tool("report")
    assert ended.out.splitlines()[-1].split(": ") == [
        "report",
        "results/20260101T030405Z-desk-0a1b/report.html",
    ]
    assert (path.parent / "report.html").read_text().lower().startswith("<!doctype html>")
    shown = tool("show").out.splitlines()
    assert ended.out.splitlines()[-2] == shown[-1]


def machine_of(page: Path) -> str:
    """The machine in the heading of a run's page; empty for the page of a comparison."""
    heading = re.search(r"ONNX models on (\w+)", page.read_text())
    return heading[1] if heading else ""


def test_report_of_several_is_their_comparison_and_the_page_of_each(
    tool, store, tmp_path, empty_figures
):
    desk = store(of("desk", 1.0))
    rack = (tmp_path / "rack.json").write_text(store(of("rack", 0.5)).read_text()) and "rack.json"
    ended = tool("report", desk, f"lab={rack}")
    assert overall_of(ended.out)[0] == "lab"
    page = (tmp_path / "comparison.html").read_text()
    assert "<h1>latency p50 of 2 " in page
    assert '<span class="about">overall: </span><strong>lab</strong>' in page
    assert "<strong>lab with int8-static/cpu</strong>" in page
    assert [line.split(": ") for line in ended.out.splitlines()[-3:]] == [
        ["comparison", "comparison.html"],
        ["report", f"comparison-{desk.parent.name}.html"],
        ["report", "comparison-lab.html"],
    ]
    page = tmp_path / f"comparison-{desk.parent.name}.html"
    assert machine_of(page) == "desk"
    assert machine_of(tmp_path / "comparison-lab.html") == "rack"
    assert [path.name for path in desk.parent.iterdir()] == ["run.json"]


def test_pages_go_beside_the_output_under_names_of_their_own(tool, store, tmp_path, empty_figures):
    inputs = []
    for folder, run in (("one", of("desk", 1.0)), ("two", of("rack", 0.5))):
        (tmp_path / folder).mkdir()
        inputs.append(tmp_path / folder / "same.json")
        inputs[-1].write_text(store(run).read_text())
        inputs[-1].parent.chmod(0o555)
    ended = tool("report", *inputs, "--output=elsewhere/x.html")
    for path in inputs:
        path.parent.chmod(0o755)
        assert [entry.name for entry in path.parent.iterdir()] == ["same.json"]
    assert ended.code == 0
    assert {path.name: machine_of(path) for path in (tmp_path / "elsewhere").iterdir()} == {
        "x.html": "",
        "x-same.html": "desk",
        "x-same-2.html": "rack",
    }


def test_the_answer_of_many_models_is_capped_in_the_terminal(tool, store, empty_figures):
    results = [measured(case(f"m{number}"), 0.004) for number in range(11)]
    store(make_run(results))
    lines = tool("report").out.splitlines()
    assert lines[-2].split()[:2] == ["and", "3"]
    assert {line.partition(":")[0] for line in lines[:-2]} == {f"m{i}" for i in range(8)}


def test_many_runs_get_no_pages_of_their_own(tool, store, tmp_path, empty_figures):
    runs = [store(of(f"desk-{day}", 1.0, day=day)) for day in range(1, 12)]
    ended = tool("report", *runs)
    assert re.findall(r"\d+", ended.err)[:2] == ["11", "10"]
    assert [path.name for path in tmp_path.rglob("*.html")] == ["comparison.html"]


def test_plots_lie_beside_the_run(tool, store):
    path = store(of("desk", 1.0))
    ended = tool("plot", "latest", "--format=png")
    assert ended.code == 0
    written = {f"plot: {file.relative_to(path.parents[2])}" for file in path.parent.rglob("*.png")}
    assert set(ended.out.splitlines()) == written
    assert len(written) > 3


def test_plots_of_several(tool, store, tmp_path):
    tool("plot", store(of("desk", 1.0)), store(of("rack", 0.5)), "--format=svg", "-o", "figures")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "overall.svg",
        "workloads.svg",
    ]


def test_a_latency_to_keep_is_refused_where_it_would_not_be_drawn(tool, store, tmp_path):
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    for option in ("--p99=20ms", "--slo=20ms"):
        ended = tool("plot", *runs, option, "-o", "figures")
        assert ended.code == 2
        name = option.partition("=")[0]
        assert ended.error.place == name
        assert not (tmp_path / "figures").exists()


def test_nothing_to_draw_is_said(tool, store):
    store(dataclasses.replace(of("desk", 1.0), cases=()))
    assert tool("plot").code == 3
    assert tool("report").code == 3


def test_a_badge_of_a_model_and_of_a_case(tool, store, tmp_path):
    store(of("desk", 1.0))
    of_model = json.loads(tool("badge", "latest", "mobilenet_v2").out)
    assert of_model["message"].split()[0] == "int8-static/cpu/b1"
    assert of_model["message"].split()[1].startswith("1.6")
    case_id = "mobilenet_v2/native/cpu/b1"
    of_case = json.loads(tool("badge", "latest", case_id, "--metric=peak_rss").out)
    assert of_case["label"] == f"{case_id} peak rss"
    assert of_case["message"].endswith("MB")
    assert tool("badge", "latest", "mobilenet_v2/native/cpu/b2").code == 2
    assert tool("badge", "latest", case_id, "--metric=speed").code == 2
    tool("badge", "latest", case_id, "--output=badge.json")
    assert json.loads((tmp_path / "badge.json").read_text())["color"] == "blue"
    ended = tool("badge", "latest", "mobilenet_v2", "--output=badge.svg")
    assert ended.out.split(": ")[:2] == ["badge.svg", "mobilenet_v2"]
    assert of_model["message"] in ended.out
    assert (tmp_path / "badge.svg").read_text().startswith("<svg ")
    assert tool("badge", "latest", "mobilenet_v2", "--format=svg").out.startswith("<svg ")


def test_a_machine_can_be_given_a_name(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(
        "[machines.left]\nprice = 5\n[machines.right]\nprice = 5"
    )
    first, second = store(of("localhost", 1.0)), store(of("localhost", 0.5, day=2))
    ended = tool(
        "compare", f"left={first}", f"right={second}", "--machines=machines.toml", "--format=csv"
    )
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert {row["machine"] for row in rows if row["rank"] == "best"} == {"right"}
    assert {row["machine"] for row in rows} == {"left", "right"}
