"""Exports of PyTorch that answer something else than their source, found and named.

What each network computes depends on who asks: an exporter, or PyTorch, which is installed beside
the product, in an environment of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.verdict import export_sqnr_db
from pytest_ortbench.schema.document import decode_run
from tests.beside_packages import TORCH, interpreter_beside, run_beside

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

_NETS = """
import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("variance", torch.ones(4))

    def forward(self, x):
        epsilon = self.epsilon if torch.compiler.is_exporting() else 1e-5
        return F.batch_norm(x, self.mean, self.variance, eps=epsilon)


class Block(nn.Module):
    def __init__(self, epsilon=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = Norm(epsilon)

    def forward(self, x):
        return x + self.norm(self.conv(x)).relu()


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(Block(), Block(1e-3 if kind == "epsilon" else 1e-5), Block())
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.blocks(self.stem(x)).mean((2, 3))
        exported = torch.compiler.is_exporting()
        if self.kind == "frozen":
            rows = 2 if exported else x.shape[0]
            hidden = hidden - hidden.sum(0, keepdim=True) / rows
        logits = self.head(hidden)
        return (hidden, logits) if self.kind == "swapped" and exported else (logits, hidden)


def build(kind, **settings):
    torch.manual_seed(0)
    named = {"names": ["x"], "outputs": ["logits", "hidden"]}
    return Net(kind).eval(), (torch.randn(2, 3, 16, 16),), {**named, **settings}


_BATCH = {"dynamic": {"x": {0: "batch"}}}

def right():
    return build("", **_BATCH)

def fixed():
    return build("")

def epsilon():
    return build("epsilon", **_BATCH)

def frozen():
    return build("frozen", **_BATCH)

def swapped():
    return build("swapped", **_BATCH)
"""


def checked(folder: Path, name: str) -> tuple[CaseResult, ExportCheck]:
    """What a run finds out about one of the networks."""
    (folder / "nets.py").write_text(_NETS, encoding="utf-8")
    done = run_beside(
        *(interpreter_beside(TORCH), "-m", "pytest", "-p", "no:cacheprovider"),
        *("--pyargs", "pytest_ortbench.suites.test_export", f"--ort-models=nets.py:{name}"),
        *("--ort-providers=cpu", "--ort-time=0.05", "--ort-workers=1"),
        *("--ort-no-results", "--ort-json=run.json"),
        folder=folder,
        may_fail=True,
    )
    document = folder / "run.json"
    assert document.is_file(), done.stdout + done.stderr
    (result,) = decode_run(document.read_bytes(), "run.json").cases
    assert result.export_check is not None
    assert result.export_check.reason == ""
    return result, result.export_check


def flagged(result: CaseResult) -> bool:
    return "WRONG-EXPORT" in [flag.name for flag in result.flags]


def test_a_right_export_is_as_near_as_rounding(tmp_path: Path) -> None:
    result, check = checked(tmp_path, "right")
    assert not flagged(result)
    sqnr_db = export_sqnr_db(check)
    assert sqnr_db is not None
    assert sqnr_db > 110
    assert {choice.sizes["batch"] for choice in check.choices if choice.samples} >= {1, 2, 3}


def test_sizes_that_an_export_fixes_are_named(tmp_path: Path) -> None:
    result, check = checked(tmp_path, "fixed")
    assert not flagged(result)
    taken = {(fixed.axis, fixed.size) for fixed in check.fixed if fixed.taken}
    assert taken == {(0, 2), (2, 16), (3, 16)}
    assert {(fixed.axis, fixed.size) for fixed in check.fixed if not fixed.taken} == {(1, 3)}


def test_a_wrong_epsilon_is_found_in_its_module(tmp_path: Path) -> None:
    result, check = checked(tmp_path, "epsilon")
    assert flagged(result)
    (fault,) = export_faults(check, result.case.model)
    assert (fault.kind, fault.outputs) == ("different", ("logits", "hidden"))
    assert check.first_difference is not None
    assert (check.first_difference.module, check.first_difference.kind) == ("blocks.1.norm", "Norm")
    assert not check.first_difference.is_fed_wrong


def test_a_frozen_batch_is_named(tmp_path: Path) -> None:
    result, check = checked(tmp_path, "frozen")
    assert flagged(result)
    (fault,) = export_faults(check, result.case.model)
    assert (fault.kind, fault.dimension, fault.right_at) == ("frozen", "batch", (2,))
    assert check.first_difference is not None
    assert (check.first_difference.module, check.first_difference.is_fed_wrong) == ("head", True)


def test_swapped_outputs_are_named(tmp_path: Path) -> None:
    result, check = checked(tmp_path, "swapped")
    assert flagged(result)
    pairs = {confusion.output: confusion.source_output for confusion in check.confusions}
    assert pairs == {"logits": "hidden", "hidden": "logits"}
