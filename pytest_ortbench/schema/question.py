"""A question to a worker: its class names the type of the answer, and which fields name files.

A question is a frozen dataclass below :class:`Question`, which stands in
:mod:`~pytest_ortbench.schema.question_table` with the function that answers it. Standard library
only: this travels to workers.
"""

from __future__ import annotations

import dataclasses
import typing
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.recipe import Conversion

A = TypeVar("A")


class Question(Generic[A]):
    """What the host asks a worker, whose answer is an ``A``.

    Attributes:
        opens_session: Whether the worker makes a session for it, which may end on another device.
    """

    __slots__ = ()
    opens_session: ClassVar[bool] = False


class CaseQuestion(Question[A]):
    """A question about the case that is open."""

    __slots__ = ()


class FileMark(Enum):
    """Mark of a field: which files of the host it names.

    A worker that does not see the host's files gets copies, and the host gets what it wrote.
    """

    #: A file that the worker reads; an empty path names none.
    READ = "read"
    #: A file that the worker writes; an empty path names none.
    WRITTEN = "written"
    #: Labelled data.
    LABELLED = "labelled"
    #: The variant, inputs and libraries of a case that is measured.
    MEASURED = "measured"
    #: The model as the user named it, inputs and libraries of a case whose reference is computed.
    REFERENCE = "reference"
    #: What a variant is made from; such a worker runs where the host does.
    CONVERTED = "converted"


ReadFile = Annotated[str, FileMark.READ]
WrittenFile = Annotated[str, FileMark.WRITTEN]
LabelledData = Annotated[Dataset, FileMark.LABELLED]
CaseToMeasure = Annotated[Case, FileMark.MEASURED]
CaseOfReference = Annotated[Case, FileMark.REFERENCE]
ModelToConvert = Annotated[Conversion, FileMark.CONVERTED]


def answer_type(question: type[Question[A]]) -> type[A]:
    """Return the type of the answer to a class of questions."""
    for base in vars(question).get("__orig_bases__", ()):
        origin = typing.get_origin(base)
        if isinstance(origin, type) and issubclass(origin, Question):
            (answer,) = typing.get_args(base)
            return typing.cast("type[A]", answer)
    raise TypeError(f"{question.__name__} does not say what its answer is")


def files_in(question: type[Question[Any]]) -> dict[str, FileMark]:
    """Return which fields of a class of questions name files of the host, in order."""
    if question not in _FILES:
        hints = typing.get_type_hints(question, include_extras=True)
        _FILES[question] = {
            field.name: mark
            for field in dataclasses.fields(typing.cast(Any, question))
            for mark in getattr(hints[field.name], "__metadata__", ())
            if isinstance(mark, FileMark)
        }
    return _FILES[question]


#: What :func:`files_in` found out, since blocks are asked for by the dozen.
_FILES: dict[type[Question[Any]], dict[str, FileMark]] = {}


def case_in(question: Question[Any]) -> Case | None:
    """Return the first case that a question names, ``None`` if it names none."""
    values = (getattr(question, name) for name in files_in(type(question)))
    return next((value for value in values if isinstance(value, Case)), None)
