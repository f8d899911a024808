"""Requests that ``generate`` of transformers carries out.

A streamer is told of the prompt before the first step, and of each token once it is chosen: a step
is what lies between two of these calls, so it holds all that ``generate`` does for a token. What
it does before the first step is preparation. ``min_new_tokens`` keeps the end of a text from being
chosen, so that every request writes as many tokens as were asked for; that it is looked for stays
part of each token.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.engines.torch.worker.stepping import CachedModel, copied, word_for_cache
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.generation.requests import (
    LastWritten,
    decoder_in,
    known_tokens,
    nothing,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]


class TokenWatch:
    """A streamer that notes when each token was there.

    Attributes:
        begun_ns: When the prompt was handed over: everything before is preparation.
        steps_ns: Time of each token.

    Args:
        at_first: Called once the first token is chosen, outside the times of steps.
        work: Done for each token, inside the times of steps.
        clock: Nanoseconds; a test sets its own time.
    """

    def __init__(
        self,
        at_first: Callable[[], object],
        work: Callable[[], object],
        *,
        clock: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self.begun_ns = 0
        self.steps_ns: list[int] = []
        self._at_first = at_first
        self._work = work
        self._clock = clock
        self._before = 0

    def put(self, _tokens: object) -> None:
        """Note that the prompt was handed over, or that a token was chosen."""
        if not self.begun_ns:
            self.begun_ns = self._before = self._clock()
            return
        self._work()
        now = self._clock()
        self.steps_ns.append(now - self._before)
        if len(self.steps_ns) == 1:
            self._at_first()
            now = self._clock()
        self._before = now

    def end(self) -> None:
        """Note that the request is over: nothing is waited for."""


class GenerateEngine(LastWritten):
    """Carries out requests with ``generate``, each with a cache of its own.

    Where tokens stand before every prompt, they are read once, and each request goes on from there.

    Args:
        model: What generates.
        tokenizer: Of its folder; ``None`` where there is none.
        case: Its request and its model.
        device: Where the model is, as PyTorch writes it.
    """

    def __init__(self, model: Any, tokenizer: Any, case: Case, *, device: str) -> None:
        from transformers import GenerationConfig

        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        self._depth: Any = None
        self._before: Ids | None = None
        self._work = with_added_work(nothing, case.added_work)
        decoder, known = decoder_in(case), known_tokens(case)
        ends = [end for end in decoder.end_tokens if end < known]
        self._processors = [OnlyKnown(known)] if known < decoder.vocabulary else []
        # Ends are looked for, as applications do, and their scores are lowered as long as tokens
        # are to be written. What a folder says of sampling and lengths has no say.
        model.generation_config = GenerationConfig(
            do_sample=False, num_beams=1, use_cache=True, eos_token_id=ends or None, pad_token_id=0
        )
        self._has_ends = bool(ends)
        self._template = bool(getattr(tokenizer, "chat_template", None))

    def fill(self, ids: Ids) -> None:
        """Read tokens ``[batch, depth]`` that stand before every prompt from now on."""
        reader = CachedModel(self._model, self._device, whole=False)
        reader.fill(ids)
        self._depth, self._before = reader.filled(), ids

    def request(
        self, prompt: Ids, new_tokens: int, *, at_first: Callable[[], object] = nothing
    ) -> GeneratedRequest:
        """Read a prompt ``[batch, tokens]``, and write so many tokens after it.

        Args:
            prompt: The tokens that are read.
            new_tokens: How many are written.
            at_first: Called once the first one is chosen, outside the times of steps.
        """
        import numpy as np
        import torch

        text_ns = self._text_ns(prompt)
        ids, given = prompt, {}
        if self._before is not None:
            ids = np.concatenate([self._before, prompt], axis=1)
            given = {word_for_cache(self._model): copied(self._depth)}
        watch = TokenWatch(at_first, self._work)
        started = perf_counter_ns()
        tokens = torch.from_numpy(ids).to(self._device, torch.int64)
        made = self._model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens if self._has_ends else None,
            logits_processor=self._processors,
            streamer=watch,
            **given,
        )
        wall_ns = perf_counter_ns() - started
        self._written = made[:, ids.shape[1] :].cpu().numpy()
        return GeneratedRequest(
            steps_ns=tuple(watch.steps_ns),
            prepared_ns=None if text_ns is None else text_ns + watch.begun_ns - started,
            wall_ns=wall_ns,
            prompt_tokens=prompt.shape[1],
            new_tokens=self._written.shape[1],
        )

    def _text_ns(self, prompt: Ids) -> int | None:
        """Time template and tokenising of texts that mean a prompt; ``None`` where that can't be.

        A text goes to the tokenizer as it is only where the folder has no template.
        """
        tokenizer = self._tokenizer
        if tokenizer is None:
            return None
        texts = [tokenizer.decode(row) for row in prompt]
        started = perf_counter_ns()
        try:
            for text in texts:
                if self._template:
                    messages = [{"role": "user", "content": text}]
                    tokenizer.apply_chat_template(messages, add_generation_prompt=True)
                else:
                    tokenizer(text)
        except Exception:  # noqa: BLE001 - templates are programs of whoever made the folder
            self._tokenizer = None
            return None
        return perf_counter_ns() - started


class OnlyKnown:
    """Keeps tokens from being chosen that the ONNX file does not know: its table may be shorter.

    Args:
        known: How many tokens it knows.
    """

    def __init__(self, known: int) -> None:
        self._known = known

    def __call__(self, _ids: Any, scores: Any) -> Any:
        """Return the scores of the next token with those of other tokens at their lowest."""
        scores[:, self._known :] = -float("inf")
        return scores
