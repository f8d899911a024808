"""Questions to a worker: each stands in the table, names its answer, and has a handler for it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.recipe import Conversion
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.questions import SoakFor
from pytest_ortbench.passes.task.questions import ScoreTask
from pytest_ortbench.schema.case_questions import Open
from pytest_ortbench.schema.protocol import (
    PhaseEntered,
    pack_question,
    unpack_answer,
    unpack_question,
)
from pytest_ortbench.schema.question import (
    CaseQuestion,
    FileMark,
    Question,
    answer_type,
    case_in,
    files_in,
)
from pytest_ortbench.schema.question_table import dotted_name, handler_of, questions
from pytest_ortbench.schema.wire import WireError, decode_frame
from pytest_ortbench.worker.main import Conversation
from pytest_ortbench.worker.state import WorkerState
from tests.parsed import product, tree_of
from tests.results_factory import make_case


def questions_in_sources() -> set[str]:
    """The dotted names of all classes of the package that are derived from a question."""
    bases = {"Question", "CaseQuestion"}
    return {
        f"pytest_ortbench.{path.removesuffix('.py').replace('/', '.')}:{node.name}"
        for path, text in product().items()
        if "Question[" in text
        for node in tree_of(text).body
        if isinstance(node, ast.ClassDef) and node.name not in bases
        for base in node.bases
        if isinstance(base, ast.Subscript) and ast.unparse(base.value) in bases
    }


def test_every_question_stands_in_the_table() -> None:
    assert set(questions()) == questions_in_sources()


@pytest.mark.parametrize("name", questions())
def test_a_question_has_a_handler_that_takes_it_and_gives_its_answer(name: str) -> None:
    question = import_named(name)
    assert dotted_name(question) == name
    assert dataclasses.is_dataclass(question)
    state = "MeasuredCase" if issubclass(question, CaseQuestion) else "WorkerState"
    answer = answer_type(question)
    assert list(inspect.get_annotations(handler_of(question)).values()) == [
        question.__name__,
        state,
        "None" if answer is type(None) else answer.__name__,
    ]


#: The type of a field that bears a mark.
TYPES = {
    FileMark.READ: "str",
    FileMark.WRITTEN: "str",
    FileMark.LABELLED: Dataset.__name__,
    FileMark.MEASURED: Case.__name__,
    FileMark.REFERENCE: Case.__name__,
    FileMark.CONVERTED: Conversion.__name__,
}


@pytest.mark.parametrize("name", questions())
def test_a_field_that_names_files_says_which(name: str) -> None:
    question = import_named(name)
    marks = files_in(question)
    unmarked = inspect.get_annotations(question, eval_str=True)
    for field, kind in unmarked.items():
        origin = getattr(kind, "__origin__", kind)
        if field in marks:
            assert origin.__name__ == TYPES[marks[field]]
        else:
            assert kind not in (Case, Dataset, Conversion), field


def test_files_are_found_in_the_order_of_the_fields() -> None:
    assert files_in(ScoreTask) == {"dataset": FileMark.LABELLED, "reference": FileMark.READ}
    assert files_in(SoakFor) == {}
    case = make_case()
    assert case_in(Open(case=case)) is case
    assert case_in(SoakFor(seconds=1.0)) is None


def test_a_class_without_an_answer_is_refused() -> None:
    class Unfinished(Question):  # type: ignore[type-arg]  # it names no answer, which is refused
        pass

    with pytest.raises(TypeError, match="Unfinished does not say what its answer is"):
        answer_type(Unfinished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the question below is answered with."""

    words: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountWords(Question[Counted]):
    """A question that is added to the table for one test."""

    text: str


def count_words(question: CountWords, state: WorkerState) -> Counted:
    state.enter("inputs")
    words = tuple(question.text.split())
    return Counted(words=words, count=len(words))


class Written:
    """Takes what a conversation writes."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, data: memoryview) -> int:
        self.lines.append(bytes(data))
        return len(data)


def test_a_new_question_needs_its_class_its_handler_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = dotted_name(CountWords)
    question = CountWords(text="a b a")
    packed = pack_question(question)
    with pytest.raises(WireError, match="unknown question"):
        unpack_question(packed)
    monkeypatch.setitem(questions(), name, f"{__name__}:count_words")
    arrived = unpack_question(packed)
    assert arrived == question
    written: Any = Written()
    assert isinstance(arrived, Question)
    Conversation(written, "t").answer(arrived)
    phase, answer = (
        unpack_answer(decode_frame("t", line)[1], answer_type(CountWords)) for line in written.lines
    )
    assert phase == PhaseEntered(phase="inputs")
    assert answer == Counted(words=("a", "b", "a"), count=3)
    assert answer_type(SoakFor) is Soak
