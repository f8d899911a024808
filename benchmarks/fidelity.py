"""Does our timed loop say the same as a bare loop? Run: ``python benchmarks/fidelity.py``.

Both run on one session in one process, in alternating blocks of about 12 ms in random order, since
between processes even identical code differs by more than 1 %. The bare loop has one pair of clock
readings around the whole block; ours is what a worker does. Goal: the median of the paired ratios
of time per inference is within 1 % from 0.1 ms up, and within 0.5 µs for an identity model. A busy
machine needs more rounds; one that is too busy leaves the goal undecided.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Case, InputSpec, Provider, SessionConfig
from pytest_ortbench.core.model import Model, ValueHint, Variant
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.standard import time_block, warm

_BLOCK_NS = 12_000_000
#: Rounds at least and at most; between, until the median is known well enough to judge.
_MIN_ROUNDS, _MAX_ROUNDS = 80, 1000
_TOLERANCE, _KNOWN_TO = 0.01, 0.002
_IDENTITY_NS, _IDENTITY_KNOWN_TO_NS = 500.0, 100.0

#: Width and depth of chains of matrix products: about 0.1, 0.4 and 3 ms an inference on one core.
_CHAINS = {"chain-256x16": (256, 16), "chain-512x16": (512, 16), "chain-1024x32": (1024, 32)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A median with its 95 % interval by order statistics."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    def verdict(self, tolerance: float) -> str:
        """Whether the interval lies within the tolerance, outside of it, or across its edge."""
        if -tolerance <= self.low and self.high <= tolerance:
            return "kept"
        return "MISSED" if self.low > tolerance or self.high < -tolerance else "undecided"


def main() -> int:
    """Measure every model and print one row each; 1 if a goal is missed, 2 if one is undecided."""
    print(f"{'model':14} {'bare':>10} {'rounds':>6} {'ours - bare, 95 % interval':>30}  goal")
    verdicts = set()
    with tempfile.TemporaryDirectory() as folder:
        for name, model, width in _models():
            path = Path(folder) / f"{name}.onnx"
            onnx.save(model, path)
            measured = _open(path, name, width)
            if name == "identity":
                bare_ns, rounds, found = _compare(measured, _difference, _IDENTITY_KNOWN_TO_NS)
                goal, verdict = "0.5 µs", found.verdict(_IDENTITY_NS)
                text = f"{found.value:+.0f} ns [{found.low:+.0f}, {found.high:+.0f}]"
            else:
                bare_ns, rounds, found = _compare(measured, _relative, _KNOWN_TO)
                goal, verdict = "1 %", found.verdict(_TOLERANCE)
                text = f"{found.value:+.2%} [{found.low:+.2%}, {found.high:+.2%}]"
            verdicts.add(verdict)
            print(f"{name:14} {bare_ns / 1e3:8.1f}µs {rounds:6} {text:>30}  {goal}: {verdict}")
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def _difference(ours_ns: float, bare_ns: float) -> float:
    return ours_ns - bare_ns


def _relative(ours_ns: float, bare_ns: float) -> float:
    return ours_ns / bare_ns - 1


def _compare(
    measured: MeasuredCase, contrast: Callable[[float, float], float], known_to: float
) -> tuple[float, int, Estimate]:
    """Return bare time per inference in ns, the rounds it took, and the contrast."""
    session, feeds = measured.session, measured.feeds
    assert session is not None
    run: Callable[[None, Mapping[str, object]], object] = session.run

    def bare(iterations: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(iterations):
            run(None, feeds)
        return (time.perf_counter_ns() - started) / iterations

    def ours(iterations: int) -> float:
        return statistics.fmean(time_block(TimeBlock(iterations=iterations), measured).durations_ns)

    warm(WarmUpFor(budget_s=2.0), measured)
    iterations = max(1, round(_BLOCK_NS / bare(20)))
    draw = random.Random(0)
    contrasts: list[float] = []
    levels: list[float] = []
    while True:
        if draw.random() < 0.5:
            ours_ns, bare_ns = ours(iterations), bare(iterations)
        else:
            bare_ns = bare(iterations)
            ours_ns = ours(iterations)
        contrasts.append(contrast(ours_ns, bare_ns))
        levels.append(bare_ns)
        if len(contrasts) >= _MIN_ROUNDS:
            found = median_of(contrasts)
            if found.half_width <= known_to or len(contrasts) == _MAX_ROUNDS:
                return statistics.median(levels), len(contrasts), found


def median_of(values: list[float]) -> Estimate:
    """Ranks n/2 -+ 0.98 sqrt(n): the normal approximation, good from 80 values on."""
    ordered = sorted(values)
    n = len(ordered)
    reach = 0.98 * n**0.5
    return Estimate(
        value=statistics.median(ordered),
        low=ordered[int(n / 2 - reach)],
        high=ordered[int(n / 2 + reach)],
    )


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
