"""Notes on language models in a plan: why one has no requests, and faults of files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.run import Skip
from pytest_ortbench.models.cache_pairs import parts_of_name
from pytest_ortbench.models.encoders import later_half
from pytest_ortbench.models.genai_config import has_genai_config
from pytest_ortbench.models.language_config import language_config
from pytest_ortbench.models.well_known import is_past
from pytest_ortbench.planning.engines import GENAI, engines_for
from pytest_ortbench.planning.no_decoder import why_no_decoder, writes_first
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes


def near_decoder_skips(models: Iterable[Model], request: PlanRequest) -> Iterator[Skip]:
    """Yield the models that look as if they wrote text, and why no requests are measured of them.

    Args:
        models: Those of the plan.
        request: What was asked for.
    """
    for model in models if request.generate == "auto" else ():
        # A first half has a note of its own.
        if later_half(Path(model.path)) is not None:
            continue
        if model.decoder is None and looks_like_a_decoder(model):
            yield Skip(
                what=f"{model.name} × requests",
                reason=f"the model was not recognised as a language model: {why_no_decoder(model)}"
                ". Single inferences are measured; --ort-generate=off removes this note",
            )


def looks_like_a_decoder(model: Model) -> bool:
    """Whether whoever named a model may expect requests: it has a cache, or scores of its tokens.

    Args:
        model: One that is no decoder.
    """
    if has_genai_config(Path(model.path).parent) and _is_in_config(model):
        return True
    # A name without any part is of no layer, and of neither keys nor values.
    outputs = {parts_of_name(info.name) for info in model.outputs} - {()}
    if any(is_past(info.name) and parts_of_name(info.name) in outputs for info in model.inputs):
        return True
    ids = next((info for info in model.inputs if info.name == "input_ids"), None)
    logits = next((info for info in model.outputs if info.name == "logits"), None)
    if ids is None or logits is None or ids.hint is None or len(logits.shape or ()) != 3:
        return False
    # Fewer scores than tokens are classes: of words, or of their first and last.
    scores = (logits.shape or (None,))[-1]
    return ids.hint.kind == "integers" and scores == int(ids.hint.high) + 1


def _is_in_config(model: Model) -> bool:
    config = language_config(Path(model.path)).genai
    return config is not None and len(set(config.files.values())) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNote:
    """Something odd about a model of a plan.

    Attributes:
        text: What, for people.
        moot_with: Path of another model: where that is in the run, too, the note has no use. Each
            file that is named on the command line has a plan of its own.
    """

    text: str
    moot_with: str = ""


def configuration_notes(models: Sequence[Model], request: PlanRequest) -> Iterator[PlanNote]:
    """Yield what is odd beside models, where no row tells it.

    That is what is wrong with a ``genai_config.json``, what goes on with a first step, and whatever
    else was noted of a model that writes text: no tokenizer, no encoder.

    Args:
        models: Those of the plan.
        request: What was asked for.
    """
    for model in models if request.generate != "off" else ():
        later, decoder = later_half(Path(model.path)), model.decoder
        if later is not None:
            yield PlanNote(
                text=f"{model.name}: {writes_first(later)}. To measure requests, name that "
                "file, too",
                moot_with=str(later),
            )
        if decoder is None:
            continue
        idle = ModelAxes(model).of_requests & request.dims.keys()
        if idle and request.generate == "only":
            names = ", ".join(sorted(idle))
            told = f"--ort-dims has no effect on {names}, whose size each request sets itself"
            yield PlanNote(
                text=f"{model.name}: {told}. Use --ort-prompt-tokens and --ort-depth instead"
            )
        faults = {fault.told for fault in decoder.config_faults}
        for note in model.notes:
            if note not in faults:
                yield PlanNote(text=f"{model.name}: {note}")
        refused = GENAI in engines_for(decoder, request)
        for fault in decoder.config_faults:
            if not fault.stops_genai:
                told = f"{fault.told}. What the model itself says is used. {fault.remedy}"
                yield PlanNote(text=f"{model.name}: {told}")
            elif not refused:
                yield PlanNote(text=f"{model.name}: {fault.told}. {fault.remedy}")
