"""PyTorch for real: the classic table, its three rows, and what its exporters write and refuse.

PyTorch is installed beside the product, in an environment of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.store.documents import load
from tests.beside_packages import ROOT, TORCH, interpreter_beside, run_beside

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

NETS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(),
                                  nn.Conv2d(16, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


def build():
    torch.manual_seed(0)
    settings = {"outputs": ["scores"], "dynamic": {"image": {0: "batch"}}}
    return Net(), (torch.zeros(1, 3, 32, 32),), settings


class Two(nn.Module):
    def forward(self, ids, mask, scale=2.0, extra=None):
        hidden = ids.float() * mask * scale
        if extra is not None:
            hidden = hidden + extra["bias"]
        return {"hidden": hidden, "sum": hidden.sum(-1)}


IDS, MASK = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5)
OPEN = {"ids": {0: "batch", 1: "seq"}, "mask": {0: "batch", -1: "seq"}}


def two():
    return Two(), (IDS, MASK), {"outputs": ["hidden", "sum"], "dynamic": OPEN}


def by_name():
    return Two(), {"ids": IDS, "mask": MASK}, {"dynamic": OPEN}


def nested():
    return Two(), (IDS, MASK, 3.0, {"bias": torch.ones(5)})


class Eigenvalues(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x).real


def eigenvalues():
    return Eigenvalues(), torch.eye(4)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


def branch():
    return Branch(), torch.ones(2, 4)


def unknown():
    model, example, settings = build()
    return model, example, {**settings, "dynamic": {"picture": {0: "batch"}}}


def no_example():
    return Net()
"""

_MAKE_FILES = """\
import torch
from net import build
model, example, _ = build()
model.eval()
torch.export.save(torch.export.export(model, example), "net.pt2")
torch.jit.save(torch.jit.trace(model, example), "net.pt")
torch.save(model.state_dict(), "net.pth")
"""


