"""One start under known conditions, and the first inference of every further shape after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.passes.startup.facts import FurtherShape, ShapeStart, StartTrial
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.worker.calling import call_of
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.page_cache import set_state
from pytest_ortbench.worker.standard import check_entries, opened_as
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.worker.timing import median

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: Runs after a first one, whose median says what it would take otherwise.
_AGAIN = 3


def start_case(question: StartUp, state: WorkerState) -> StartTrial:
    """Start a case in this process, which has done nothing yet.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    check_entries(question.case, state)
    if question.case.provider.is_execution_provider:
        state.import_runtime()
    # One session and one caller: others would be told from it by nothing.
    case = replace(question.case, sessions=1, concurrency=1, call="sync")
    measured = opened_as(case)(case, state.enter, engines=question.engines)
    # Nothing but the session reads the files from here on.
    share, reason = set_state(files_of(question), question.page_cache)
    startup = measured.open()
    state.enter("first")
    return StartTrial(
        page_cache=question.page_cache,
        resident=share,
        reason=reason,
        engines=startup.cache,
        import_ns=startup.import_ns,
        provider_init_ns=startup.provider_init_ns,
        build_ns=startup.build_ns,
        session_create_ns=startup.session_create_ns + (startup.compile_ns or 0),
        first_inference_ns=startup.first_inference_ns,
        again_ns=_again(measured.calls()[0]),
        shapes=tuple(_shape(measured.live(), case, shape) for shape in question.shapes),
    )


def files_of(question: StartUp) -> list[Path]:
    """Return the files that are read to start a case: the model's, or those of its source."""
    if question.case.source_files:
        return list(map(Path, question.case.source_files))
    path = Path(question.case.variant.path)
    return [path, *(path.parent / name for name in question.external_files)]


def _shape(session: InferenceSession, case: Case, shape: FurtherShape) -> ShapeStart:
    if captures_graph(case.provider):
        return ShapeStart(label=shape.label, reason="a recorded graph replays one shape only")
    if case.session.fixed_dims:
        return ShapeStart(
            label=shape.label, reason="the session is told one size of each dimension"
        )
    if case.provider.role == "engine":
        return ShapeStart(
            label=shape.label, reason=f"{case.provider.name} has the model at one shape only"
        )
    try:
        run = call_of(case, session, make_feeds(shape.inputs, seed=case.seed))
        started = time.perf_counter_ns()
        run()
        first_ns = time.perf_counter_ns() - started
        return ShapeStart(label=shape.label, first_ns=first_ns, again_ns=_again(run))
    except Exception as error:  # noqa: BLE001 - native errors have no common base class
        # That shape has a case of its own, whose failure tells more.
        return ShapeStart(label=shape.label, reason=" ".join(str(error).split())[:200])


def _again(run: Callable[[], object]) -> int:
    times = []
    for _ in range(_AGAIN):
        started = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - started)
    return round(median(times))
