"""Is an engine timed as by hand? Run: ``python benchmarks/engine_rates.py [MODEL …]``.

``openvino-native`` as a worker times it, and a loop written by hand on the openvino package, run in
alternating blocks of about 50 ms in random order and in one process, on one thread and on the same
arrays. The loop by hand has one pair of clock readings around its whole block. Both sides get new
compiled models every few rounds, since where their weights lie moves either. Goal: the median of
the paired ratios of time per inference is within 3 %. The openvino package must be installed; it
takes a minute a model.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from array import array
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fidelity import median_of

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.memory import give_back_free_memory
from pytest_ortbench.worker.standard import opened_as

_MODELS = ("builtin:bert_tiny", "builtin:mobilenet_v2")
_ENGINE, _THREADS = "openvino-native", 1
_BLOCK_NS = 50_000_000
#: Seconds for each model, rounds before both sides get new models, and at least in all.
_SECONDS, _ROUNDS_A_MODEL, _LEAST_ROUNDS = 60.0, 10, 80
_TOLERANCE, _KNOWN_TO = 0.03, 0.005

#: Runs a number of inferences, and returns the nanoseconds of one.
Block = Callable[[int], float]


def main() -> int:
    """Compare both, and print one row a model; 1 if a goal is missed, 2 if undecided."""
    if find_spec("openvino") is None:
        print("openvino is not installed: pip install openvino")
        return 2
    print(f"{'model':14} {'by hand':>10} {'rounds':>6} {'ours / by hand - 1, 95 %':>30}  goal")
    verdicts = set()
    for spec in sys.argv[1:] or _MODELS:
        case = _case(spec)
        by_hand_ns, ratios = _compare(case)
        found = median_of(ratios)
        verdict = found.verdict(_TOLERANCE)
        verdicts.add(verdict)
        text = f"{found.value:+.2%} [{found.low:+.2%}, {found.high:+.2%}]"
        time_text = f"{by_hand_ns / 1e6:.3f} ms"
        name = case.model.name
        print(f"{name:14} {time_text:>10} {len(ratios):6} {text:>30}  3 %: {verdict}", flush=True)
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def _compare(case: Case) -> tuple[float, list[float]]:
    """Return the median time by hand, and the ratio of both times less one in every round."""
    draw = random.Random(0)
    ends = time.monotonic() + _SECONDS
    ratios: list[float] = []
    times: list[float] = []
    openers = [_ours, _by_hand]
    while len(ratios) < _LEAST_ROUNDS or (
        time.monotonic() < ends and median_of(ratios).half_width > _KNOWN_TO
    ):
        sides: dict[Callable[[Case], Block], Block] = {}
        # In random order, since it decides where weights lie.
        for opener in draw.sample(openers, 2):
            give_back_free_memory()
            sides[opener] = opener(case)
        for side in sides.values():
            side(3)
        number = max(1, round(_BLOCK_NS / sides[_by_hand](3)))
        for _ in range(_ROUNDS_A_MODEL):
            took = {opener: sides[opener](number) for opener in draw.sample(openers, 2)}
            ratios.append(took[_ours] / took[_by_hand] - 1)
            times.append(took[_by_hand])
        sides.clear()
        gc.collect()
    return sorted(times)[len(times) // 2], ratios


def _ours(case: Case) -> Block:
    measured = opened_as(case)(case, lambda _: None)
    measured.open()
    # Nothing by hand goes on with objects that are frozen.
    gc.unfreeze()
    loop = measured.live_loop()

    def block(number: int) -> float:
        durations = array("q", bytes(8 * number))
        loop(durations)
        return sum(durations) / number

    return block


def _by_hand(case: Case) -> Block:
    import openvino  # the peer itself

    feeds: dict[str, Any] = dict(make_feeds(case.inputs, seed=case.seed))
    core = openvino.Core()
    model = core.read_model(case.variant.path)
    model.reshape({name: list(value.shape) for name, value in feeds.items()})
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": _THREADS}
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    places = range(len(model.outputs))

    def block(number: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(number):
            results = request.infer(feeds, share_inputs=True)
            outputs = [results[place] for place in places]
        took = time.perf_counter_ns() - started
        del outputs
        return took / number

    return block


def _case(spec: str) -> Case:
    request = PlanRequest(models=(spec,), threads=(_THREADS,))
    (model,) = resolve_models(request.models, root=Path.cwd())
    target = Target(runtime=Runtime(), providers=(parse_provider(_ENGINE),))
    (planned,) = build_plan(request, [model], [target]).entries
    assert planned.refusal is None, planned.refusal
    return planned.case


if __name__ == "__main__":
    sys.exit(main())
