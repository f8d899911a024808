"""Does our timed loop say the same as a bare loop? Run: ``python benchmarks/fidelity.py``.

Both run on one session in one process, in alternating blocks of about 12 ms in random order, since
between processes even identical code differs by more than 1 %. The bare loop has one pair of clock
readings around the whole block; ours is what a worker does. Goal: the median of the paired ratios
of time per inference is within 1 % from 0.1 ms up, and within 0.5 µs for an identity model.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Case, InputSpec, Provider, SessionConfig
from pytest_ortbench.core.model import Model, ValueHint, Variant
from pytest_ortbench.worker.measured import MeasuredCase

_BLOCK_NS = 12_000_000
_ROUNDS = 80
_TOLERANCE = 0.01
_IDENTITY_NS = 500.0

#: Width and depth of chains of matrix products: about 0.1, 0.4 and 3 ms an inference on one core.
_CHAINS = {"chain-256x16": (256, 16), "chain-512x16": (512, 16), "chain-1024x32": (1024, 32)}


def main() -> int:
    """Measure every model and print one row each; 1 if a goal is missed."""
    print(f"{'model':14} {'bare':>10} {'ours/bare':>10} {'difference':>11}  goal")
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, model, width in _models():
            path = Path(folder) / f"{name}.onnx"
            onnx.save(model, path)
            bare_ns, ratio, difference_ns = _compare(_open(path, name, width))
            if bare_ns < 100_000:
                goal, kept = "within 0.5 µs", abs(difference_ns) <= _IDENTITY_NS
            else:
                goal, kept = "within 1 %", abs(ratio - 1) <= _TOLERANCE
            missed += not kept
            print(
                f"{name:14} {bare_ns / 1e3:8.1f}µs {ratio:10.4f} {difference_ns:+9.0f}ns  "
                f"{goal}: {'kept' if kept else 'MISSED'}"
            )
    return 1 if missed else 0


def _compare(measured: MeasuredCase) -> tuple[float, float, float]:
    """Return bare time per inference in ns, median ratio, and median difference in ns."""
    session, feeds = measured.session, measured.feeds
    assert session is not None
    run: Callable[[None, Mapping[str, object]], object] = session.run

    def bare(iterations: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(iterations):
            run(None, feeds)
        return (time.perf_counter_ns() - started) / iterations

    def ours(iterations: int) -> float:
        return statistics.fmean(measured.block(iterations).durations_ns)

    measured.warm(2.0)
    iterations = max(1, round(_BLOCK_NS / bare(20)))
    draw = random.Random(0)
    ratios, differences, levels = [], [], []
    for _ in range(_ROUNDS):
        if draw.random() < 0.5:
            ours_ns, bare_ns = ours(iterations), bare(iterations)
        else:
            bare_ns = bare(iterations)
            ours_ns = ours(iterations)
        ratios.append(ours_ns / bare_ns)
        differences.append(ours_ns - bare_ns)
        levels.append(bare_ns)
    return statistics.median(levels), statistics.median(ratios), statistics.median(differences)


def _open(path: Path, name: str, width: int) -> MeasuredCase:
    size = path.stat().st_size
    case = Case(
        model=Model(name=name, path=str(path), source="file", digest="", size_bytes=size),
        variant=Variant(precision="native", path=str(path), digest="", size_bytes=size),
        provider=Provider(alias="cpu", name="CPUExecutionProvider"),
        session=SessionConfig(intra_op_num_threads=1),
        inputs=(
            InputSpec(
                name="x", type="tensor(float)", shape=(1, width), hint=ValueHint(kind="normal")
            ),
        ),
    )
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    return measured


def _models() -> Iterator[tuple[str, onnx.ModelProto, int]]:
    yield "identity", _model([helper.make_node("Identity", ["x"], ["y"])], [], 8), 8
    for name, (width, depth) in _CHAINS.items():
        weight = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32)
        weights = numpy_helper.from_array(weight / np.float32(width**0.5), "w")
        names = ["x", *(f"h{index}" for index in range(1, depth)), "y"]
        nodes = [
            helper.make_node("MatMul", [before, "w"], [after])
            for before, after in itertools.pairwise(names)
        ]
        yield name, _model(nodes, [weights], width), width


def _model(
    nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], width: int
) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]) for name in "xy"]
    graph = helper.make_graph(nodes, "fidelity", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model


if __name__ == "__main__":
    sys.exit(main())
