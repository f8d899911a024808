"""``--ort-dataset`` from the command line to the verdict, the table, the export and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from pytest_ortbench.store.documents import load
from tests.summarised import rows_of

from .conftest import QUICK as FAST

QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json")
FLOAT = TensorProto.FLOAT

#: Four samples; the largest entry stands at 0, 1, 2, 2.
X = np.float32([[9, 1, 0], [1, 8, 0], [0, 1, 7], [2, 3, 5]])
LABELS = np.int64([0, 1, 2, 1])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))


def matrix(path: Path, weights: Any) -> Path:
    """One matrix product: its weights decide what is right."""
    width, classes = weights.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["logits"], name="mm")],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["N", width])],
        [helper.make_tensor_value_info("logits", FLOAT, ["N", classes])],
        [numpy_helper.from_array(weights.astype(np.float32), "w")],
    )
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), str(path))
    return path


@pytest.fixture
def net(pytester: pytest.Pytester) -> Path:
    np.savez(pytester.path / "data.npz", x=X, labels=LABELS)
    return matrix(pytester.path / "net.onnx", np.eye(3))


def cases(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "run.json").read_text())["cases"]
    return {entry["case"]["variant"]["precision"]: entry for entry in found}


def test_three_of_four_in_document_table_and_limits(
    pytester: pytest.Pytester, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However many flags a busy machine sets, there is room for the column of the task.
    monkeypatch.setenv("COLUMNS", "1000")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models=["net.onnx"], limits=["task_metric >= 0.75"])
        def test_enough(ortbench):
            task = ortbench.task()
            assert task.metric == 0.75
            assert (task.metric.low, task.metric.samples) == (pytest.approx(0.1941, abs=1e-4), 4)
            assert task.ratio == 1
            assert ortbench.task_facts().metric == "top-1 of 'logits'"

        @pytest.mark.ortbench(models=["net.onnx"], limits=["task_metric >= 0.8"])
        def test_too_little(ortbench):
            assert ortbench.latency().p50 > 0
        """
    )
    result = pytester.runpytest(*QUICK, "--ort-dataset=data.npz")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*task_metric *0.750 *>= 0.800*"])
    assert "task 0.750" in result.stdout.str()
    (case,) = cases(pytester.path).values()
    task = case["task"]
    assert (task["samples"], task["score_sum"], task["reference_sum"]) == (4, 3.0, 3.0)
    assert task["dataset"] == "data.npz"
    assert case["case"]["dataset"] == {
        "path": str(pytester.path / "data.npz"),
        "function": "",
        "boxes": None,
    }


def test_the_suite_is_skipped_where_labels_are_too_few_to_tell(
    pytester: pytest.Pytester, net: Path
) -> None:
    command = (net.name, "-k", "test_accuracy", *QUICK, "--ort-dataset=data.npz")
    result = pytester.runpytest(*command, "--ort-precisions=fp32,int8-dynamic", "-rs")
    # The original answers as itself, which four labels need not show.
    result.assert_outcomes(passed=1, skipped=1)
    found = cases(pytester.path)
    flags = {name: {flag["name"] for flag in found[name]["flags"]} for name in found}
    assert [name for name in flags if "UNJUDGED" in flags[name]] == ["int8-dynamic"]
    skipped = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert skipped
    assert all("labelled data" in line for line in skipped)


def test_the_suite_passes_with_enough_labels_when_nothing_changed(
    pytester: pytest.Pytester, net: Path
) -> None:
    np.savez(pytester.path / "many.npz", x=np.tile(X, (150, 1)), labels=np.tile(LABELS, 150))
    command = (net.name, "-k", "test_accuracy", *QUICK, "--ort-dataset=many.npz")
    pytester.runpytest(*command, "--ort-batch-sizes=8").assert_outcomes(passed=1)


def test_nan_on_a_few_labelled_samples_fails_the_suite_and_the_limit(
    pytester: pytest.Pytester, net: Path
) -> None:
    rows = np.tile(X, (150, 1))
    rows[::20, 0] = np.nan
    np.savez(pytester.path / "many.npz", x=rows, labels=np.tile(LABELS, 150))
    result = pytester.runpytest(
        *(net.name, "-k", "test_accuracy or test_latency", *QUICK, "--ort-dataset=many.npz"),
        "--ort-limits=accuracy_finite >= 1",
    )
    result.assert_outcomes(failed=2)
    (case,) = cases(pytester.path).values()
    (flag,) = [flag for flag in case["flags"] if flag["name"] == "NONFINITE"]
    # Each NaN of a row makes the whole row of a matrix product NaN.
    assert re.findall(r"\d+", flag["detail"]) == ["90", "600", "30"]


