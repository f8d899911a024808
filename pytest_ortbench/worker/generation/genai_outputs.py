"""What onnxruntime-genai computes, where no time is taken: all outputs, and scores of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.worker.generation.genai_model import PACKAGE, GenaiModel
from pytest_ortbench.worker.generation.held_rows import held
from pytest_ortbench.worker.generation.requests import decoder_in

if TYPE_CHECKING:
    import numpy.typing as npt

    from pytest_ortbench.worker.called import Declared
    from pytest_ortbench.worker.generation.scoring import Ids, Logits


class GenaiOutputs:
    """Reads prompts with an empty cache, called like a session of ONNX Runtime.

    Args:
        model: What reads.
        case: Its inputs and outputs.
    """

    def __init__(self, model: GenaiModel, case: Case) -> None:
        self._model = model
        self._case = case
        self._decoder = decoder_in(case)

    def get_inputs(self) -> Sequence[Declared]:
        """Return the inputs that it understands."""
        return self._case.inputs

    def get_outputs(self) -> Sequence[Declared]:
        """Return the outputs of the model."""
        return self._case.model.outputs

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], /
    ) -> Sequence[object]:
        """Read a prompt, and return the outputs of the model in order.

        Args:
            output_names: Those that are wanted; ``None`` for all.
            input_feed: Values of the inputs of a prompt without padding and past.

        Raises:
            WorkerError: for other values: genai makes mask, positions and cache itself.
        """
        ids = input_feed[self._decoder.ids]
        self._require_prompt(input_feed)
        batch, tokens = ids.shape
        generator = self._model.generator(length=tokens + 1, batch=batch, is_whole=True)
        generator.append_tokens(ids.astype("int32"))
        wanted = output_names or [info.name for info in self.get_outputs()]
        return [self._output(generator, name, tokens) for name in wanted]

    def generate(self, feed: Mapping[str, Any], tokens: int) -> None:
        """Read a prompt, and write so many tokens after it.

        Args:
            feed: Values of the inputs, as for :meth:`run`.
            tokens: How many are written.
        """
        ids = feed[self._decoder.ids]
        batch, prompt_tokens = ids.shape
        generator = self._model.generator(length=prompt_tokens + tokens, batch=batch)
        generator.append_tokens(ids.astype("int32"))
        for _ in range(tokens):
            generator.generate_next_token()

    def _output(self, generator: Any, name: str, tokens: int) -> npt.NDArray[Any]:
        """Return a copy of an output: of a cache in a longer buffer the part that was written."""
        import numpy as np

        value: npt.NDArray[Any] = np.array(generator.get_output(name))
        for tensor in self._decoder.cache:
            if tensor.present == name:
                return held(value, tensor, tokens)
        return value

    def _require_prompt(self, feed: Mapping[str, Any]) -> None:
        import numpy as np

        decoder = self._decoder
        tokens = feed[decoder.ids].shape[1]
        holds = {
            tensor.past: feed[tensor.past].shape[tensor.length_axis] == 0
            for tensor in decoder.cache
            # A window has its room from the first token on: the mask says what is in it.
            if tensor.past in feed and not tensor.window
        }
        if decoder.mask in feed:
            mask = feed[decoder.mask]
            holds[decoder.mask] = mask.shape[1] == tokens and bool((mask == 1).all())
        if decoder.positions in feed:
            counted = feed[decoder.positions] == np.arange(tokens)
            holds[decoder.positions] = bool(counted.all())
        wrong = [name for name, is_right in holds.items() if not is_right]
        if wrong:
            raise case_error(
                f"{PACKAGE} fills the input {wrong[0]!r} itself, with other values than this "
                "measurement needs",
                "Use --ort-engines=session",
            )


class GenaiScorer:
    """The scorer of a model of onnxruntime-genai.

    Args:
        model: The model.
        case: Its decoder.
        length: The most tokens of a sequence.
    """

    def __init__(self, model: GenaiModel, case: Case, *, length: int) -> None:
        self._model = model
        self._logits = decoder_in(case).logits
        #: One more than are read: a generator that is full gives no scores.
        self._length = length + 1
        self._generator: Any = None

    def begin(self, ids: Ids) -> Logits:
        """Forget all tokens and read these at once."""
        self._read(ids)
        return self._after_last()

    def follow(self, ids: Ids) -> Logits:
        """Read further tokens of each sequence, with the cache fed back.

        genai reads what it has chosen itself, so it is made to choose a single token.
        """
        import numpy as np

        generator = self._generator
        if ids.shape[1] > 1:
            generator.append_tokens(ids.astype("int32"))
            return self._after_last()
        forced = np.full(np.shape(generator.get_logits()), -1e9, dtype=np.float32)
        forced[np.arange(ids.shape[0]), -1, ids[:, 0]] = 0
        generator.set_logits(forced)
        generator.generate_next_token()
        return self._after_last()

    def every(self, ids: Ids) -> Logits | None:
        """Forget all tokens and read these at once."""
        import numpy as np

        self._read(ids)
        scores: Logits = np.array(self._generator.get_output(self._logits))
        return scores if scores.shape[1] == ids.shape[1] else None

    def _read(self, ids: Ids) -> None:
        self._generator = None  # the one before goes first: two caches would be held at a time
        self._generator = self._model.generator(length=self._length, batch=ids.shape[0])
        self._generator.append_tokens(ids.astype("int32"))

    def _after_last(self) -> Logits:
        import numpy as np

        scores: Logits = np.array(self._generator.get_logits())
        return scores[:, -1]