#: Exports what a function returns, and writes down what came of it.
_EXPORT = """\
import json, sys
from pathlib import Path
import onnx
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.schema.wire import to_plain
from pytest_ortbench.worker.entry import exported_by, load_named

def sizes(item):
    return [dim.dim_param or str(dim.dim_value) for dim in item.type.tensor_type.shape.dim]

try:
    loaded, kind = load_named(Path("net.py"), sys.argv[1])
    exported_by(kind, loaded, Path("made.onnx"), json.loads(sys.argv[2]))
except WorkerError as error:
    told = {"failure": to_plain(error.failure)}
else:
    graph = onnx.load("made.onnx").graph
    told = {
        "inputs": {item.name: sizes(item) for item in graph.input},
        "outputs": [item.name for item in graph.output],
    }
Path("told.json").write_text(json.dumps(told))
"""


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the environment that has PyTorch."""
    return interpreter_beside(TORCH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """A folder with the networks, and files that hold one of them."""
    place = tmp_path_factory.mktemp("torch")
    (place / "net.py").write_text(NETS)
    (place / "pytest.ini").write_text("[pytest]\n")
    run_beside(python, "-c", _MAKE_FILES, folder=place)
    return place


def measured(
    folder: Path, python: str, model: str, providers: str, *options: str
) -> dict[str, CaseResult]:
    """Results of one run of pytest, by the alias of what ran them."""
    results = folder / f"results-{len(list(folder.iterdir()))}"
    done = run_beside(
        *(python, "-m", "pytest", "--pyargs", "pytest_ortbench.suites.test_latency"),
        *("-q", "-p", "no:cacheprovider", f"--ort-models={model}", f"--ort-providers={providers}"),
        *("--ort-time=0.5", "--ort-workers=2", "--ort-threads=1", f"--ort-results={results}"),
        *options,
        folder=folder,
        may_fail=True,
    )
    documents = list(results.glob("*/run.json"))
    assert documents, done.stdout + done.stderr
    run = load(documents[0])
    return {result.case.provider.alias: result for result in run.cases}


def test_the_classic_table_comes_of_one_command(folder: Path, python: str) -> None:
    rows = measured(folder, python, "net.py:build", "cpu,torch,torch-script,torch-compile")
    assert {alias: row.status for alias, row in rows.items()} == dict.fromkeys(rows, "measured")
    assert len(rows) == 4
    for alias, row in rows.items():
        assert row.accuracy is not None
        (scores,) = row.accuracy.outputs
        assert scores.exact or (scores.sqnr_db or 0) > 100
        for measurement in row.measurements:
            is_framework = alias != "cpu"
            assert (measurement.runtime.engine == alias) == is_framework
            assert (measurement.startup.build_ns is not None) == is_framework
            assert measurement.memory.process_peak_bytes
            if is_framework:
                assert measurement.options_in_force["num_threads"] == "1"
    cold, warm = (measurement.startup for measurement in rows["torch-compile"].measurements)
    assert (cold.cache, warm.cache) == ("cold", "warm")
    assert cold.compile_ns is not None
    assert warm.compile_ns is not None
    assert cold.compile_ns > warm.compile_ns
    assert cold.compiled_bytes
    assert rows["torch"].measurements[0].startup.compile_ns is None
    # The framework's own process holds several times what ONNX Runtime takes.
    peaks = {
        alias: row.measurements[0].memory.process_peak_bytes or 0 for alias, row in rows.items()
    }
    assert peaks["torch"] > 1.5 * peaks["cpu"]


@pytest.mark.parametrize(
    ("model", "providers", "options", "kinds"),
    [
        ("net.pt2", "cpu,torch,torch-script", (), ["measured"] * 3),
        (
            "net.pt",
            "cpu,torch-script,torch",
            ("--ort-exporter=inputs=1x3x32x32",),
            ["measured", "measured", "unsupported"],
        ),
        ("net.pt", "cpu", (), ["error"]),
        ("net.pth", "cpu", (), ["error"]),
        ("net.py:eigenvalues", "cpu,torch", (), ["unsupported"] * 2),
        ("net.py:two", "cpu,torch", ("--ort-dims=seq:7",), ["measured"] * 2),
    ],
)
def test_files_and_refusals_are_rows(
    folder: Path,
    python: str,
    model: str,
    providers: str,
    options: tuple[str, ...],
    kinds: list[str],
) -> None:
    rows = measured(folder, python, model, providers, *options)
    assert [rows[alias].status for alias in providers.split(",")] == kinds


def exported(folder: Path, python: str, function: str, settings: dict[str, str]) -> dict[str, Any]:
    """Inputs with their sizes and names of outputs of what was written, or the failure."""
    run_beside(python, "-c", _EXPORT, function, json.dumps(settings), folder=folder)
    told: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return told


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("function", ["two", "by_name"])
def test_both_exporters_keep_names_and_open_dimensions(
    folder: Path, python: str, function: str, exporter: str
) -> None:
    made = exported(folder, python, function, {"exporter": exporter})
    assert made["inputs"] == {"ids": ["batch", "seq"], "mask": ["batch", "seq"]}
    assert len(made["outputs"]) == 2
    if function == "two":
        assert made["outputs"] == ["hidden", "sum"]


def test_what_stands_last_as_a_dictionary_is_an_argument(folder: Path, python: str) -> None:
    made = exported(folder, python, "nested", {})
    assert list(made["inputs"]) == ["ids", "mask", "extra_bias"]


@pytest.mark.parametrize(
    ("function", "settings", "kind"),
    [
        ("eigenvalues", {}, "unsupported"),
        ("eigenvalues", {"exporter": "torchscript"}, "unsupported"),
        ("build", {"opset": "99"}, "unsupported"),
        ("branch", {}, "error"),
        ("unknown", {}, "error"),
        ("no_example", {}, "error"),
        ("build", {"exporter": "old"}, "error"),
    ],
)
def test_a_failed_export_is_a_refusal_on_one_line(
    folder: Path, python: str, function: str, settings: dict[str, str], kind: str
) -> None:
    failure = exported(folder, python, function, settings)["failure"]
    assert (failure["kind"], failure["phase"]) == (kind, "export")
    assert "\n" not in failure["message"] + failure["hint"]
    assert failure["hint"]


@pytest.mark.parametrize(
    "target", ["torch.worker.eager:Eager", "torch_script.worker:Scripted"], ids=["eager", "script"]
)
def test_callers_get_the_answers_to_their_own_questions(target: str, tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(NETS)
    asked = {
        "target": f"pytest_ortbench.engines.{target}",
        "source": str(source),
        "function": "build",
        "inputs": {"image": [1, 3, 32, 32]},
        "outputs": ["scores"],
        "threads": 2,
    }
    program = str(ROOT / "tests" / "engines" / "several_callers.py")
    done = run_beside(interpreter_beside(TORCH), program, json.dumps(asked), folder=tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["errors"], found["stay"], found["differ"]) == (0, [], True, True)
