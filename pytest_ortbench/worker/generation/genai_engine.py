"""Requests that onnxruntime-genai carries out.

Reading a prompt computes the scores of its last token; the first call for a token chooses from
these, and every later one runs the model on the token before and chooses. So the first step is the
reading and one call, and a step includes the choice of its token. Templates and tokenising are
tried on a text that means the drawn tokens, apart from the request, which is fed the tokens
themselves: a text seldom comes back as exactly as many.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.generation.genai_model import PACKAGE, GenaiModel
from pytest_ortbench.worker.generation.requests import (
    LastWritten,
    decoder_in,
    generation_in,
    nothing,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]


class GenaiEngine(LastWritten):
    """Carries out requests with generators of onnxruntime-genai, each with an empty cache.

    Where tokens stand before every prompt, one generator keeps them and goes back to them. Where
    the model has a window that a request pushes them out of, they are read again before each.

    Args:
        model: What generates.
        case: Its request.
    """

    def __init__(self, model: GenaiModel, case: Case) -> None:
        self._model = model
        self._batch = case.batch
        self._length = generation_in(case).length
        self._added_work = case.added_work
        self._drops_tokens = 0 < decoder_in(case).window < self._length
        #: Where the provider has a queue of its own, a token is there once it can be read.
        self._waits = case.provider.name != CPU
        self._generator: Any = None
        self._before: Ids | None = None
        self._depth = 0
        self._template = _template_of(model)

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on.

        Raises:
            WorkerError: for several sequences, whose cache genai fills at once only.
        """
        if self._batch > 1:
            raise case_error(
                f"{PACKAGE} can read a prompt after earlier tokens (--ort-depth) for one sequence "
                f"only, but the batch size is {self._batch}",
                "Use --ort-batch-sizes=1. To measure larger batches, use --ort-engines=session",
                phase="first",
            )
        self._before, self._depth = ids, ids.shape[1]
        self._read_before(ids)

    def request(
        self, prompt: Ids, new_tokens: int, *, at_first: Callable[[], object] = nothing
    ) -> GeneratedRequest:
        """Read a prompt ``[batch, tokens]``, and write so many tokens after it.

        Args:
            prompt: The tokens that are read.
            new_tokens: How many are written.
            at_first: Called once the first one is chosen, outside the times of steps.
        """
        clock = perf_counter_ns
        text_ns = self._text_ns(prompt)
        ids = _as_given(prompt)
        if self._before is not None and self._drops_tokens:
            self._read_before(self._before)
        elif self._depth:
            self._generator.rewind_to(self._depth)
        else:
            self._generator = None  # the one before goes first: two caches would be held at a time
        started = clock()
        generator = self._generator or self._model.generator(length=self._length)
        made_ns = clock() - started
        next_token = with_added_work(generator.generate_next_token, self._added_work)
        wait = generator.get_next_tokens if self._waits else nothing
        before = clock()
        generator.append_tokens(ids)
        next_token()
        wait()
        after = clock()
        steps = [after - before]
        at_first()
        for _ in range(new_tokens - 1):
            before = clock()
            next_token()
            wait()
            after = clock()
            steps.append(after - before)
        wall_ns = after - started
        self._generator = generator
        self._written = self._read_back(generator, prompt.shape[1])
        return GeneratedRequest(
            steps_ns=tuple(steps),
            prepared_ns=None if text_ns is None else text_ns + made_ns,
            wall_ns=wall_ns,
            prompt_tokens=prompt.shape[1],
            new_tokens=self._written.shape[1],
        )

    def output(self, name: str) -> npt.NDArray[Any]:
        """Return a copy of what the last request left in an output of the model.

        Args:
            name: Of the output.
        """
        value: npt.NDArray[Any] = self._generator.get_output(name)
        return value

    def release(self) -> None:
        """Let go of the cache; no request can follow."""
        self._generator = None

    def _read_before(self, ids: Ids) -> None:
        self._generator = None  # the one before goes first: two caches would be held at a time
        self._generator = self._model.generator(length=self._length)
        self._generator.append_tokens(_as_given(ids))

    def _read_back(self, generator: Any, prompt_tokens: int) -> Ids:
        import numpy as np

        rows = [generator.get_sequence(row) for row in range(self._batch)]
        return np.stack([np.array(row[self._depth + prompt_tokens :]) for row in rows])

    def _text_ns(self, prompt: Ids) -> int | None:
        """Time template and tokenising of texts that mean a prompt; ``None`` where that can't be.

        A text goes to the tokenizer as it is only where the folder has no template.
        """
        tokenizer, apply = self._model.tokenizer, self._template
        if tokenizer is None or apply is None:
            return None
        texts = [tokenizer.decode(row) for row in _as_given(prompt)]
        encode = tokenizer.encode
        started = perf_counter_ns()
        for text in texts:
            encode(apply(text))
        return perf_counter_ns() - started


def _template_of(model: GenaiModel) -> Callable[[str], str] | None:
    """Return what makes a prompt of a text by the folder's template: the text itself without one.

    Args:
        model: With its tokenizer.

    Returns:
        ``None`` where there is a template that onnxruntime-genai can't apply.
    """
    tokenizer = model.tokenizer
    if tokenizer is None or not model.has_template:
        return str

    def apply(text: str) -> str:
        messages = json.dumps([{"role": "user", "content": text}])
        made: str = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        return made

    try:
        apply("a")
    except (RuntimeError, TypeError):  # what it says of a template; arguments of another release
        return None
    return apply


def _as_given(ids: Ids) -> npt.NDArray[np.int32]:
    import numpy as np

    return np.ascontiguousarray(ids, dtype=np.int32)
