from __future__ import annotations

import dataclasses
import os

import pytest

from pytest_ortbench.core.compilation import WAYS, Compilation
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.outcome import BudgetShare
from pytest_ortbench.store.folder import RunFolder
from pytest_ortbench.store.resume import plan_fingerprint, resumable, taken_over
from tests.schema.full_run import CASE, CRASHED, MEASURED, RUN

PLAN = "a1" * 16


def result(batch: int, *, wall_s: float = 1.0):
    return dataclasses.replace(MEASURED, case=dataclasses.replace(CASE, batch=batch), wall_s=wall_s)


def stored(root, day, *results, plan=PLAN, finished=False, expected=4, settled=True):
    run = dataclasses.replace(
        RUN,
        run_id=f"202603{day:02}T050600Z-lab-0000",
        started_at=f"2026-03-{day:02}T05:06:00+00:00",
        finished_at=None,
        plan=plan,
        cases=(),
        expected=expected,
    )
    folder = RunFolder.create(root, run)
    for each in results:
        folder.append(each)
    if finished:
        end = "2026-03-31T00:00:00+00:00"
        folder.finish(dataclasses.replace(run, cases=results, finished_at=end))
        if settled:
            folder.settle()
    return folder


def taken(root, plan=PLAN):
    """What is taken for a plan of six batch sizes."""
    return resumable(root, plan, [result(batch).case for batch in (1, 2, 4, 8, 16, 32)])


def batches(found) -> dict[int, float]:
    return {each.case.batch: each.wall_s for each in found.values()}


def test_the_measured_cases_of_a_killed_run_are_found_by_key(tmp_path):
    stored(tmp_path, 3, result(1), CRASHED, result(4))
    found = taken(tmp_path).results
    assert found == {result(1).case.key: result(1), result(4).case.key: result(4)}


def test_it_is_said_whose_cases_they_are(tmp_path):
    stored(tmp_path, 2, result(1), result(2))
    stored(tmp_path, 3, result(1))
    stored(tmp_path, 4, CRASHED)
    found = taken(tmp_path)
    assert found.runs == ("20260303T050600Z-lab-0000", "20260302T050600Z-lab-0000")
    assert len(found.results) == 2
    assert taken(tmp_path, "c3" * 16).runs == ()


def test_a_torn_journal_gives_what_is_whole(tmp_path):
    journal = stored(tmp_path, 3, result(1), result(4)).path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    assert batches(taken(tmp_path).results) == {1: 1.0}


def test_other_plans_do_not_count(tmp_path):
    stored(tmp_path, 3, result(1), plan="b2" * 16)
    stored(tmp_path, 4, result(1), plan="")
    assert taken(tmp_path).results == {}
    assert taken(tmp_path, "").results == {}


def test_a_run_that_ended_early_is_gone_on_with_as_well(tmp_path):
    stored(tmp_path, 3, result(1), finished=True, expected=4)
    assert batches(taken(tmp_path).results) == {1: 1.0}


def test_interrupted_runs_add_up_back_to_the_last_complete_one(tmp_path):
    stored(tmp_path, 1, result(16), expected=4)
    stored(tmp_path, 2, result(1, wall_s=9.0), finished=True, expected=1)
    stored(tmp_path, 3, result(1, wall_s=1.0), result(2), result(4, wall_s=5.0))
    stored(tmp_path, 4, result(1, wall_s=2.0))
    assert batches(taken(tmp_path).results) == {1: 2.0, 2: 1.0, 4: 5.0}


def test_a_complete_run_leaves_nothing_to_go_on_with(tmp_path):
    stored(tmp_path, 3, result(1))
    stored(tmp_path, 4, result(1), finished=True, expected=1)
    assert taken(tmp_path).results == {}


def test_a_complete_run_that_died_during_its_plots_is_taken_and_nothing_older(tmp_path):
    stored(tmp_path, 3, result(1, wall_s=7.0), result(4))
    stored(tmp_path, 4, result(1), result(2), finished=True, expected=2, settled=False)
    assert batches(taken(tmp_path).results) == {1: 1.0, 2: 1.0}


def test_a_complete_run_whose_budget_had_no_time_for_some_cases_is_gone_on_with(tmp_path):
    without = dataclasses.replace(CRASHED, case=result(4).case, budget=BudgetShare(given_s=0.0))
    stored(tmp_path, 1, result(1), finished=True, expected=1)
    stored(tmp_path, 2, result(2), without, finished=True, expected=2)
    assert batches(taken(tmp_path).results) == {2: 1.0}


