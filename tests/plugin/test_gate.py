"""A gate in pytest's words. Launches are faked unless a test says that it is live."""

from __future__ import annotations

import functools
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import Accuracy, OutputAccuracy
from pytest_ortbench.core.run import SCHEMA_VERSION, Machine
from pytest_ortbench.gate.measuring import gate as engine_gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import Launched, measure_launch
from pytest_ortbench.gate.numbers.verdict import machine_class
from tests.execution.fakes import FakeLauncher

from .conftest import QUICK as KEPT
from .conftest import failed_tests, held_against, properties, told, told_last

pytestmark = pytest.mark.usefixtures("shared_machine")

ModelFile = Callable[..., Path]
KVM = Machine(host="h", stable={"virtualisation": "KVM"})

#: No canary and no plots; the document stands in ``run.json``.
QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json")


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeLauncher]:
    """Fake the launches of gates: contenders take ``ratio`` times what ``old`` models take."""

    def fake(
        ratio: float, *, scatter: float = 0.002, baseline: str = "old", spares: bool = False
    ) -> FakeLauncher:
        draw = random.Random(0)

        def time_of(case: Case, index: int) -> float:
            is_baseline = baseline in case.variant.path or baseline == case.provider.options.get(
                "x"
            )
            return 40e6 * (1.0 if is_baseline else ratio) * (1 + draw.gauss(0, scatter))

        launcher = FakeLauncher(time_of)

        def launched(pair: Pair, _: object, **options: object) -> Launched:
            return measure_launch(pair, launcher, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(engine_gate, "measure_launch", launched)
        if not spares:
            # Most models here are the same file on both sides.
            monkeypatch.setattr(engine_gate, "identical", lambda _: False)
        monkeypatch.setattr(
            engine_gate._Measuring, "_reference", lambda *_: Accuracy(reason="faked")
        )
        # The same order in every run, so that the same times come to the same verdict.
        monkeypatch.setattr(engine_gate, "Gate", functools.partial(engine_gate.Gate, seed=0))
        # Whatever machine the tests run on, the floor decides.
        monkeypatch.setattr(
            engine_gate,
            "machine_class",
            lambda _, margin=None: machine_class(KVM, margin),
        )
        return launcher

    return fake


@pytest.fixture
def models(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    """``new.onnx`` and ``old.onnx``, the same model, and two tests of ours."""
    model_file("new.onnx")
    model_file("old.onnx")
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.ortbench(models="new.onnx")

        def test_memory(ortbench):
            assert ortbench.memory().peak_rss >= 0

        def test_latency(ortbench):
            assert ortbench.latency().min > 0
        """
    )


def document(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text())


# Against another side in the same run.


@pytest.mark.usefixtures("models")
def test_slower_fails_the_latency_test_of_the_case_and_no_other(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.07)
    result = pytester.runpytest(*QUICK, "--ort-against=model:old.onnx", "--junitxml=j.xml", "-rf")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines(
        [
            r"new/native/cpu/b1: gate failed",
            r"\s+slower than model:.*old\.onnx: .* ×1\.0[67]\d \[1\.0\d\d, 1\.0\d\d\] .*"
            r"margin 3\.00 %, 8 launches .*, confirmed by 5 more",
        ]
    )
    assert failed_tests(result) == ["test_latency[new/native/cpu/b1]"]
    (entry,) = document(pytester.path)["gate"]
    assert entry["verdict"] == "slower"
    assert entry["contrasts"][0]["effect"] == pytest.approx(0.07, abs=0.01)
    assert len(entry["launches"]) == 8
    assert properties(pytester.path / "j.xml")["gate_verdict"] == "slower"
    assert (pytester.path / "j.xml").read_text().count("gate_verdict") == 1


@pytest.mark.usefixtures("models")
def test_same_passes_and_says_so(
    pytester: pytest.Pytester,
    launches: Callable[..., FakeLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launches(1.0)
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = pytester.runpytest(*QUICK, "--ort-against=model:old.onnx")
    result.assert_outcomes(passed=2)
    (entry,) = document(pytester.path)["gate"]
    assert entry["verdict"] == "same"
    (line,) = [line for line in result.outlines if line.startswith("gate new/")]
    assert " same " in line
    heading = next(line for line in summary.read_text().splitlines() if line.startswith("## "))
    assert "model:old.onnx" in heading
    assert "new/native/cpu/b1" in summary.read_text()


@pytest.mark.usefixtures("models")
def test_inconclusive_warns_past_filters_and_fails_only_when_strict(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.02, scatter=0.1)
    against = "--ort-against=model:old.onnx"
    result = pytester.runpytest(*QUICK, against, "-W", "error")
    result.assert_outcomes(passed=2, warnings=1)
    (entry,) = document(pytester.path)["gate"]
    assert entry["verdict"] == "inconclusive"
    assert entry["contrasts"][0]["detectable"] > 0.03
    launches(1.02, scatter=0.1)
    result = pytester.runpytest(*QUICK, against, "--ort-gate-strict")
    result.assert_outcomes(passed=1, failed=1)


@pytest.mark.usefixtures("models")
def test_the_first_test_carries_the_verdict_where_test_latency_is_not_selected(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.07)
    result = pytester.runpytest(*QUICK, "--ort-against=model:old.onnx", "-k", "memory")
    result.assert_outcomes(failed=1, deselected=1)


@pytest.mark.usefixtures("models")
def test_margins_by_option_pattern_and_marker(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    against = "--ort-against=model:old.onnx"
    launches(1.07)
    pytester.runpytest(*QUICK, against, "--ort-gate=latency:10%").assert_outcomes(passed=2)
    launches(1.07)
    options = ("--ort-gate=latency:10%,new*@latency:3%",)
    pytester.runpytest(*QUICK, against, *options).assert_outcomes(passed=1, failed=1)
    launches(1.07)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="new.onnx", gate=["latency:12.5%"])
        def test_latency(ortbench):
            assert ortbench.latency().min > 0
        """
    )
    pytester.runpytest(*QUICK, against).assert_outcomes(passed=1)
    assert document(pytester.path)["gate"][0]["contrasts"][0]["margin"] == 0.125


@pytest.mark.usefixtures("models")
def test_an_absolute_limit_is_held_against_the_standard_pass(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    result = pytester.runpytest(*QUICK, "--ort-against=model:old.onnx", "--ort-gate=latency:<=1ns")
    result.assert_outcomes(passed=1, failed=1)
    (entry,) = document(pytester.path)["gate"]
    assert held_against(entry) == ["latency_p50"]
    (limit,) = [metric for metric in entry["metrics"] if metric["bound"] is not None]
    assert (limit["metric"], limit["bound"]) == ("latency_p50", 1e-9)


def test_a_larger_model_fails_though_it_is_as_fast(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    import onnx

    launches(1.0)
    model_file("old.onnx")
    proto = onnx.load(model_file("new.onnx"))
    proto.metadata_props.add(key="ballast", value="x" * 200)
    onnx.save(proto, pytester.path / "new.onnx")
    result = pytester.runpytest(
        "new.onnx", *QUICK, "--ort-against=model:old.onnx", "-k", "test_latency"
    )
    result.assert_outcomes(failed=1, deselected=5)
    (entry,) = document(pytester.path)["gate"]
    assert held_against(entry) == ["model_size"]


@pytest.mark.usefixtures("models")
def test_option_and_provider_sides(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    launcher = launches(1.0)
    result = pytester.runpytest(*QUICK, "--ort-against=option:graph_optimization_level=basic")
    result.assert_outcomes(passed=2)
    levels = {worker.case.session.graph_optimization_level for worker in launcher.opened}
    assert levels == {"basic", "all"}
    # The only case is the baseline itself: nothing is compared, which is no success. So is an
    # option of a provider that no case runs on.
    for side in ("provider:cpu", "option:cuda.cudnn_conv_algo_search=HEURISTIC"):
        result = pytester.runpytest(*QUICK, f"--ort-against={side}")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert told_last(result, "gate")[0] == "new/native/cpu/b1"
        assert not document(pytester.path)["gate"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (
            "--ort-against=modell:x",
            "'modell:x' does not name a baseline. Did you mean 'model:x'?",
        ),
        ("--ort-against=model:", "'model:' has nothing after"),
        ("--ort-against=option:x", "'option:x' has no value"),
        ("--ort-against=git:nowhere", "opens no repository at"),
        ("--ort-against=model:gone.onnx", "--ort-against: 'gone.onnx' is not"),
        ("--ort-against=provider:gpuu", "--ort-against: 'gpuu' is not a known"),
        ("--ort-against=precision:fp61", "--ort-against: 'fp61'"),
        ("--ort-gate=latency:zzz", "--ort-gate: 'zzz'"),
        ("--ort-gate=latenzy:3%", "Did you mean 'latency'?"),
        ("--ort-gate=latency_p99:3%", "--ort-gate: 'latency_p99' in 'latency_p99:3%'"),
        ("--ort-gate=latency:0%", "the margin in 'latency:0%' is 0"),
        ("--ort-baseline=gone.json", "'gone.json' does not exist"),
    ],
)
@pytest.mark.usefixtures("models")
def test_wrong_values_are_one_line(pytester: pytest.Pytester, argument: str, message: str) -> None:
    result = pytester.runpytest(*QUICK, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str() + result.stdout.str()
    assert message in text
    assert "Traceback" not in text
    assert "no case to measure" not in text


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)


def committed(folder: Path, path: str) -> None:
    """Make the folder a working tree whose one commit holds what lies at a path."""
    git(folder, "init", "-q")
    git(folder, "add", path)
    git(folder, "commit", "-qm", "first")


@pytest.mark.needs("git")
def test_a_revision_is_read_through_git_and_a_model_that_it_had_vanished(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launcher = launches(1.07, baseline="ortbench-gate-")
    folder = pytester.mkdir("nets")
    for name in ("one.onnx", "two.onnx"):
        model_file(f"nets/{name}")
    committed(pytester.path, "nets")
    (folder / "two.onnx").unlink()
    model_file("nets/three.onnx")
    before = sorted(path.name for path in folder.iterdir())
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    result = pytester.runpytest(*QUICK, "--ort-models=nets", "--ort-against=git:HEAD")
    result.assert_outcomes(passed=1, failed=2)
    assert told_last(result, "gate") == ["nets/three/native/cpu/b1"]
    entries = {entry["case_id"]: entry for entry in document(pytester.path)["gate"]}
    assert set(entries) == {"nets/one/native/cpu/b1", "nets/two/native/cpu/b1"}
    assert entries["nets/one/native/cpu/b1"]["verdict"] == "slower"
    assert entries["nets/two/native/cpu/b1"]["removed"] is True
    assert sorted(path.name for path in folder.iterdir()) == before
    paths = {Path(worker.case.variant.path) for worker in launcher.opened}
    assert {path.name for path in paths} == {"one.onnx"}
    assert len(paths) == 2


@pytest.mark.needs("git")
def test_a_file_that_git_can_not_give_is_asked_for_once(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    """Git may wait for minutes before it gives up."""
    model_file("net.onnx")
    (pytester.path / ".gitattributes").write_text("*.onnx filter=store\n")
    committed(pytester.path, ".")
    git(pytester.path, "config", "filter.store.smudge", "echo asked >> asked.txt; exit 1")
    git(pytester.path, "config", "filter.store.required", "true")
    result = pytester.runpytest("net.onnx", *QUICK, "--ort-against=git:HEAD")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (pytester.path / "asked.txt").read_text() == "asked\n"


@pytest.mark.needs("git")
def test_a_pointer_of_git_lfs_is_explained(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    path = model_file("net.onnx")
    content = path.read_bytes()
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    committed(pytester.path, "net.onnx")
    path.write_bytes(content)
    result = pytester.runpytest("net.onnx", *QUICK, "--ort-against=git:HEAD")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*HEAD:net.onnx: *Git LFS*git lfs fetch*"])


# G3, and other ways of deciding nothing.


@pytest.mark.parametrize("gate", ["--ort-against=model:old.onnx", "--ort-baseline=latest"])
def test_under_xdist_a_gate_judges_as_ever(
    pytester: pytest.Pytester, model_file: ModelFile, gate: str
) -> None:
    model_file("new.onnx")
    model_file("old.onnx")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="new.onnx")
        def test_that_asks_for_nothing(ortbench):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*QUICK, "-n2", gate, "--ort-gate=latency_p50:<=1ns")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1)
    assert document(pytester.path)["gate"][0]["case_id"] == "new/native/cpu/b1"


@pytest.mark.needs("git")
@pytest.mark.parametrize("where", ["option", "ini"])
def test_a_gate_without_any_case_fails_the_run(pytester: pytest.Pytester, where: str) -> None:
    pytester.makepyfile("def test_other(): pass")
    committed(pytester.path, ".")
    arguments = ["--ort-baseline=latest", "--ort-against=git:HEAD"]
    if where == "ini":
        pytester.makeini("[pytest]\nort_against = git:HEAD")
        arguments = []
    result = pytester.runpytest(*QUICK, *arguments)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ortbench: gate: a gate was requested, but nothing was compared"])


# A stored run as the baseline.


@pytest.mark.usefixtures("models")
def test_the_first_run_records_and_passes_and_the_second_is_held_against_it(
    pytester: pytest.Pytester,
) -> None:
    # G2
    result = pytester.runpytest(*KEPT, "--ort-json=run.json", "--ort-baseline=latest")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK
    assert any("'latest'" in text for text in told(result, "gate"))
    first = document(pytester.path)
    assert not first["gate"]
    result = pytester.runpytest(*KEPT, "--ort-json=run.json", "--ort-baseline=latest")
    result.assert_outcomes(passed=2)
    (entry,) = document(pytester.path)["gate"]
    assert entry["baseline"] == first["run_id"]
    verdicts = {metric["metric"]: metric["verdict"] for metric in entry["metrics"]}
    assert verdicts["status"] == verdicts["model_size"] == verdicts["placement"] == "same"


@pytest.mark.usefixtures("models", "drawn_numbers")
def test_what_got_worse_stays_worse_when_it_is_measured_again(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    import onnx

    pytester.runpytest(*KEPT).assert_outcomes(passed=2)
    proto = onnx.load(model_file("new.onnx"))
    proto.metadata_props.add(key="ballast", value="x" * 200)
    onnx.save(proto, pytester.path / "new.onnx")
    for notes in ([], ["ortbench: gate: runs that failed a gate are not used *"]):
        result = pytester.runpytest(*KEPT, "--ort-json=run.json", "--ort-baseline=latest")
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(notes)
        (entry,) = document(pytester.path)["gate"]
        assert held_against(entry) == ["model_size"]


@pytest.mark.usefixtures("models", "drawn_numbers")
def test_both_gates_at_once_say_both_verdicts(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    """Slower than the other side, and larger than the stored run."""
    import onnx

    pytester.runpytest(*QUICK).assert_outcomes(passed=2)
    (pytester.path / "run.json").rename(pytester.path / "before.json")
    proto = onnx.load(pytester.path / "new.onnx")
    proto.metadata_props.add(key="ballast", value="x" * 200)
    onnx.save(proto, pytester.path / "new.onnx")
    onnx.save(proto, pytester.path / "old.onnx")
    launches(1.07)
    result = pytester.runpytest(
        *QUICK, "--ort-against=model:old.onnx", "--ort-baseline=before.json", "--junitxml=j.xml"
    )
    result.assert_outcomes(passed=1, failed=1)
    paired, stored = document(pytester.path)["gate"]
    assert (paired["verdict"], paired["baseline"]) == ("slower", "model:old.onnx")
    assert (held_against(paired), held_against(stored)) == (["latency"], ["model_size"])
    for entry in (paired, stored):
        assert any(entry["failures"][0] in line for line in result.outlines)
    in_xml = properties(pytester.path / "j.xml")
    assert in_xml["gate_verdict"] == "slower"
    assert in_xml["gate_stored_baseline"] == stored["baseline"]


@pytest.mark.usefixtures("models", "drawn_numbers")
def test_a_case_whose_latency_test_was_skipped_is_judged_all_the_same(
    pytester: pytest.Pytester,
) -> None:
    suite = """
        import pytest

        pytestmark = pytest.mark.ortbench(models="new.onnx")

        def test_memory(ortbench): {body}

        def test_latency(ortbench): pytest.skip("not today")
        """
    pytester.makepyfile(suite.format(body="assert ortbench.result"))
    pytester.runpytest(*QUICK).assert_outcomes(passed=1, skipped=1)
    (pytester.path / "run.json").rename(pytester.path / "before.json")
    result = pytester.runpytest(*QUICK, "--ort-baseline=before.json")
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.OK
    (entry,) = document(pytester.path)["gate"]
    assert {metric["metric"] for metric in entry["metrics"]} >= {"status", "model_size"}
    # Where no test is left, the run fails, and its document says so.
    pytester.makepyfile(suite.format(body='pytest.skip("nor today")'))
    result = pytester.runpytest(*QUICK, "--ort-baseline=before.json")
    result.assert_outcomes(skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (text,) = told(result, "not judged")
    assert "::test_memory[new/native/cpu/b1] and 1 " in text
    (entry,) = document(pytester.path)["gate"]
    assert entry["failures"]


@pytest.mark.usefixtures("drawn_numbers")
def test_renamed_cases_fail(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    # G4
    path = model_file("before.onnx")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    pytester.runpytest(*QUICK, "--ort-models=before.onnx").assert_outcomes(passed=1)
    path.rename(pytester.path / "after.onnx")
    result = pytester.runpytest(*QUICK, "--ort-models=after.onnx", "--ort-baseline=run.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "after/native/cpu/b1" in told_last(result, "gate")
    (entry,) = document(pytester.path)["gate"]
    assert (entry["case_id"], entry["removed"]) == ("before/native/cpu/b1", True)


@pytest.mark.usefixtures("drawn_numbers")
def test_a_case_that_can_no_longer_run_fails_though_it_would_be_skipped(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("net.onnx")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    arguments = (*QUICK, "--ort-models=net.onnx", "--ort-batch-sizes=2")
    pytester.runpytest(*arguments).assert_outcomes(passed=1)
    model_file("net.onnx", batch=1)
    result = pytester.runpytest(*arguments, "--ort-baseline=run.json")
    result.assert_outcomes(failed=1)
    (entry,) = document(pytester.path)["gate"]
    assert held_against(entry) == ["status"]


@pytest.mark.usefixtures("models", "drawn_numbers")
def test_a_baseline_that_can_not_be_read_is_one_line_and_stays_as_it_is(
    pytester: pytest.Pytester,
) -> None:
    # G7
    pytester.runpytest(*KEPT, "--ort-json=good.json", "--ort-no-results")
    good = (pytester.path / "good.json").read_bytes()
    newer = good.replace(b'"schema_version": %d' % SCHEMA_VERSION, b'"schema_version": 99')
    bad = {"truncated": good[: len(good) // 2], "newer": newer, "text": b"hello", "empty": b""}
    for name, content in bad.items():
        path = pytester.path / f"{name}.json"
        path.write_bytes(content)
        result = pytester.runpytest(*QUICK, f"--ort-baseline={path}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR, name
        told = [line for line in result.stderr.lines if line.strip()]
        assert len(told) == 1, told
        assert f"{name}.json" in told[0]
        assert path.read_bytes() == content


# What stands on the other side.


@pytest.mark.needs("git")
def test_models_of_a_revision_are_called_as_what_became_of_them(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    """By their paths, whatever else is there now, or was there."""
    launches(1.07, baseline="ortbench-gate-")
    model_file("nets/detector/model.onnx")
    model_file("nets/gone/net.onnx")
    committed(pytester.path, "nets")
    (pytester.path / "nets/gone/net.onnx").unlink()
    model_file("nets/classifier/model.onnx")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    for models in ("nets", "nets/*/*.onnx", "nets/**/*.onnx"):
        result = pytester.runpytest(*QUICK, f"--ort-models={models}", "--ort-against=git:HEAD")
        result.assert_outcomes(passed=1, failed=2)
        entries = {entry["case_id"]: entry for entry in document(pytester.path)["gate"]}
        assert set(entries) == {
            "nets/detector/model/native/cpu/b1",
            "nets/gone/net/native/cpu/b1",
        }
        assert entries["nets/detector/model/native/cpu/b1"]["verdict"] == "slower"
        assert entries["nets/gone/net/native/cpu/b1"]["removed"] is True
        assert told_last(result, "gate") == ["nets/classifier/model/native/cpu/b1"]


@pytest.mark.needs("git")
@pytest.mark.parametrize("made", [False, True], ids=["ignored", "made"])
def test_models_that_git_does_not_keep_are_sent_to_a_stored_run(
    made: bool,
    pytester: pytest.Pytester,
    model_file: ModelFile,
    launches: Callable[..., FakeLauncher],
) -> None:
    launches(1.0, baseline="ortbench-gate-")
    model_file("nets/ignored.onnx")
    (pytester.path / ".gitignore").write_text("*.onnx\n", encoding="utf-8")
    committed(pytester.path, ".gitignore")
    read = "ortbench.measure('nets/ignored.onnx')" if made else "ortbench.result"
    pytester.makepyfile(f"def test_latency(ortbench): {read}")
    models = [] if made else ["--ort-models=nets"]
    result = pytester.runpytest(*QUICK, *models, "--ort-against=git:HEAD")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    last = [line for line in result.outlines if line.startswith("ortbench: gate:")][-1]
    assert "git:HEAD" in last
    assert "--ort-baseline" in last


@pytest.mark.needs("git")
def test_a_pattern_means_no_folder_below(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0, baseline="ortbench-gate-")
    model_file("nets/one.onnx")
    model_file("nets/below/two.onnx")
    committed(pytester.path, "nets")
    (pytester.path / "nets/below/two.onnx").unlink()
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    result = pytester.runpytest(*QUICK, "--ort-models=nets/*.onnx", "--ort-against=git:HEAD")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.usefixtures("models")
def test_inputs_that_a_plugin_offers_are_fed_to_both_sides(
    pytester: pytest.Pytester, launches: Callable[..., FakeLauncher]
) -> None:
    import numpy as np

    np.savez(pytester.path / "real.npz", x=np.ones((1, 8), np.float32))
    pytester.makeconftest("def pytest_ortbench_inputs(case, config): return 'real.npz'")
    launcher = launches(1.0)
    result = pytester.runpytest(*QUICK, "--ort-against=model:old.onnx")
    result.assert_outcomes(passed=2)
    fed = {spec.path for worker in launcher.opened for spec in worker.case.inputs}
    assert fed == {str(pytester.path / "real.npz")}


def test_what_another_selected_file_has_is_not_missed(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    for name in ("a.onnx", "b.onnx", "old/a.onnx", "old/b.onnx"):
        model_file(name)
    result = pytester.runpytest(
        "a.onnx", "b.onnx", *QUICK, "--ort-against=model:old", "-k", "a.onnx and latency"
    )
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK


def test_a_provider_that_is_left_out_leaves_nothing_to_compare(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launcher = launches(1.0)
    model_file("net.onnx")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    result = pytester.runpytest(
        *QUICK, "--ort-models=net.onnx", "--ort-providers=all", "--ort-against=provider:cpu"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert launcher.opened == []
    assert "net/native/cpu/b1" in told_last(result, "gate")
    assert not document(pytester.path)["gate"]


def test_some_cases_may_be_the_baseline_already(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    model_file("net.onnx")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    arguments = (
        *QUICK,
        "--ort-models=net.onnx",
        "--ort-against=option:graph_optimization_level=basic",
    )
    result = pytester.runpytest(*arguments, "--ort-graph-opt=all,basic")
    result.assert_outcomes(passed=2)
    (entry,) = document(pytester.path)["gate"]
    assert entry["case_id"] == "net/native/cpu/b1/opt:all"
    refused = pytester.runpytest(*arguments, "--ort-graph-opt=basic")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--ort-against:*"])


def test_native_is_the_file_itself_and_none_of_its_own_variants(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    model_file("net.onnx")
    model_file("pruned.onnx")
    model_file("trained.onnx")
    pytester.makepyprojecttoml(
        """
        [tool.ortbench.models.net]
        reference = "net.onnx"
        variants.pruned = "pruned.onnx"
        variants.trained = "trained.onnx"
        """
    )
    arguments = ("net.onnx", *QUICK, "-k", "latency", "--ort-against=precision:native")
    pytester.runpytest(*arguments).assert_outcomes(passed=3)
    pairs = {
        entry["case_id"]: entry["baseline_case_id"] for entry in document(pytester.path)["gate"]
    }
    assert pairs == {
        "net/pruned/cpu/b1": "net/native/cpu/b1",
        "net/trained/cpu/b1": "net/native/cpu/b1",
    }


# Only what was asked for is paired.


def test_variants_of_the_baseline_that_nobody_asked_for_did_not_vanish(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    for name in ("fine.onnx", "old.onnx", "pruned.onnx"):
        model_file(name)
    pytester.makepyprojecttoml(
        """
        [tool.ortbench.models.net]
        reference = "old.onnx"
        variants.pruned = "pruned.onnx"
        """
    )
    arguments = ("fine.onnx", *QUICK, "-k", "latency", "--ort-against=model:old.onnx")
    result = pytester.runpytest(*arguments)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    assert [entry["case_id"] for entry in document(pytester.path)["gate"]] == ["fine/native/cpu/b1"]
    assert told_last(result, "gate") == ["net/pruned/cpu/b1"]


def test_a_folder_may_hold_more_files_than_were_asked_for(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    for name in ("a.onnx", "old/a.onnx", "old/b.onnx"):
        model_file(name)
    arguments = (*QUICK, "--ort-against=model:old", "-k", "latency")
    result = pytester.runpytest("a.onnx", *arguments)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    assert told_last(result, "gate") == ["old/b/native/cpu/b1"]


def test_what_a_folder_against_a_folder_lacks_was_removed(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0)
    for name in ("new/a.onnx", "old/a.onnx", "old/b.onnx"):
        model_file(name)
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    arguments = (*QUICK, "--ort-models=new", "--ort-against=model:old")
    assert pytester.runpytest(*arguments).ret == pytest.ExitCode.TESTS_FAILED
    removed = [entry["case_id"] for entry in document(pytester.path)["gate"] if entry["removed"]]
    assert removed == ["old/b/native/cpu/b1"]


@pytest.mark.needs("git")
def test_a_revision_may_hold_more_than_the_file_that_was_named(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launches(1.0, baseline="ortbench-gate-")
    for name in ("nets/a.onnx", "nets/b.onnx"):
        model_file(name)
    committed(pytester.path, "nets")
    (pytester.path / "nets/b.onnx").unlink()
    arguments = (*QUICK, "--ort-against=git:HEAD", "-k", "latency")
    result = pytester.runpytest("nets/a.onnx", *arguments)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.usefixtures("drawn_numbers")
def test_a_stored_model_that_is_there_and_was_not_named_is_not_missed(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    for name in ("a.onnx", "b.onnx"):
        model_file(name)
    arguments = (*QUICK, "-k", "latency")
    pytester.runpytest("a.onnx", "b.onnx", *arguments).assert_outcomes(passed=2)
    again = pytester.runpytest("a.onnx", *arguments, "--ort-baseline=run.json")
    again.assert_outcomes(passed=1)
    assert again.ret == pytest.ExitCode.OK
    assert told_last(again, "gate") == ["b/native/cpu/b1"]


# Answers of the two sides.


@pytest.mark.usefixtures("models")
def test_other_answers_fail_the_case_as_less_accurate(
    pytester: pytest.Pytester,
    launches: Callable[..., FakeLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = OutputAccuracy(name="y", kind="float", finite=True, sqnr_db=-39.9, compared=80)
    launcher = launches(1.0)
    launcher.difference_of = lambda *_: Accuracy(samples=8, outputs=(output,))
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    arguments = (*QUICK, "--ort-against=model:old.onnx")
    result = pytester.runpytest(*arguments, "--junitxml=j.xml")
    result.assert_outcomes(passed=1, failed=1)
    (entry,) = document(pytester.path)["gate"]
    assert (entry["verdict"], entry["latency"]) == ("less accurate", "same")
    assert held_against(entry) == ["answers"]
    assert entry["answers"]["compared"]["outputs"][0]["sqnr_db"] == -39.9
    assert "-39.9 dB" in entry["failures"][0]
    assert any(entry["failures"][0] in line for line in result.outlines)
    assert properties(pytester.path / "j.xml")["gate_verdict"] == "less accurate"
    assert "**answers differ**" in summary.read_text()
    allowed = pytester.runpytest(*arguments, "--ort-gate=sides_sqnr >= -40 dB")
    allowed.assert_outcomes(passed=2)


def test_a_marker_may_set_the_floor_of_the_answers(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    output = OutputAccuracy(name="y", kind="float", finite=True, sqnr_db=45.0, compared=80)
    launches(1.0).difference_of = lambda *_: Accuracy(samples=8, outputs=(output,))
    for name in ("new.onnx", "old.onnx"):
        model_file(name)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="new.onnx", gate=["sides_sqnr >= 40 dB"])
        def test_latency(ortbench):
            assert ortbench.latency().min > 0
        """
    )
    pytester.runpytest(*QUICK, "--ort-against=model:old.onnx").assert_outcomes(passed=1)


def test_identical_files_are_the_same_without_a_launch(
    pytester: pytest.Pytester, model_file: ModelFile, launches: Callable[..., FakeLauncher]
) -> None:
    launcher = launches(1.5, spares=True)
    for name in ("new.onnx", "old.onnx"):
        model_file(name)
    arguments = ("new.onnx", *QUICK, "-k", "latency", "--ort-against=model:old.onnx")
    result = pytester.runpytest(*arguments, "--junitxml=j.xml")
    result.assert_outcomes(passed=1)
    assert launcher.opened == []
    (entry,) = document(pytester.path)["gate"]
    assert (entry["verdict"], entry["identical"], entry["launches"]) == ("same", True, [])
    assert properties(pytester.path / "j.xml")["gate_identical"] == "true"
    limited = pytester.runpytest(*arguments, "--ort-gate=latency:<=1ns")
    limited.assert_outcomes(failed=1)
    pytester.runpytest(*arguments, "--ort-gate-remeasure").assert_outcomes(failed=1)
    assert launcher.opened


@pytest.mark.usefixtures("models")
def test_a_floor_for_the_answers_of_two_sides_needs_two_sides(pytester: pytest.Pytester) -> None:
    rule = "sides_sqnr >= 40 dB"
    result = pytester.runpytest(*QUICK, "--ort-baseline=latest", f"--ort-gate={rule}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ort-gate:*sides_sqnr*"])
    limited = pytester.runpytest(*QUICK, f"--ort-limits={rule}")
    assert limited.ret == pytest.ExitCode.USAGE_ERROR
    limited.stderr.fnmatch_lines(["*--ort-gate='sides_sqnr:>=40 dB'*"])
