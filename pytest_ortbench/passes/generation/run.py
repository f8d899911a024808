"""The generation pass on the host's side: the reference writes first, then the case is compared."""

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.generation import Decoder, Generation
from pytest_ortbench.core.outcome import CHANGED_FILE, CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.generation.facts import GenerationCheck, TextScore
from pytest_ortbench.passes.generation.planning import windows_of_text
from pytest_ortbench.passes.generation.questions import CheckGeneration, WriteContinuation

#: Tokens of a sequence that are read at once and written where there is room for so many. Every row
#: of a model gets the same, whatever its request, so that one reference serves them all.
PROMPT_TOKENS, NEW_TOKENS = 16, 32
#: Scores of the reference that are kept, in bytes.
_MOST_BYTES = 1 << 28


def measure(result: CaseResult, means: Means) -> GenerationCheck:
    """Look at what a case writes.

    Raises:
        WorkerError: if its worker fails.
    """
    case = result.case
    decoder, asked = case.model.decoder, case.generation
    if decoder is None or asked is None:
        return GenerationCheck(reason="single inferences were measured, not requests")
    if case.provider.is_endpoint:
        return GenerationCheck(reason="an endpoint gives text, which has no scores")
    looked_at = checked_request(decoder, asked, case.batch)
    text, why_no_text = _text(case, decoder)
    reference, why_none = _reference(case, looked_at, text, means.launcher)
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(means.launcher.open(case, worker=0, deadline=deadline)) as worker:
        check = worker.ask(
            CheckGeneration(
                reference=reference,
                prompt_tokens=looked_at.prompt_tokens,
                new_tokens=looked_at.new_tokens,
                text=text,
            )
        )
    check = replace(check, reference_reason=why_none)
    return replace(check, text=TextScore(reason=why_no_text)) if why_no_text else check


def _text(case: Case, decoder: Decoder) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Return the tokens of the user's text in windows, or why there are none though one is named.

    Where it can't be read a plan is refused; it may be gone by now.
    """
    if not case.sampling.text:
        return (), ""
    if decoder.heard:
        return (), "the model needs an encoder, so it can't predict text alone"
    try:
        return windows_of_text(Path(case.sampling.text), Path(case.model.path), decoder), ""
    except UsageError as error:
        return (), error.message


def _reference(
    case: Case, looked_at: Generation, text: tuple[tuple[int, ...], ...], launcher: Launcher
) -> tuple[str, str]:
    """Return a file of what the reference writes, or why there is none.

    Raises:
        WorkerError: if a file of the case turns out to be another one by now.
    """
    if case.model.random_ops:
        return "", f"the graph draws random numbers ({', '.join(case.model.random_ops)})"
    try:
        path = launcher.written_by_reference(
            _about_tokens(case, looked_at),
            f"continuation-{looked_at.prompt_tokens}-{looked_at.new_tokens}-{_digest(text)}",
            lambda right, path: WriteContinuation(case=right, text=text, path=str(path)),
        )
    except WorkerError as error:
        if error.failure.phase == CHANGED_FILE:
            raise
        return "", error.failure.told
    return str(path), ""


def checked_request(decoder: Decoder, asked: Generation, batch: int) -> Generation:
    """Return the request that is looked at: short, from an empty cache, within the context.

    Args:
        decoder: Its context may be unknown; then the request that was timed is one that fits.
        asked: What was timed.
        batch: Number of sequences.
    """
    room = decoder.context or asked.length
    prompt = max(1, min(PROMPT_TOKENS, room // 2))
    most = max(2, _MOST_BYTES // (4 * batch * decoder.vocabulary))
    # onnxruntime-genai wants room for one more than is read.
    new = max(1, min(NEW_TOKENS, most, room - prompt - 1))
    return replace(asked, engine="session", prompt_tokens=prompt, new_tokens=new, depth=0)


def _digest(text: tuple[tuple[int, ...], ...]) -> str:
    return hashlib.sha256(repr(text).encode()).hexdigest()[:12]


def _about_tokens(case: Case, looked_at: Generation) -> Case:
    """Return a case with the tokens and what is heard as its inputs, alike for all rows."""
    decoder = case.model.decoder
    assert decoder is not None
    shape = (case.batch, looked_at.prompt_tokens)
    inputs = tuple(
        replace(spec, shape=shape, resolved=()) if spec.name == decoder.ids else spec
        for spec in case.inputs
        if spec.name in (decoder.ids, *decoder.heard)
    )
    return replace(case, inputs=inputs, encoder_inputs=(), generation=looked_at)
