"""One case in this process: its session, its feeds, and everything that is measured on them."""

from __future__ import annotations

import functools
import gc
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.load import LoadTest
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Memory,
    OutputCheck,
    Placement,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.precision import has_fixed_ranges
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.soak import Soak
from pytest_ortbench.core.stages import FrameBlock, StagesReady
from pytest_ortbench.core.task import Dataset, TaskAccuracy
from pytest_ortbench.schema.protocol import Opened, PutUnderLoad
from pytest_ortbench.worker import outputs
from pytest_ortbench.worker.async_calls import require_async
from pytest_ortbench.worker.binding import device_of, has_numeric_outputs
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.calling import (
    binding_of,
    call_of,
    loop_of,
    outputs_of,
    single_loop,
    until_of,
)
from pytest_ortbench.worker.contention import ContentionMeter, counter_growth, most_growth
from pytest_ortbench.worker.device_memory import DeviceMemory
from pytest_ortbench.worker.energy_meter import open_meter, why_no_meter
from pytest_ortbench.worker.engine_cache import with_cache
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.inspection import describe_measured
from pytest_ortbench.worker.memory import MemoryWatch, best_source
from pytest_ortbench.worker.meter import NoMeter
from pytest_ortbench.worker.probe import initialise
from pytest_ortbench.worker.profiling import profile
from pytest_ortbench.worker.provider_options import OptionEvidence
from pytest_ortbench.worker.runtime import allowed, load
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.timing import clock_pair_ns, median
from pytest_ortbench.worker.warm_up import least_seconds, warm_up

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

    from pytest_ortbench.worker.stages import UserStages

Enter = Callable[[str], None]


