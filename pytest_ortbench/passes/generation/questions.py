"""What the host asks about what a decoder writes."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.generation.facts import GenerationCheck
from pytest_ortbench.schema.question import (
    CaseOfReference,
    CaseQuestion,
    Question,
    ReadFile,
    WrittenFile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContinuation(Question[None]):
    """Let the reference of a case go on with a drawn prompt; write its tokens and their scores.

    Attributes:
        case: The case that is right; its request says how many tokens are read and written.
        text: Tokens of the user's text, in windows that are scored, too.
        path: Where they go.
    """

    case: CaseOfReference
    text: tuple[tuple[int, ...], ...] = ()
    path: WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGeneration(CaseQuestion[GenerationCheck]):
    """Compare what the open case writes with itself and with the reference.

    Attributes:
        reference: File of the reference's tokens and scores; empty for none.
        prompt_tokens: Tokens that are read at once.
        new_tokens: Tokens that are written.
        text: Tokens of the user's text, in windows.
    """

    reference: ReadFile = ""
    prompt_tokens: int
    new_tokens: int
    text: tuple[tuple[int, ...], ...] = ()
