"""Cases from the field, on real sessions: threads, sessions that come and go, tables of rows."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.analysis.memory_growth import Growth
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import InputSpec, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.passes.soak.numbers import growth
from pytest_ortbench.passes.soak.worker import soak
from pytest_ortbench.planning.session_options import with_spinning
from pytest_ortbench.worker import accuracy
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.memory import best_source
from pytest_ortbench.worker.outputs import check
from pytest_ortbench.worker.session import create, session_options
from tests.launch.cases import case_of, x_input
from tests.results_factory import make_result

from . import graphs
from .sessions import cpu_session

pytestmark = pytest.mark.live

ROWS = 10_000


def six_layers(path: Path) -> Path:
    """Six products with 512 x 512 weights, a Relu after each."""
    nodes, weights, name = [], {}, "x"
    for layer in range(6):
        weights[f"w{layer}"] = np.full((512, 512), 0.01, np.float32)
        nodes.append(graphs.helper.make_node("MatMul", [name, f"w{layer}"], [f"h{layer}"]))
        name = "y" if layer == 5 else f"r{layer}"
        nodes.append(graphs.helper.make_node("Relu", [f"h{layer}"], [name]))
    kind = graphs.TensorProto.FLOAT
    path.write_bytes(
        graphs.serialised(
            nodes,
            [graphs.value("x", kind, ["N", 512])],
            [graphs.value("y", kind, ["N", 512])],
            weights,
        )
    )
    return path


@pytest.mark.parametrize("asked", [None, 1, 2, 8, 32])
def test_threads_are_what_the_process_may_use_unless_they_are_set(
    tmp_path: Path, asked: int | None
) -> None:
    """T2: 32 threads on two CPUs take 26 times as long: the default must not be that."""
    case = case_of(six_layers(tmp_path / "m.onnx"), inputs=(x_input((1, 512)),))
    case = replace(case, session=SessionConfig(intra_op_num_threads=asked))
    opened = MeasuredCase(case, lambda phase: None)  # noqa: ARG005
    opened.open()
    allowed = allowance()
    if asked is None:
        assert (opened.threads, opened.threads_source) == (allowed.threads, allowed.source)
        assert 1 <= opened.threads <= opened.cpus
    else:
        assert (opened.threads, opened.threads_source) == (asked, "option")


def test_sessions_that_come_and_go_are_no_leak(tmp_path: Path) -> None:
    """T9: memory wanders over sessions that are made and released, then it stays."""
    model = six_layers(tmp_path / "m.onnx").read_bytes()
    feeds = {"x": np.ones((1, 512), np.float32)}
    source, now = best_source(), 0.0

    def come_and_go() -> None:
        nonlocal now
        cpu_session(model).run(None, feeds)
        now += 0.5

    gc.freeze()  # of pytest's objects, which every reading would go through
    found = growth(
        soak(come_and_go, lambda: source.read().now, seconds=40, source="", clock=lambda: now)
    )
    assert isinstance(found, Growth), found
    assert not found.leaks, found
    # And without a soak there is no verdict at all, whatever the workers took.
    missing = summarise(make_result()).missing
    assert missing["leaks"].endswith("(--ort-soak)")


@pytest.mark.skipif(allowance().threads < 2, reason="waiting threads need a second CPU to spin on")
def test_threads_that_spin_between_paced_calls_cost_cpu_time(tmp_path: Path) -> None:
    """T6: between calls that are far apart whoever spins works, and whoever waits does not."""
    case = case_of(six_layers(tmp_path / "m.onnx"), inputs=(x_input((32, 512)),))
    feeds = {"x": np.ones((32, 512), np.float32)}
    cpu_s: dict[str, float] = {}
    for switch in ("on", "off"):
        config = with_spinning(case.session, switch)
        options = session_options(config, threads=2)
        session, _ = create(case.variant.path, case.provider, options)
        session.run(None, feeds)
        cpu_s[switch] = 0.0
        for _ in range(20):
            session.run(None, feeds)
            began = time.process_time()
            time.sleep(0.02)
            cpu_s[switch] += time.process_time() - began
        del session
    # Seen, on a busy machine too: 18 ms against 0.04 ms. How long is ONNX Runtime's choice.
    assert cpu_s["on"] > 5 * cpu_s["off"], cpu_s


def test_ten_thousand_rows_of_dictionaries_are_compared(tmp_path: Path) -> None:
    """T10: a classifier with ZipMap gives a list of dictionaries."""
    model = graphs.classifier()
    spec = InputSpec(name="x", type="tensor(float)", shape=(ROWS, 4), hint=ValueHint(kind="normal"))
    path = tmp_path / "reference.npz"
    accuracy.write_reference(
        path, session=cpu_session(model, optimise=False), specs=[spec], seed=0, label="fp32"
    )
    result = accuracy.compare(cpu_session(model), path)
    label, table = result.outputs
    assert (table.kind, table.exact) == ("class", True)
    assert table.agree == table.rows == label.rows == result.samples * ROWS
    outputs = cpu_session(model).run(None, {"x": np.ones((ROWS, 4), np.float32)})
    assert isinstance(outputs[1], list)
    assert set(outputs[1][0]) == {"a", "b", "c"}
    assert check("first", outputs).nonfinite == 0
