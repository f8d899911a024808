"""About how long cases take to measure, before the first of them and while they are measured.

Nothing here reads a clock. What a case asks for is known (workers, seconds, passes); what a start
takes is measured while the plan is made; what an inference takes is a rough guess from the size of
the model, until a case of it was measured, in this run or an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from pytest_ortbench.analysis.order import samples_needed
from pytest_ortbench.analysis.stopping import BLOCK_NS, MIN_SAMPLES
from pytest_ortbench.core.case import FLOAT_TYPES, Case, Key
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.worker.accuracy import SAMPLES
from pytest_ortbench.worker.warm_up import least_seconds
from pytest_ortbench.yardstick.choice import (
    SHARE,
    expected_absence,
)
from pytest_ortbench.yardstick.choice import (
    START_S as START_OF_YARDSTICK_S,
)

#: A process starts, loads ONNX Runtime and numpy, and ends: seen on two cores, idle. Whoever plans
#: has started one, and knows better.
START_S = 0.4

#: A session is created about so fast, file and weights read, the graph optimised.
_LOADED_BYTES_A_S = 1e8

#: Starts of a process that the reference takes: its own, and what the host does beside it.
_STARTS_OF_REFERENCE = 1.5

#: Starts of a process that the first worker takes for its profiled session, and inferences of it:
#: one is profiled, which takes longer, and one comes before.
_STARTS_OF_FIRST, _PROFILED = 0.4, 2.5

#: What is over says that much at most of how much longer, or shorter, the rest takes than expected.
_PACES = (0.3, 10.0)

#: Inferences of a worker that nobody times: the first one, and those whose outputs are looked at.
_LOOKED_AT = 4

#: Runs that end a warm-up, and of inferences that are long from here on; see ``worker.warm_up``.
_WARM_UP_RUNS, _LONG_S, _LONG_RUNS = 20, 0.1, 5

#: Multiply-accumulates a second of a small machine on two threads, and for each weight of a network
#: on pictures those of one picture, by its size: between half and three times what eight networks
#: have. Of networks on tokens many weights are tables that are looked up: between one and five
#: times what two small ones take.
_MACS_A_S, _THREADS = 2e10, 2
_PIXELS_A_USE, _TOKENS_A_USE = 200, 6

#: What a token takes besides its multiplications: its cache is bound, the next one is chosen.
_TOKEN_S = 0.002

#: Operators that look values up, each at most once an item.
_TREES = {
    "ai.onnx.ml::TreeEnsemble",
    "ai.onnx.ml::TreeEnsembleClassifier",
    "ai.onnx.ml::TreeEnsembleRegressor",
}

#: Starts of a process that a conversion takes, with the tools that it imports, and that compiling
#: ahead takes; and how fast both go through a file.
_STARTS_OF_CONVERSION, _CONVERTED_BYTES_A_S = 3.0, 2e7
_STARTS_OF_COMPILATION, _COMPILED_BYTES_A_S = 2.0, 2e7

#: Blocks after which the median of a worker is known at the earliest: segments of it are compared,
#: and a yardstick has its rounds by then. A p99, which the table shows, is known by then, too.
_EARLIEST_BLOCKS, _PERCENTILE = 2, 99

#: A pass that does not say what it takes: one worker that starts, warms up and does something.
_ANY_PASS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """About how long one case takes, by its parts.

    Attributes:
        reference_s: Its reference outputs, in a process of their own; 0 where another case of the
            same model and sizes has made them.
        worker_s: One worker without its timed blocks: start, load, warm-up, memory.
        first_s: What only the first worker does: placement and accuracy.
        timed_s: Timed blocks of all workers together.
        workers: How many workers there are.
        passes_s: Passes beside the standard one.
    """

    reference_s: float
    worker_s: float
    first_s: float
    timed_s: float
    workers: int
    passes_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All parts together."""
        return (
            self.reference_s
            + self.workers * self.worker_s
            + self.first_s
            + self.timed_s
            + self.passes_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a case took, or is guessed to take.

    Attributes:
        reference_s: Its reference outputs.
        start_s: One worker without warm-up and timed blocks; with its yardstick.
        first_s: What the first worker did beside that.
        inference_s: One timed unit, which may be a whole request.
        timed_share: Share of the seconds that were asked for.
        elements: Values that one inference was fed.
        warm_up_s: The warm-up of a worker; ``None`` where it is guessed.
    """

    reference_s: float
    start_s: float
    first_s: float
    inference_s: float
    timed_share: float
    elements: int = 0
    warm_up_s: float | None = None


@dataclass(slots=True)
class Costs:
    """What starts, loads and inferences take on this machine, as far as anybody knows.

    Attributes:
        start_s: Seconds of a worker until it has loaded what runs the model, by the label of its
            runtime.
        usual_start_s: The same of runtimes of which nobody knows.
        unsettled_share: Share of the seconds beyond the earliest end of a worker that are timed
            where nothing is known of the model: 0 where every median is known at once, 1 where none
            is before the seconds that were asked for are over.
    """

    start_s: dict[str, float] = field(default_factory=dict)
    usual_start_s: float = START_S
    unsettled_share: float = 1.0
    _of_case: dict[Key, _Seen] = field(default_factory=dict)
    _of_model: dict[tuple[object, ...], _Seen] = field(default_factory=dict)

    def learn(self, result: CaseResult) -> None:
        """Take what a measured case took for what it, and others of its model, will take."""
        seen = _seen(result)
        if seen is None:
            return
        alike = _alike(result.case)
        earlier = self._of_model.get(alike)
        if earlier is not None:
            # Only the first case of a model waits for reference outputs; and a warm-up that was
            # cut off says little of a longer one.
            seen = replace(
                seen,
                reference_s=max(seen.reference_s, earlier.reference_s),
                warm_up_s=max(seen.warm_up_s or 0.0, earlier.warm_up_s or 0.0),
            )
        self._of_case[result.case.key] = self._of_model[alike] = seen

    def expected(
        self, case: Case, passes: Collection[str] = (), *, has_reference: bool = False
    ) -> Expected:
        """Return about how long a case takes.

        Args:
            case: The case.
            passes: Passes beside the standard one, as they are asked for: ``NAME`` or
                ``NAME:ARGUMENT``.
            has_reference: Whether its reference outputs are there already.
        """
        seen = self._known(case)
        sampling = case.sampling
        workers = max(1, sampling.workers)
        least = max(
            MIN_SAMPLES * workers,
            samples_needed(50),
            sampling.min_samples,
        )
        expected = Expected(
            reference_s=0.0 if has_reference else seen.reference_s,
            worker_s=seen.start_s + _warm_up_s(case, seen),
            first_s=seen.first_s,
            timed_s=max(seen.timed_share * sampling.time_s, least * seen.inference_s),
            workers=workers,
        )
        most_s = sampling.timeout_s + expected.reference_s
        if expected.total_s > most_s:
            # The timeout ends it; who takes the time does not matter then.
            rest_s = most_s - expected.reference_s
            expected = replace(expected, worker_s=0.0, first_s=0.0, timed_s=rest_s)
        names = [name.partition(":")[0] for name in passes]
        return replace(
            expected,
            passes_s=sum(_pass_s(name, case, expected.worker_s) for name in dict.fromkeys(names)),
        )

    def total_s(self, asked: Iterable[tuple[Case, Collection[str]]]) -> float:
        """Return about how long cases take one after the other, each with its passes.

        The reference outputs of a model at one choice of sizes are made once.
        """
        total_s = 0.0
        referred: set[tuple[object, ...]] = set()
        for case, passes in asked:
            key = (case.model.path, *((spec.name, spec.shape) for spec in case.inputs))
            expected = self.expected(case, passes, has_reference=key in referred)
            referred.add(key)
            total_s += expected.total_s
        return total_s

    def start_of(self, runtime: str) -> float:
        """Return about how long a process of a runtime takes to start."""
        return self.start_s.get(runtime, self.usual_start_s)

    def _known(self, case: Case) -> _Seen:
        """Say what a case took, or another one of its model, or what is guessed."""
        seen = self._of_case.get(case.key)
        if seen is not None:
            return seen
        seen = self._of_model.get(_alike(case))
        if seen is None:
            return _guessed(case, self.start_of(case.runtime.label), self.unsettled_share)
        more = _elements(case) / max(1, seen.elements)
        return replace(seen, inference_s=seen.inference_s * more)


def conversion_takes_s(case: Case, costs: Costs) -> float:
    """Return about how long the file of a precision takes that is not there yet."""
    size_s = case.model.size_bytes / _CONVERTED_BYTES_A_S
    return _STARTS_OF_CONVERSION * costs.start_of("current") + size_s


def compilation_takes_s(case: Case, costs: Costs) -> float:
    """Return about how long a provider takes to compile a file that is not there yet."""
    size_s = case.variant.size_bytes / _COMPILED_BYTES_A_S
    return _STARTS_OF_COMPILATION * costs.start_of(case.runtime.label) + size_s


def _alike(case: Case) -> tuple[object, ...]:
    """Return what cases have in common whose starts and inferences take about as long."""
    return (
        case.model.digest or case.model.path,
        case.runtime.label,
        case.provider.label,
        case.generation is None,
    )


def _elements(case: Case) -> int:
    """Return how many values one inference is fed."""
    return sum(math.prod(spec.shape) for spec in case.inputs)


def _seen(result: CaseResult) -> _Seen | None:
    """Say what a result took; ``None`` for one that holds nothing of that."""
    measured = [part for part in result.measurements if part.samples.count]
    if result.status != "measured" or not measured:
        return None
    others = measured[1:] or measured
    start_s = median(part.overhead_ns for part in others) * 1e-9
    taken_s = [
        (part.overhead_ns + part.warm_up.total_ns + part.samples.wall_ns) * 1e-9
        for part in measured
    ]
    timed_s = sum(part.samples.wall_ns for part in measured) * 1e-9
    return _Seen(
        reference_s=max(0.0, result.wall_s - sum(taken_s)),
        start_s=start_s,
        first_s=max(0.0, measured[0].overhead_ns * 1e-9 - start_s),
        inference_s=timed_s / sum(part.samples.count for part in measured),
        timed_share=min(1.0, timed_s / max(1e-9, result.case.sampling.time_s)),
        elements=_elements(result.case),
        warm_up_s=median(part.warm_up.total_ns for part in others) * 1e-9,
    )


def _guessed(case: Case, start_s: float, unsettled_share: float) -> _Seen:
    """Say what a case takes of which nothing like it was measured."""
    load_s = case.variant.size_bytes / _LOADED_BYTES_A_S
    inference_s = _rough_inference_s(case) * _slower_on_fewer_threads(case)
    timed_share = _timed_share(case, inference_s, unsettled_share)
    return _Seen(
        # On all threads, whatever the case is asked to take.
        reference_s=_STARTS_OF_REFERENCE * start_s + load_s + SAMPLES * _rough_inference_s(case),
        start_s=start_s + load_s + _LOOKED_AT * inference_s + _yardstick_s(case, timed_share),
        first_s=_STARTS_OF_FIRST * start_s + load_s + (SAMPLES + _PROFILED) * inference_s,
        inference_s=inference_s,
        timed_share=timed_share,
    )


def _timed_share(case: Case, inference_s: float, unsettled_share: float) -> float:
    """Say what share of the seconds is timed: a worker whose median is known ends earlier."""
    sampling = case.sampling
    workers = max(1, sampling.workers)
    asked_s = sampling.time_s / workers
    samples_s = samples_needed(_PERCENTILE) / workers * inference_s
    earliest_s = min(asked_s, max(_EARLIEST_BLOCKS * BLOCK_NS * 1e-9, samples_s))
    return (earliest_s + unsettled_share * (asked_s - earliest_s)) / max(1e-9, asked_s)


def _yardstick_s(case: Case, timed_share: float) -> float:
    """Say what a yardstick takes beside one worker: its share of the start, and its turns."""
    if expected_absence(case):
        return 0.0
    whole_s = START_OF_YARDSTICK_S + SHARE * timed_share * case.sampling.time_s
    return whole_s / max(1, case.sampling.workers)


def _rough_inference_s(case: Case) -> float:
    """Guess an inference from the number of weights and how often each of them is used.

    Trees and tables use each value once at most, a network on pictures a weight for each patch, one
    on sequences for each step.
    """
    if case.model.op_types.keys() & _TREES:
        return 0.0
    if case.generation is not None:
        asked = case.generation
        tokens = case.batch * (asked.prompt_tokens + asked.new_tokens)
        return case.model.parameters * tokens / _MACS_A_S + asked.new_tokens * _TOKEN_S
    uses = 1.0
    for spec in case.inputs:
        if len(spec.shape) >= 4:
            pixels = spec.shape[0] * math.prod(spec.shape[2:])
            uses = max(uses, pixels / _PIXELS_A_USE)
        elif spec.type not in FLOAT_TYPES:
            uses = max(uses, math.prod(spec.shape) / _TOKENS_A_USE)
    return case.model.parameters * uses / _MACS_A_S


def _slower_on_fewer_threads(case: Case) -> float:
    """Say how many times as long an inference takes on the threads that the case is to have."""
    asked = case.session.intra_op_num_threads or _THREADS
    return _THREADS / min(asked, _THREADS)


def _warm_up_s(case: Case, seen: _Seen) -> float:
    """Say what a warm-up takes: what it did, else as few runs as end it, as far as it may."""
    inference_s = seen.inference_s
    most_s = max(warm_up_budget_s(case), MIN_SAMPLES * inference_s)
    if seen.warm_up_s is not None:
        return min(seen.warm_up_s, most_s)
    runs = _LONG_RUNS if inference_s >= _LONG_S else _WARM_UP_RUNS
    wanted_s = max(least_seconds(case.provider), runs * inference_s)
    return min(wanted_s, most_s)


def pace_of(taken_s: float, expected_s: float) -> float:
    """Return by which factor what is over took longer than expected, as far as it says so."""
    return min(_PACES[1], max(_PACES[0], taken_s / expected_s)) if expected_s else 1.0


def _pass_s(name: str, case: Case, worker_s: float) -> float:
    """Say what a pass takes: a worker of its own, and what the pass says of itself."""
    entry = next((entry for entry in PASSES if entry.name == name), None)
    if entry is not None and entry.takes_as_inferences:
        return case.sampling.workers * worker_s + case.sampling.time_s
    if entry is None or not entry.takes:
        return worker_s + _ANY_PASS_S
    taken_s: float = entry.load(entry.takes)(case, worker_s)
    return taken_s
