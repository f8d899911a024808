"""Cases of folders as onnxruntime-genai's builder writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import build_plan
from pytest_ortbench.planning.request import PlanRequest
from tests.generation.folders import TINY, change_config, end_token, write_folder
from tests.worker.decoder_cases import CURRENT

VOCABULARY, END = TINY.vocabulary, end_token(TINY)


def genai_folder(folder: Path, *, likeliest: int | None = None) -> Path:
    """Write a folder whose configuration has a penalty, which takes time and chooses otherwise.

    Args:
        folder: Where.
        likeliest: A token that is the likeliest one everywhere; ``None`` for none.
    """
    write_folder(folder)
    change_config(folder, lambda content: content["search"].update(repetition_penalty=1.5))
    if likeliest is not None:
        model = onnx.load(folder / "model.onnx")
        (last,) = [node for node in model.graph.node if "logits" in node.output]
        last.output[0] = "scores"
        bias = np.zeros(VOCABULARY, np.float32)
        bias[likeliest] = 1000
        model.graph.initializer.append(numpy_helper.from_array(bias, "bias"))
        model.graph.node.append(helper.make_node("Add", ["scores", "bias"], ["logits"]))
        onnx.save(model, folder / "model.onnx")
    return folder


def genai_case(
    folder: Path,
    *,
    prompt: int = 6,
    new: int = 5,
    depth: int = 0,
    batch: int = 1,
    engine: str = "genai",
) -> Case:
    """A case of requests of so many tokens to the decoder of a folder, with one thread."""
    request = PlanRequest(
        models=(str(folder / "model.onnx"),),
        generate="only",
        engines=(engine,),
        prompt_tokens=(prompt,),
        new_tokens=(new,),
        depths=(depth,),
        batch_sizes=(batch,),
        threads=(1,),
    )
    (model,) = resolve_models(request.models, root=folder)
    models = [replace(model, decoder=decoder_of_folder(folder))]
    (planned,) = build_plan(request, models, [CURRENT]).entries
    return planned.case


def decoder_of_folder(folder: Path) -> Decoder:
    """What inputs and outputs of the decoder mean."""
    return Decoder(
        ids="input_ids",
        logits="logits",
        mask="attention_mask",
        vocabulary=VOCABULARY,
        cache=tuple(
            CacheTensor(
                past=f"past_key_values.{layer}.{name}",
                present=f"present.{layer}.{name}",
                type="tensor(float)",
                shape=(0, TINY.key_heads, 0, TINY.width // TINY.heads),
            )
            for layer in range(TINY.layers)
            for name in ("key", "value")
        ),
        end_tokens=(END,),
        context=TINY.context,
        folder=str(folder),
    )
