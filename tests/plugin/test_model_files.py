"""Model files as items, ids, and what a run prints and leaves behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.run import SCHEMA_VERSION

from .conftest import QUICK, told

ModelFile = Callable[..., Path]


def test_a_named_model_file_gives_every_suite(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("mlp.onnx")
    result = pytester.runpytest("mlp.onnx", "--collect-only", "-q")
    tests = [line for line in result.outlines if "::" in line]
    assert tests == [
        f"mlp.onnx::test_{suite}[mlp/native/cpu/b1]"
        for suite in (
            "accuracy",
            "latency",
            "memory",
            "placement",
            "startup",
            "throughput",
        )
    ]


def test_a_bare_pytest_collects_no_model_file(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    for index in range(3):
        model_file(f"models/m{index}.onnx")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest("--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "test_a_bare_pytest_collects_no_model_file.py::test_it"
    ]
    result.stdout.no_fnmatch_line("*ortbench:*")


def test_the_ini_key_collects_every_model_file(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("models/m.onnx")
    pytester.makeini("[pytest]\nort_collect = true")
    result = pytester.runpytest("--collect-only", "-q", "-k", "latency")
    result.stdout.fnmatch_lines(["models/m.onnx::test_latency[[]models/m/native/cpu/b1[]]"])


def test_one_measurement_serves_all_suites_and_leaves_one_document(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    # In a process of its own, which draws figures and measures the canary.
    result = pytester.runpytest_subprocess("mlp.onnx", *QUICK)
    result.assert_outcomes(passed=6)
    (document,) = pytester.path.glob("results/*/run.json")
    run = json.loads(document.read_text())
    (case,) = run["cases"]
    assert case["status"] == "measured"
    assert len(case["measurements"]) == 1
    assert case["placement"]["executed"] == {"CPUExecutionProvider": 2}
    assert run["finished_at"] is not None
    assert run["canary"]["durations_ns"]
    assert list(document.parent.glob("plots/*.png"))
    assert not (document.parent / "journal.jsonl").exists()
    result.stdout.fnmatch_lines(["*p50*items/s*", "*native/cpu/b1*", "mlp: *", "run: *.json"])


def test_files_of_all_kinds_are_written_where_asked_and_nowhere_else(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest(
        "mlp.onnx",
        "--ort-no-results",
        "--ort-json=out/run.json",
        "--ort-html=out/report.html",
        "--ort-plots=out/plots",
        *QUICK,
    )
    assert result.ret == 0
    assert (
        json.loads((pytester.path / "out/run.json").read_text())["schema_version"] == SCHEMA_VERSION
    )
    assert "mlp" in (pytester.path / "out/report.html").read_text()
    assert list((pytester.path / "out/plots").glob("*.png"))
    assert not (pytester.path / "results").exists()


def test_collect_only_lists_cases_with_resolved_inputs_and_what_was_left_out(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest(
        "mlp.onnx", "--collect-only", "--ort-providers=all", "--ort-batch-sizes=1,4"
    )
    assert told(result)[0].startswith("2 cases, ")
    assert any(text.startswith("left out azure: ") for text in told(result))
    result.stdout.fnmatch_lines(["*/b1 *x [[]1, 8[]]*", "*/b4 *x [[]4, 8[]]*"])
    assert not (pytester.path / "results").exists()


def test_a_broken_file_fails_with_one_line_and_the_others_are_measured(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    good = model_file("good.onnx")
    (pytester.path / "cut.onnx").write_bytes(good.read_bytes()[:100])
    (pytester.path / "text.onnx").write_text("not a model")
    (pytester.path / "empty.onnx").touch()
    (pytester.path / "folder.onnx").mkdir()
    names = ("good", "cut", "text", "empty", "folder")
    result = pytester.runpytest(*(f"{name}.onnx" for name in names), "-k", "latency", *QUICK)
    result.assert_outcomes(passed=1, failed=4)
    (document,) = pytester.path.glob("results/*/run.json")
    failures = {
        case["case"]["model"]["name"]: case["failure"]
        for case in json.loads(document.read_text())["cases"]
        if case["status"] != "measured"
    }
    assert {(entry["kind"], entry["phase"]) for entry in failures.values()} == {("error", "inputs")}
    assert list(failures) == list(names[1:])
    assert all(f"{name}.onnx" in entry["message"] for name, entry in failures.items())
    result.stdout.no_fnmatch_line("*Traceback*")


def test_batch_sizes_that_a_model_does_not_have_are_skipped_and_stay_rows(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file(batch=1)
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "-rs", "--ort-batch-sizes=1,4", *QUICK)
    result.assert_outcomes(passed=1, skipped=1)
    (document,) = pytester.path.glob("results/*/run.json")
    cases = json.loads(document.read_text())["cases"]
    assert [case["status"] for case in cases] == ["measured", "unsupported"]


def test_nothing_measured_is_exit_status_1(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file(batch=1)
    result = pytester.runpytest("mlp.onnx", "--ort-batch-sizes=4", *QUICK)
    result.assert_outcomes(skipped=6)
    assert result.ret == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ort-models=gone.onnx",), "gone.onnx"),
        (("--ort-models=*.onxx",), "*.onxx"),
        (("--ort-models=zoo:silero",), "silero-vad"),
        (("--ort-models=builtin:resnet",), "resnet50"),
        (("--ort-providers=CpuExecutionProvider",), "CPUExecutionProvider"),
        (("--ort-batch-sizes=0",), "--ort-batch-sizes"),
        (("--ort-dims=seq",), "--ort-dims"),
        (("--ort-dims=sek:3", "--ort-models=builtin:gbdt"), "sek"),
        (("--ort-time=fast",), "--ort-time"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_status_4(
    pytester: pytest.Pytester, arguments: tuple[str, ...], said: str
) -> None:
    pytester.makepyfile("def test_it(ortbench): pass")
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert len(errors) == 1
    assert said in errors[0]
    result.stdout.no_fnmatch_line("*Traceback*")


def test_two_models_of_one_file_name_have_two_ids(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a/m.onnx")
    model_file("b/m.onnx", symbol="seq")
    pytester.makepyfile("def test_it(ortbench): pass")
    result = pytester.runpytest(
        "--collect-only", "-q", "--ort-models=a/m.onnx,b/m.onnx", "--ort-dims=seq:3"
    )
    tests = [line for line in result.outlines if "::" in line]
    assert len(tests) == len(set(tests)) == 2


def test_a_size_that_one_of_several_files_has_is_set_for_it(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a.onnx")
    model_file("b.onnx", symbol="seq")
    result = pytester.runpytest(
        "a.onnx", "b.onnx", "--collect-only", "-q", "--ort-dims=seq:3,seq:5"
    )
    assert result.ret == 0
    tests = [line for line in result.outlines if "test_latency" in line]
    assert len(tests) == 3
    result = pytester.runpytest("a.onnx", "b.onnx", "--collect-only", "-q", "--ort-dims=sek:3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert len(errors) == 1
    assert "'sek'" in errors[0]


def test_two_files_of_one_name_that_are_named_themselves_are_two_cases(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a/m.onnx")
    model_file("b/m.onnx", symbol="seq")
    result = pytester.runpytest("a/m.onnx", "b/m.onnx", "-k", "latency", *QUICK)
    result.assert_outcomes(passed=2)
    (document,) = pytester.path.glob("results/*/run.json")
    cases = json.loads(document.read_text())["cases"]
    measured = {case["case"]["model"]["name"]: case["case"]["model"]["path"] for case in cases}
    assert measured == {
        "a/m": str(pytester.path / "a/m.onnx"),
        "b/m": str(pytester.path / "b/m.onnx"),
    }


def test_two_tests_with_models_of_one_file_name_measure_their_own(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("a/m.onnx")
    model_file("b/m.onnx", symbol="seq")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="a/m.onnx")
        def test_one(ortbench):
            assert len(ortbench.case.inputs[0].shape) == 2

        @pytest.mark.ortbench(models="b/m.onnx")
        def test_other(ortbench):
            assert len(ortbench.case.inputs[0].shape) == 3
        """
    )
    result = pytester.runpytest("--collect-only", "-q")
    ids = [line.split("[")[1] for line in result.outlines if "::" in line]
    assert ids == ["a/m/native/cpu/b1]", "b/m/native/cpu/b1]"]


