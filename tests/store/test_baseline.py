"""Which stored run a baseline is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import Acceptance, GateFinding, GateResult
from pytest_ortbench.core.run import SCHEMA_VERSION
from pytest_ortbench.store.baseline import Found, find_baseline
from tests.refused import refused
from tests.store.test_documents import stored

VERDICT = GateResult(case_id="m/native/cpu/b1", runtime="current", baseline="b", verdict="same")
FAILED = replace(VERDICT, verdict="slower", failures=("slower than b",))


def found(spec, root):
    return find_baseline(spec, root, base=root.parent, place="--ort-baseline")


@pytest.mark.parametrize("spec", ["latest", "runs"])
def test_the_newest_finished_run_that_failed_no_gate(spec, tmp_path):
    root = tmp_path / "runs"
    first = stored(root, 1)
    good = stored(root, 2, gate=(VERDICT,))
    bad = [stored(root, day, gate=(VERDICT, FAILED)) for day in (3, 4)]
    stored(root, 5, finished=False)
    baseline = found(spec, root)
    assert baseline.paths == (root / good.run_id / "run.json", root / first.run_id / "run.json")
    assert baseline.passed_over == (bad[1].run_id, bad[0].run_id)
    # Who names a run means it.
    assert found(bad[0].run_id, root).paths == (root / bad[0].run_id / "run.json",)


def test_nothing_was_recorded_yet(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".gitkeep").touch()
    for spec in ("latest", "later/", "empty", "empty/"):
        assert found(spec, tmp_path / "runs") == Found()


def test_what_got_worse_does_not_become_the_baseline_for_lack_of_another(tmp_path):
    bad = stored(tmp_path / "runs", 1, gate=(FAILED,))
    with pytest.raises(UsageError) as told:
        found("latest", tmp_path / "runs")
    assert bad.run_id in told.value.message


def test_a_run_whose_regression_was_accepted_is_a_baseline(tmp_path):
    root = tmp_path / "runs"
    finding = GateFinding(
        about="model_size",
        text="larger",
        acceptance=Acceptance(state="accepted", case="a", reason="more classes"),
    )
    accepted = replace(VERDICT, findings=(finding,))
    stored(root, 1, gate=(VERDICT,))
    newest = stored(root, 2, gate=(accepted,))
    assert found("latest", root).paths[0].parent.name == newest.run_id


def test_limits_that_a_first_run_exceeds_hold_nobody_up(tmp_path):
    alone = replace(FAILED, verdict="incomparable", has_baseline=False)
    first = stored(tmp_path / "runs", 1, gate=(alone,))
    assert found("latest", tmp_path / "runs").paths == (
        tmp_path / "runs" / first.run_id / "run.json",
    )


def test_a_folder_that_holds_other_things_than_runs_is_no_folder_of_runs(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_net.py").touch()
    with refused(UsageError, "test_net.py"):
        found("tests", tmp_path / "runs")


def test_a_file_that_may_be_a_run_is_named_where_a_folder_holds_no_run(tmp_path):
    folder = tmp_path / "baseline"
    folder.mkdir()
    (folder / "main.json").touch()
    with pytest.raises(UsageError) as caught:
        found("baseline", tmp_path / "runs")
    assert str(folder / "main.json") in caught.value.hint


def test_the_folder_that_may_not_be_entered_is_told(tmp_path, monkeypatch):
    def closed(path, *_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_dir", closed)
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    with pytest.raises(UsageError) as caught:
        found("runs/main", tmp_path / "runs")
    assert repr(str(tmp_path)) in caught.value.message


def test_a_run_that_was_killed_is_found_by_its_folder_as_by_its_id(tmp_path):
    root = tmp_path / "runs"
    killed = stored(root, 1, finished=False)
    journal = (root / killed.run_id / "journal.jsonl",)
    assert found(killed.run_id, root).paths == journal
    assert found(f"runs/{killed.run_id}", root).paths == journal


def test_a_newest_run_that_can_not_be_read_is_neither_a_first_run_nor_passed_over(tmp_path):
    # G7, by "latest"
    root = tmp_path / "runs"
    first = stored(root, 1)
    newest = stored(root, 2)
    path = root / newest.run_id / "run.json"
    whole = path.read_bytes()
    for content in (
        whole[:300],
        whole.replace(b'"schema_version": %d' % SCHEMA_VERSION, b'"schema_version": 99'),
    ):
        path.write_bytes(content)
        with refused(UsageError, "run.json") as told:
            found("latest", root)
        assert told.value.hint.endswith(f"--ort-baseline={root / first.run_id}")
        assert path.read_bytes() == content
    path.write_bytes(whole)
    older = root / stored(root, 3).run_id / "run.json"
    path.write_bytes(b"{")
    assert found("latest", root).paths[0] == older
