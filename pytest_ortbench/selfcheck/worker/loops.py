"""The timed loop beside loops that know nothing of it: bare, without waiting, and by events.

The loops here are written once more on purpose: a mistake of the timed loop must not be made twice.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.selfcheck.facts import EventTimes, LoopTimes, Replayed, WaitTimes
from pytest_ortbench.selfcheck.questions import LeaveOutWaiting, Replay, TimeBare, TimeByEvents
from pytest_ortbench.selfcheck.worker.cuda_driver import CudaDriver, NoCudaDriver
from pytest_ortbench.worker.binding import bind, device_of, output_device_of
from pytest_ortbench.worker.calling import Loop, single_loop
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: The setting of a run that leaves out the waiting at its end, where a provider has it.
_NO_WAITING = ("disable_synchronize_execution_providers", "1")
#: The option by which a session computes on a stream that it is given.
_STREAM = "user_compute_stream"
#: Runs after which a graph is recorded: providers record the first one or one soon after it.
_UNTIL_RECORDED = 4


def time_bare(question: TimeBare, measured: MeasuredCase) -> LoopTimes:
    """Time the loop of the case and a bare one in turns; every second round the bare one first."""
    measured.enter("measure")
    session, feeds = measured.live(), measured.feeds
    loop = measured.live_loop()
    count = question.iterations

    def bare_ns() -> int:
        started = time.perf_counter_ns()
        for _ in range(count):
            session.run(None, feeds)
        return (time.perf_counter_ns() - started) // count

    ours: list[int] = []
    bare: list[int] = []
    ends = time.monotonic() + question.within_s
    for number in range(question.rounds):
        if number >= question.least and time.monotonic() > ends:
            break
        if number % 2:
            bare.append(bare_ns())
        ours.append(_mean_ns(loop, count))
        if not number % 2:
            bare.append(bare_ns())
    return LoopTimes(ours_ns=tuple(ours), bare_ns=tuple(bare), iterations=count)


def leave_out_waiting(question: LeaveOutWaiting, measured: MeasuredCase) -> WaitTimes:
    """Run the timed loop, then one that only starts inferences; wait for the device behind each."""
    measured.enter("measure")
    case, session = measured.case, measured.live()
    device, index = output_device_of(case.provider)
    if device == "cpu" or case.io != "device":
        return WaitTimes(on_host=True)
    binding = measured.binding or bind(session, measured.feeds, case.provider)
    loop = single_loop(case, session, measured.feeds, binding)
    without = _without_waiting()
    wait, arbiter = _arbiter(case.provider.name, index, binding)

    def launch() -> None:
        for _ in range(question.iterations):
            session.run_with_iobinding(binding, without)

    durations = array("q", bytes(8 * question.iterations))
    wait()
    idle = [_took_ns(wait) for _ in range(question.rounds)]
    ours, ours_left, launched, launched_left = [], [], [], []
    for _ in range(question.rounds):
        ours.append(_took_ns(lambda: loop(durations)))
        ours_left.append(_took_ns(wait))
        launched.append(_took_ns(launch))
        launched_left.append(_took_ns(wait))
    return WaitTimes(
        device=f"{device}:{index}",
        ours_ns=tuple(ours),
        ours_left_ns=tuple(ours_left),
        launched_ns=tuple(launched),
        launched_left_ns=tuple(launched_left),
        idle_ns=tuple(idle),
        arbiter=arbiter,
    )


def time_by_events(question: TimeByEvents, measured: MeasuredCase) -> EventTimes:
    """Time inferences of a session on a stream of ours by events on that stream."""
    measured.enter("measure")
    case = measured.case
    provider = measured.uncaptured
    if provider.name not in NVIDIA:
        return EventTimes(reason="nothing tells events of the device of this provider")
    try:
        driver = CudaDriver(device_of(provider)[1])
    except NoCudaDriver as error:
        return EventTimes(reason=str(error))
    stream = driver.stream()
    with_stream = replace(provider, options={**provider.options, _STREAM: str(stream)})
    options = session_options(case.session, threads=measured.threads)
    session, _ = create(case.variant.path, with_stream, options)
    binding = bind(session, measured.feeds, with_stream)
    without = _without_waiting()
    loop = single_loop(case, session, measured.feeds, binding)
    _mean_ns(loop, question.iterations)
    ours: list[int] = []
    device: list[int] = []
    for _ in range(question.rounds):
        ours.append(_mean_ns(loop, question.iterations))
        timed = [
            driver.between_events_ns(stream, lambda: session.run_with_iobinding(binding, without))
            for _ in range(question.iterations)
        ]
        device.append(sum(timed) // len(timed))
    return EventTimes(ours_ns=tuple(ours), device_ns=tuple(device))


def replay_graph(question: Replay, measured: MeasuredCase) -> Replayed:
    """Bind values once, record the graph, change the values where they lie, and replay it."""
    measured.enter("measure")
    ort, _ = load()
    import numpy as np  # comes with ONNX Runtime

    case = measured.case
    options = session_options(case.session, threads=measured.threads)
    session, _ = create(case.variant.path, case.provider, options)
    [(name, drawn)] = measured.feeds.items()
    assert isinstance(drawn, np.ndarray)
    recorded, given = (
        np.asarray(values, dtype=drawn.dtype).reshape(drawn.shape)
        for values in (question.recorded, question.given)
    )
    value = ort.OrtValue.ortvalue_from_numpy(recorded, *device_of(case.provider))
    binding = session.io_binding()
    binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name, *output_device_of(case.provider))
    for _ in range(_UNTIL_RECORDED):
        session.run_with_iobinding(binding)
    value.update_inplace(given)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    answers = np.asarray(binding.copy_outputs_to_cpu()[0]).astype(np.float64).ravel()
    return Replayed(answers=tuple(float(answer) for answer in answers))


def _without_waiting() -> Any:
    """Settings of a run that only starts its work: events on the stream come behind all of it."""
    ort, _ = load()
    settings = ort.RunOptions()
    settings.add_run_config_entry(*_NO_WAITING)
    return settings


def _arbiter(name: str, index: int, binding: Any) -> tuple[Callable[[], object], str]:
    """What waits until a device has done everything, and what that is called."""
    if name in NVIDIA:
        driver = CudaDriver(index)
        return driver.synchronise, "cuCtxSynchronize"

    def copied() -> object:
        binding.synchronize_outputs()
        return binding.copy_outputs_to_cpu()

    # Outputs that are on the host are there.
    return copied, "outputs copied to the host"


def _mean_ns(loop: Loop, count: int) -> int:
    durations = array("q", bytes(8 * count))
    loop(durations)
    return sum(durations) // count


def _took_ns(work: Callable[[], object]) -> int:
    started = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - started
