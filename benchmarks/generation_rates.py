"""Do our engines write as fast as scripts by hand? Run: ``python benchmarks/generation_rates.py``.

Each engine of the package and a script on the same library carry out one request each in turns, in
random order and in one process, on one thread. The script by hand has one pair of clock readings
around all tokens but the first (under a session around each run, since choosing a token in Python
is no part of ours). Both sides get new models every few rounds, since where their weights lie moves
either by more than what is looked for. Goal: the median of the paired ratios of tokens a second is
within 3 %. It takes under four minutes; onnxruntime-genai must be installed for its part.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from genai_folder import write_genai_folder
from request_rates import HEADER, Goal, Rate, compare, exit_status

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest

_MODEL, _THREADS = "builtin:llm_15m", 1
_PROMPT, _NEW = 32, 33
_GOAL = Goal(tolerance=0.03, known_to=0.006, seconds=100.0)


def main() -> int:
    """Compare both engines, and print one row each; 1 if a goal is missed, 2 if undecided."""
    print(HEADER)
    absent = find_spec("onnxruntime_genai") is None
    with tempfile.TemporaryDirectory() as name:
        folder = write_genai_folder(_MODEL, Path(name))
        cases = {"session": (_case(folder, "session"), _session_by_hand)}
        if not absent:
            cases["genai"] = (_case(folder, "genai"), _genai_by_hand)
        verdicts = compare(_GOAL, cases)
    if absent:
        print("genai    onnxruntime-genai is not installed: pip install onnxruntime-genai")
        verdicts.add("undecided")
    return exit_status(verdicts)


def _genai_by_hand(case: Case) -> Rate:
    import onnxruntime_genai as genai  # the peer itself

    decoder = _decoder(case)
    config = genai.Config(decoder.folder)
    options = {"session_options": {"intra_op_num_threads": _THREADS}}
    config.overlay(json.dumps({"model": {"decoder": options}}))
    model = genai.Model(config)
    ids = np.random.default_rng(0)
    length = _PROMPT + _NEW

    def by_hand() -> float:
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(max_length=length, min_length=length, do_sample=False)
        generator = genai.Generator(model, parameters)
        generator.append_tokens(ids.integers(0, decoder.vocabulary, (1, _PROMPT)).astype(np.int32))
        generator.generate_next_token()
        started = time.perf_counter()
        while not generator.is_done():
            generator.generate_next_token()
        took = time.perf_counter() - started
        return float((len(generator.get_sequence(0)) - _PROMPT - 1) / took)

    return by_hand


def _session_by_hand(case: Case) -> Rate:
    decoder = _decoder(case)
    options = ort.SessionOptions()
    options.intra_op_num_threads = _THREADS
    session = ort.InferenceSession(case.variant.path, options, providers=["CPUExecutionProvider"])
    random_ids = np.random.default_rng(0)
    length = _PROMPT + _NEW

    def by_hand() -> float:
        # One buffer for past and present, which the operator of this model allows.
        cache = [
            (
                tensor,
                ort.OrtValue.ortvalue_from_numpy(np.zeros(tensor.sized(1, length), np.float32)),
            )
            for tensor in decoder.cache
        ]
        ids = random_ids.integers(0, decoder.vocabulary, (1, _PROMPT))
        took, past = 0.0, 0
        for step in range(_NEW):
            binding = session.io_binding()
            past += ids.shape[1]
            binding.bind_cpu_input(decoder.ids, ids)
            binding.bind_cpu_input(decoder.mask, np.ones((1, past), np.int64))
            for tensor, value in cache:
                binding.bind_ortvalue_input(tensor.past, value)
                binding.bind_ortvalue_output(tensor.present, value)
            binding.bind_output(decoder.logits, "cpu")
            started = time.perf_counter()
            session.run_with_iobinding(binding)
            took += time.perf_counter() - started if step else 0.0
            logits: Any = binding.get_outputs()[-1].numpy()
            ids = logits[:, -1:].argmax(axis=-1)
        return (_NEW - 1) / took

    return by_hand


def _decoder(case: Case) -> Decoder:
    assert case.model.decoder is not None
    return case.model.decoder


def _case(folder: Path, engine: str) -> Case:
    """A case of requests to the model of a folder."""
    path = folder / "model.onnx"
    request = PlanRequest(
        models=(str(path),),
        generate="only",
        engines=(engine,),
        prompt_tokens=(_PROMPT,),
        new_tokens=(_NEW,),
        threads=(_THREADS,),
    )
    (model,) = resolve_models(request.models, root=folder)
    cpu = Provider(alias="cpu", name="CPUExecutionProvider")
    (planned,) = build_plan(request, [model], [Target(runtime=Runtime(), providers=(cpu,))]).entries
    assert planned.refusal is None, planned.refusal
    return planned.case


if __name__ == "__main__":
    sys.exit(main())
