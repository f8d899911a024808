from __future__ import annotations

import dataclasses

import pytest

from pytest_ortbench.cli.selection import parse_condition, select, table_columns
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import ContrastVerdict, GateResult
from pytest_ortbench.core.run import Skip
from pytest_ortbench.passes.profile.report import run_profile_lines
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.store.folder import RunFolder
from tests.passes.profile.profiled_runs import profile_of
from tests.results_factory import make_case, make_model, make_result, make_run

RUN = make_run(skips=[Skip(what="azure", reason="takes no node")])


def case_ids(run) -> list[str]:
    return [result.case.case_id for result in run.cases]


def test_the_newest_finished_run_is_shown_with_its_answer_last(tool, store):
    store(RUN)
    ended = tool("show")
    assert (ended.code, ended.err) == (0, "")
    assert "openvino" in ended.out
    assert "unavailable" in ended.out
    assert "fastest" in ended.out.splitlines()[-3]
    assert "\x1b" not in ended.out


def test_verdicts_of_a_gate_are_shown_with_their_cases(tool, store):
    contrast = ContrastVerdict(
        statistic="floor",
        verdict="slower",
        effect=0.071,
        low=0.062,
        high=0.079,
        margin=0.03,
        p=0.0039,
        launches=8,
    )
    cpu = GateResult(
        case_id="mobilenet_v2/native/cpu/b1",
        runtime=RUN.cases[0].case.runtime.label,
        baseline="model:old.onnx",
        verdict="slower",
        contrasts=(contrast,),
        failures=("it is slower",),
    )
    gone = dataclasses.replace(
        cpu, case_id="gone/native/cpu/b1", baseline="b", verdict="same", failures=()
    )
    store(dataclasses.replace(RUN, gate=(cpu, gone)))
    out = tool("show").out
    of_cpu, of_gone = (line.split() for line in out.splitlines() if line.startswith("gate "))
    assert (of_cpu[1], of_cpu[3:5]) == (cpu.case_id, ["model:old.onnx:", "slower"])
    assert "×1.071 [1.062, 1.079]" in out
    assert cpu.failures[0] in out
    assert of_gone[1] == gone.case_id
    filtered = tool("show", "latest", "--filter=native/cpu").out
    assert cpu.case_id in filtered
    assert "gone" not in filtered
    assert "gate" not in tool("show", "latest", "--filter=openvino").out


def test_operator_profiles_are_shown_as_in_the_summary_of_the_run(tool, store):
    first, *others = RUN.cases
    profiled = dataclasses.replace(first, profile=profile_of("a", 3_000_000))
    run = dataclasses.replace(RUN, cases=(profiled, *others))
    store(run)
    lines = tool("show").out.splitlines()
    expected = run_profile_lines(shown_run(run), width=100)
    start = lines.index(expected[1])
    assert expected[1].startswith(f"{profiled.case.case_id}: 3.00 ms ")
    assert lines[start : start + len(expected) - 1] == expected[1:]


def test_a_filter_leaves_the_rest_out(tool, store):
    store(RUN)
    ended = tool("show", "latest", "--filter=provider=openvino")
    assert "openvino" in ended.out
    assert "native/cpu" not in ended.out
    assert "fastest" not in ended.out


def test_chosen_columns_are_shown(tool, store):
    store(RUN)
    heading = tool("show", "--columns=p50,cpu_per_inference,warmup_s").out.splitlines()[0]
    assert heading.split() == ["case", "p50", "CPU/inf", "warm-up"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filter=provder=cpu"], "--filter: 'provder' is not a column. Did you mean 'provider'?"),
        (["--sort=latency_p5"], "--sort: 'latency_p5' is not a column. Did you mean 'latency_p"),
        (["--columns=p59"], "--columns: the table has no column 'p59'. Did you mean 'p"),
        (["no-such-run"], "the folder 'results' contains no run 'no-such-run'."),
    ],
)
def test_what_does_not_exist_gets_the_nearest_name(tool, store, arguments, message):
    store(RUN)
    ended = tool("show", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"ortbench: {message}")


