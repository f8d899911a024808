"""The ways of calling a session: one caller or several, bound or not, at once or asynchronously."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.async_calls import AsyncCalls
from pytest_ortbench.worker.binding import bind
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.device_wait import waiting
from pytest_ortbench.worker.ort_values import plain_call
from pytest_ortbench.worker.session import is_compiled_in
from pytest_ortbench.worker.timing import time_bound_runs, time_runs

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

#: Providers whose runs return when their own work is done. To synchronise waits for the whole
#: device there, with what other callers have on it, and no other thread goes on meanwhile.
_WAITS_IN_RUN = (
    "CUDAExecutionProvider",
    "TensorrtExecutionProvider",
    "NvTensorRTRTXExecutionProvider",
    "ROCMExecutionProvider",
)

#: Providers whose sessions in one process record into the same commands, where they are compiled
#: in. *Seen* with onnxruntime-webgpu 1.27: runs on one session wait for each other, and are right;
#: of runs on two at a time most values were wrong, without an error, and some processes ended with
#: SIGSEGV. So it is where outputs are brought from the device while another thread runs. By its
#: sources, the plug-in of that provider records a session's commands apart.
_RECORDS_TOGETHER = (WEBGPU,)

#: Fills an array with the nanoseconds of one inference each.
Loop = Callable[["array[int]"], None]
#: Keeps all callers busy until a function that is called after each inference, with the number of
#: its caller, says that it is enough.
Until = Callable[[Callable[[int], bool]], None]


def require_safe_callers(case: Case) -> None:
    """Refuse callers whose runs would mix on the device.

    Raises:
        WorkerError: ``unsupported``, with the way that is safe.
    """
    mixing = [
        link
        for link in case.provider.links
        if link.name in _RECORDS_TOGETHER and is_compiled_in(link)
    ]
    if not mixing or case.callers == 1:
        return
    provider = mixing[0]
    if case.sessions > 1:
        raise case_error(
            f"{case.sessions} sessions of {provider.name} in one process compute wrong values",
            hint=f"Write --ort-processes={case.sessions} in place of "
            f"--ort-sessions={case.sessions}",
        )
    if case.io == "device":
        raise case_error(
            f"with --ort-io=device and several callers, {provider.name} can't tell when the "
            "outputs of one caller are ready",
            hint=f"To keep --ort-io=device, write --ort-processes={case.callers} in place of "
            f"--ort-concurrency={case.callers}. To keep --ort-concurrency={case.callers}, write "
            "--ort-io=end-to-end",
        )


def binding_of(
    case: Case, session: InferenceSession, feeds: Mapping[str, object]
) -> IOBinding | None:
    """Bind the inputs and outputs of a caller, where the case has them on the device."""
    return bind(session, feeds, case.provider) if case.io == "device" else None


def loop_of(
    case: Case,
    sessions: Sequence[InferenceSession],
    feeds: Mapping[str, object],
    bindings: Sequence[IOBinding | None],
) -> Loop:
    """Return the timed loop of a case over all its sessions and callers.

    Args:
        case: What is measured.
        sessions: Its sessions.
        feeds: What every inference is fed.
        bindings: Those of the first caller of each session.
    """
    if case.call == "async":
        return AsyncCalls(sessions, feeds, case.concurrency)
    if case.callers == 1:
        return single_loop(case, sessions[0], feeds, bindings[0])
    calls: list[Callable[[], object]] = []
    for session, binding in zip(sessions, bindings, strict=True):
        calls.append(call_of(case, session, feeds, binding))
        calls += [call_of(case, session, feeds) for _ in range(case.concurrency - 1)]
    return Callers(calls)


def single_loop(
    case: Case,
    session: InferenceSession,
    feeds: Mapping[str, object],
    binding: IOBinding | None = None,
) -> Loop:
    """Return the timed loop of one caller on one session, with its binding if it has one."""
    binding = binding or binding_of(case, session, feeds)
    if binding is not None:
        return functools.partial(
            time_bound_runs, session.run_with_iobinding, binding, waiting(binding, case.provider)
        )
    run, given = plain_call(session, feeds)
    return functools.partial(time_runs, with_added_work(run, case.added_work), given)


def until_of(loop: Loop) -> Until:
    """Return what runs the inferences of a loop for as long as somebody wants."""
    if isinstance(loop, Callers | AsyncCalls):
        return loop.until
    duration = array("q", bytes(8))
    return alone(lambda: loop(duration))


def alone(infer: Callable[[], object]) -> Until:
    """Return the same for one caller."""

    def until(over: Callable[[int], bool]) -> None:
        infer()
        while not over(0):
            infer()

    return until


def call_of(
    case: Case,
    session: InferenceSession,
    feeds: Mapping[str, object],
    binding: IOBinding | None = None,
) -> Callable[[], object]:
    """One caller's inference, its inputs and outputs being its own."""
    binding = binding or binding_of(case, session, feeds)
    if binding is None:
        run, given = plain_call(session, feeds)
        return functools.partial(run, None, given)
    if case.callers > 1 and case.provider.name in _WAITS_IN_RUN:
        return functools.partial(session.run_with_iobinding, binding)
    return functools.partial(_run_bound, session, binding, waiting(binding, case.provider))


def outputs_of(
    session: InferenceSession,
    feeds: Mapping[str, object],
    binding: IOBinding | None,
    counted: Callable[[], AbstractContextManager[None]],
) -> Sequence[object]:
    """Run one more inference and return its outputs on the host.

    Args:
        session: The session.
        feeds: What it is fed.
        binding: What the timed loop has bound, so that no memory is taken that it does not take; a
            recorded graph writes nowhere else. *Seen*: to copy bound outputs of text ends the
            process.
        counted: Is entered around the inference, and not around what brings outputs to the host.
    """
    if binding is None:
        with counted():
            outputs: Sequence[object] = session.run(None, feeds)
        return outputs
    with counted():
        _run_bound(session, binding, binding.synchronize_outputs)
    copied: Sequence[object] = binding.copy_outputs_to_cpu()
    return copied


def _run_bound(session: InferenceSession, binding: IOBinding, wait: Callable[[], object]) -> None:
    """Run one inference on what is bound, until the outputs are there."""
    session.run_with_iobinding(binding)
    wait()