class MeasuredCase:
    """A case from its first inference to its last.

    Attributes:
        case: What was asked.
        session: The live session, ``None`` before and between sessions.
        feeds: The values that are fed.

    Args:
        case: What to measure.
        enter: Called with each phase as it begins.
        engines: Folder for engines that providers build; empty keeps none.
    """

    def __init__(self, case: Case, enter: Enter, *, engines: str = "") -> None:
        self.case = case
        self.session: InferenceSession | None = None
        self.feeds: Mapping[str, object] = {}
        self._enter = enter
        self._options = OptionEvidence(case.provider)
        self._provider, self._cache = with_cache(case, engines)
        self._uncaptured = without_capture(self._provider)
        self._others: list[InferenceSession] = []
        self._binding: IOBinding | None = None
        self._loop: Callable[[array[int]], None] | None = None
        self._stages: UserStages | None = None
        self._contention = ContentionMeter()
        self._session_bytes: int | None = None
        self._after_session_bytes: int | None = None
        may_use = allowed()
        wanted = case.session.intra_op_num_threads
        self._threads = may_use.threads if wanted is None else wanted
        self._threads_source = may_use.source if wanted is None else "option"
        self._cpus = may_use.cpus

    def open(self) -> Opened:
        """Make inputs and session, and run the first inference, each timed apart.

        Raises:
            Exception: what ONNX Runtime raises, see
                :func:`~pytest_ortbench.worker.session.create`.
        """
        self._enter("import")
        ort, import_ns = load()
        if self.case.call == "async":
            require_async(ort, threads=self._threads, io=self.case.io)
        self._device = DeviceMemory(self.case.provider)
        self._enter("inputs")
        self.feeds = make_feeds(self.case.inputs, seed=self.case.seed)
        self._enter("session")
        provider_ns = initialise(self.case.provider, threads=self._threads)
        self._options.try_out(threads=self._threads)
        self._device.note_context()
        gc.collect()
        self._watch = MemoryWatch(best_source())
        # Of their own, since a session adds its plug-in's device to them.
        first, *others = [
            session_options(self.case.session, threads=self._threads)
            for _ in range(self.case.sessions)
        ]
        with self._watch.counted():
            self.session, session_ns = create(self.case.variant.path, self._provider, first)
            self._others = [
                create(self.case.variant.path, self._provider, options)[0] for options in others
            ]
        self._session_bytes = self._watch.peak_rise()
        self._after_session_bytes = self._watch.rise()
        self._enter("first")
        first_ns = self._first_inference(self.session)
        # Garbage collections are part of what an application pays for its outputs, but our own
        # modules are none of its objects.
        gc.collect()
        gc.freeze()
        return Opened(
            info=describe_measured(),
            startup=Startup(
                import_ns=import_ns,
                provider_init_ns=provider_ns,
                session_create_ns=session_ns,
                first_inference_ns=first_ns,
                cache=self._cache,
            ),
            threads=self._threads,
            threads_source=self._threads_source,
            cpus=self._cpus,
            options_in_force=self._options_in_force(self.session),
            unconfirmed=self._options.unconfirmed,
            clock_pair_ns=clock_pair_ns(),
            no_energy=why_no_meter(self.case.provider),
        )

    def warm(self, budget_s: float) -> WarmUp:
        """Run until no trend is left."""
        self._enter("warm-up")
        least_s, callers = least_seconds(self.case.provider), self.case.callers
        return warm_up(self._run_timed, least_s=least_s, budget_s=budget_s, callers=callers)

    def block(self, iterations: int) -> Block:
        """Time single inferences in a row; counters are read outside the timed region."""
        self._enter("measure")
        loop, durations = self._live_loop(), _room_for(iterations)
        with self._watch.counted():
            before = self._contention.read()
            cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
            loop(durations)
            wall_ns = time.perf_counter_ns() - wall_before
            cpu_ns = time.process_time_ns() - cpu_before
            after = self._contention.read()
        return Block(
            durations_ns=tuple(durations),
            wall_ns=wall_ns,
            cpu_ns=cpu_ns,
            steal_ticks=counter_growth(before.steal_ticks, after.steal_ticks),
            total_ticks=counter_growth(before.total_ticks, after.total_ticks),
            throttled_ns=most_growth(before.throttled_ns, after.throttled_ns),
        )

    def check(self, run: str) -> OutputCheck:
        """Look at the outputs of one more inference.

        That inference counts for the case's memory like any other: the second one of a session is
        the one for which ONNX Runtime lays out the memory of all later ones. What the looking
        takes does not. A recorded graph writes into the outputs of the timed loop only.
        """
        self._enter("measure")
        found = outputs_of(self._live(), self.feeds, self._binding, self._watch.counted)
        checked = outputs.check(run, found, self.feeds)
        with self._watch.counted():
            del found
        return checked

    def memory(self) -> Memory:
        """Say what session and runs took."""
        self._enter("memory")
        device_bytes, device_source = self._device.read()
        return Memory(
            source=self._watch.source,
            baseline_bytes=self._watch.baseline,
            session_bytes=self._session_bytes,
            after_session_bytes=self._after_session_bytes,
            peak_bytes=self._watch.peak_rise(),
            after_runs_bytes=self._watch.rise(),
            process_peak_bytes=self._watch.process_peak,
            device_bytes=device_bytes,
            device_source=device_source,
            device_neighbours=self._device.neighbours(),
            device=self._device.device,
        )

    def placement(self) -> Placement:
        """Release the measured session and profile another one; no block can follow."""
        self._enter("profile")
        self._release()
        self._provider = self._uncaptured
        file, config = self.case.variant.path, self.case.session
        placement, self.session = profile(
            file, self._provider, config, self.feeds, threads=self._threads
        )
        return placement

    def accuracy(self, reference: Path) -> Accuracy:
        """Compare outputs with the reference's."""
        from pytest_ortbench.worker import accuracy  # needs numpy

        self._enter("accuracy")
        # Ranges that were fixed beforehand hold at the magnitude that they were taken at.
        magnitudes = (1.0,) if has_fixed_ranges(self.case) else None
        return accuracy.compare(self.for_any_input(), reference, magnitudes=magnitudes)

    def operators(self, keep: Path | None) -> OperatorProfile:
        """Time the measured session, release it, and profile another one; no block can follow."""
        from pytest_ortbench.worker.operator_profile import plain_runs, profile_operators

        self._enter("profile")
        # One caller, as in the profiled session.
        single = single_loop(self.case, self._live(), self.feeds)
        plain = plain_runs(functools.partial(single, _room_for(1)))
        del single
        self._release()
        return profile_operators(
            self.case, self.feeds, plain, threads=self._threads, cpus=self._cpus, keep=keep
        )

    def energy(self, budget_s: float) -> Energy:
        """Put the session under load and read the device's meter meanwhile."""
        # Most workers never need it.
        from pytest_ortbench.worker.energy import EnergyPass, Procedure
        from pytest_ortbench.worker.energy_trace import Least

        self._enter("energy")
        try:
            meter = open_meter(self.case.provider)
        except NoMeter as error:
            return Energy(reason=str(error))
        others = self._device.neighbours()
        if others:
            whose = f"{others} other processes" if others > 1 else "another process"
            return Energy(reason=f"{whose} computed on the device; its energy can't be told apart")
        load, callers = until_of(self._live_loop()), self.case.callers
        procedure = Procedure(least=Least(seconds=self.case.sampling.energy_window_s))
        return EnergyPass(meter, load, callers=callers, procedure=procedure).run(budget_s)

    def soak(self, seconds: float, shapes: Sequence[tuple[InputSpec, ...]] = ()) -> Soak:
        """Run on and on, through all shapes in turn if any, and watch resident memory."""
        from pytest_ortbench.worker.soak import in_turn, soak  # most workers never need it

        self._enter("soak")
        source = best_source()
        loop, duration = self._live_loop(), _room_for(self.case.callers)
        infer: Callable[[], object] = lambda: loop(duration)  # noqa: E731 - one of two
        if shapes:
            feeds = [make_feeds(specs, seed=self.case.seed) for specs in shapes]
            infer = in_turn([call_of(self.case, self._live(), each) for each in feeds])
        return soak(
            infer,
            lambda: source.read().now,
            seconds=seconds,
            source=source.name,
            each=1 if shapes else self.case.callers,
            shapes=max(1, len(shapes)),
        )

    def task(self, dataset: Dataset, reference: str) -> TaskAccuracy:
        """Run labelled data through the measured session, and compare with the reference's scores.

        Raises:
            WorkerError: if the data can't be used.
        """
        from pytest_ortbench.worker import task  # needs numpy, and most workers never need it

        self._enter("task")
        scores = task.score(self.for_any_input(), dataset, self.case.batch)
        return task.hold_against_reference(scores, dataset, Path(reference) if reference else None)

    def load_stages(self, path: Path, budget_s: float) -> StagesReady:
        """Load the user's stages, send every frame through once, and warm up."""
        from pytest_ortbench.worker.stages import UserStages  # most workers never need it

        self._enter("stages")
        self._stages = stages = UserStages(path, self._live(), self.case.inputs, self.feeds)
        stages.check()
        warmed = warm_up(
            lambda count: array("q", stages.sequential(count).frame_ns),
            least_s=least_seconds(self.case.provider),
            budget_s=budget_s,
        )
        return StagesReady(
            functions=stages.functions,
            frames=len(stages.frames),
            typical_ns=round(median(warmed.durations_ns[-5:])),
        )

    def frames(self, count: int, *, overlapped: bool) -> FrameBlock:
        """Send frames through the stages that were loaded."""
        self._enter("stages")
        if self._stages is None:
            raise RuntimeError("no stages are loaded")
        return self._stages.overlapped(count) if overlapped else self._stages.sequential(count)

    def load(self, asked: PutUnderLoad) -> LoadTest:
        """Run one test of MLPerf's load generator; the callers are the case's own number."""
        from pytest_ortbench.worker.load import NoGenerator, put_under_load  # seldom needed

        self._enter("load")
        sessions = [self._live(), *self._others]
        calls = [
            call_of(self.case, session, self.feeds)
            for session in sessions
            for _ in range(self.case.concurrency)
        ]
        try:
            return put_under_load(calls, asked)
        except NoGenerator as error:
            return LoadTest(reasons=(str(error),))

    def _first_inference(self, session: InferenceSession) -> int:
        """Time the first inference of the first session alone; then all callers stand ready."""
        sessions = [session, *self._others]
        bindings = [binding_of(self.case, each, self.feeds) for each in sessions]
        captured = self._uncaptured != self._provider
        if bindings[0] is not None and (captured or has_numeric_outputs(session)):
            self._binding = bindings[0]
        took = array("q")
        for each, binding in zip(sessions, bindings, strict=True):
            self._loop = single_loop(self.case, each, self.feeds, binding)
            took += self._run_timed(1)
        if self.case.callers > 1 or self.case.call != "sync":
            self._loop = loop_of(self.case, sessions, self.feeds, bindings)
        return took[0]

    def _release(self) -> None:
        """Let go of the measured sessions; no block can follow."""
        if isinstance(self._loop, Callers):
            self._loop.close()
        self._loop = self._binding = None
        self.session = None
        self._others = []
        gc.collect()

    def _options_in_force(self, session: InferenceSession) -> dict[str, str]:
        options = self._options.in_force(session)
        if self.case.io == "device":
            device, index = device_of(self.case.provider)
            options["io_binding"] = f"{device}:{index}"
        return options

    def _run_timed(self, iterations: int) -> array[int]:
        loop, durations = self._live_loop(), _room_for(iterations)
        with self._watch.counted():
            loop(durations)
        return durations

    def _live_loop(self) -> Callable[[array[int]], None]:
        if self._loop is None:
            raise RuntimeError("no measured session: it is not open, or was released to profile")
        return self._loop

    def for_any_input(self) -> InferenceSession:
        """The measured session, or another one where that replays the graph of one input."""
        if self._uncaptured == self._provider:
            return self._live()
        options = session_options(self.case.session, threads=self._threads)
        return create(self.case.variant.path, self._uncaptured, options)[0]

    def _live(self) -> InferenceSession:
        if self.session is None:
            raise RuntimeError("no session is open")
        return self.session


def _room_for(iterations: int) -> array[int]:
    """Room for durations: 8 bytes each, touched before anything is measured."""
    return array("q", bytes(8 * iterations))