def test_what_had_less_time_counts_where_there_is_a_budget_again(tmp_path):
    less = dataclasses.replace(result(1), budget=BudgetShare(given_s=5.0, workers=3, timed_s=0.75))
    stored(tmp_path, 1, less, result(2))
    cases = [result(batch).case for batch in (1, 2)]
    assert batches(resumable(tmp_path, PLAN, cases).results) == {2: 1.0}
    found = resumable(tmp_path, PLAN, cases, with_less=True)
    assert batches(found.results) == {1: 1.0, 2: 1.0}


def test_unreadable_runs_are_passed_over(tmp_path):
    stored(tmp_path, 3, result(1))
    broken = stored(tmp_path, 4, result(2), finished=True, expected=4).path / "run.json"
    broken.write_text(broken.read_text().replace('"wall_s": 1.0', '"wall_s": "long"'))
    assert batches(taken(tmp_path).results) == {1: 1.0}
    assert taken(tmp_path / "missing").results == {}


def test_a_case_that_is_not_planned_is_not_taken(tmp_path):
    stored(tmp_path, 3, result(1), result(3))
    assert batches(taken(tmp_path).results) == {1: 1.0}


# The case of a stored result is never more than a description.

MOVED = dataclasses.replace(
    CASE,
    model=dataclasses.replace(CASE.model, path="/now/m.onnx"),
    variant=dataclasses.replace(CASE.variant, path="/now/v.onnx"),
)


def test_the_planned_case_takes_the_place_of_the_stored_one():
    found = taken_over(MEASURED, MOVED)
    assert found == dataclasses.replace(MEASURED, case=MOVED)


def test_of_a_made_variant_what_was_observed_stays():
    unmade = dataclasses.replace(CASE.variant, path="", digest="", size_bytes=0, recipe={})
    planned = dataclasses.replace(MOVED, variant=unmade)
    found = taken_over(MEASURED, planned)
    assert found.case == dataclasses.replace(
        planned, variant=dataclasses.replace(CASE.variant, path="")
    )
    other = dataclasses.replace(planned, variant=dataclasses.replace(unmade, recipe={"tool": "x"}))
    assert taken_over(MEASURED, other) is None


@pytest.mark.parametrize(
    "planted",
    [
        {"runtime": dataclasses.replace(CASE.runtime, command=("/bin/sh", "-c", "true"))},
        {"runtime": dataclasses.replace(CASE.runtime, environment={"LD_PRELOAD": "/tmp/x.so"})},
        {"runtime": dataclasses.replace(CASE.runtime, plugins={"XProvider": "/tmp/x.so"})},
        {"session": dataclasses.replace(CASE.session, custom_ops=("/tmp/x.so",))},
        {"session": dataclasses.replace(CASE.session, entries={"ep.context_file_path": "/tmp/x"})},
        {"provider": dataclasses.replace(CASE.provider, library="/tmp/x.so")},
        {"provider": dataclasses.replace(CASE.provider, options={"backend_path": "/tmp/x.so"})},
        {"stages": "/tmp/x.py"},
        {"dataset": Dataset(path="/tmp/x.py", function="f")},
        {"sampling": dataclasses.replace(CASE.sampling, load_logs="/tmp/x")},
        {"sampling": dataclasses.replace(CASE.sampling, text="/tmp/x.txt")},
        {"inputs": (dataclasses.replace(CASE.inputs[0], path="/tmp/x.npz"),)},
        {"variant": dataclasses.replace(CASE.variant, digest="00" * 32)},
    ],
    ids=lambda change: "/".join(change),
)
def test_a_result_of_a_case_with_more_in_it_is_not_taken(planted):
    stored_case = dataclasses.replace(CASE, **planted)
    assert taken_over(dataclasses.replace(MEASURED, case=stored_case), CASE) is None


# The fingerprint of a plan.

OTHER = CRASHED.case


