"""Do rows of ``generate`` say what a script by hand says? Run this file with Python.

A random Llama of 5 million parameters is saved as a folder of transformers. The package and a
script of some lines on transformers carry out one request each in turns, in random order and in one
process, on one thread; both load the folder anew every few rounds, since where weights lie moves
either. Under ``generate`` the script notes when its streamer is handed each token; under
``forward`` it has a loop of its own, and a pair of clock readings around each forward pass. Goal:
the median of the paired ratios of tokens a second is within 5 %. It takes under five minutes, and
needs torch and transformers.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from request_rates import HEADER, Goal, Rate, compare, exit_status

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.models.transformers_folder import folder_at
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest

_VOCABULARY, _HEADS, _LAYERS, _WIDTH = 4000, 4, 4, 256
_END, _PROMPT, _NEW = 2, 32, 33
_GOAL = Goal(tolerance=0.05, known_to=0.008, seconds=140.0)


def main() -> int:
    """Compare both engines, and print one row each; 1 if a goal is missed, 2 if undecided."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    transformers.logging.disable_progress_bar()
    print(HEADER)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _save(folder)
        cases = {
            "generate": (_case(folder, "generate"), _generate_by_hand),
            "forward": (_case(folder, "forward"), _forward_by_hand),
        }
        return exit_status(compare(_GOAL, cases))


def _generate_by_hand(case: Case) -> Rate:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.generation.streamers import BaseStreamer

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(_folder(case), dtype=torch.float32)
    random_ids = np.random.default_rng(0)

    class Times(BaseStreamer):
        def __init__(self) -> None:
            self.seen: list[float] = []

        def put(self, _: object) -> None:
            self.seen.append(time.perf_counter())

        def end(self) -> None:
            pass

    def by_hand() -> float:
        ids = torch.from_numpy(random_ids.integers(3, _VOCABULARY, (1, _PROMPT)))
        times = Times()
        written = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=_NEW,
            max_new_tokens=_NEW,
            streamer=times,
        )
        assert written.shape[1] == _PROMPT + _NEW
        # The prompt, the first token, and all that follow.
        return float((len(times.seen) - 2) / (times.seen[-1] - times.seen[1]))

    return by_hand


def _forward_by_hand(case: Case) -> Rate:
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(_folder(case), dtype=torch.float32)
    random_ids = np.random.default_rng(0)

    @torch.inference_mode()
    def by_hand() -> float:
        ids = torch.from_numpy(random_ids.integers(3, _VOCABULARY, (1, _PROMPT)))
        cache, took = DynamicCache(config=model.config), 0.0
        for number in range(_NEW):
            started = time.perf_counter()
            logits = model(ids, cache=cache, use_cache=True, logits_to_keep=1).logits
            took += (time.perf_counter() - started) if number else 0.0
            logits[:, -1, _END] = -float("inf")
            ids = logits[:, -1:].argmax(-1)
        return float((_NEW - 1) / took)

    return by_hand


def _save(folder: Path) -> None:
    """Write the folder of a model with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=_VOCABULARY,
        hidden_size=_WIDTH,
        intermediate_size=3 * _WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=_HEADS,
        eos_token_id=_END,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def _folder(case: Case) -> str:
    assert case.model.exported_from is not None
    return case.model.exported_from.path


def _case(folder: Path, engine: str) -> Case:
    """The row of an engine, with the interface that an ONNX file of the folder would have."""
    shape = ("batch", _HEADS, "past", _WIDTH // _HEADS)
    cache = [
        CacheTensor(
            past=f"past_key_values.{layer}.{kind}",
            present=f"present.{layer}.{kind}",
            type="tensor(float)",
            shape=(0, _HEADS, 0, _WIDTH // _HEADS),
        )
        for layer in range(_LAYERS)
        for kind in ("key", "value")
    ]
    ids = TensorInfo(
        name="input_ids",
        type="tensor(int64)",
        shape=("batch", "tokens"),
        hint=ValueHint(kind="integers", low=0, high=_VOCABULARY - 1),
    )
    model = Model(
        name="llama",
        path=str(folder / "model.onnx"),
        source="file",
        digest="0" * 64,
        size_bytes=0,
        inputs=(ids, *(_tensor(entry.past, shape) for entry in cache)),
        outputs=(
            _tensor("logits", ("batch", "tokens", _VOCABULARY)),
            *(_tensor(entry.present, shape) for entry in cache),
        ),
        decoder=Decoder(
            ids="input_ids",
            logits="logits",
            vocabulary=_VOCABULARY,
            cache=tuple(cache),
            end_tokens=(_END,),
        ),
        exported_from=folder_at(folder).source(),
    )
    request = PlanRequest(
        models=(),
        generate="only",
        engines=(engine,),
        threads=(1,),
        prompt_tokens=(_PROMPT,),
        new_tokens=(_NEW,),
    )
    provider = Provider(alias="torch", name="PyTorch", role="framework")
    target = Target(runtime=Runtime(), providers=(provider,))
    (planned,) = build_plan(request, [model], [target]).entries
    assert planned.refusal is None, planned.refusal
    return planned.case


def _tensor(name: str, shape: tuple[Any, ...]) -> TensorInfo:
    return TensorInfo(name=name, type="tensor(float)", shape=shape)


if __name__ == "__main__":
    sys.exit(main())
