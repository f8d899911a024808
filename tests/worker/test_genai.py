"""Requests that onnxruntime-genai carries out: lengths, tokens, and what is seen of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
)
from pytest_ortbench.worker.accuracy import write_reference
from pytest_ortbench.worker.generation.genai_case import GenaiCase
from pytest_ortbench.worker.generation.genai_model import refuse_unsupported
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from pytest_ortbench.worker.generation.requests import decoder_in
from pytest_ortbench.worker.generation.scoring import step_by_step
from pytest_ortbench.worker.reference import reference_session
from tests.generation.folders import TINY, change_config, write_json
from tests.passes.test_generating_rows import generating
from tests.worker.asking import ask
from tests.worker.genai_folders import END, VOCABULARY, genai_case, genai_folder

genai = pytest.mark.usefixtures("genai_library")


@pytest.fixture
def genai_library() -> None:
    pytest.importorskip("onnxruntime_genai", reason="pip install onnxruntime-genai")


def opened(case: Case) -> GenaiCase:
    measured = GenaiCase(case, lambda _: None)
    measured.open()
    return measured


@genai
@pytest.mark.live
@pytest.mark.parametrize(("batch", "depth"), [(1, 0), (2, 0), (1, 20)])
def test_exactly_so_many_tokens_are_written_where_an_end_is_the_likeliest(
    tmp_path: Path, batch: int, depth: int
) -> None:
    case = genai_case(genai_folder(tmp_path, likeliest=END), batch=batch, depth=depth)
    measured = opened(case)
    block = ask(measured, TimeBlock(iterations=3))
    assert [len(request.steps_ns) for request in block.requests] == [5, 5, 5]
    assert {(request.prompt_tokens, request.new_tokens) for request in block.requests} == {(6, 5)}
    assert all(request.wall_ns >= sum(request.steps_ns) for request in block.requests)
    assert all(request.prepared_ns for request in block.requests)
    written = measured.live_requests().engine.written
    assert written.shape == (batch, 5)
    assert not (written == END).any()
    assert measured.options_in_force()["max_length"] == str(depth + 6 + 5)
    assert measured.options_in_force()["repetition_penalty"] == "1"


@genai
@pytest.mark.live
@pytest.mark.parametrize(("batch", "depth"), [(1, 0), (2, 0), (1, 20)])
def test_both_engines_write_the_same_tokens(tmp_path: Path, batch: int, depth: int) -> None:
    """After other prompts, too: what stands in the cache between requests must not reach them."""
    folder = genai_folder(tmp_path)
    random = np.random.default_rng(0)
    before = random.integers(0, VOCABULARY - 2, (batch, depth))
    prompts = [random.integers(0, VOCABULARY - 2, (batch, 6)) for _ in range(3)]
    written = []
    for kind, engine in ((GenaiCase, "genai"), (GeneratingCase, "session")):
        measured = kind(genai_case(folder, batch=batch, depth=depth, engine=engine), print)
        measured.open()
        requests = measured.live_requests().engine
        if depth:
            requests.fill(before)
        texts = []
        for prompt in prompts:
            requests.request(prompt, 5)
            texts.append(requests.written.tolist())
        written.append(texts)
    assert written[0] == written[1]


@genai
@pytest.mark.live
def test_outputs_placement_memory_and_accuracy_are_those_of_genai(tmp_path: Path) -> None:
    case = genai_case(genai_folder(tmp_path))
    measured = opened(case)
    assert ask(measured, CheckOutputs(run="first")).nonfinite == 0
    cache, size = measured.cache(), TINY.width // TINY.heads
    assert cache is not None
    assert cache.tokens == 6 + 5
    assert (
        cache.bound_bytes
        == cache.computed_bytes
        == 2 * TINY.layers * TINY.key_heads * size * 11 * 4
    )
    memory = ask(measured, ReadMemory())
    assert (memory.session_bytes or 0) > 0
    placement = ask(measured, ProfilePlacement())
    assert placement.executed.keys() == {"CPUExecutionProvider"}
    assert placement.reason == ""
    assert placement.precision_executed == "float32"
    assert (placement.nodes_total, placement.session_providers) == (None, ())
    reference = tmp_path / "reference"
    write_reference(reference, session=reference_session(case), specs=case.inputs, seed=case.seed)
    accuracy = ask(measured, CompareOutputs(reference=str(reference)))
    assert accuracy.reason == ""
    assert [output.name for output in accuracy.outputs] == [o.name for o in case.model.outputs]
    assert all(output.exact or (output.sqnr_db or 0) > 80 for output in accuracy.outputs)


@genai
@pytest.mark.live
@pytest.mark.parametrize(
    "search",
    [
        {"no_repeat_ngram_size": 2},
        {"no_repeat_ngram_size": 1, "repetition_penalty": 1.5},
        {"chunk_size": 2},
        {"chunk_size": 1, "no_repeat_ngram_size": 3},
        {
            "num_beams": 4,
            "num_return_sequences": 2,
            "diversity_penalty": 2.0,
            "length_penalty": 3.0,
            "early_stopping": False,
        },
        {"do_sample": True, "temperature": 0.1, "top_k": 3, "top_p": 0.5, "random_seed": 3},
        {"min_length": 100, "max_length": 3, "past_present_share_buffer": False},
    ],
)
def test_no_way_of_searching_in_the_configuration_changes_what_is_computed(
    tmp_path: Path, search: dict[str, object]
) -> None:
    folder = genai_folder(tmp_path)
    prompt = np.arange(1, 7)[None]
    texts, outputs, scores = [], [], []
    for options in ({}, search):
        change_config(folder, lambda content, options=options: content["search"].update(options))
        measured = opened(genai_case(folder))
        measured.feeds = {**measured.feeds, "input_ids": prompt}
        engine = measured.live_requests().engine
        engine.request(prompt, 5)
        texts.append(engine.written.tolist())
        outputs.append(measured.outputs())
        # A token that was there before, which a rule against repeating would forbid.
        ids = np.array([[5, 6, 5, 6, 5, 6]])
        scores.append(step_by_step(measured.scorer(len(ids[0])), ids, 2))
        measured.release()
    assert texts[0] == texts[1]
    for first, second in zip(*outputs, strict=True):
        assert np.shape(first) == np.shape(second)
        np.testing.assert_allclose(first, second, atol=1e-4)
    np.testing.assert_allclose(*scores, atol=1e-4)


@genai
@pytest.mark.live
def test_the_file_of_a_variant_runs_with_the_configuration_of_the_folder(tmp_path: Path) -> None:
    folder = genai_folder(tmp_path / "folder", likeliest=10)
    other = genai_folder(tmp_path / "other" / "deep", likeliest=20) / "variant.onnx"
    shutil.move(other.with_name("model.onnx"), other)
    case = genai_case(folder)
    assert written_by(case).tolist() == [[10] * 5]
    variant = replace(case.variant, path=str(other))
    assert written_by(replace(case, variant=variant)).tolist() == [[20] * 5]
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    decoder = replace(decoder_in(case), folder=str(link))
    model = replace(case.model, decoder=decoder)
    assert written_by(replace(case, variant=variant, model=model)).tolist() == [[20] * 5]


def written_by(case: Case) -> np.ndarray:
    return opened(case).live_requests().engine.written


@genai
@pytest.mark.live
@pytest.mark.parametrize(
    ("template", "is_prepared"),
    [
        ("{% for message in messages %}<{{ message['content'] }}>{% endfor %}", True),
        ("{% for message in messages %}{{ no_such_function(message) }}{% endfor %}", False),
    ],
    ids=["applied", "broken"],
)
def test_a_template_that_cannot_be_applied_is_no_request_without_one(
    tmp_path: Path, template: str, is_prepared: bool
) -> None:
    folder = genai_folder(tmp_path)
    path = folder / "tokenizer_config.json"
    write_json(path, {**json.loads(path.read_text()), "chat_template": template})
    block = ask(opened(genai_case(folder)), TimeBlock(iterations=2))
    assert [request.prepared_ns is not None for request in block.requests] == [is_prepared] * 2


@genai
@pytest.mark.live
def test_without_a_tokenizer_nothing_is_known_of_preparing(tmp_path: Path) -> None:
    folder = genai_folder(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    measured = opened(genai_case(folder))
    block = ask(measured, TimeBlock(iterations=2))
    assert [request.prepared_ns for request in block.requests] == [None, None]
    assert "tokenizer_config.json" in measured.options_in_force()["tokenizer"]


@genai
@pytest.mark.live
def test_a_kind_of_network_that_genai_does_not_know_is_unsupported(tmp_path: Path) -> None:
    folder = genai_folder(tmp_path)
    change_config(folder, lambda content: content["model"].update(type="made_up"))
    with pytest.raises(WorkerError) as refused:
        opened(genai_case(folder))
    assert (refused.value.failure.kind, refused.value.failure.phase) == ("unsupported", "session")


@genai
@pytest.mark.live
@pytest.mark.parametrize("batch", [1, 2])
def test_both_engines_score_tokens_alike(tmp_path: Path, batch: int) -> None:
    folder = genai_folder(tmp_path)
    ids = np.random.default_rng(0).integers(0, VOCABULARY - 2, (batch, 12))
    scores = []
    for kind, engine in ((GenaiCase, "genai"), (GeneratingCase, "session")):
        measured = kind(genai_case(folder, batch=batch, engine=engine), print)
        measured.open()
        scorer = measured.scorer(12)
        every = scorer.every(ids)
        assert every is not None
        scores.append((step_by_step(scorer, ids, 5), every[:, 4:]))
    assert scores[0][0].shape == (batch, 8, VOCABULARY)
    for stepped, every in scores:
        np.testing.assert_allclose(stepped, scores[0][1], atol=1e-3)
        np.testing.assert_allclose(every, scores[0][1], atol=1e-3)


@genai
@pytest.mark.live
def test_tokens_before_the_prompts_of_several_sequences_are_refused(tmp_path: Path) -> None:
    case = genai_case(genai_folder(tmp_path), batch=2, depth=20)
    with pytest.raises(WorkerError) as refused:
        opened(case)
    assert (refused.value.failure.kind, refused.value.failure.phase) == ("unsupported", "first")


@pytest.mark.parametrize(
    ("session", "option"),
    [
        (SessionConfig(execution_mode="parallel"), "execution_mode"),
        (SessionConfig(enable_mem_reuse=False), "enable_mem_reuse"),
        (SessionConfig(arena_extend_strategy="kSameAsRequested"), "arena_extend_strategy"),
        (SessionConfig(arena_initial_chunk_bytes=4096), "arena_initial_chunk_bytes"),
        (SessionConfig(graph_optimization_level="layout"), "--ort-graph-opt"),
        (SessionConfig(custom_ops=("a.so", "b.so")), "--ort-custom-ops"),
        (SessionConfig(custom_ops=("ops.py",)), "--ort-custom-ops=ops.py"),
        (SessionConfig(custom_ops=("a.py", "b.py")), "=a.py and --ort-custom-ops=b.py out"),
        (
            SessionConfig(execution_mode="parallel", enable_mem_reuse=False),
            "enable_mem_reuse and execution_mode out",
        ),
    ],
)
def test_session_options_that_genai_lacks_are_refused(session: SessionConfig, option: str) -> None:
    case = replace(generating(), session=session)
    with pytest.raises(WorkerError) as refused:
        refuse_unsupported(case)
    assert (refused.value.failure.kind, refused.value.failure.phase) == ("unsupported", "session")
    assert option in refused.value.failure.hint


def test_options_of_the_cpu_are_refused() -> None:
    cpu = Provider(alias="cpu", name="CPUExecutionProvider", options={"a": "1"})
    with pytest.raises(WorkerError):
        refuse_unsupported(replace(generating(), provider=cpu))
