"""``ortbench bisect``: launches are faked, the profiles are real ones."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.measuring import gate as engine_gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import Launched, measure_launch
from tests.execution.fakes import FakeLauncher
from tests.launch.cases import relu

pytestmark = pytest.mark.live

KVM = Machine(host="h", stable={"virtualisation": "KVM"})
RUNTIMES = tuple(Runtime(label=f"r{index}", command=(sys.executable,)) for index in range(4))


@pytest.fixture
def slower_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Fake the launches: from the runtime with this index on, a run takes 10 % longer."""

    def fake(first: int) -> None:
        def time_of(case: Case, _: int) -> float:
            return 40e6 * (1.1 if int(case.runtime.label[1:]) >= first else 1.0)

        launcher = FakeLauncher(time_of)

        def launched(pair: Pair, _: object, **options: Any) -> Launched:
            return measure_launch(pair, launcher, **options)

        monkeypatch.setattr(engine_gate, "measure_launch", launched)
        monkeypatch.setattr("pytest_ortbench.cli.bisect._chosen", lambda *_: RUNTIMES)
        monkeypatch.setattr("pytest_ortbench.cli.bisect.fingerprint", lambda: KVM)

    return fake


def test_the_change_is_named_with_the_operators_on_both_sides(tool, tmp_path: Path, slower_from):
    slower_from(2)
    ended = tool("bisect", "--runtimes=r0,r3", relu(tmp_path / "m.onnx"))
    assert ended.code == 1
    lines = ended.out.splitlines()
    told = re.match(r"r0 -> r3: slower  ×(\S+) ", lines[0])
    assert told is not None
    assert float(told[1]) == pytest.approx(1.1, abs=0.005)
    assert "worse since r2" in lines
    assert [line.split()[0] for line in lines if line.endswith("as good as r0")] == ["r1"]
    at = lines.index("where the time of a run goes, r1 and r2 (with the profiler on):")
    assert lines[at + 1].split() == ["operator", "nodes", "before", "after", "change"]
    rows = [line.split("  ") for line in lines[at + 3 :]]
    assert {row[1].split()[0] for row in rows} == {"Relu", "(between", "the"}


def test_what_can_not_be_decided_is_not_as_good(tool, tmp_path: Path, slower_from, monkeypatch):
    slower_from(9)
    undecided = GateResult(case_id="m", runtime="r3", baseline="r0", verdict="inconclusive")
    monkeypatch.setattr(engine_gate.Gate, "judge", lambda *_, **__: undecided)
    ended = tool("bisect", "--runtimes=r0,r3", relu(tmp_path / "m.onnx"))
    assert ended.code == 3
    [*_, last] = ended.out.splitlines()
    assert (last.split()[0], last.split()[-1]) == ("r3", "r0")


def test_without_a_change_nothing_is_profiled(tool, tmp_path: Path, slower_from):
    slower_from(9)
    ended = tool("bisect", "--runtimes=r0,r3", relu(tmp_path / "m.onnx"))
    assert ended.code == 0
    [*_, last] = ended.out.splitlines()
    assert (last.split()[0], last.split()[-1]) == ("r3", "r0")


@pytest.mark.parametrize("name", ["missing.onnx", "text.onnx"])
def test_the_model_is_looked_at_before_environments_are_made(
    tool, tmp_path: Path, monkeypatch, name: str
):
    def made(*_: object) -> None:
        pytest.fail("environments were made")

    monkeypatch.setattr("pytest_ortbench.cli.bisect._chosen", made)
    (tmp_path / "text.onnx").write_text("no model")
    ended = tool("bisect", "--runtimes=onnxruntime==1.20.1..1.32.0", tmp_path / name)
    assert ended.code == 2
    assert name in ended.err
