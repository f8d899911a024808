"""Labelled data reaches the worker, and the pass over it costs nothing of the case."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out, due
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.task.run.scoring import reference_scores
from pytest_ortbench.schema.model_questions import DescribeModel
from tests.launch.cases import case_of, save
from tests.results_factory import make_result

ELSEWHERE = Runtime(label="elsewhere", shares_files=False)

#: The largest entry stands at 0, 1, 2, 3; the last label is wrong.
X = np.eye(4, dtype=np.float32)
LABELS = np.int64([0, 1, 2, 0])


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Three times what is fed, and four samples of which three are right."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32) * 3, "w")
    path = tmp_path / "m.onnx"
    save(path, [node], weights=[weight])
    np.savez(tmp_path / "data.npz", x=X, labels=LABELS)
    return replace(case_of(path), dataset=Dataset(path=str(tmp_path / "data.npz")))


def scored(case: Case, launcher: ProcessLauncher) -> CaseResult:
    return carry_out("task", replace(make_result(), case=case), Means(launcher=launcher))


def test_the_reference_is_scored_once_for_all_cases(case: Case, launcher: ProcessLauncher) -> None:
    assert case.dataset is not None
    first = reference_scores(case, case.dataset, launcher)
    stamp = first.stat().st_mtime_ns
    assert reference_scores(case, case.dataset, launcher) == first
    result = scored(case, launcher)
    assert result.task is not None
    assert (result.task.samples, result.task.score_sum, result.task.reference_sum) == (4, 3.0, 3.0)
    assert first.stat().st_mtime_ns == stamp
    assert due(result, ["task"]) == []
    launcher.close()
    assert not first.exists()


def test_a_changed_file_is_scored_again(case: Case, launcher: ProcessLauncher) -> None:
    assert case.dataset is not None
    before = reference_scores(case, case.dataset, launcher)
    np.savez(case.dataset.path, x=X, labels=np.int64([0, 0, 0, 0, 0])[:4])
    assert reference_scores(case, case.dataset, launcher) != before
    result = scored(case, launcher)
    assert result.task is not None
    assert (result.task.score_sum, result.task.reference_sum) == (1.0, 1.0)


def test_arrays_travel_to_a_runtime_that_does_not_see_them(
    case: Case, launcher: ProcessLauncher
) -> None:
    launcher._current_refers = False  # as where pytest's interpreter has no ONNX Runtime
    result = scored(replace(case, runtime=ELSEWHERE), launcher)
    assert result.task is not None
    assert result.task.reason == ""
    assert (result.task.score_sum, result.task.reference_sum) == (3.0, 3.0)


def test_an_entry_point_does_not_and_says_so(
    case: Case, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    (tmp_path / "data.py").write_text("def give(batch): ...\n")
    dataset = Dataset(path=str(tmp_path / "data.py"), function="give")
    result = scored(replace(case, runtime=ELSEWHERE, dataset=dataset), launcher)
    assert result.task is not None
    assert "'elsewhere'" in result.task.reason
    assert "data.py:give" in result.task.reason
    assert ".npz" in result.task.reason


def test_a_crash_in_the_users_code_is_a_reason(
    case: Case, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    (tmp_path / "data.py").write_text("import os\ndef give(batch):\n    os._exit(3)\n")
    dataset = Dataset(path=str(tmp_path / "data.py"), function="give")
    result = scored(replace(case, dataset=dataset), launcher)
    assert result.status == "measured"
    assert result.task is not None
    assert result.task.reason.startswith("crash: ")


def test_without_a_reference_the_metric_of_the_case_stands(
    case: Case, launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> Path:
        raise WorkerError(Failure(kind="error", phase="task", message="no fp32 here"))

    monkeypatch.setattr(launcher, "written_by_reference", absent)
    result = scored(case, launcher)
    assert result.task is not None
    assert (result.task.score_sum, result.task.reference_sum) == (3.0, None)
    assert result.task.reference_reason == "no fp32 here"


def test_a_model_of_onnx_runtimes_own_format_travels_too(
    case: Case, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(case.model.path, options, providers=["CPUExecutionProvider"])
    question = DescribeModel(path=str(tmp_path / "m.ort"))
    told = launcher.ask(question, deadline=time.monotonic() + 600)
    assert [(info.name, info.type) for info in told.inputs] == [("x", "tensor(float)")]
    assert [info.name for info in told.outputs] == ["y"]
    path = str(tmp_path / "m.ort")
    ort = replace(
        case,
        model=replace(case.model, path=path, digest=file_digest(Path(path))),
        variant=replace(case.variant, path=path, digest=file_digest(Path(path))),
        runtime=ELSEWHERE,
    )
    result = scored(ort, launcher)
    assert result.task is not None
    assert (result.task.reason, result.task.score_sum) == ("", 3.0)
    assert "optimised when it was saved" in result.task.reference