def test_order_and_places_of_files_do_not_matter():
    moved = dataclasses.replace(
        CASE,
        model=dataclasses.replace(CASE.model, path="/elsewhere/m.onnx"),
        variant=dataclasses.replace(CASE.variant, path="/elsewhere/v.onnx"),
    )
    assert plan_fingerprint([CASE, OTHER]) == plan_fingerprint([OTHER, moved])
    assert len(plan_fingerprint([])) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 2},
        {"seed": 1},
        {"dims": {"seq": 64}},
        {"variant": dataclasses.replace(CASE.variant, digest="00" * 32)},
        {"model": dataclasses.replace(CASE.model, digest="00" * 32)},
        {"sampling": dataclasses.replace(CASE.sampling, time_s=1.0)},
        {"provider": dataclasses.replace(CASE.provider, options={})},
        {"session": dataclasses.replace(CASE.session, intra_op_num_threads=None)},
        {"inputs": ()},
        {"io": "end-to-end"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_the_numbers_changes_the_plan(change):
    assert plan_fingerprint([dataclasses.replace(CASE, **change)]) != plan_fingerprint([CASE])


def reading(path: str, field: str):
    """The case with a file that it reads."""
    if field == "inputs":
        spec = dataclasses.replace(CASE.inputs[0], path=path)
        return dataclasses.replace(CASE, inputs=(spec,))
    if field == "custom_ops":
        session = dataclasses.replace(CASE.session, custom_ops=(path,))
        return dataclasses.replace(CASE, session=session)
    if field == "library":
        provider = dataclasses.replace(CASE.provider, library=path)
        return dataclasses.replace(CASE, provider=provider)
    if field == "dataset":
        return dataclasses.replace(CASE, dataset=Dataset(path=path))
    return dataclasses.replace(CASE, stages=path)


@pytest.mark.parametrize("field", ["inputs", "custom_ops", "library", "dataset", "stages"])
def test_a_file_with_another_content_is_another_plan(field, tmp_path):
    """Else results of other inputs are taken for these."""
    file = tmp_path / "photos.npz"
    case = reading(str(file), field)
    file.write_bytes(b"one")
    before = plan_fingerprint([case])
    file.write_bytes(b"two")
    assert plan_fingerprint([case]) != before
    # Written again with the same content, as by a plugin that offers inputs, it is the same plan.
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    assert plan_fingerprint([case]) == before
    file.unlink()
    assert plan_fingerprint([case]) != before


def test_calibration_data_belongs_to_the_plan(tmp_path):
    file = tmp_path / "0.npz"
    file.write_bytes(b"one")
    before = plan_fingerprint([CASE], files=[str(file)])
    file.write_bytes(b"two")
    assert plan_fingerprint([CASE], files=[str(file)]) != before


def test_facts_of_the_environment_belong_to_the_plan():
    plans = {
        plan_fingerprint([CASE]),
        plan_fingerprint([CASE], {"onnxruntime": "1.31.0"}),
        plan_fingerprint([CASE], {"onnxruntime": "1.32.0"}),
        plan_fingerprint([CASE, CASE]),
    }
    assert len(plans) == 4


def test_a_file_name_that_is_no_text_has_a_fingerprint_too():
    spec = dataclasses.replace(CASE.inputs[0], path="/data/\udce9.npz")
    odd = dataclasses.replace(CASE, inputs=(spec,))
    assert plan_fingerprint([odd]) == plan_fingerprint([odd]) != plan_fingerprint([CASE])


def compiled(held: str):
    """A measured case whose provider compiled the file with the given digest."""
    case = dataclasses.replace(CASE, compiled=True, knobs={"compiled": "on"})
    made = Compilation(
        file="model.onnx",
        digest="c0" * 32,
        size_bytes=9,
        way=WAYS[0],
        compile_ns=5,
        compiled_nodes=1,
        other_nodes=0,
        source=CASE.variant.path,
        source_digest=held,
    )
    variant = dataclasses.replace(
        case.variant, path="/cache/model.onnx", digest=made.digest, size_bytes=9, compilation=made
    )
    ran = dataclasses.replace(case, variant=variant)
    return case, dataclasses.replace(MEASURED, case=ran)


def test_a_compiled_case_is_taken_over_with_what_was_compiled():
    planned, result = compiled(CASE.variant.digest)
    assert planned.variant.digest
    taken = taken_over(result, planned)
    assert taken is not None
    assert taken.case.variant.compilation == result.case.variant.compilation
    assert taken.case.variant.path == planned.variant.path


def test_one_of_another_file_is_not():
    planned, result = compiled("0f" * 32)
    assert taken_over(result, planned) is None
    assert taken_over(dataclasses.replace(MEASURED, case=CASE), planned) is None
