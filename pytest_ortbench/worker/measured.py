"""One case in this process: its sessions, its feeds, and the ways of running them."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.measurement import Placement, RuntimeInfo, Startup
from pytest_ortbench.worker.async_calls import require_async
from pytest_ortbench.worker.binding import has_numeric_outputs, output_device_of
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.calling import (
    Loop,
    binding_of,
    call_of,
    loop_of,
    outputs_of,
    require_safe_callers,
    single_loop,
)
from pytest_ortbench.worker.contention import ContentionMeter
from pytest_ortbench.worker.device_memory import DeviceMemory
from pytest_ortbench.worker.device_wait import device_wait
from pytest_ortbench.worker.engine_cache import with_cache
from pytest_ortbench.worker.generation.held_rows import held_outputs, with_held_rows
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.inspection import describe_measured
from pytest_ortbench.worker.memory import (
    MemoryWatch,
    ResidentSource,
    best_source,
    give_back_free_memory,
)
from pytest_ortbench.worker.ort_values import is_bound
from pytest_ortbench.worker.provider_options import OptionEvidence
from pytest_ortbench.worker.runtime import allowed, load
from pytest_ortbench.worker.session import (
    create,
    initialise,
    require_fixed,
    session_options,
    told_as_compiled,
)
from pytest_ortbench.worker.software_device import software_device

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

    from pytest_ortbench.engines.seam import Sender
    from pytest_ortbench.worker.called import Session

Enter = Callable[[str], None]


class MeasuredCase:
    """A case from its first inference to its last: what handlers of questions work on.

    Attributes:
        case: What was asked.
        enter: Called with each phase as it begins.
        session: The live session, ``None`` before and between sessions.
        others: The sessions beside it, where the case has several.
        feeds: The values that are fed.
        binding: What the timed loop has bound on the device, if a look at outputs has to use it.
        watch: Follows the resident memory.
        device: Follows the memory of the device.
        contention: Reads what others took from the machine.
        uncaptured: The provider, as it records no graph.
        threads: Intra-op threads in force.
        threads_source: Why that number.
        cpus: CPUs that the process may use.
        session_bytes: Peak of resident memory while the sessions were made.
        after_session_bytes: Resident memory once they were made.
        kept: What handlers keep from one question to the next, by a name of theirs.

    Args:
        case: What to measure.
        enter: Called with each phase as it begins.
        engines: Folder for engines that providers build; empty keeps none.
    """

    watch: MemoryWatch
    device: DeviceMemory

    def __init__(self, case: Case, enter: Enter, *, engines: str = "") -> None:
        self.case = case
        self.enter = enter
        self.session: InferenceSession | None = None
        self.others: list[InferenceSession] = []
        self.feeds: Mapping[str, object] = {}
        self.binding: IOBinding | None = None
        self.contention = ContentionMeter()
        self._options = OptionEvidence(case.provider)
        self._provider, self._cache = with_cache(case, engines)
        self.uncaptured = without_capture(self._provider)
        self._loop: Loop | None = None
        may_use = allowed()
        wanted = case.session.intra_op_num_threads
        self.threads = may_use.threads if wanted is None else wanted
        self.threads_source = may_use.source if wanted is None else "option"
        self.cpus = may_use.cpus
        self.session_bytes: int | None = None
        self.after_session_bytes: int | None = None
        self.kept: dict[str, object] = {}

    def open(self) -> Startup:
        """Make inputs and session, and run the first inference, each timed apart.

        Raises:
            Exception: what ONNX Runtime raises, see
                :func:`~pytest_ortbench.worker.session.create`.
        """
        self.enter("import")
        import_ns = self._import()
        self.device = DeviceMemory(self.case.provider)
        self.enter("inputs")
        self.feeds = make_feeds(self.case.inputs, seed=self.case.seed)
        self.enter("session")
        provider_ns = self._initialise()
        self.device.note_context()
        gc.collect()
        give_back_free_memory()
        self.watch = MemoryWatch(self.memory_source())
        session_ns = self._create()
        self.session_bytes = self.watch.peak_rise()
        self.after_session_bytes = self.watch.rise()
        self.enter("first")
        first_ns = self._first_inference()
        # Garbage collections are part of what an application pays for its outputs, but our own
        # modules are none of its objects.
        gc.collect()
        gc.freeze()
        return Startup(
            import_ns=import_ns,
            provider_init_ns=provider_ns,
            session_create_ns=session_ns,
            first_inference_ns=first_ns,
            cache=self._cache,
        )

    def memory_source(self) -> ResidentSource:
        """Return where the resident memory of the case is read."""
        return best_source()

    def _import(self) -> int:
        """Import what measures, and return the nanoseconds that it took."""
        return load()[1]

    def _initialise(self) -> int | None:
        """Make the provider ready, and return the nanoseconds; ``None`` for none that does."""
        if self.case.call == "async":
            require_async(load()[0], threads=self.threads, io=self.case.io)
        require_safe_callers(self.case)
        provider_ns = initialise(self.case.provider, threads=self.threads)
        self._options.try_out(threads=self.threads)
        if self.case.io == "device":
            device_wait(self.case.provider)  # its session is none of the case's memory
        return provider_ns

    def _create(self) -> int:
        """Make the sessions, and return the nanoseconds that the first one took."""
        # Of their own, since a session adds its plug-in's device to them.
        first, *others = [
            session_options(self.case.session, threads=self.threads)
            for _ in range(self.case.sessions)
        ]
        path = self.case.variant.path
        with self.watch.counted(), told_as_compiled(self.case):
            self.session, session_ns = create(path, self._provider, first)
            self.others = [create(path, self._provider, options)[0] for options in others]
        require_fixed(self.session, self.case.session)
        return session_ns

    def describe(self) -> RuntimeInfo:
        """Return what this interpreter is, once the case is open."""
        return replace(describe_measured(), software_device=software_device(self.case.provider))

    @property
    def unconfirmed(self) -> dict[str, str]:
        """Options of the provider that nothing confirms, and why not."""
        return self._options.unconfirmed

    def _first_inference(self) -> int:
        """Time the first inference of the first session alone; then all callers stand ready."""
        session = self.live()
        sessions = [session, *self.others]
        bindings = [binding_of(self.case, opened, self.feeds) for opened in sessions]
        captured = self.uncaptured != self._provider
        if bindings[0] is not None and (captured or has_numeric_outputs(session)):
            self.binding = bindings[0]
        took = array("q")
        for opened, binding in zip(sessions, bindings, strict=True):
            self._loop = single_loop(self.case, opened, self.feeds, binding)
            took += self.run_timed(1)
        if self.case.callers > 1 or self.case.call != "sync":
            self._loop = loop_of(self.case, sessions, self.feeds, bindings)
        return took[0]

    def release(self) -> None:
        """Let go of the measured sessions; no block can follow."""
        if isinstance(self._loop, Callers):
            self._loop.close()
        self._loop = self.binding = None
        self.session = None
        self.others = []
        # A profiled session that stands in for it records no graph.
        self._provider = self.uncaptured
        gc.collect()

    def options_in_force(self) -> dict[str, str]:
        """Return what the session reads back for the asked provider."""
        options = self._options.in_force(self.live())
        if self.case.io == "device":
            device, index = output_device_of(self.case.provider)
            options["io_binding"] = f"{device}:{index}"
        elif is_bound(self.live()):
            options["io_binding"] = "cpu:0"
        return options

    def outputs(self) -> Sequence[object]:
        """Run one more inference, and return its outputs.

        That inference counts for the case's memory like any other: the second one of a session is
        the one for which ONNX Runtime lays out the memory of all later ones. A recorded graph
        writes into the outputs of the timed loop only.
        """
        outputs = outputs_of(self.live(), self.feeds, self.binding, self.watch.counted)
        names = [info.name for info in self.live().get_outputs()]
        return held_outputs(outputs, names, self.case.model.decoder, self.feeds)

    def placed(self) -> Placement:
        """Release the measured session, and profile another one, which stands in for it."""
        self.release()
        placement, self.session = self._profiled(self.uncaptured, tries_products=True)
        return placement

    def product_bits(self) -> int | None:
        """Return what a product keeps on an engine; placement tells it of a provider."""
        return None

    def placed_on(self, provider: Provider) -> Placement:
        """Profile a session on another provider, once the measured one was released."""
        return self._profiled(provider)[0]

    def _profiled(
        self, provider: Provider, *, tries_products: bool = False
    ) -> tuple[Placement, InferenceSession]:
        from pytest_ortbench.worker.profiling import profile, with_product_bits  # by one worker

        placement, session = profile(
            self.case.variant.path,
            provider,
            self.case.session,
            self.feeds,
            threads=self.threads,
        )
        if tries_products:
            placement = with_product_bits(placement, self.case, threads=self.threads)
        return placement, session

    def run_timed(self, iterations: int) -> array[int]:
        """Time single inferences in a row, and return what each took in nanoseconds."""
        loop, durations = self.live_loop(), room_for(iterations)
        with self.watch.counted():
            loop(durations)
        return durations

    def take_requests(self) -> tuple[GeneratedRequest, ...]:
        """Return what the requests of the last loop took; nothing where inferences are timed."""
        return ()

    def calls(self) -> list[Callable[[], object]]:
        """Return what each caller runs over and over: one inference, the session being its own."""
        return [
            call_of(self.case, session, self.feeds)
            for session in [self.live(), *self.others]
            for _ in range(self.case.concurrency)
        ]

    def sender(
        self,
        *,
        timeout_s: float,
        percents: Sequence[float],
        holds_failures: bool,
        reference: str = "",
    ) -> Sender | None:
        """Return what sends requests as they arrive; ``None`` where callers run inferences.

        Args:
            timeout_s: After which a request has failed.
            percents: Percentiles of what it finds out.
            holds_failures: Whether a request that failed is done only when this time is over.
            reference: File of reference outputs, which answers are compared with; empty for none.
        """
        del timeout_s, percents, holds_failures, reference
        return None

    def live_loop(self) -> Loop:
        """Return the timed loop over all sessions and callers.

        Raises:
            RuntimeError: if there is none: the case is not open, or its sessions were released.
        """
        if self._loop is None:
            raise RuntimeError("no measured session: it is not open, or was released to profile")
        return self._loop

    def for_any_input(self) -> Session:
        """Return the measured session, or another one where it replays the graph of one input."""
        if self.uncaptured == self._provider:
            session: Session = self.live()
        else:
            options = session_options(self.case.session, threads=self.threads)
            session = create(self.case.variant.path, self.uncaptured, options)[0]
        return with_held_rows(session, self.case.model.decoder)

    def live(self) -> InferenceSession:
        """Return the first measured session, or the profiled one that stands in for it.

        Raises:
            RuntimeError: if there is none.
        """
        if self.session is None:
            raise RuntimeError("no session is open")
        return self.session


def room_for(iterations: int) -> array[int]:
    """Return room for durations: 8 bytes each, touched before anything is measured."""
    return array("q", bytes(8 * iterations))
