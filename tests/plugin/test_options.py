"""Options and ini keys: one table, two ways to write them, one message for a wrong value."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.limits import CaseLimit
from pytest_ortbench.core.option import OptionRow
from pytest_ortbench.passes.stages.planning import StageFile
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.option_sources import read_options
from pytest_ortbench.plugin.options import ROWS, Options
from tests.parsed import product

Read = Callable[..., Options]

#: The options alone, without the rest of the plugin.
_ALONE = """
    from pytest_ortbench.plugin.option_sources import add_options

    def pytest_addoption(parser):
        add_options(parser)
"""


@pytest.fixture
def read(pytester: pytest.Pytester) -> Read:
    """Reads the options of a command line, with whatever ini file is in the folder."""
    pytester.makepyfile(options_alone=_ALONE)
    pytester.syspathinsert()

    def read_them(*arguments: str) -> Options:
        config = pytester.parseconfig("-p", "no:ortbench", "-p", "options_alone", *arguments)
        return read_options(config)

    return read_them


def _message(read: Read, *arguments: str) -> str:
    with pytest.raises(pytest.UsageError) as error:
        read(*arguments)
    return str(error.value)


# -- the table -----------------------------------------------------------------------------------


#: Types that the module of the options names and does not import.
_TYPES = {"CaseLimit": CaseLimit, "Dataset": Dataset, "StageFile": StageFile}


def _hints(kind: type) -> dict[str, object]:
    return typing.get_type_hints(kind, localns=_TYPES)


def test_every_field_is_one_row_with_a_flag_of_its_own() -> None:
    fields = [field.name for field in dataclasses.fields(Options)]
    assert sorted(fields) == sorted([*(row.field for row in ROWS), "given", "places", "typed"])
    assert len({row.flag for row in ROWS}) == len(ROWS)


def test_every_option_that_a_text_names_exists() -> None:
    named = {
        (name, place)
        for place, text in product().items()
        for name in re.findall(r"--ort-[a-z][a-z-]*[a-z]", text)
    }
    assert {entry for entry in named if entry[0] not in {row.flag for row in ROWS}} == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_a_reader_returns_what_its_field_holds(row: OptionRow) -> None:
    returned = typing.get_type_hints(import_named(row.reader))["return"]
    held = _hints(Options)[row.field]
    assert held in (returned, returned | None)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.to.startswith(("request.", "sampling."))],
    ids=lambda row: row.to,
)
def test_a_value_goes_to_a_field_of_the_plan_with_its_type_and_default(row: OptionRow) -> None:
    room, _, name = row.to.partition(".")
    kind = {"request": PlanRequest, "sampling": Sampling}[room]
    assert _hints(kind)[name] == _hints(Options)[row.field]
    if row.field != "models":
        assert getattr(kind(models=()) if room == "request" else kind(), name) == row.default


def test_what_each_case_takes_its_own_part_of_goes_to_what_passes_ask() -> None:
    asked: dict[str, typing.Any] = {"stages": (StageFile(path="s.py"),)}
    request = PlanRequest.of_options(Options(**asked), ROWS, models=())
    assert request.of_passes == {**asked, "together": ()}


@pytest.mark.parametrize("row", [row for row in ROWS if row.rule], ids=lambda row: row.field)
def test_a_rule_takes_its_value_and_others_with_the_types_of_their_fields(row: OptionRow) -> None:
    taken = typing.get_type_hints(import_named(row.rule))
    held = _hints(Options)
    assert taken.pop("return") is type(None)
    assert taken.pop("place") is str
    assert taken.pop("is_typed", bool) is bool
    assert taken.pop("value") in (held[row.field], object)
    assert taken == {name: held[name] for name in taken}


def test_no_two_options_go_to_one_field_of_the_plan() -> None:
    targets = [row.to for row in ROWS if row.to]
    assert len(set(targets)) == len(targets)


@pytest.mark.live
def test_the_options_of_the_product_exist() -> None:
    """Flags and ini types are an interface: this list changes only with the documentation."""
    assert {row.flag or row.ini: row.ini_type for row in ROWS} == {
        "--ort-models": "args",
        "--ort-providers": "args",
        "--ort-precisions": "args",
        "--ort-batch-sizes": "args",
        "--ort-dims": "args",
        "--ort-inputs": "string",
        "--ort-runtimes": "args",
        "--ort-threads": "args",
        "--ort-tuning": "args",
        "--ort-together": "args",
        "--ort-transfers": "bool",
        "--ort-endpoint": "string",
        "--ort-serve": "string",
        "--ort-serve-name": "string",
        "--ort-serve-port": "string",
        "--ort-endpoint-encoding": "args",
        "--ort-graph-opt": "args",
        "--ort-concurrency": "args",
        "--ort-sessions": "args",
        "--ort-generate": "string",
        "--ort-engines": "args",
        "--ort-prompt-tokens": "args",
        "--ort-new-tokens": "args",
        "--ort-depth": "args",
        "--ort-source": "args",
        "--ort-text": "string",
        "--ort-calls": "args",
        "--ort-spinning": "args",
        "--ort-fix-dims": "args",
        "--ort-compiled": "args",
        "--ort-processes": "args",
        "--ort-io": "args",
        "--ort-session-option": "args",
        "--ort-provider-option": "args",
        "--ort-exporter": "args",
        "--ort-export-check": "string",
        "--ort-custom-ops": "args",
        "--ort-time": "float",
        "--ort-target": "float",
        "--ort-workers": "int",
        "--ort-budget": "string",
        "--ort-yardstick": "string",
        "--ort-fallback": "string",
        "--ort-results": "string",
        "--ort-no-results": "bool",
        "--ort-json": "string",
        "--ort-html": "string",
        "--ort-plots": "string",
        "--ort-prometheus": "string",
        "--ort-summary": "string",
        "--ort-code-quality": "string",
        "--ort-metrics-report": "string",
        "--ort-samples": "string",
        "--ort-dataset": "string",
        "--ort-labels": "string",
        "--ort-preprocess": "args",
        "--ort-endurance": "float",
        "--ort-endurance-faults": "args",
        "--ort-endurance-rate": "float",
        "--ort-soak": "float",
        "--ort-soak-dims": "args",
        "--ort-energy": "bool",
        "--ort-energy-window": "float",
        "--ort-startup": "bool",
        "--ort-stages": "args",
        "--ort-load": "args",
        "--ort-load-official": "bool",
        "--ort-load-logs": "string",
        "--ort-profile": "bool",
        "--ort-profile-python": "args",
        "--ort-limits": "linelist",
        "--ort-against": "string",
        "--ort-baseline": "string",
        "--ort-gate": "linelist",
        "--ort-gate-remeasure": "bool",
        "--ort-gate-strict": "bool",
        "--ort-accepted": "string",
        "--ort-resume": "bool",
        "--ort-memory-limit": "string",
        "--ort-no-lock": "bool",
        "--ort-wait": "string",
        "--ort-timeout": "float",
        "ort_collect": "bool",
    }


def test_help_shows_every_option_and_key(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(options_alone=_ALONE)
    pytester.syspathinsert()
    result = pytester.runpytest_inprocess("-p", "no:ortbench", "-p", "options_alone", "--help")
    assert result.ret == 0
    text = result.stdout.str()
    for row in ROWS:
        assert row.flag in text
        assert f"{row.ini} ({row.ini_type}):" in text


def test_defaults(read: Read, pytester: pytest.Pytester) -> None:
    options = read()
    assert options == Options(results=pytester.path / "results")
    assert options.providers == ("cpu",)
    assert options.time_s == 5.0
    assert options.target == 0.01
    assert options.workers == 3
    assert options.timeout_s == 300.0
    assert options.given == {}


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--ort-models=a.onnx,zoo:x", "--ort-models=b"], "models", ("a.onnx", "zoo:x", "b")),
        (["--ort-models=x[1,2].onnx"], "models", ("x[1,2].onnx",)),
        (
            ["--ort-providers=openvino:HETERO:GPU,CPU,cpu", "--ort-providers=cuda:1"],
            "providers",
            ("openvino:HETERO:GPU,CPU", "cpu", "cuda:1"),
        ),
        (["--ort-providers=all"], "providers", ("all",)),
        (["--ort-precisions=native"], "precisions", ("native",)),
        (["--ort-batch-sizes=1,8"], "batch_sizes", (1, 8)),
        (["--ort-dims=seq:128:512"], "dims", {"seq": (128, 512)}),
        (["--ort-io=device,end-to-end"], "io", ("device", "end-to-end")),
        (["--ort-threads=1", "--ort-threads=2"], "threads", (1, 2)),
        (["--ort-graph-opt=basic,all"], "graph_opts", ("basic", "all")),
        (["--ort-runtimes=current"], "runtimes", ("current",)),
        (["--ort-session-option=a.b=1,2,c=3"], "session_options", {"a.b": "1,2", "c": "3"}),
        (
            ["--ort-provider-option=cuda.device_id=1"],
            "provider_options",
            {"cuda": {"device_id": "1"}},
        ),
        (["--ort-time=2.5"], "time_s", 2.5),
        (["--ort-time=500ms"], "time_s", 0.5),
        (["--ort-time=1", "--ort-time=2"], "time_s", 2.0),
        (["--ort-target=5"], "target", 0.05),
        (["--ort-target=0.5%"], "target", 0.005),
        (["--ort-workers=1"], "workers", 1),
        (["--ort-yardstick=off"], "yardstick", "off"),
        (["--ort-yardstick=serial"], "yardstick", "serial"),
        (["--ort-fallback=report"], "fallback", "report"),
        (["--ort-samples=all"], "samples", 0),
        (["--ort-timeout=10"], "timeout_s", 10.0),
        (["--ort-timeout=2 min"], "timeout_s", 120.0),
        # The default of --ort-time is no reason to refuse a short one.
        (["--ort-timeout=2"], "timeout_s", 2.0),
        (["--ort-no-results"], "no_results", True),
        (["--ort-resume"], "resume", True),
    ],
)
def test_command_line(read: Read, arguments: list[str], field: str, value: object) -> None:
    options = read(*arguments)
    assert getattr(options, field) == value
    assert set(options.given) == {field}
    assert options.places[field] == arguments[0].partition("=")[0]


def test_paths_start_where_pytest_was_called(read: Read, pytester: pytest.Pytester) -> None:
    (pytester.path / "l.so").touch()
    options = read(
        "--ort-results=r", "--ort-json=j.json", "--ort-plots=/p", "--ort-custom-ops=l.so"
    )
    assert options.results == pytester.path / "r"
    assert options.json == pytester.path / "j.json"
    assert options.plots == Path("/p")
    assert options.custom_ops == (str(pytester.path / "l.so"),)


def test_inputs_must_exist(read: Read, pytester: pytest.Pytester) -> None:
    (pytester.path / "x.npz").touch()
    assert read("--ort-inputs=x.npz").inputs == pytester.path / "x.npz"
    assert _message(read, "--ort-inputs=y.npz").startswith("--ort-inputs: ")


def test_libraries_of_custom_operators_must_exist(read: Read, pytester: pytest.Pytester) -> None:
    (pytester.path / "there.so").touch()
    assert _message(read, "--ort-custom-ops=there.so,nope.so") == (
        f"--ort-custom-ops: the library {str(pytester.path / 'nope.so')!r} does not exist. "
        "Correct the path of the library of custom operators"
    )
    # A runtime on another machine has files of its own.
    options = read("--ort-custom-ops=nope.so", "--ort-runtimes=board")
    assert options.custom_ops == (str(pytester.path / "nope.so"),)


def test_a_model_path_with_a_comma_in_its_name(read: Read, pytester: pytest.Pytester) -> None:
    (pytester.path / "a,b.onnx").touch()
    assert read("--ort-models=c.onnx,a,b.onnx,d").models == ("c.onnx", "a,b.onnx", "d")


def test_a_long_time_is_taken_with_a_timeout_that_fits(read: Read) -> None:
    assert read("--ort-time=300", "--ort-timeout=900").time_s == 300.0


def test_the_place_of_an_option_that_nobody_set_is_its_flag(read: Read) -> None:
    options = read("-o", "ort_workers=5")
    assert options.place_of("workers") == "-o ort_workers"
    assert options.place_of("graph_opts") == "--ort-graph-opt"


def test_what_was_given_is_kept_as_text(read: Read) -> None:
    options = read("--ort-dims=seq:1", "--ort-dims=hw:2", "--ort-no-results")
    assert options.given == {"dims": "seq:1,hw:2", "no_results": "true"}


# -- ini files -----------------------------------------------------------------------------------

_NATIVE = """
[tool.pytest]
ort_models = ["models/*.onnx", "zoo:silero-vad", "resnet50"]
ort_providers = ["cpu", "openvino:HETERO:GPU,CPU"]
ort_batch_sizes = ["1", "8"]
ort_dims = ["seq:128:512"]
ort_time = 2.5
ort_target = 5
ort_workers = 2
ort_fallback = "strict"
ort_results = "out/runs"
ort_resume = true
ort_collect = true
"""

_INI = """
[tool.pytest.ini_options]
ort_models = "models/*.onnx zoo:silero-vad resnet50"
ort_providers = "cpu,openvino:HETERO:GPU,CPU"
ort_batch_sizes = [1, 8]
ort_dims = "seq:128:512"
ort_time = 2.5
ort_target = "5"
ort_workers = 2
ort_fallback = "strict"
ort_results = "out/runs"
ort_resume = true
ort_collect = "true"
"""


@pytest.mark.parametrize("text", [_NATIVE, _INI], ids=["tool.pytest", "ini_options"])
def test_ini_keys(read: Read, pytester: pytest.Pytester, text: str) -> None:
    pytester.makepyprojecttoml(text)
    options = read()
    folder = pytester.path
    assert options.models == (str(folder / "models/*.onnx"), "zoo:silero-vad", "resnet50")
    assert options.providers == ("cpu", "openvino:HETERO:GPU,CPU")
    assert options.batch_sizes == (1, 8)
    assert options.dims == {"seq": (128, 512)}
    assert (options.time_s, options.target, options.workers) == (2.5, 0.05, 2)
    assert options.fallback == "strict"
    assert options.results == folder / "out/runs"
    assert options.resume
    assert options.collect
    assert options.places["time_s"].split()[::2] == ["ort_time", str(folder / "pyproject.toml")]


#: A value that each key takes, in both notations, and what it becomes.
_SAMPLES: dict[str, tuple[str, object]] = {
    "list": ('["x"]', None),
    "lines": ('["x"]', None),
    "int": ("2", 2),
    "float": ("2", None),
    "str": ('"x"', None),
    "path": ('"x"', None),
    "flag": ("true", True),
}
_FITTING = {
    "providers": '["all"]',
    "precisions": '["fp16"]',
    "batch_sizes": '["2"]',
    "dims": '["seq:2"]',
    "runtimes": '["auto"]',
    "threads": '["2"]',
    "graph_opts": '["basic"]',
    "concurrency": '["1"]',
    "sessions": '["1"]',
    "calls": '["async"]',
    "spinning": '["off"]',
    "fix_dims": '["off"]',
    "compiled": '["on"]',
    "processes": '["1", "2"]',
    "generate": '"only"',
    "engines": '["session"]',
    "prompt_tokens": '["16:512"]',
    "new_tokens": '["32"]',
    "depths": '["0:64"]',
    "export_check": '"off"',
    "soak_dims": '["seq:1-300"]',
    "energy_window_s": "60",
    "stages": '["cpu@x.py"]',
    "load": '["server:100:20ms", "offline"]',
    "dataset": '"x.py:f"',
    "preprocess": '["scale=1"]',
    "io": '["device"]',
    "session_options": '["a.b=1"]',
    "against": '"git:main"',
    "gate": '["latency:3%"]',
    "limits": '["latency_p90 <= 30 ms"]',
    "provider_options": '["cpu.a=1"]',
    "budget_s": '"10m"',
    "wait_s": '"10m"',
    "yardstick": '"off"',
    "fallback": '"strict"',
    "memory_limit": '"8GB"',
    "samples": '"all"',
    "tuning": '["on"]',
    "endpoint": '"http://127.0.0.1:8000/v2/models/m/infer"',
    "endpoint_encodings": '["json"]',
    "serve": '"reference"',
    "serve_port": '"8012"',
    "endurance_faults": '["slow"]',
    "python_profile": '["cprofile"]',
}
_ENDPOINT = {"endpoint": "--ort-endpoint=http://127.0.0.1:8000/v2/models/m/infer"}
_ENDURED = {**_ENDPOINT, "endurance_s": "--ort-endurance=1"}
#: Fields of options that others ask for beside them, with their arguments.
_BESIDE = {
    "endpoint_encodings": _ENDPOINT,
    "endurance_s": _ENDPOINT,
    "endurance_per_s": _ENDURED,
    "endurance_faults": _ENDURED,
    "python_profile": {"stages": "--ort-stages=x.py"},
}


@pytest.mark.parametrize("table", ["tool.pytest", "tool.pytest.ini_options"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.ini)
def test_each_key_is_read_from_both_tables(
    read: Read, pytester: pytest.Pytester, row: OptionRow, table: str
) -> None:
    (pytester.path / "x").touch()
    (pytester.path / "x.py").write_text("def f(batch): ...\ndef preprocess(frame): ...\n")
    if row.field in ("results", "plots", "load_logs"):
        (pytester.path / "x").unlink()
    text = _FITTING.get(row.field, _SAMPLES[row.kind][0])
    pytester.makepyprojecttoml(f"[{table}]\n{row.ini} = {text}\n")
    beside = _BESIDE.get(row.field, {})
    options = read(*beside.values())
    assert set(options.given) == {row.field, *beside}
    assert getattr(options, row.field) != row.default


def test_command_line_replaces_the_ini_value(read: Read, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(_NATIVE)
    options = read("--ort-providers=cuda", "--ort-time=1", "--ort-dims=hw:2")
    assert options.providers == ("cuda",)
    assert options.time_s == 1.0
    assert options.dims == {"hw": (2,)}
    assert options.places["providers"] == "--ort-providers"
    assert options.batch_sizes == (1, 8)


def test_override_of_an_ini_key_names_its_place(read: Read, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(_NATIVE)
    options = read("-o", "ort_workers=5", "-o", "ort_resume=false")
    assert options.workers == 5
    assert not options.resume
    assert options.places["workers"] == "-o ort_workers"


def test_ini_paths_start_at_the_ini_file(
    pytester: pytest.Pytester, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyprojecttoml(_NATIVE)
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    options = read()
    assert options.models[0] == str(pytester.path / "models/*.onnx")
    assert options.results == pytester.path / "out/runs"
    monkeypatch.chdir(below)
    assert read("--ort-results=here").results == below / "here"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600.0),
        ("90s", 90.0),
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("1 min 30 s", 90.0),
        ("1.5m", 90.0),
        ("none", None),
    ],
)
def test_a_budget_names_its_units(read: Read, text: str, seconds: float | None) -> None:
    assert read(f"--ort-budget={text}").budget_s == seconds


@pytest.mark.parametrize("beside", ["--ort-time=2", "--ort-workers=5"])
def test_a_budget_goes_with_no_share_that_it_gives_itself(read: Read, beside: str) -> None:
    message = _message(read, "--ort-budget=10m", beside)
    assert message.startswith("--ort-budget: ")
    assert beside.partition("=")[0] in message


def test_a_budget_names_the_key_that_it_does_not_go_with(
    read: Read, pytester: pytest.Pytester
) -> None:
    pytester.makepyprojecttoml("[tool.pytest]\nort_time = 2\nort_workers = 3\n")
    message = _message(read, "--ort-budget=10m")
    assert "ort_time in " in message
    assert "ort_workers in " in message


def test_a_budget_of_an_ini_file_is_switched_off_for_a_time(
    read: Read, pytester: pytest.Pytester
) -> None:
    pytester.makepyprojecttoml('[tool.pytest]\nort_budget = "10m"\n')
    assert read().budget_s == 600.0
    options = read("--ort-budget=none", "--ort-time=2")
    assert (options.budget_s, options.time_s) == (None, 2.0)


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0.0), ("10m", 600.0), ("none", None)])
def test_a_wait_names_its_unit(
    read: Read, pytester: pytest.Pytester, text: str, seconds: float | None
) -> None:
    pytester.makepyprojecttoml('[tool.pytest]\nort_wait = "1h"\n')
    assert read().wait_s == 3600.0
    assert read(f"--ort-wait={text}").wait_s == seconds


def test_a_wait_is_refused_for_a_run_that_does_not_wait(
    read: Read, pytester: pytest.Pytester
) -> None:
    message = _message(read, "--ort-wait=10m", "--ort-no-lock")
    assert message.startswith("--ort-wait: ")
    assert "--ort-no-lock" in message
    # One of the project rests while a run does not wait.
    pytester.makepyprojecttoml('[tool.pytest]\nort_wait = "1h"\n')
    assert read("--ort-no-lock").no_lock


# -- wrong values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--ort-models=", "the value is empty. Write a value"),
        ("--ort-models=a,,b", "'a,,b' has a comma too many"),
        ("--ort-providers=CpuExecutionProvider", "Did you mean 'CPUExecutionProvider'?"),
        ("--ort-providers=cdua", "'cdua' is not a known execution provider. Did you mean 'cuda'?"),
        ("--ort-providers=cuda:x", "'x' is not a device of 'cuda', which takes an index"),
        ("--ort-precisions=fp17", "'fp17' is not a known precision. Did you mean 'fp16'?"),
        ("--ort-batch-sizes=1;8", "'1;8' is not a whole number. Write e.g. 1,8"),
        ("--ort-batch-sizes=0", "0 is too small. The smallest allowed value is 1"),
        ("--ort-dims=seq", "'seq' is not a dimension with its sizes. Write e.g. seq:128"),
        ("--ort-threads=two", "'two' is not a whole number"),
        ("--ort-graph-opt=ful", "'ful' is not a known optimisation level"),
        ("--ort-io=gpu", "'gpu' is not a known mode"),
        ("--ort-session-option=x", "'x' has no '='"),
        (
            "--ort-provider-option=x=1",
            "does not say which provider has the option. Write PROVIDER.OPTION=VALUE",
        ),
        ("--ort-time=fast", "'fast' is not a number with a unit"),
        ("--ort-time=0", "'0' is out of range. Write seconds above 0"),
        ("--ort-time=-1", "'-1' is out of range"),
        ("--ort-time=1e9", "'1e9' is out of range"),
        (
            "--ort-time=5MB",
            "has the unit 'MB', which this value can't have. Write 5 with one of the units ns",
        ),
        ("--ort-target=200", "'200' is out of range. Write percent above 0 and at most 50"),
        ("--ort-target=0", "is out of range"),
        ("--ort-workers=0", "0 is too small. The smallest allowed value is 1"),
        ("--ort-workers=1.5", "'1.5' is not a whole number"),
        ("--ort-budget=5", "'5' has no unit. Write 5m for minutes, or 5s for seconds"),
        ("--ort-wait=5", "'5' has no unit"),
        ("--ort-wait=soon", "'soon' is not a time"),
        ("--ort-budget=0", "'0' is not a time above 0. Write e.g. 90s"),
        ("--ort-budget=unlimited", "or none for no limit"),
        ("--ort-wait=forever", "or none for no limit"),
        ("--ort-time=1h", "Write 60min"),
        ("--ort-budget=-1", "'-1' is not a time above 0"),
        ("--ort-budget=-1m", "'-1m' is not a time above 0"),
        ("--ort-budget=10x", "'10x' has the unit 'x', but only h, m and s"),
        ("--ort-budget=inf", "'inf' is not a time above 0"),
        ("--ort-budget=", "'' is not a time above 0"),
        ("--ort-budget=ten minutes", "'ten minutes' is not a time above 0"),
        ("--ort-budget=1s", "'1s' is too short for three workers"),
        ("--ort-budget=0m", "'0m' is too short"),
        ("--ort-budget=25h", "'25h' is longer than a day"),
        ("--ort-fallback=report,strict", "'report,strict' names 2 values"),
        ("--ort-yardstick=serial,memory", "'serial,memory' names 2 values"),
        ("--ort-fallback=lenient", "'lenient' is not a known value. Choose one of: report, strict"),
        ("--ort-samples=some", "'some' is not a known value"),
        ("--ort-json=.", "is a folder. Name the file to write"),
        ("--ort-results=x", "is a file. Name the folder to write into"),
        ("--ort-json=", "the path is empty"),
        (
            "--ort-time=300",
            "300 s does not fit into --ort-timeout=300, which also covers start-up, warm-up and "
            "the comparison of outputs. Write --ort-timeout=900",
        ),
        ("--ort-timeout=never", "'never' is not a number with a unit"),
    ],
)
def test_a_wrong_value_is_one_message(
    read: Read, pytester: pytest.Pytester, argument: str, message: str
) -> None:
    (pytester.path / "x").touch()
    text = _message(read, argument)
    assert text.startswith(argument.partition("=")[0])
    assert message in text
    assert "\n" not in text
    assert text.lower().count("choose one of: ") <= 1


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("ort_batch_sizes = [1, 8]", ["ort_batch_sizes", "1", "numbers in quotes too"]),
        ('ort_batch_sizes = "1,8"', ["ort_batch_sizes", '["A", "B"]']),
        (
            'ort_batch_sizes = ["x"]',
            ["ort_batch_sizes in ", "pyproject.toml", "'x' is not a whole"],
        ),
        ('ort_time = "5"', ["ort_time", "Write e.g. ort_time = 2.5"]),
        ("ort_time = -5", ["ort_time in ", "'-5' is out of range"]),
        ("ort_limits = 5", ["ort_limits", "5", 'Write e.g. ort_limits = ["A", "B"]']),
        ("ort_time = nan", ["ort_time in ", "'nan' is not a number"]),
        ("ort_workers = 2.5", ["ort_workers", "2.5", "Write e.g. ort_workers = 3"]),
        ('ort_resume = "yes"', ["ort_resume", "Write e.g. ort_resume = true"]),
    ],
)
def test_a_wrong_native_ini_value_names_key_file_and_form(
    read: Read, pytester: pytest.Pytester, line: str, parts: list[str]
) -> None:
    pytester.makepyprojecttoml(f"[tool.pytest]\n{line}\n")
    text = _message(read)
    for part in parts:
        assert part in text
    assert "pyproject.toml" in text


@pytest.mark.parametrize(
    "line", ['ort_time = "fast"', 'ort_workers = "few"', 'ort_resume = "maybe"']
)
def test_a_wrong_ini_value_names_the_form(read: Read, pytester: pytest.Pytester, line: str) -> None:
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{line}\n")
    key, text = line.partition(" ")[0], _message(read)
    assert text.startswith(f"{key} in ")
    assert "pyproject.toml" in text
    assert f"Write e.g. {key} = " in text


def test_runtime_requirements_survive_their_commas(read: Read) -> None:
    text = "current,onnxruntime-gpu[cuda,cudnn]==1.30.0+numpy>=1.2,<1.3,onnxruntime==1.20.1"
    assert read(f"--ort-runtimes={text}").runtimes == (
        "current",
        "onnxruntime-gpu[cuda,cudnn]==1.30.0+numpy>=1.2,<1.3",
        "onnxruntime==1.20.1",
    )
