"""What a provider reaches on this machine: the roof under which a model's operators stand.

Two ceilings, each measured through the same provider with the threads and session options of the
case: the rate of large matrix products, and the rate at which memory that no cache holds is read
and written. Best of several, since everything that disturbs makes a run slower; both in turns, so
that what disturbs for a while does not meet all trials of one.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.passes.profile.facts import Peak
from pytest_ortbench.worker.binding import bind, device_of, output_device_of
from pytest_ortbench.worker.device_wait import waiting
from pytest_ortbench.worker.model_writer import Node, Value, write_model
from pytest_ortbench.worker.profiling import profile
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.timing import time_bound_runs, time_runs

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: Products in one model, so that what a run costs besides does not count. A pass is long enough,
#: and a short run is less likely to be stopped on the way.
_CHAIN = 4
#: Sides of the matrices: from a size that any machine can do, to one that fills an accelerator.
_SIDES = (256, 512, 1024, 2048, 4096)
#: Once a run takes this long, a larger product reaches no higher rate.
_LONG_RUN_NS = 25_000_000
#: Trials of each ceiling; between two of one lies one of the other.
_TRIALS = 3
#: Time for one size, and runs of it at least.
_ROUND_NS, _LEAST_RUNS = 200_000_000, 4
#: Sides of what is passed over: larger than the last caches of most machines; on a device, where
#: 64 MiB take as long as it takes to start them, the largest that it has room for.
_PASS_SIDES, _DEVICE_PASS_SIDES = (4096,), (16384, 8192, 4096)

#: Of one number in float32.
_BYTES = 4

_Found = TypeVar("_Found")
_INTEGERS = ("int8", "uint8")


class _Elsewhere(Exception):
    """The provider did not execute what was to be measured."""


def peak_of(case: Case, element: str, *, threads: int) -> Peak:
    """Measure both ceilings; what can't be had is ``None``, with the reason.

    Args:
        case: Names the provider and the session options.
        element: Type of the elements that the case's products read (``float``).
        threads: Intra-op threads.
    """
    config = replace(
        case.session, graph_optimization_level="all", execution_mode="sequential", custom_ops=()
    )
    bench = _Bench(case=replace(case, session=config), threads=threads)
    reasons: list[str] = []
    name = f"product of {element}"
    macs: list[float] = []
    passed: list[float] = []
    product = _attempt(lambda: _best_product(bench, element), reasons, name)
    side = 0 if product is None else product[1]
    if product is not None:
        macs.append(product[0])
    passed_side = 0
    for trial in range(_TRIALS):
        sides = (passed_side,) if passed_side else bench.pass_sides()
        measure = functools.partial(_largest_pass, bench, sides)
        passes = _attempt(measure, reasons, "pass over memory")
        if passes is None:
            break
        passed_side = passes[1]
        passed.append(passes[0])
        if side and trial:
            again = _attempt(lambda: _product_rate(bench, element, side)[0], reasons, name)
            macs += [] if again is None else [again]
    return Peak(
        macs_per_s=max(macs, default=None),
        bytes_per_s=max(passed, default=None),
        provider=case.provider.name,
        element=element,
        threads=threads,
        product=f"{side} x {side} x {side}" if side else "",
        copy_bytes=_BYTES * passed_side**2,
        reason="; ".join(reasons),
        macs_trials_per_s=tuple(macs),
        bytes_trials_per_s=tuple(passed),
    )


def _attempt(measure: Callable[[], _Found], reasons: list[str], name: str) -> _Found | None:
    try:
        return measure()
    except Exception as error:  # noqa: BLE001  # native errors have no common base class
        reasons.append(f"{name}: {first_line(error)}")
        return None


def _best_product(bench: _Bench, element: str) -> tuple[float, int]:
    """Multiply-accumulates a second, and the side of the matrices that reached it."""
    best, best_side = 0.0, 0
    for side in _SIDES:
        rate, took_ns = _product_rate(bench, element, side)
        if rate > best:
            best, best_side = rate, side
        if took_ns > _LONG_RUN_NS:
            break
    return best, best_side


def _product_rate(bench: _Bench, element: str, side: int) -> tuple[float, int]:
    """Multiply-accumulates a second of one product, and the nanoseconds of the fastest run."""
    model, feeds = _product_model(side, element)
    took_ns = bench.fastest_ns(model, feeds)
    return _CHAIN * side**3 / took_ns * 1e9, took_ns


def _largest_pass(bench: _Bench, sides: Sequence[int]) -> tuple[float, int]:
    """Bytes a second that are read and written, and the side that there was room for.

    Raises:
        Exception: what the smallest of the sides, which come last, fails with.
    """
    for side in sides[:-1]:
        with contextlib.suppress(Exception):  # native errors have no common base class
            return _pass_rate(bench, side), side
    return _pass_rate(bench, sides[-1]), sides[-1]


def _pass_rate(bench: _Bench, side: int) -> float:
    """Bytes a second that are read and written."""
    import numpy as np

    shape = (side, side)
    given, made = (Value(name=name, element="float", shape=shape) for name in ("x", "y"))
    node = Node(op="Neg", inputs=["x"], output="y")
    model = write_model([node], [given], [made], {}, opset=11)
    took_ns = bench.fastest_ns(model, {"x": np.ones(shape, dtype=np.float32)})
    return 2 * _BYTES * side**2 / took_ns * 1e9


def _product_model(side: int, element: str) -> tuple[bytes, dict[str, Any]]:
    """Products of float one after the other; those of integers, which widen, side by side."""
    import numpy as np

    shape = (side, side)
    drawn = np.random.default_rng(0)
    if element in _INTEGERS:
        integers = {
            f"w{index}": ("int8", drawn.integers(-50, 50, shape, dtype=np.int8))
            for index in range(_CHAIN)
        }
        nodes = [
            Node(op="MatMulInteger", inputs=["x", name], output=f"y{index}")
            for index, name in enumerate(integers)
        ]
        outputs = [Value(name=node.output, element="int32", shape=shape) for node in nodes]
        x = Value(name="x", element="uint8", shape=shape)
        fed = drawn.integers(0, 100, shape, dtype=np.uint8)
        return write_model(nodes, [x], outputs, integers, opset=11), {"x": fed}
    if element not in NUMPY_NAMES:
        raise ValueError("numpy has no such type to feed")
    # Scaled so that values neither grow nor vanish.
    values = (drawn.standard_normal(shape) / side**0.5).astype(NUMPY_NAMES[element])
    names = ["x", *(f"y{index}" for index in range(1, _CHAIN)), "y"]
    nodes = [
        Node(op="MatMul", inputs=[given, "w"], output=made)
        for given, made in itertools.pairwise(names)
    ]
    ends = [Value(name=name, element=element, shape=shape) for name in ("x", "y")]
    model = write_model(nodes, ends[:1], ends[1:], {"w": (element, values)}, opset=11)
    return model, {"x": (values * side**0.5).astype(values.dtype)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """Times models as the case would run them."""

    case: Case
    threads: int

    def pass_sides(self) -> tuple[int, ...]:
        """What may be passed over, the largest first."""
        return _PASS_SIDES if device_of(self.case.provider)[0] == "cpu" else _DEVICE_PASS_SIDES

    def fastest_ns(self, model: bytes, feeds: Mapping[str, object]) -> int:
        """Nanoseconds of the fastest of several runs, inputs and outputs on the device.

        Raises:
            Exception: what creating and running a session raises, and if another provider took
                the work.
        """
        session = self._session(model, feeds)
        durations = array("q", [0])
        if output_device_of(self.case.provider)[0] == "cpu":

            def run() -> None:
                time_runs(session.run, feeds, durations)
        else:
            binding = bind(session, feeds, self.case.provider)

            def run() -> None:
                time_bound_runs(
                    session.run_with_iobinding,
                    binding,
                    waiting(binding, self.case.provider),
                    durations,
                )

        run()  # the first allocates
        fastest, runs, spent = 0, 0, 0
        while runs < _LEAST_RUNS or spent < _ROUND_NS:
            run()
            took = durations[0]
            fastest = min(fastest, took) if runs else took
            runs, spent = runs + 1, spent + took
        return max(fastest, 1)

    def _session(self, model: bytes, feeds: Mapping[str, object]) -> InferenceSession:
        # The names of the case's dimensions are none of this model.
        provider, config = self.case.provider, replace(self.case.session, fixed_dims={})
        if provider.name == CPU:
            options = session_options(config, threads=self.threads)
            return create(model, provider, options)[0]
        placement, session = profile(model, provider, config, feeds, threads=self.threads)
        others = set(placement.executed) - {provider.name}
        if others or not placement.executed.get(provider.name):
            raise _Elsewhere(f"executed by {', '.join(sorted(others)) or 'nobody'}")
        return session
