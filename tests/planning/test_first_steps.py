"""Decoders in two files in a plan: found, joined, and what can't be asked of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.decoder_notes import configuration_notes, near_decoder_skips
from pytest_ortbench.planning.families import families
from pytest_ortbench.planning.family_models import resolve
from pytest_ortbench.planning.first_steps import refuse_several_files
from pytest_ortbench.planning.matrix import Planned, build_plan
from pytest_ortbench.planning.request import PlanRequest
from tests.generation.splitting import FIRST, LATER, split_decoder, split_translation
from tests.worker.decoder_cases import CURRENT

pytestmark = pytest.mark.live


def planned(root: Path, *specs: str, new: int = 3, **asked: object) -> list[Planned]:
    request = PlanRequest(
        models=specs,
        generate="only",
        prompt_tokens=(4,),
        new_tokens=(new,),
        **asked,  # type: ignore[arg-type]  # fields of a request by name
    )
    models = resolve(specs, families(root), root=root, notify=lambda _: None).models
    return list(build_plan(request, models, [CURRENT]).entries)


def only(root: Path, spec: str = LATER, *, new: int = 3, **asked: object) -> Planned:
    (entry,) = planned(root, spec, new=new, **asked)
    return entry


def model_at(root: Path, spec: str = LATER) -> Model:
    (found,) = resolve((spec,), families(root), root=root, notify=lambda _: None).models
    assert isinstance(found, Model)
    return found


@pytest.mark.parametrize("suffix", ["", "_quantized"])
def test_the_half_with_a_cache_has_requests_and_the_other_one_says_where(
    suffix: str, tmp_path: Path
) -> None:
    later = split_decoder(tmp_path, one_token=True, suffix=suffix)
    entry = only(tmp_path, later.name)
    assert entry.refusal is None
    assert entry.case.model.first_step is not None
    assert Path(entry.case.model.first_step.path).stem == f"decoder_model{suffix}"
    first = only(tmp_path, f"decoder_model{suffix}.onnx")
    assert first.refusal is not None
    assert later.name in first.refusal.message
    assert later.name in first.refusal.hint
    # A note where the other one is not in the run, and no second one.
    asked = PlanRequest(models=())
    half, whole = (model_at(tmp_path, name) for name in (f"decoder_model{suffix}.onnx", later.name))
    (note,) = configuration_notes([half], asked)
    assert note.moot_with == str(later) == whole.path
    (other,) = configuration_notes([whole], asked)
    assert other.moot_with == ""
    assert list(near_decoder_skips([half, whole], asked)) == []


def test_a_mask_counts_the_one_token_of_a_later_step(tmp_path: Path) -> None:
    split_decoder(tmp_path, one_token=True)
    shapes = {spec.name: spec.shape for spec in only(tmp_path).case.inputs}
    assert shapes["input_ids"] == (1, 1)
    assert shapes["attention_mask"] == (1, 4 + 1)
    assert shapes["past_key_values.0.key"][2] == 4


def test_what_the_first_step_hears_has_sizes(tmp_path: Path) -> None:
    split_translation(tmp_path)
    case = only(tmp_path).case
    assert [spec.name for spec in case.first_inputs] == [
        "encoder_hidden_states",
        "encoder_attention_mask",
    ]
    assert case.encoder_inputs
    assert case.model.encoder is not None
    assert case.model.encoder.heard == {"encoder_hidden_states": "last_hidden_state"}
    (tmp_path / "encoder_model.onnx").unlink()
    alone = only(tmp_path).case
    assert alone.model.encoder is None
    assert alone.first_inputs == case.first_inputs


def test_a_table_names_the_first_step(tmp_path: Path) -> None:
    split_decoder(tmp_path)
    (tmp_path / FIRST).rename(tmp_path / "prefill.onnx")
    (tmp_path / LATER).rename(tmp_path / "decode.onnx")
    table = tmp_path / "pyproject.toml"
    table.write_text(
        '[tool.ortbench.models.llm]\nfile = "decode.onnx"\nfirst_step = "prefill.onnx"\n'
    )
    first = model_at(tmp_path, "llm").first_step
    assert first is not None
    assert first.path == str(tmp_path / "prefill.onnx")
    table.write_text(
        '[tool.ortbench.models.llm]\nfile = "decode.onnx"\nfirst_step = "decode.onnx"\n'
    )
    (unfit,) = resolve(("llm",), families(tmp_path), root=tmp_path, notify=lambda _: None).models
    assert not isinstance(unfit, Model)
    table.write_text(
        '[tool.ortbench.models.llm]\nfile = "prefill.onnx"\nfirst_step = "decode.onnx"\n'
    )
    (swapped,) = resolve(("llm",), families(tmp_path), root=tmp_path, notify=lambda _: None).models
    assert not isinstance(swapped, Model)
    assert ["'file'" in each.message for each in (unfit, swapped)] == [False, True]


def test_one_that_does_not_fit_is_told(tmp_path: Path) -> None:
    split_decoder(tmp_path)
    (tmp_path / FIRST).write_bytes((tmp_path / LATER).read_bytes())
    model = model_at(tmp_path)
    assert model.first_step is None
    assert model.decoder is not None
    assert len(list(configuration_notes([model], PlanRequest(models=())))) == 1


def refused(case: Case) -> bool:
    return refuse_several_files(case) is not None


def test_what_can_not_be_asked_of_two_files(tmp_path: Path) -> None:
    split_decoder(tmp_path / "one", one_token=True)
    split_decoder(tmp_path / "several")
    one, several = (only(tmp_path, f"{name}/{LATER}").case for name in ("one", "several"))
    assert not refused(one)
    assert one.generation is not None
    deeper = replace(one.generation, depth=8)
    assert refused(replace(one, generation=deeper))
    assert not refused(replace(several, generation=deeper))
    assert refused(replace(one, runtime=Runtime(shares_files=False)))
    assert refused(replace(one, variant=replace(one.variant, precision="int4", path="/made")))
    assert not refused(replace(one, generation=None, variant=replace(one.variant, path="/made")))
