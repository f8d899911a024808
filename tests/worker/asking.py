"""Questions about an open case, answered in this process."""

from __future__ import annotations

from typing import TypeVar

from pytest_ortbench.schema.question import CaseQuestion
from pytest_ortbench.schema.question_table import handler_of
from pytest_ortbench.worker.measured import MeasuredCase

A = TypeVar("A")


def ask(measured: MeasuredCase, question: CaseQuestion[A]) -> A:
    """Return what the handler of a question answers."""
    return handler_of(type(question))(question, measured)