def test_a_variant_that_answers_worse_fails_whatever_its_signal_to_noise_ratio(
    pytester: pytest.Pytester,
) -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((600, 16)).astype(np.float32)
    weights = draw.standard_normal((16, 4)) / 4
    np.savez(pytester.path / "data.npz", x=x, labels=(x @ weights).argmax(axis=1))
    matrix(pytester.path / "net.onnx", weights)
    # Near in every output (35 dB), with classes that lie near each other swapped now and then.
    near = weights + 0.018 * np.abs(weights).mean() * draw.standard_normal(weights.shape) * 3
    matrix(pytester.path / "near.onnx", near)
    # Ten times as large: 0 dB of noise, and every class the same.
    matrix(pytester.path / "large.onnx", 10 * weights)
    pytester.makepyprojecttoml(
        """
        [tool.ortbench.models.net]
        file = "net.onnx"
        variants.near = "near.onnx"
        variants.large = "large.onnx"
        """
    )
    command = ("--pyargs", "pytest_ortbench.suites", "-k", "test_accuracy", *QUICK)
    result = pytester.runpytest(
        *command, "--ort-models=net", "--ort-dataset=data.npz", "--ort-html=page.html"
    )
    result.assert_outcomes(passed=2, failed=1)
    found = cases(pytester.path)
    assert found["native"]["task"]["score_sum"] == 600
    assert found["large"]["task"]["worse"] == 0
    assert found["large"]["accuracy"]["outputs"][0]["sqnr_db"] < 0
    assert "INACCURATE" not in {flag["name"] for flag in found["large"]["flags"]}
    task = found["near"]["task"]
    assert task["score_sum"] == 600 - task["worse"]
    assert found["near"]["accuracy"]["outputs"][0]["sqnr_db"] > 20
    (flag,) = [flag for flag in found["near"]["flags"] if flag["name"] == "INACCURATE"]
    assert re.findall(r"\d+(?= samples| %)", flag["detail"])[-2:] == ["600", "99"]
    text = result.stdout.str()
    assert re.search(r"near on cpu .*: INACCURATE", text)
    assert re.search(r"native on cpu: top-1 of 'logits' 1\.00 .*600 .* 1\.00", text)
    page = (pytester.path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"data\.npz: top-1 of &#39;logits&#39; 1\.00 .*600", page)

    rows = {row["precision"]: row for row in rows_of(load(pytester.path / "run.json"))}
    assert rows["near"]["task_metric"] == task["score_sum"] / 600
    assert rows["large"]["task_ratio"] == 1
    assert rows["large"]["task_kept"] == pytest.approx(0.025 ** (1 / 600))
    assert rows["large"]["task_samples"] == 600


def test_an_entry_point_is_scored_in_the_worker(pytester: pytest.Pytester, net: Path) -> None:
    (pytester.path / "labelled.py").write_text(
        "import os, numpy as np\n"
        f"X = np.float32({X.tolist()})\n"
        f"Y = np.int64({LABELS.tolist()})\n"
        "def validation(batch):\n"
        "    open(f'pid-{os.getpid()}', 'w').close()\n"
        "    def right(outputs, labels):\n"
        "        return outputs['logits'].argmax(axis=1) == labels\n"
        "    return [({'x': X[i:i + batch]}, Y[i:i + batch]) for i in range(0, 4, batch)], right\n"
    )
    result = pytester.runpytest_subprocess(
        net.name, "-k", "test_accuracy", *QUICK, "--ort-dataset=labelled.py:validation"
    )
    result.assert_outcomes(passed=1)  # four samples tell nothing, and its outputs are exact
    task = cases(pytester.path)["native"]["task"]
    assert (task["metric"], task["samples"], task["score_sum"]) == ("right", 4, 3.0)
    # Once for the reference and once for the case, each in a process of its own.
    assert len(list(pytester.path.glob("pid-*"))) == 2


@pytest.mark.parametrize(
    ("x", "labels", "says"),
    [
        (
            X,
            np.int64([1, 2, 0, 1]),
            "the reference (*) scores 0 on every sample of data.npz (4 samples",
        ),
        (
            np.full_like(X, np.nan),
            LABELS,
            "all values for the input 'x' from data.npz are NaN or infinity",
        ),
    ],
    ids=["labels shifted", "inputs all NaN"],
)
def test_labels_that_measure_nothing_fail_the_accuracy_suite(
    pytester: pytest.Pytester, net: Path, x: object, labels: object, says: str
) -> None:
    np.savez(pytester.path / "data.npz", x=x, labels=labels)
    result = pytester.runpytest(net.name, "-k", "test_accuracy", *QUICK, "--ort-dataset=data.npz")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*data.npz: {says}*"])
    assert cases(pytester.path)["native"]["task"]["samples"] == 0


def test_data_that_can_t_be_used_fails_the_accuracy_suite_and_nothing_else(
    pytester: pytest.Pytester, net: Path
) -> None:
    np.savez(pytester.path / "data.npz", images=X, labels=LABELS)
    result = pytester.runpytest(
        net.name, "-k", "test_accuracy or test_latency", *QUICK, "--ort-dataset=data.npz"
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*data.npz*'x'*images, labels.*"])
    assert cases(pytester.path)["native"]["status"] == "measured"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("absent.npz", "does not exist"),
        (
            "labelled.py:absent",
            "labelled.py has no function 'absent'. The only choice is 'validation'",
        ),
        ("net.onnx", "'net.onnx' ends in .onnx, but "),
    ],
)
def test_what_is_wrong_at_once_ends_the_run_before_it_starts(
    pytester: pytest.Pytester, net: Path, value: str, says: str
) -> None:
    (pytester.path / "labelled.py").write_text("def validation(batch): ...\n")
    result = pytester.runpytest(net.name, *QUICK, f"--ort-dataset={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str()
