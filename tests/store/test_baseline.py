"""Which stored run a baseline is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.store.baseline import find_baseline
from tests.store.test_documents import stored

VERDICT = GateResult(case_id="m/native/cpu/b1", runtime="current", baseline="b", verdict="same")
FAILED = replace(VERDICT, verdict="slower", failures=("slower than b",))


def found(spec, root):
    return find_baseline(spec, root, base=root.parent, place="--ort-baseline")


@pytest.mark.parametrize("spec", ["latest", "runs"])
def test_the_newest_finished_run_that_failed_no_gate(spec, tmp_path):
    root = tmp_path / "runs"
    stored(root, 1)
    good = stored(root, 2, gate=(VERDICT,))
    bad = [stored(root, day, gate=(VERDICT, FAILED)) for day in (3, 4)]
    stored(root, 5, finished=False)
    baseline = found(spec, root)
    assert baseline.path == root / good.run_id / "run.json"
    assert baseline.passed_over == (bad[1].run_id, bad[0].run_id)
    # Who names a run means it.
    assert found(bad[0].run_id, root).path == root / bad[0].run_id / "run.json"


def test_nothing_was_recorded_yet(tmp_path):
    for spec in ("latest", "later/"):
        assert found(spec, tmp_path / "runs").path is None
    bad = stored(tmp_path / "runs", 1, gate=(FAILED,))
    baseline = found("latest", tmp_path / "runs")
    assert (baseline.path, baseline.passed_over) == (None, (bad.run_id,))


def test_a_newest_run_that_can_not_be_read_is_neither_a_first_run_nor_passed_over(tmp_path):
    # G7, by "latest"
    root = tmp_path / "runs"
    stored(root, 1)
    newest = stored(root, 2)
    path = root / newest.run_id / "run.json"
    whole = path.read_bytes()
    for content in (whole[:300], whole.replace(b'"schema_version": 1', b'"schema_version": 99')):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"the newest run, .*run\.json, can't be read") as told:
            found("latest", root)
        assert "Move it away, or name the run" in str(told.value)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    older = root / stored(root, 3).run_id / "run.json"
    path.write_bytes(b"{")
    assert found("latest", root).path == older
