from __future__ import annotations

import dataclasses
from datetime import datetime, timezone

import pytest

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.run import Commit, Machine, Skip
from pytest_ortbench.schema.document import decode_run, encode_run
from pytest_ortbench.store.merge import merge_runs
from tests.results_factory import make_case
from tests.schema.full_run import CRASHED, MEASURED, RUN, RUNTIME

NOW = datetime(2026, 3, 9, tzinfo=timezone.utc)
FIRST = dataclasses.replace(
    RUN,
    run_id="first",
    cases=(MEASURED,),
    expected=1,
    plan="a",
    options={"ort_time": "5", "k": "a"},
    started_at="2026-03-04T05:00:00Z",
    finished_at="2026-03-04T09:00:00Z",
    skips=(Skip(what="azure", reason="takes no node"),),
)
SECOND = dataclasses.replace(
    RUN,
    run_id="second",
    cases=(CRASHED,),
    expected=3,
    plan="b",
    options={"ort_time": "5", "k": "b"},
    started_at="2026-03-04T06:00:00Z",
    finished_at="2026-03-04T07:00:00Z",
    canary=None,
    skips=(Skip(what="azure", reason="takes no node"), Skip(what="dml", reason="Windows only")),
)


def test_shards_become_one_run():
    run = merge_runs([SECOND, FIRST], now=NOW)
    assert run.cases == (MEASURED, CRASHED)
    assert run.run_id.startswith("20260309T000000Z-lab-1-")
    assert (run.started_at, run.finished_at) == ("2026-03-04T05:00:00Z", "2026-03-04T09:00:00Z")
    assert run.expected == 4, "two cases, and two of the second run that were not measured"
    assert run.options == {"ort_time": "5", "k": "a | b"}
    assert [skip.what for skip in run.skips] == ["azure", "dml"]
    assert run.canary == RUN.canary
    assert run.command == ("ortbench", "merge", "second", "first")
    assert decode_run(encode_run(run), "x") == run


def test_what_an_interrupted_run_lacks_is_not_missing_where_its_plan_was_run_again():
    cut = dataclasses.replace(FIRST, expected=10, plan="p")
    again = dataclasses.replace(SECOND, cases=(MEASURED, CRASHED), expected=10, plan="p")
    assert merge_runs([cut, again]).expected == 10
    # Of another plan, or one that is not known, nobody can tell.
    assert merge_runs([cut, dataclasses.replace(again, plan="q")]).expected == 2 + 9 + 8
    unknown = [dataclasses.replace(run, plan="") for run in (cut, again)]
    assert merge_runs(unknown).expected == 2 + 9 + 8


def test_the_newest_result_of_a_case_counts():
    newer = dataclasses.replace(MEASURED, wall_s=77.0)
    run = merge_runs([dataclasses.replace(SECOND, cases=(newer,), expected=1), FIRST])
    assert run.cases == (newer,)
    assert run.expected == 1


def verdict(text: str, *, case=MEASURED.case, baseline="old", removed=False) -> GateResult:
    return GateResult(
        case_id=case.case_id,
        runtime=case.runtime.label,
        baseline=baseline,
        verdict=text,
        removed=removed,
    )


def test_the_newest_verdict_on_a_case_against_the_same_baseline_counts():
    first = dataclasses.replace(FIRST, gate=(verdict("slower"), verdict("same", baseline="other")))
    second = dataclasses.replace(SECOND, gate=(verdict("same"),))
    merged = merge_runs([second, first])
    assert [(one.verdict, one.baseline) for one in merged.gate] == [
        ("same", "old"),
        ("same", "other"),
    ]


def test_a_case_of_another_shard_did_not_vanish():
    gone = verdict("incomparable", removed=True)
    elsewhere = verdict("incomparable", case=make_case(model="x"), removed=True)
    first = dataclasses.replace(FIRST, gate=(verdict("same"),))
    second = dataclasses.replace(SECOND, gate=(gone, elsewhere))
    assert merge_runs([first, second]).gate == (verdict("same"), elsewhere)


def test_one_unfinished_run_leaves_the_whole_unfinished():
    assert merge_runs([dataclasses.replace(FIRST, finished_at=None), SECOND]).finished_at is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"machine": Machine(host="x", stable={"cpu": "other", "cores": "2"})}, "machine.cpu"),
        ({"machine": Machine(host="x", stable={"cpu": "AMD EPYC 9B14"})}, "machine.cores"),
        ({"commit": Commit(revision="d1" * 20)}, "commit"),
        ({"commit": None}, "commit"),
        (
            {"runtimes": {"onnxruntime-1.30.0": dataclasses.replace(RUNTIME, version="1.31.0")}},
            "runtimes.onnxruntime-1.30.0",
        ),
    ],
)
def test_runs_that_differ_are_not_merged(change, field):
    with pytest.raises(DocumentError, match=f"first .*second .* {field}: "):
        merge_runs([dataclasses.replace(FIRST, **change), SECOND])


def test_volatile_facts_and_process_ids_may_differ():
    other = dataclasses.replace(
        FIRST,
        machine=dataclasses.replace(RUN.machine, volatile={"load": "3"}),
        runtimes={"onnxruntime-1.30.0": dataclasses.replace(RUNTIME, pid=1)},
    )
    assert len(merge_runs([other, SECOND]).cases) == 2


def test_nothing_can_not_be_merged():
    with pytest.raises(DocumentError, match="no run"):
        merge_runs([])


def test_another_host_is_another_machine_unless_said_otherwise():
    elsewhere = dataclasses.replace(
        FIRST, machine=dataclasses.replace(RUN.machine, host="rented-7")
    )
    with pytest.raises(DocumentError, match=r"machine.host: 'rented-7' and 'lab-1'.*--any-host"):
        merge_runs([elsewhere, SECOND])
    assert len(merge_runs([elsewhere, SECOND], any_host=True).cases) == 2


def test_any_host_does_not_join_machines_that_differ():
    other = Machine(host="x", stable={"cpu": "other", "cores": "2"})
    with pytest.raises(DocumentError, match=r"machine\.cpu"):
        merge_runs([dataclasses.replace(FIRST, machine=other), SECOND], any_host=True)


def test_the_commits_are_named():
    other = dataclasses.replace(FIRST, commit=Commit(revision="d1" * 20, dirty=True))
    with pytest.raises(DocumentError, match="commit: 'd1d1d1d1d1d1 "):
        merge_runs([other, SECOND])


def test_runtimes_with_labels_of_their_own_are_merged_and_told_apart():
    case = dataclasses.replace(
        MEASURED.case, runtime=dataclasses.replace(MEASURED.case.runtime, label="openvino")
    )
    other = dataclasses.replace(
        FIRST,
        runtimes={"openvino": dataclasses.replace(RUNTIME, version="1.24.1")},
        cases=(dataclasses.replace(MEASURED, case=case),),
    )
    merged = merge_runs([other, dataclasses.replace(SECOND, cases=(MEASURED,))])
    assert len(merged.cases) == 2
    assert {label: info.version for label, info in merged.runtimes.items()} == {
        "openvino": "1.24.1",
        "onnxruntime-1.30.0": RUNTIME.version,
    }


def test_one_label_does_not_stand_for_two_runtimes():
    other = {"onnxruntime-1.30.0": dataclasses.replace(RUNTIME, version="1.31.0")}
    with pytest.raises(DocumentError, match=r"runtimes\.onnxruntime-1\.30\.0: "):
        merge_runs([dataclasses.replace(FIRST, runtimes=other), SECOND])
