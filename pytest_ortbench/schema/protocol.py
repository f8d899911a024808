"""What host and worker say to each other: one message a frame, and nothing else.

The host asks a :class:`~pytest_ortbench.schema.question.Question`, the worker answers it once.
Before its answer the worker may say any number of times which phase it enters. An answer is a value
of the type that the question names, or a :class:`Refusal`. After :class:`Close` the worker ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.schema.question import Question
from pytest_ortbench.schema.question_table import dotted_name, handler_name
from pytest_ortbench.schema.wire import Plain, WireError, from_plain, to_plain

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """End the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntered:
    """The worker begins with ``phase``, a key of :func:`~pytest_ortbench.core.failure.phases`."""

    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The worker could not do it and lives on: raw facts, from which the host makes a failure.

    Attributes:
        phase: Where it happened.
        error: Class of the exception (``InvalidArgument``), or one of the worker's own reasons.
        text: Its message as it was.
        version: ``onnxruntime.__version__``, empty before the import.
        numpy: numpy's version, empty where it could not be imported.
        available_providers: What the runtime claims to have.
        session_providers: What the session lists, if one was made.
        fed: Inputs as they were fed, for people: ``x: float32 [2, 6]``.
        declared: Inputs as the model declares them: ``x: tensor(float) ['B', 6]``.
        failure: What the worker found out by itself; nothing is left to be explained then.
        provider: Full name of the link of a chain that it is about; empty where nothing tells.
    """

    phase: str
    error: str
    text: str
    version: str = ""
    numpy: str = ""
    available_providers: tuple[str, ...] = ()
    session_providers: tuple[str, ...] = ()
    fed: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    failure: Failure | None = None
    provider: str = ""


_CLOSE, _PHASE, _REFUSAL, _ANSWER = "Close", "PhaseEntered", "Refusal", "answer"


def pack_question(question: Question[Any] | Close) -> Plain:
    """Wrap what the host says with its name, ready for a frame."""
    name = _CLOSE if isinstance(question, Close) else dotted_name(type(question))
    return {"message": name, "value": to_plain(question)}


def pack_answer(message: object) -> Plain:
    """Wrap an answer, a phase or a refusal with its kind, ready for a frame."""
    kinds = {PhaseEntered: _PHASE, Refusal: _REFUSAL}
    return {"message": kinds.get(type(message), _ANSWER), "value": to_plain(message)}


def unpack_question(plain: Plain) -> Question[Any] | Close:
    """Read what the host asks.

    Raises:
        WireError: if it is none of the questions.
    """
    name, value = _open(plain)
    if name == _CLOSE:
        return from_plain(Close, value)
    if not handler_name(name):
        raise WireError(f"unknown question {name!r}")
    question: Question[Any] = from_plain(import_named(name), value)
    return question


def unpack_answer(plain: Plain, answer: type[A]) -> A | PhaseEntered | Refusal:
    """Read what the worker says.

    Args:
        plain: What came.
        answer: The type of the answer that is waited for.

    Raises:
        WireError: if it is neither that nor a phase nor a refusal.
    """
    name, value = _open(plain)
    if name == _PHASE:
        return from_plain(PhaseEntered, value)
    if name == _REFUSAL:
        return from_plain(Refusal, value)
    if name != _ANSWER:
        raise WireError(f"unknown answer {name!r}")
    return from_plain(answer, value)


def _open(plain: Plain) -> tuple[str, Plain]:
    if isinstance(plain, dict) and isinstance(plain.get("message"), str) and "value" in plain:
        return plain["message"], plain["value"]
    raise WireError(f"{str(plain)[:60]!r} is not a message")
