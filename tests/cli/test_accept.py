"""``ortbench accept``."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from pytest_ortbench.core.acceptance import FILE_NAME, AcceptedEntry
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.gate import GateFinding, GateResult
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.gate.numbers.stored import gate_runs
from pytest_ortbench.planning.project_root import root_directory
from pytest_ortbench.store import accepted
from pytest_ortbench.store.accepted import read_accepted
from tests.results_factory import make_accuracy, make_case, make_result, make_run

CASE = "net/native/cpu/b1"
REASON = "--reason=more classes"
BEFORE = make_run(
    [make_result(case=make_case(model=name)) for name in ("net", "net2", "old")],
    run_id="20260102T030405Z-a-0001",
)


@pytest.fixture(autouse=True)
def day(monkeypatch):
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 11, 28))


def grown(**options):
    """A later run whose models grew by a fifth, and that lost one."""
    case = {"variant_bytes": 16_800_000, **options}
    return dataclasses.replace(
        make_run(
            [make_result(case=make_case(model=name, **case)) for name in ("net", "net2")],
            run_id="20260103T030405Z-a-0002",
        ),
        started_at="2026-01-03T03:04:05Z",
    )


@pytest.fixture
def failed(store):
    """The run whose gate failed, as pytest leaves it."""
    run = grown()
    run = dataclasses.replace(run, gate=gate_runs(BEFORE, run, ()))
    store(BEFORE)
    store(run)
    return run


def entries() -> list[AcceptedEntry]:
    return [dataclasses.replace(entry, line=0) for entry in read_accepted(Path(FILE_NAME))]


@pytest.mark.usefixtures("failed")
def test_a_number_is_accepted_up_to_what_was_seen_and_a_little_more(tool):
    ended = tool("accept", CASE, REASON, "--until=2027-01-31")
    assert ended.code == 0
    assert entries() == [
        AcceptedEntry(
            case=CASE,
            metric="model_size",
            reason="more classes",
            until=date(2027, 1, 31),
            worse_by=0.22,
        )
    ]
    assert "22 %" in ended.out
    assert "more classes" in ended.out
    assert FILE_NAME in ended.out
    assert ended.err == ""


@pytest.mark.usefixtures("failed")
def test_the_gate_passes_what_is_accepted_and_fails_what_is_worse_or_over(tool, store, monkeypatch):
    gate = ("gate", BEFORE.run_id, "latest")
    assert tool(*gate).code == 1
    for case in ("net", "net2", "old"):
        assert tool("accept", case, REASON, "--until=2026-11-28").code == 0
    ended = tool(*gate)
    assert ended.code == 0
    assert "gate: 3 accepted" in ended.out
    assert ended.out.count("more classes") == 3
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 11, 29))
    ended = tool(*gate)
    assert ended.code == 1
    assert "2026-11-28" in ended.out
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 11, 28))
    store(dataclasses.replace(grown(variant_bytes=25_000_000), run_id="20260104T030405Z-a-0003"))
    ended = tool("gate", BEFORE.run_id, "20260104T030405Z-a-0003")
    assert ended.code == 1
    assert "22 %" in ended.out


@pytest.mark.usefixtures("failed")
def test_an_acceptance_is_read_from_the_project_or_an_option_and_from_no_document(tool, store):
    everything = (REASON, "--file=mine.toml")
    for case in ("net", "net2", "old"):
        assert tool("accept", case, *everything).code == 0
    gate = ("gate", BEFORE.run_id, "latest")
    assert tool(*gate).code == 1
    assert tool(*gate, "--accepted=mine.toml").code == 0
    ended = tool(*gate, "--accepted=none.toml")
    assert ended.code == 2
    assert "none.toml" in ended.err


@pytest.mark.usefixtures("failed")
def test_a_pattern_takes_the_worst_of_its_cases(tool, failed, store):
    case = make_case(model="net2", variant_bytes=21_000_000)
    run = dataclasses.replace(failed, cases=(failed.cases[0], make_result(case=case)))
    store(dataclasses.replace(run, gate=gate_runs(BEFORE, run, ())))
    assert tool("accept", "net*", REASON).code == 0
    (entry,) = entries()
    assert (entry.case, entry.worse_by) == ("net*", 0.52)


@pytest.mark.usefixtures("failed")
def test_a_model_of_another_run_is_looked_for_there(tool):
    error = tool("accept", "quite_another", REASON).error
    assert ("--run=" in error.hint, "*" in error.hint) == (True, False)


@pytest.mark.usefixtures("failed")
def test_a_removed_model_is_accepted_by_its_name(tool):
    assert tool("accept", "old", REASON).code == 0
    assert entries() == [AcceptedEntry(case="old", metric="removed", reason="more classes")]


def test_answers_are_accepted_for_one_model_file(tool, store):
    run = grown(variant_bytes=14_000_000)
    wrong = make_result(
        case=run.cases[0].case,
        accuracy=make_accuracy(sqnr_db=9.0),
        flags=[Flag(name="INACCURATE", detail="SQNR 9.0 dB")],
    )
    run = dataclasses.replace(run, cases=(wrong, run.cases[1]))
    store(dataclasses.replace(run, gate=gate_runs(BEFORE, run, ())))
    assert tool("accept", CASE, REASON, "--metric=accuracy").code == 0
    (entry,) = entries()
    assert entry.metric == "accuracy"
    assert entry.worse_by is None
    assert wrong.case.model.digest.startswith(entry.model)
    assert len(entry.model) == 16


@pytest.mark.usefixtures("failed")
def test_accepting_again_replaces(tool):
    tool("accept", CASE, REASON)
    ended = tool("accept", CASE, "--reason=other words", "--metric=model_size", "--worse-by=50%")
    assert ended.code == 0
    assert "again" in ended.out
    assert entries() == [
        AcceptedEntry(case=CASE, metric="model_size", reason="other words", worse_by=0.5)
    ]


def test_without_any_run_it_is_written_and_said_that_it_has_no_bound(tool):
    ended = tool("accept", "net", REASON)
    assert ended.code == 0
    assert "--worse-by" in ended.err
    assert entries() == [AcceptedEntry(case="net", reason="more classes")]
    ended = tool("accept", "net", REASON, "--metric=latency", "--worse-by=8%")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "ortbench accept CASE --reason=TEXT"),
        (("", REASON), "does not name a case"),
        ((CASE,), "needs a reason"),
        ((CASE, "--reason="), "needs a reason"),
        ((CASE, "--reason= \t"), "needs a reason"),
        (("nat", REASON), "Did you mean 'net'?"),
        (("net/native/cpu/b", REASON), "Did you mean 'net/native/cpu/b1'?"),
        ((CASE, REASON, "--metric=modelsize"), "Did you mean 'model_size'?"),
        ((CASE, REASON, "--metric=remove"), "Did you mean 'removed'?"),
        ((CASE, REASON, "--metric="), "not a metric"),
        ((CASE, REASON, "--until=2026-11-27"), "today is 2026-11-28"),
        ((CASE, REASON, "--until=2026-02-30"), "not a day of the calendar"),
        ((CASE, REASON, "--until=31.01.2027"), "2027-01-31"),
        ((CASE, REASON, "--worse-by=8"), "8%"),
        ((CASE, REASON, "--run=none"), "contains no run 'none'"),
        ((CASE, REASON, "--run=20260102T030405Z-a-0001"), "--ort-against"),
    ],
)
@pytest.mark.usefixtures("failed")
def test_wrong_calls_are_one_line_and_write_nothing(tool, arguments, told):
    ended = tool("accept", *arguments)
    assert ended.code == 2
    assert told in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not Path(FILE_NAME).exists()


def test_a_run_that_was_not_judged_is_told_from_one_in_which_nothing_is_worse(tool, store):
    run = grown()
    for gate in ((), gate_runs(run, run, ())):
        spec = store(dataclasses.replace(run, gate=gate))
        ended = tool("accept", CASE, REASON, f"--run={spec}")
        assert ended.code == 2
        assert ("--ort-against" in ended.error.hint) is not bool(gate)


@pytest.mark.usefixtures("failed")
def test_a_folder_of_that_name_is_a_wrong_call(tool):
    Path(FILE_NAME).mkdir()
    ended = tool("accept", CASE, REASON)
    assert ended.code == 2
    assert FILE_NAME in ended.err


def test_the_list_says_what_holds_and_what_is_over(tool, monkeypatch):
    assert len(tool("accept", "--list").out.splitlines()) == 1
    tool("accept", "net", REASON, "--metric=latency", "--worse-by=8%", "--until=2026-11-30")
    tool("accept", "old", REASON, "--metric=removed", "--until=2026-12-01")
    monkeypatch.setattr(accepted, "today", lambda: date(2026, 12, 1))
    rows = tool("accept", "--list").out.splitlines()[2:]
    assert ["expired" in row for row in rows] == [True, False]
    assert "8 % worse" in rows[0]


def test_the_file_lies_in_the_root_directory_of_pytest(tool, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    below = tmp_path / "tests" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert tool("accept", "net", REASON).code == 0
    assert (tmp_path / FILE_NAME).is_file()


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"pytest.ini": ""}, "."),
        ({"a/pytest.ini": "", "pytest.ini": ""}, "a"),
        ({"setup.cfg": "[tool:pytest]\n"}, "."),
        ({"a/setup.cfg": "[metadata]\n", "tox.ini": "[pytest]\n"}, "."),
        ({"a/pyproject.toml": "[project]\n", "setup.py": ""}, "a"),
        ({"a/pyproject.toml": "[project]\n", "pytest.ini": ""}, "."),
        ({"setup.py": ""}, "."),
        ({}, "a/b"),
    ],
)
def test_the_root_directory_is_the_one_that_pytest_finds(
    pytester: pytest.Pytester, monkeypatch, files: dict[str, str], root: str
):
    below = pytester.path / "a" / "b"
    below.mkdir(parents=True)
    for name, text in files.items():
        (pytester.path / name).write_text(text)
    monkeypatch.chdir(below)
    assert root_directory(below) == (pytester.path / root).resolve()
    assert pytester.parseconfig().rootpath == (pytester.path / root).resolve()


def test_a_finding_without_a_number_beside_one_with_a_number_are_two_entries(tool, failed, store):
    verdict = failed.gate[0].with_findings([GateFinding(about="answers", text="other answers")])
    store(dataclasses.replace(failed, gate=(verdict,)))
    assert tool("accept", CASE, REASON).code == 0
    assert [entry.metric for entry in entries()] == ["model_size", "answers"]
    assert [bool(entry.model) for entry in entries()] == [False, True]


# The model file that lies here now.


@pytest.fixture
def measured(store, tmp_path):
    """A run whose gate failed on ``net.onnx``, which lies here as it was measured."""
    file = tmp_path / "net.onnx"
    file.write_bytes(b"the branch that was measured")
    run = grown()
    model = dataclasses.replace(
        run.cases[0].case.model,
        source="file",
        path="/ci/net.onnx",
        place="net.onnx",
        digest=file_digest(file),
        external_files=(),
    )
    case = dataclasses.replace(run.cases[0].case, model=model)
    run = dataclasses.replace(run, cases=(dataclasses.replace(run.cases[0], case=case),))
    finding = GateFinding(about="answers", text="they differ")
    judged = GateResult.undecided(case, baseline="git:main").with_findings([finding])
    run = dataclasses.replace(run, gate=(dataclasses.replace(judged, model_digest=model.digest),))
    store(run)
    return run


def test_the_file_that_was_measured_is_accepted(tool, measured):
    ended = tool("accept", CASE, REASON)
    assert (ended.code, ended.err) == (0, "")
    assert entries()[0].model == measured.gate[0].model_digest[:16]


def test_the_newest_run_of_another_file_accepts_nothing(tool, measured, tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"another branch")
    now = file_digest(tmp_path / "net.onnx")[:16]
    ended = tool("accept", CASE, REASON)
    assert ended.code == 2
    assert not Path(FILE_NAME).exists()
    for part in (measured.run_id, "net.onnx", measured.gate[0].model_digest[:16], now, "--run="):
        assert part in ended.err


def test_a_named_run_of_another_file_is_accepted_with_a_note(tool, measured, tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"another branch")
    ended = tool("accept", CASE, REASON, f"--run={measured.run_id}")
    assert ended.code == 0
    assert file_digest(tmp_path / "net.onnx")[:16] in ended.err
    assert entries()[0].model == measured.gate[0].model_digest[:16]


def test_a_file_that_does_not_lie_here_is_compared_with_nothing(tool, measured, tmp_path):
    (tmp_path / "net.onnx").unlink()
    ended = tool("accept", CASE, REASON)
    assert (ended.code, ended.err) == (0, "")
