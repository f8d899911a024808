"""Every question that a worker answers, and the function of the worker that does.

A question that is added stands here in one line, in its module; nothing else lists it. A question
of a pass stands in the object of that pass instead. The modules of the questions travel to every
worker, and those of the functions are imported there when a question is asked for the first time.
A function gets the question and what it is about: the
:class:`~pytest_ortbench.worker.measured.MeasuredCase` that is open for a
:class:`~pytest_ortbench.schema.question.CaseQuestion`, else the
:class:`~pytest_ortbench.worker.state.WorkerState`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.passes import registry
from pytest_ortbench.schema.question import Question

A = TypeVar("A")

#: By module, then by class: ``module:function`` of what answers it.
_HANDLERS: dict[str, dict[str, str]] = {
    "pytest_ortbench.schema.runtime_questions": {
        "Inspect": "pytest_ortbench.worker.inspection:describe_interpreter",
        "ProbeProvider": "pytest_ortbench.worker.probe:probe_provider",
        "TakeChunk": "pytest_ortbench.worker.probe:take_chunk",
        "ImportRuntime": "pytest_ortbench.worker.standard:import_runtime",
    },
    "pytest_ortbench.schema.file_questions": {
        "StoreChunk": "pytest_ortbench.worker.staging:store_chunk",
        "FetchChunk": "pytest_ortbench.worker.staging:fetch_chunk",
        "SeeContents": "pytest_ortbench.worker.staging:see_contents",
    },
    "pytest_ortbench.schema.model_questions": {
        "DescribeModel": "pytest_ortbench.worker.interface:load_and_describe",
        "Convert": "pytest_ortbench.convert.make:make_variant",
        "CompileModel": "pytest_ortbench.worker.compiling:compile_model",
        "TrySession": "pytest_ortbench.worker.trying:try_session",
        "TryNodes": "pytest_ortbench.worker.trying:try_nodes",
        "ListOperators": "pytest_ortbench.worker.required_operators:list_operators",
        "CompareNodes": "pytest_ortbench.convert.by_node:compare_case",
        "WriteReference": "pytest_ortbench.worker.reference:write_reference_outputs",
        "MeasureSpread": "pytest_ortbench.worker.reference:measure_spread",
    },
    "pytest_ortbench.schema.source_questions": {
        "ExportSource": "pytest_ortbench.worker.exporting:export_source",
        "ReadVersions": "pytest_ortbench.worker.exporting:read_versions",
    },
    "pytest_ortbench.schema.case_questions": {
        "Open": "pytest_ortbench.worker.standard:open_case",
        "WarmUpFor": "pytest_ortbench.worker.standard:warm",
        "TimeBlock": "pytest_ortbench.worker.standard:time_block",
        "CheckOutputs": "pytest_ortbench.worker.standard:check_outputs",
        "ReadMemory": "pytest_ortbench.worker.standard:read_memory",
        "ProfilePlacement": "pytest_ortbench.worker.standard:profile_placement",
        "ProfileOrder": "pytest_ortbench.worker.standard:profile_order",
        "TryProduct": "pytest_ortbench.worker.standard:try_product",
        "CompareOutputs": "pytest_ortbench.worker.accuracy:compare_outputs",
    },
    "pytest_ortbench.schema.yardstick_questions": {
        "PrepareYardstick": "pytest_ortbench.yardstick.worker.answers:prepare_yardstick",
        "TimeYardstick": "pytest_ortbench.yardstick.worker.answers:time_units",
    },
    "pytest_ortbench.selfcheck.questions": {
        "TimeBare": "pytest_ortbench.selfcheck.worker.loops:time_bare",
        "LeaveOutWaiting": "pytest_ortbench.selfcheck.worker.loops:leave_out_waiting",
        "TimeByEvents": "pytest_ortbench.selfcheck.worker.loops:time_by_events",
        "CountProfile": "pytest_ortbench.selfcheck.worker.looks:count_profile",
        "TakeMemory": "pytest_ortbench.selfcheck.worker.looks:take_memory",
        "Evaluate": "pytest_ortbench.selfcheck.worker.looks:evaluate_values",
        "Replay": "pytest_ortbench.selfcheck.worker.loops:replay_graph",
        "SeeDevice": "pytest_ortbench.selfcheck.worker.looks:see_device",
        "WatchClocks": "pytest_ortbench.selfcheck.worker.looks:watch_clocks",
    },
    "pytest_ortbench.schema.side_questions": {
        "WriteOutputs": "pytest_ortbench.worker.sides:write_outputs",
        "CompareSides": "pytest_ortbench.worker.sides:compare_sides",
    },
}

#: The same by the dotted name of the class.
_STANDARD: dict[str, str] = {
    f"{module}:{question}": handler
    for module, handlers in _HANDLERS.items()
    for question, handler in handlers.items()
}


@functools.cache
def questions() -> dict[str, str]:
    """Return what answers each question, those of passes too, by the dotted name of the class."""
    of_passes = {
        entry.full_name(question): entry.full_name(handler)
        for entry in registry.PASSES
        for question, handler in entry.questions
    }
    return {**_STANDARD, **of_passes}


def handler_name(question: str) -> str:
    """Return what answers a question; a worker that is asked nothing of a pass loads none.

    Args:
        question: Dotted name of its class.

    Returns:
        Dotted name of the function; empty for what is no question.
    """
    return _STANDARD.get(question) or questions().get(question, "")


def dotted_name(question: type[Question[Any]]) -> str:
    """Return the name of a class of questions: ``module:class``."""
    return f"{question.__module__}:{question.__qualname__}"


def handler_of(question: type[Question[A]]) -> Callable[[Question[A], Any], A]:
    """Import the function that answers a class of questions, in a worker."""
    handler: Callable[[Question[A], Any], A] = import_named(handler_name(dotted_name(question)))
    return handler
