"""Decoders with the folder of transformers that they were exported from: rows and refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.export_check.planning import (
    has_source,
    other_fixed_sizes,
    sizes_to_check,
)
from pytest_ortbench.passes.generation.planning import read_sources
from pytest_ortbench.planning.matrix import Plan, Target, build_plan
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.transformers_sources import with_transformers
from tests.planning.test_engines import ALONE, CPU, DECODER, MODEL

TORCH = parse_provider("torch")
REQUEST = PlanRequest(models=(), generate="only", prompt_tokens=(16,))
SOURCE = Source(path="/hf/llm", framework="torch", library="transformers")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "config.json").write_text(json.dumps({"architectures": ["A"]}))
    (tmp_path / "llm" / "model.safetensors").write_bytes(b"weights")
    return tmp_path / "llm"


def plan(model: Model, *providers: Provider, request: PlanRequest = REQUEST) -> Plan:
    return build_plan(request, [model], [Target(runtime=Runtime(), providers=providers)])


def rows(made: Plan) -> list[tuple[str, str]]:
    """Provider and engine of each row."""
    return [(entry.case.provider.alias, entry.case.knobs["engine"]) for entry in made.entries]


def sources(models: Sequence[object]) -> list[str]:
    return [
        model.exported_from.path if model.exported_from is not None else ""
        for model in models
        if isinstance(model, Model)
    ]


def test_a_folder_beside_the_file_is_its_source_where_pytorch_is_asked(folder: Path) -> None:
    model = replace(MODEL, path=str(folder / "onnx" / "model.onnx"))
    assert sources(with_transformers([model], REQUEST, [CPU, TORCH])) == [str(folder)]
    assert sources(with_transformers([model], REQUEST, [CPU])) == [""]
    assert sources(with_transformers([MODEL], REQUEST, [TORCH])) == [""]


def test_a_named_folder_goes_before_one_beside(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    folder.rename(other)
    request = replace(REQUEST, sources={"llm": str(other)})
    second = replace(MODEL, name="second")
    assert sources(with_transformers([MODEL, second], request, [TORCH])) == [str(other), ""]


def test_a_folder_of_a_model_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_transformers([MODEL], replace(REQUEST, sources={"lm": str(folder)}), [TORCH])
    assert caught.value.place == "--ort-source"
    assert "llm" in caught.value.hint


def test_a_decoder_that_needs_an_encoder_gets_no_folder(folder: Path) -> None:
    listening = replace(MODEL, decoder=replace(DECODER, heard=("states",)))
    request = replace(REQUEST, sources={"": str(folder)})
    (model,) = with_transformers([listening], request, [TORCH])
    assert isinstance(model, Model)
    assert model.exported_from is None
    (planned,) = plan(model, TORCH).entries
    assert planned.refusal is not None
    assert planned.refusal.kind == "unsupported"


@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        ((), [("cpu", "genai"), ("cpu", "session"), ("torch", "generate")]),
        (("session",), [("cpu", "session"), ("torch", "generate")]),
        (
            ("session", "generate", "forward"),
            [("cpu", "session"), ("torch", "generate"), ("torch", "forward")],
        ),
        (("forward",), [("cpu", "genai"), ("cpu", "session"), ("torch", "forward")]),
    ],
)
def test_each_kind_of_engine_has_rows_where_it_runs(
    engines: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    model = replace(MODEL, exported_from=SOURCE)
    made = plan(model, CPU, TORCH, request=replace(REQUEST, engines=engines))
    assert sorted(rows(made)) == sorted(expected)
    assert not any(entry.refusal for entry in made.entries if entry.case.provider is TORCH)


def test_rows_of_a_framework_are_those_of_a_framework() -> None:
    (planned,) = plan(replace(ALONE, exported_from=SOURCE), TORCH).entries
    assert planned.case.provider.role == "framework"
    assert planned.case.is_source
    assert planned.case.case_id.endswith(
        "/torch/b1/workload:generate/engine:generate/prompt:16/new:32/depth:0"
    )


def test_without_a_folder_the_row_asks_for_it() -> None:
    (planned,) = plan(ALONE, TORCH).entries
    assert planned.refusal is not None
    assert (planned.refusal.kind, planned.refusal.phase) == ("unsupported", "inputs")
    assert "--ort-source=" in planned.refusal.hint


def test_other_rows_of_pytorch_do_not_run_a_folder() -> None:
    model = replace(ALONE, exported_from=SOURCE)
    request = replace(REQUEST, generate="off")
    for alias in ("torch-compile", "torch-script"):
        made = plan(model, parse_provider(alias), request=request)
        assert all(entry.refusal and entry.refusal.kind == "unsupported" for entry in made.entries)
        assert made.entries


def test_a_network_of_a_function_has_no_requests_in_pytorch() -> None:
    network = replace(SOURCE, path="/net.py", function="build", library="")
    assert rows(plan(replace(ALONE, exported_from=network), CPU, TORCH)) == [("cpu", "session")]


def test_an_export_of_a_decoder_is_checked_on_prompts_with_an_empty_cache() -> None:
    (planned,) = plan(replace(ALONE, exported_from=SOURCE), CPU).entries
    assert has_source(planned.case)
    choices = sizes_to_check(planned.case)
    assert choices[0].changed == ()
    assert {choice.sizes["tokens"] for choice in choices} == {1, 2, 3, 4, 8, 16, 17}
    assert {choice.sizes["N"] for choice in choices} == {1, 2, 3, 4, 8}
    for choice in choices:
        ids, past = choice.inputs
        assert ids.shape == (choice.sizes["N"], choice.sizes["tokens"])
        assert past.shape == (choice.sizes["N"], 2, 0, 16)
    assert other_fixed_sizes(planned.case, choices[0].inputs) == ()


def written(*texts: str, base: Path) -> OptionText:
    return OptionText(texts=texts, place="--ort-source", is_typed=True, base=base)


def test_a_folder_is_read_for_one_model_or_for_all(folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "a=b")
    (tmp_path / "x").symlink_to(tmp_path / "a=b")
    read = read_sources(written("a=b", "llm=x", base=tmp_path))
    assert read == {"": str(tmp_path / "a=b"), "llm": str(tmp_path / "x")}


def test_a_model_has_one_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_sources(written("llm=llm", "llm=.", base=tmp_path))
    assert caught.value.place == "--ort-source"
    assert folder.is_dir()


def test_what_is_no_folder_of_transformers_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError) as caught:
            with_transformers([MODEL], replace(REQUEST, sources={"": str(path)}), [CPU])
        assert caught.value.place == "--ort-source"


def test_a_download_that_stopped_is_finished_and_no_other_folder_named(tmp_path: Path) -> None:
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    index = {"weight_map": {"a": first, "b": second}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / first).touch()
    with pytest.raises(UsageError) as caught:
        with_transformers([MODEL], replace(REQUEST, sources={"": str(tmp_path)}), [CPU])
    assert second in caught.value.message
    assert "save_pretrained" not in caught.value.hint
