"""A case whose requests are carried out by onnxruntime-genai."""

from __future__ import annotations

import gc
from dataclasses import replace

from pytest_ortbench.core.measurement import Placement
from pytest_ortbench.worker.assignment import Assignment
from pytest_ortbench.worker.generation.decoding import cache_bytes
from pytest_ortbench.worker.generation.genai_engine import GenaiEngine
from pytest_ortbench.worker.generation.genai_model import PACKAGE, GenaiModel, load_genai
from pytest_ortbench.worker.generation.genai_outputs import GenaiOutputs, GenaiScorer
from pytest_ortbench.worker.generation.generating_case import CacheUse, RequestCase
from pytest_ortbench.worker.generation.requests import decoder_in, generation_in
from pytest_ortbench.worker.generation.scoring import Scorer
from pytest_ortbench.worker.placement import read_profile
from pytest_ortbench.worker.runtime import load

#: ONNX Runtime's spelling of the types of a cache, by numpy's names.
_SPELT = {"float32": "tensor(float)", "float16": "tensor(float16)", "float64": "tensor(double)"}
#: Tokens that a profiled request writes: the first run is left out of the times.
_PROFILED_TOKENS = 3


class GenaiCase(RequestCase):
    """A case whose requests are carried out by onnxruntime-genai, which keeps its own session.

    To create it is to make genai's model and its tokenizer. A provider is made ready within that:
    the tiny session that does it elsewhere would run in another copy of ONNX Runtime.
    """

    _model: GenaiModel | None = None
    _engine: GenaiEngine | None = None

    @property
    def unconfirmed(self) -> dict[str, str]:
        """Options of the provider, none of which genai reads back."""
        alias = self.case.provider.alias
        why = f"{PACKAGE} reads no option of a provider back"
        return {f"{alias}.{option}": why for option in self.case.provider.options}

    def options_in_force(self) -> dict[str, str]:
        """Return how it generates, as genai reads it back, and why there is no tokenizer."""
        model = self._opened()
        options = model.search_options(length=generation_in(self.case).length)
        return {**options, "tokenizer": model.no_tokenizer or "of the folder"}

    def outputs(self) -> list[object]:
        """Read the prompt of the inputs, and return all outputs."""
        # Its cache lies beside that of the timed loop: it is no memory of the case.
        return [*GenaiOutputs(self._opened(), self.case).run(None, self.feeds)]

    def placed(self) -> Placement:
        """Release the measured model, and read from genai's own profile what another one ran."""
        from pytest_ortbench.core.own_folder import OwnFolder  # long after the start

        self.release()
        name = self.case.provider.name
        with OwnFolder("profile") as folder:
            model = GenaiModel(self.case, threads=self.threads, profile=folder / "p")
            GenaiOutputs(model, self.case).generate(self.feeds, _PROFILED_TOKENS)
            model.close()
            files = list(folder.glob("p*.json"))
            if not files:
                reason = f"{PACKAGE} wrote no profile"
                return Placement(provider=name, executed={}, reason=reason)
            return read_profile(
                files[0],
                name,
                model=self.case.variant.path,
                assignment=Assignment(reason=f"no witness: {PACKAGE} tells no assignment"),
            )

    def for_any_input(self) -> GenaiOutputs:
        """Return what reads any prompt, with another model where the measured one was released."""
        return GenaiOutputs(self._opened(), self.case)

    def cache(self) -> CacheUse | None:
        """Return what the cache takes at the end of a request, by the outputs that genai shows.

        They are copied to the host for it, one after the other. A window may have more room than it
        needs: release 0.18 adds some, and makes it no longer than the text.
        """
        case, engine = self.case, self._engine
        tensors = decoder_in(case).cache
        if engine is None or not tensors:
            return None
        tokens, bound_bytes = generation_in(case).length, 0
        types: dict[str, str] = {}
        seen = []
        for tensor in tensors:
            value = engine.output(tensor.present)
            rows = value.shape[tensor.length_axis]
            tokens = tokens if tensor.window else rows
            seen.append(replace(tensor, window=rows) if tensor.window else tensor)
            bound_bytes += value.nbytes
            types[tensor.past] = _SPELT.get(value.dtype.name, tensor.type)
        computed_bytes = cache_bytes(seen, case.batch, tokens, types)
        return CacheUse(tokens=tokens, bound_bytes=bound_bytes, computed_bytes=computed_bytes)

    def scorer(self, length: int | None = None) -> Scorer:
        """Return what scores tokens with a cache of its own.

        Args:
            length: The most tokens of a sequence; by default those of a request.
        """
        wanted = generation_in(self.case).length if length is None else length
        return GenaiScorer(self._opened(), self.case, length=wanted)

    def release(self) -> None:
        """Let go of the measured model and its cache; no block can follow."""
        super().release()
        if self._engine is not None:
            self._engine.release()
        if self._model is not None:
            self._model.close()
        self._engine = self._model = None
        gc.collect()

    def _import(self) -> int:
        return load()[1] + load_genai(self.case.runtime.label, self.case.runtime.requirements)[1]

    def _initialise(self) -> int | None:
        return None

    def _create(self) -> int:
        with self.watch.counted():
            self._model = GenaiModel(self.case, threads=self.threads)
        return self._model.create_ns

    def _first_inference(self) -> int:
        self._engine = GenaiEngine(self._opened(), self.case)
        return self._first_request(self._engine)

    def _opened(self) -> GenaiModel:
        if self._model is None:
            self._model = GenaiModel(self.case, threads=self.threads)
        return self._model