def test_no_case_left_is_nothing_to_show(tool, store):
    store(RUN)
    ended = tool("show", "--filter=tensorrt")
    assert (ended.code, ended.out) == (3, "")
    [skip] = RUN.skips
    assert ended.err.splitlines()[1].split(": ")[1:] == [skip.what, skip.reason]


def test_a_run_without_a_case_says_why(tool, store):
    store(make_run([], skips=[Skip(what="cuda", reason="no \x1b[1mdriver")]))
    ended = tool("show")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.splitlines()[1].split(": ")[1:] == ["cuda", "no \\x1b[1mdriver"]


def test_a_killed_run_is_shown_with_a_note(tool, tmp_path):
    header = dataclasses.replace(RUN, finished_at=None)
    folder = RunFolder.create(tmp_path / "results", header)
    folder.append(RUN.cases[0])
    folder.append(RUN.cases[1])
    journal = folder.path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    ended = tool("show", RUN.run_id)
    assert ended.code == 0
    assert "native/cpu/b1" in ended.out
    assert "openvino" not in ended.out
    torn, unfinished = ended.err.splitlines()
    assert "line 3" in torn
    assert (RUN.run_id in unfinished, "1 of 3" in unfinished) == (True, True)


def test_names_of_others_never_control_the_terminal(tool, store):
    hostile = make_model("\x1b]0;owned\x07\x1b[2J\u202emodel")
    store(make_run([make_result(case=make_case(model=hostile))]))
    ended = tool("show")
    assert ended.code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(ended.out)
    assert "owned" in ended.out


# Which cases, in which order.


def test_a_bare_text_is_a_part_of_the_case_id():
    assert case_ids(select(RUN, [parse_condition("CUDA")]).run) == ["mobilenet_v2/native/cuda/b1"]


@pytest.mark.parametrize(
    ("text", "providers"),
    [
        ("status=measured", ["cpu", "openvino"]),
        ("status!=measured", ["cuda"]),
        ("provider=c*", ["cpu", "cuda"]),
        ("provider = CPU", ["cpu"]),
        ("latency_p50=", ["cuda"]),
        ("latency_p50!=", ["cpu", "openvino"]),
        ("batch=1", ["cpu", "openvino", "cuda"]),
        ("model=*=*", []),
    ],
)
def test_conditions_look_at_columns(text, providers):
    chosen = select(RUN, [parse_condition(text)]).run
    assert [result.case.provider.alias for result in chosen.cases] == providers


def test_all_conditions_must_hold():
    conditions = [parse_condition("provider=c*"), parse_condition("status=measured")]
    assert case_ids(select(RUN, conditions).run) == ["mobilenet_v2/native/cpu/b1"]


@pytest.mark.parametrize(
    ("sort", "providers"),
    [
        ("latency_p50_s", ["openvino", "cpu", "cuda"]),
        ("latency_p50", ["openvino", "cpu", "cuda"]),
        ("p50", ["openvino", "cpu", "cuda"]),
        ("-p50", ["cpu", "openvino", "cuda"]),
        ("provider", ["cpu", "cuda", "openvino"]),
        ("-provider", ["openvino", "cuda", "cpu"]),
    ],
)
def test_cases_are_sorted_with_empty_cells_last(sort, providers):
    chosen = select(RUN, [], sort).run
    assert [result.case.provider.alias for result in chosen.cases] == providers


def test_columns_of_the_table_go_by_all_their_names():
    assert table_columns("p50, latency_p99,throughput_per_s,") == ["p50", "p99", "items"]
    assert table_columns("") == []
    with pytest.raises(UsageError) as raised:
        table_columns("p50,host")
    assert raised.value.place == "--columns"
    assert "'host'" in raised.value.message
    assert "ortbench export" in raised.value.hint