def test_a_run_says_which_sizes_it_measured(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file(symbol="seq")
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *QUICK)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        "mlp  *, x [[]1, 128, 8] (seq: default: sequence length), accuracy on random inputs"
    )


def test_what_was_left_out_is_said_once_and_one_blank_line_parts_table_and_answer(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # room for any flags, and for any name of a CPU
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "--ort-providers=all", *QUICK)
    assert len([line for line in result.outlines if "left out" in line]) == 1
    answer = next(i for i, line in enumerate(result.outlines) if line.startswith("mlp: "))
    assert result.outlines[answer - 1] == ""
    assert result.outlines[answer - 2].startswith("machine ")


def test_the_energy_suite_says_why_it_skips(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "energy", "-rs", *QUICK)
    if result.parseoutcomes().get("skipped"):
        result.stdout.fnmatch_lines("SKIPPED*: energy *: *")
    else:
        result.assert_outcomes(passed=1)


def test_a_stored_table_of_pytest_benchmark_is_of_this_machine(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    """pytest-benchmark reads what it compares with before any model file is collected."""
    model_file()
    # Its frequency may be another one each time.
    pytester.makeconftest(
        "def pytest_benchmark_update_machine_info(machine_info): machine_info['cpu'] = {}"
    )
    only = ("mlp.onnx", *QUICK, "-k", "test_latency", "--ort-no-results")
    pytester.runpytest_subprocess(*only, "--benchmark-save=one")
    result = pytester.runpytest_subprocess(*only, "--benchmark-compare")
    assert result.ret == 0
    said = result.stdout.str() + result.stderr.str()
    assert "(0001_one)" in said
    assert "(NOW)" in said
    assert "machine_info is different" not in said


def test_a_link_named_by_a_way_through_the_folder_above_is_collected(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every file of a snapshot in the cache of huggingface_hub is such a link.
    blob = model_file("blobs/3f2a.onnx")
    snapshot = pytester.mkdir("snapshots")
    (snapshot / "model.onnx").symlink_to(blob)
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    result = pytester.runpytest(
        "../snapshots/model.onnx", "--collect-only", "-q", "-k", "latency", *QUICK
    )
    (test,) = [line for line in result.outlines if "::" in line]
    assert test.endswith("snapshots/model.onnx::test_latency[../snapshots/model/native/cpu/b1]")


OWN_NAMES = """
    [pytest]
    python_functions = check_*
    python_classes = Check*
    python_files = check_*.py
    collect_imported_tests = false
    """


@pytest.mark.parametrize("argument", ["mlp.onnx", "."])
def test_the_suites_are_tests_whatever_a_project_calls_its_own(
    pytester: pytest.Pytester, model_file: ModelFile, argument: str
) -> None:
    model_file("mlp.onnx")
    pytester.makeini(OWN_NAMES)
    pytester.makepyfile(check_x="def check_it(): pass")
    result = pytester.runpytest(argument, "mlp.onnx", "--collect-only", "-q", *QUICK)
    shipped = [line for line in result.outlines if line.startswith("mlp.onnx::test_")]
    assert len(shipped) == 6
    assert result.ret == pytest.ExitCode.OK


def test_the_suites_are_collected_as_modules_too(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("mlp.onnx")
    pytester.makeini(OWN_NAMES)
    arguments = ("--pyargs", "pytest_ortbench.suites")
    # A process of its own: this one may have imported another test_load.py already.
    result = pytester.runpytest_subprocess(
        *arguments, "--rootdir=.", "--ort-models=mlp.onnx", "--collect-only", "-q", *QUICK
    )
    assert len([line for line in result.outlines if "::test_" in line]) == 6


def test_a_file_of_a_suite_that_a_project_changed_is_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeini(OWN_NAMES)
    folder = pytester.mkdir("suites")
    (folder / "test_latency.py").write_text("def test_latency(ortbench, benchmark): pass")
    assert pytester.runpytest("suites", *QUICK).ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("path", "arguments", "conftest"),
    [
        ("m.onnx", ("--ignore=m.onnx", "."), ""),
        ("m.onnx", ("--ignore-glob=*.onnx", "."), ""),
        ("build/m.onnx", (".",), ""),
        ("m.onnx", (".",), "collect_ignore = ['m.onnx']"),
        ("m.onnx", (), "def pytest_pycollect_makeitem(collector, name, obj): return []"),
    ],
)
def test_a_named_model_of_which_nothing_is_collected_is_an_error(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    path: str,
    arguments: tuple[str, ...],
    conftest: str,
) -> None:
    model_file(path)
    pytester.makeconftest(conftest)
    pytester.makepyfile(test_other="def test_other(): pass")
    result = pytester.runpytest(path, "test_other.py", *arguments, *QUICK)
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert path in result.stdout.str() + result.stderr.str()


def test_a_run_whose_every_combination_was_left_out_is_red(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_ortbench.core.run import Skip
    from pytest_ortbench.planning.matrix import Plan
    from pytest_ortbench.planning.planner import Planner

    nothing = Plan(entries=(), skips=(Skip(what="cuda", reason="not here"),))
    monkeypatch.setattr(Planner, "plan", lambda *_: nothing)
    model_file("m.onnx")
    result = pytester.runpytest("m.onnx", "-v", *QUICK)
    result.assert_outcomes(skipped=6)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert told(result, "no case was measured")
    assert any(line.startswith("m.onnx::test_latency[no case] ") for line in result.outlines)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mpl.onnx", "mlp.onnx"),
        ("mlp.onx::test_latency", "mlp.onnx"),
        ("models/dte.onnx", "models/det.onnx"),
    ],
)
def test_a_misspelt_model_file_is_told_its_neighbour(
    pytester: pytest.Pytester, model_file: ModelFile, written: str, meant: str
) -> None:
    model_file("mlp.onnx")
    model_file("models/det.onnx")
    result = pytester.runpytest(written, "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR:")]
    assert error.startswith(f"ERROR: {written.partition('::')[0]}: ")
    assert repr(meant) in error


def test_a_missing_file_of_another_kind_is_left_to_pytest(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("test_net.onnx")
    result = pytester.runpytest("test_net.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_net.onnx" not in "\n".join(result.errlines)
