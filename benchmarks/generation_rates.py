"""Do our engines write as fast as scripts by hand? Run: ``python benchmarks/generation_rates.py``.

Each engine of the package and a script on the same library carry out one request each in turns, in
random order and in one process, on one thread. The script by hand has one pair of clock readings
around all tokens but the first (under a session around each run, since choosing a token in Python
is no part of ours). Both sides get new models every few rounds, since where their weights lie moves
either by more than what is looked for. Goal: the median of the paired ratios of tokens a second is
within 3 %. It takes under four minutes; onnxruntime-genai must be installed for its part.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from fidelity import median_of
from genai_folder import write_genai_folder

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.generation import Decoder, GeneratedRequest
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.worker.memory import give_back_free_memory
from pytest_ortbench.worker.standard import opened_as

_MODEL, _THREADS = "builtin:llm_15m", 1
_PROMPT, _NEW = 32, 33
#: Seconds for each engine, pairs of requests before both sides get new models, and at least in all.
_SECONDS, _PAIRS_A_MODEL, _LEAST_PAIRS = 100.0, 8, 40
_TOLERANCE, _KNOWN_TO = 0.03, 0.006


#: Carries out one request, and returns its tokens a second.
Rate = Callable[[], float]


def main() -> int:
    """Compare both engines, and print one row each; 1 if a goal is missed, 2 if undecided."""
    print(
        f"{'engine':8} {'by hand':>12} {'pairs':>6} {'ours / by hand - 1, 95 % interval':>34}  goal"
    )
    verdicts = set()
    with tempfile.TemporaryDirectory() as name:
        folder = write_genai_folder(_MODEL, Path(name))
        for engine, by_hand in (("session", _session_by_hand), ("genai", _genai_by_hand)):
            if engine == "genai" and find_spec("onnxruntime_genai") is None:
                print("genai    onnxruntime-genai is not installed: pip install onnxruntime-genai")
                verdicts.add("undecided")
                continue
            rate, ratios = _compare(_case(folder, engine), by_hand)
            found = median_of(ratios)
            verdict = found.verdict(_TOLERANCE)
            verdicts.add(verdict)
            text = f"{found.value:+.2%} [{found.low:+.2%}, {found.high:+.2%}]"
            print(
                f"{engine:8} {rate:10.1f}/s {len(ratios):6} {text:>34}  3 %: {verdict}", flush=True
            )
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def _compare(case: Case, opened_by_hand: Callable[[Case], Rate]) -> tuple[float, list[float]]:
    """Return the median rate by hand, and the ratio of both rates less one in every pair."""
    draw = random.Random(0)
    ends = time.monotonic() + _SECONDS
    ratios: list[float] = []
    rates: list[float] = []
    openers = [_ours, opened_by_hand]
    while len(ratios) < _LEAST_PAIRS or (
        time.monotonic() < ends and median_of(ratios).half_width > _KNOWN_TO
    ):
        # In random order, since it decides where weights lie.
        sides: dict[Callable[[Case], Rate], Rate] = {}
        for opener in draw.sample(openers, 2):
            # Ours gives back what is free before its baseline of memory is read: so does the other.
            give_back_free_memory()
            sides[opener] = opener(case)
        for side in sides.values():
            side()  # the first request of a model takes longer
        for _ in range(_PAIRS_A_MODEL):
            pair = {opener: sides[opener]() for opener in draw.sample(openers, 2)}
            ratios.append(pair[_ours] / pair[opened_by_hand] - 1)
            rates.append(pair[opened_by_hand])
        sides.clear()
        gc.collect()
    return float(np.median(rates)), ratios


def _ours(case: Case) -> Rate:
    measured = opened_as(case)(case, lambda _: None)
    measured.open()
    # Nothing by hand goes on with objects that are frozen.
    gc.unfreeze()
    (carry_out,) = measured.calls()

    def rate() -> float:
        request = carry_out()
        assert isinstance(request, GeneratedRequest)
        return (request.new_tokens - 1) / (sum(request.steps_ns[1:]) * 1e-9)

    return rate


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
