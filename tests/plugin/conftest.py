"""What the plugin's tests share: a small model on disk, and runs of pytest on it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Compiled modules can't be imported twice in one process, and pytester forgets what a run inside
# this process imported; so they are imported before it takes note.
import matplotlib.figure
import msgspec.json
import numpy as np
import onnx.helper
import psutil
import pytest

COMPILED = (matplotlib.figure, msgspec.json, np, onnx.helper, psutil)

#: Short enough for a test; the numbers that come out are real but not good.
QUICK = ("--ort-time=0.06", "--ort-workers=1", "-p", "no:cacheprovider")


def told(result: pytest.RunResult, about: str = "") -> list[str]:
    """Return what follows the prefix in each line of ours, or in those about one subject."""
    prefix = f"ortbench: {about}: " if about else "ortbench: "
    return [line[len(prefix) :] for line in result.outlines if line.startswith(prefix)]


def told_last(result: pytest.RunResult, about: str) -> list[str]:
    """Return what follows the last colon of each line of ours about a subject: mostly a case."""
    return [text.rpartition(": ")[2] for text in told(result, about)]


def failed_tests(result: pytest.RunResult) -> list[str]:
    """Return the names of the tests in the lines of pytest's summary of failures."""
    lines = [line.partition(" - ")[0] for line in result.outlines if line.startswith("FAILED ")]
    return [line.rpartition("::")[2] for line in lines]


def properties(path: Path) -> dict[str, str]:
    """Return the properties of all tests in a JUnit file, by their names."""
    entries = ElementTree.parse(path).iterfind(".//property")
    return {entry.get("name", ""): entry.get("value", "") for entry in entries}


def held_against(entry: dict[str, Any]) -> list[str]:
    """Return what the findings are about that fail a gate, as its document tells."""
    return [finding["about"] for finding in entry["findings"] if finding["fails"]]


@pytest.fixture
def model_file(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Make a model file in the test's folder: MatMul and Relu on [N, 8], or with a fixed batch."""

    def make(name: str = "mlp.onnx", *, batch: int | str = "N", symbol: str = "") -> Path:
        from onnx import TensorProto, helper, numpy_helper, save

        weight = np.arange(64, dtype=np.float32).reshape(8, 8) / 64 - 0.5
        shape: list[int | str] = [batch, symbol, 8] if symbol else [batch, 8]
        graph = helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["h"], name="matmul"),
                helper.make_node("Relu", ["h"], ["y"], name="relu"),
            ],
            "mlp",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(weight, "w")],
        )
        opset = [helper.make_opsetid("", 13)]
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save(helper.make_model(graph, ir_version=8, opset_imports=opset), path)
        return path

    return make


@pytest.fixture
def drawn_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cases have drawn numbers, for tests that are not about numbers: 3 ms, no worker."""
    from pytest_ortbench.execution import execution as engine
    from tests.results_factory import make_result

    monkeypatch.setattr(engine, "measure", lambda case, *_, **__: make_result(case=case))


@pytest.fixture
def shared_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine for a shared one, so that times of two runs decide nothing in a gate."""
    from pytest_ortbench.core.run import Machine
    from pytest_ortbench.gate.numbers import stored, verdict

    of = verdict.machine_class
    shared = Machine(host="h", stable={"virtualisation": "KVM"})
    monkeypatch.setattr(stored, "machine_class", lambda _, margin=None: of(shared, margin))
