"""What the reference of a decoder writes: its own likeliest tokens, and their scores."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import why_unreadable
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.passes.generation.questions import WriteContinuation
from pytest_ortbench.passes.generation.worker.text import nats_of_window
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from pytest_ortbench.worker.generation.first_step import FirstStep
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    TokenChoice,
    decoder_in,
    generation_in,
)
from pytest_ortbench.worker.generation.scoring import SessionScorer, at_once
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.reference import reference_label, reference_session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ortbench.worker.state import WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A prompt and what the reference writes after it.

    Attributes:
        label: What the reference is, for people.
        ids: The prompt and all written tokens, ``[batch, prompt + new]``.
        scores: After the prompt, and after each written token but the last,
            ``[batch, new, vocabulary]``.
        text_nats: What each window of the user's text is worth to it.
    """

    label: str
    ids: npt.NDArray[np.integer[Any]]
    scores: npt.NDArray[np.floating[Any]]
    text_nats: tuple[float, ...] = ()


def write_continuation(question: WriteContinuation, state: WorkerState) -> None:
    """Let the reference choose its tokens one by one, and score them all in one run."""
    import numpy as np

    state.import_runtime()
    state.enter("reference")
    case = question.case
    asked = generation_in(case)
    cpu, begun = Provider(alias="cpu", name=CPU), case.model.first_step
    first = None
    if begun is not None:
        first = FirstStep(reference_session(case, model=begun.path), begun, cpu, batch=case.batch)
    scorer = SessionScorer(
        SessionDecoder(
            reference_session(case),
            decoder_in(case),
            cpu,
            batch=case.batch,
            length=max(asked.length, *map(len, question.text), 0),
            heard=make_feeds((*case.inputs, *case.first_inputs), seed=case.seed),
            first=first,
        )
    )
    choice = TokenChoice(case)
    ids = Prompts(case, seed=0).draw(asked.prompt_tokens)
    scores = scorer.begin(ids)
    for _ in range(asked.new_tokens - 1):
        ids = np.concatenate([ids, choice.likeliest(scores)[:, None]], axis=1)
        scores = scorer.follow(ids[:, -1:])
    # One run over all tokens: no cache can make these wrong.
    lengths = range(asked.prompt_tokens, asked.prompt_tokens + asked.new_tokens)
    whole = at_once(scorer, ids, lengths)
    ids = np.concatenate([ids, choice.likeliest(whole[:, -1:])], axis=1)
    nats = [nats_of_window(scorer, window, case.batch) for window in question.text]
    path = Path(question.path)
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        np.savez(
            file,
            ids=ids,
            scores=whole,
            label=np.array(reference_label(case)),
            text_nats=np.array(nats),
        )
    unfinished.replace(path)  # it appears when it is complete


def read_continuation(path: Path, runtime: Runtime) -> Continuation:
    """Read what :func:`write_continuation` wrote.

    Args:
        path: Where this machine has it.
        runtime: Where it is read.

    Raises:
        WorkerError: if it can't be read.
    """
    import numpy as np

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return Continuation(
                label=str(stored["label"]),
                ids=stored["ids"],
                scores=stored["scores"],
                text_nats=tuple(float(nats) for nats in stored["text_nats"]),
            )
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        # The command of such a runtime may start a container.
        is_elsewhere = runtime != Runtime() and runtime.shares_files and not runtime.isolated
        if isinstance(error, FileNotFoundError) and is_elsewhere:
            raise case_error(
                f"the file {path} with the tokens of the reference model does not exist where "
                f"runtime {runtime.label!r} measures",
                f"Write shares_files = false where the runtime {runtime.label!r} is configured "
                "(pyproject.toml or ortbench.toml): each run then sends its files there. Or mount "
                f"the folder {path.parent.parent} there",
                kind="error",
                phase="reference",
            ) from error
        why, step = "is damaged", "a folder on another disk"
        if isinstance(error, FileNotFoundError):
            why, step = "was deleted during this run", "a folder that no other program cleans"
        elif isinstance(error, OSError):
            why = why_unreadable(error)[0]
        raise case_error(
            f"the file {path} with the tokens of the reference model {why}",
            f"Run again. If this happens twice, name {step} in the environment variable TMPDIR",
            kind="error",
            phase="reference",
        ) from error
