"""What the standard pass asks: open a case, warm up, time blocks, look at outputs and memory.

All of it is imported before the case's objects are frozen: garbage collections in timed blocks must
not go through modules of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.measurement import Memory, OutputCheck, Placement
from pytest_ortbench.core.samples import Block, WarmUp
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    KeptBits,
    Open,
    Opened,
    ProfileOrder,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
    TryProduct,
    WarmUpFor,
)
from pytest_ortbench.worker import outputs
from pytest_ortbench.worker.contention import counter_growth, most_growth
from pytest_ortbench.worker.measured import MeasuredCase, room_for
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.worker.timing import clock_pair_ns
from pytest_ortbench.worker.warm_up import least_seconds, warm_up

if TYPE_CHECKING:
    from pytest_ortbench.schema.runtime_questions import ImportRuntime


def import_runtime(question: ImportRuntime, state: WorkerState) -> None:
    """Import ONNX Runtime; this module, which opens a case, has been imported by then."""
    del question
    state.import_runtime()


def open_case(question: Open, state: WorkerState) -> Opened:
    """Open a case, which later questions are about.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    unconfirmed = check_entries(question.case, state)
    why_not = {name: import_named(asked) for name, asked in question.why_not.items()}
    measured = opened_as(question.case)(question.case, state.enter, engines=question.engines)
    # Before it is open: a refusal tells what was fed to the session.
    state.measured = measured
    startup = measured.open()
    return Opened(
        info=measured.describe(),
        startup=startup,
        threads=measured.threads,
        threads_source=measured.threads_source,
        cpus=measured.cpus,
        options_in_force=measured.options_in_force(),
        unconfirmed={**unconfirmed, **measured.unconfirmed},
        clock_pair_ns=clock_pair_ns(),
        impossible=impossible_passes(question.case.provider, why_not),
    )


def opened_as(case: Case) -> type[MeasuredCase]:
    """Return what measures a case: inferences, or requests of a language model."""
    if not case.provider.is_execution_provider and case.generation is not None:
        from pytest_ortbench.worker.generation.engine_requests import (
            request_case_of,  # seldom needed
        )

        return request_case_of(case)
    if not case.provider.is_execution_provider:
        from pytest_ortbench.worker.engine_case import EngineCase  # seldom needed

        return EngineCase
    if case.generation is None:
        return MeasuredCase
    if case.generation.engine == "genai":
        from pytest_ortbench.worker.generation.genai_case import GenaiCase  # seldom needed

        return GenaiCase
    from pytest_ortbench.worker.generation.generating_case import GeneratingCase  # likewise

    return GeneratingCase


def impossible_passes(
    provider: Provider, why_not: Mapping[str, Callable[[Provider], str]]
) -> dict[str, str]:
    """Return why passes can't be carried out on a provider here, by their names.

    Args:
        provider: The provider.
        why_not: What says so of each pass; an empty text where it can be carried out.
    """
    reasons = {name: ask(provider) for name, ask in why_not.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def check_entries(case: Case, state: WorkerState) -> dict[str, str]:
    """Return which session entries of a case nothing confirms, and why not.

    It is found out before anything is measured, since looking into the library takes memory.
    """
    if not case.session.entries:
        return {}
    from pytest_ortbench.worker.session_entries import unconfirmed_entries  # seldom needed

    state.import_runtime()
    state.enter("session")
    return unconfirmed_entries(case)


def warm(question: WarmUpFor, measured: MeasuredCase) -> WarmUp:
    """Run until no trend is left."""
    measured.enter("warm-up")
    case = measured.case
    cpu_before = time.process_time_ns()
    warmed = warm_up(
        measured.run_timed,
        least_s=least_seconds(case.provider),
        budget_s=question.budget_s,
        callers=case.callers,
    )
    return replace(warmed, cpu_ns=time.process_time_ns() - cpu_before)


def time_block(question: TimeBlock, measured: MeasuredCase) -> Block:
    """Time single inferences in a row; counters are read outside the timed region."""
    measured.enter("measure")
    loop, durations = measured.live_loop(), room_for(question.iterations)
    with measured.watch.counted():
        if question.untimed:
            loop(room_for(question.untimed))
            measured.take_requests()
        before = measured.contention.read()
        cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
        loop(durations)
        wall_ns = time.perf_counter_ns() - wall_before
        cpu_ns = time.process_time_ns() - cpu_before
        after = measured.contention.read()
    return Block(
        durations_ns=tuple(durations),
        wall_ns=wall_ns,
        cpu_ns=cpu_ns,
        steal_ticks=counter_growth(before.steal_ticks, after.steal_ticks),
        total_ticks=counter_growth(before.total_ticks, after.total_ticks),
        throttled_ns=most_growth(before.throttled_ns, after.throttled_ns),
        requests=measured.take_requests(),
    )


def check_outputs(question: CheckOutputs, measured: MeasuredCase) -> OutputCheck:
    """Look at the outputs of one more inference; what looking takes is none of its memory."""
    measured.enter("measure")
    values = measured.outputs()
    checked = outputs.check(question.run, values, measured.feeds)
    with measured.watch.counted():
        del values
    return checked


def read_memory(question: ReadMemory, measured: MeasuredCase) -> Memory:
    """Say what session and runs took."""
    del question
    measured.enter("memory")
    watch, device = measured.watch, measured.device
    device_bytes, device_source = device.read()
    return Memory(
        source=watch.source,
        baseline_bytes=watch.baseline,
        session_bytes=measured.session_bytes,
        after_session_bytes=measured.after_session_bytes,
        peak_bytes=watch.peak_rise(),
        after_runs_bytes=watch.rise(),
        process_peak_bytes=watch.process_peak,
        device_bytes=device_bytes,
        device_source=device_source,
        device_neighbours=device.neighbours(),
        device=device.device,
    )


def profile_order(question: ProfileOrder, measured: MeasuredCase) -> Placement:
    """Profile a session whose chain has another order.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    links = measured.uncaptured.links
    return measured.placed_on(Provider.chain(links[place] for place in question.order))


def profile_placement(question: ProfilePlacement, measured: MeasuredCase) -> Placement:
    """Release the measured session and profile another one; no block can follow."""
    del question
    measured.enter("profile")
    return measured.placed()


def try_product(question: TryProduct, measured: MeasuredCase) -> KeptBits:
    """Say what a product of float32 keeps on the engine of the case."""
    del question
    measured.enter("profile")
    return KeptBits(bits=measured.product_bits())
