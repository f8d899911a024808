"""Layers that look back over a window and keep no more: caches of a fixed length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import CacheTensor
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.schema.case_questions import CheckOutputs, CompareOutputs
from pytest_ortbench.schema.model_questions import WriteReference
from pytest_ortbench.worker.generation.genai_case import GenaiCase
from pytest_ortbench.worker.generation.generating_case import GeneratingCase, RequestCase
from pytest_ortbench.worker.generation.held_rows import held, rows_held
from pytest_ortbench.worker.generation.requests import decoder_in, generation_in
from pytest_ortbench.worker.generation.scoring import step_by_step
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.reference import write_reference_outputs
from pytest_ortbench.worker.state import WorkerState
from tests.generation.folders import TINY, change_config, model_bytes, windowed, write_folder
from tests.worker.asking import ask
from tests.worker.decoder_cases import CURRENT

#: Tokens of the window of the first layer; the second layer has none.
WINDOW = 8
ROW_BYTES = 2 * TINY.key_heads * (TINY.width // TINY.heads) * 4
KINDS: dict[str, type[RequestCase]] = {"session": GeneratingCase, "genai": GenaiCase}


def windowed_folder(folder: Path, windows: dict[int, int]) -> Path:
    """Write a folder as the builder of onnxruntime-genai writes a Gemma 2."""
    write_folder(folder)
    (folder / "model.onnx").write_bytes(windowed(model_bytes(TINY), windows))
    sliding = {
        "window_size": WINDOW,
        "slide_key_value_cache": False,
        "slide_inputs": False,
        "layers": sorted(windows),
        "cache_slack": 0,
    }
    change_config(folder, lambda told: told["model"]["decoder"].update(sliding_window=sliding))
    return folder


def planned(
    root: Path,
    *,
    engine: str = "session",
    prompt: int,
    new: int,
    depth: int = 0,
    batch: int = 1,
    windows: dict[int, int] | None = None,
) -> Case:
    folder = windowed_folder(root / "folder", windows or {0: WINDOW})
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
    models = resolve_models(request.models, root=root)
    (entry,) = build_plan(request, models, [CURRENT]).entries
    return entry.case


def opened(case: Case) -> RequestCase:
    measured = KINDS[generation_in(case).engine](case, lambda _: None)
    measured.open()
    return measured


@pytest.fixture(params=["session", "genai"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "genai":
        pytest.importorskip("onnxruntime_genai", reason="pip install onnxruntime-genai")
    return name


@pytest.mark.live
@pytest.mark.parametrize("windows", [{0: WINDOW}, {0: WINDOW, 1: WINDOW}], ids=["one", "all"])
@pytest.mark.parametrize(("prompt", "new"), [(3, 4), (6, 8), (12, 4)], ids=["in", "over", "after"])
def test_scores_with_a_cache_are_those_without_on_both_sides_of_the_window(
    tmp_path: Path, engine: str, prompt: int, new: int, windows: dict[int, int]
) -> None:
    case = planned(tmp_path, engine=engine, prompt=prompt, new=new, windows=windows)
    measured = opened(case)
    ids = np.random.default_rng(0).integers(0, 500, (1, prompt + new - 1))
    scorer = measured.scorer(prompt + new - 1)
    stepped = step_by_step(scorer, ids, prompt)
    np.testing.assert_allclose(stepped, uncached(case, ids)[:, prompt - 1 :], atol=1e-3)
    use = measured.cache()
    assert use is not None
    assert use.bound_bytes == use.computed_bytes
    if engine == "session":
        rows = [tensor.window or prompt + new for tensor in decoder_in(case).cache]
        assert use.bound_bytes == sum(ROW_BYTES // 2 * count for count in rows)


def uncached(case: Case, ids: np.ndarray) -> np.ndarray:
    """Scores of a file with the same windows whose cache is as long as the text, in one run."""
    import onnx
    import onnxruntime as ort

    proto = onnx.load(case.model.path)
    for node in proto.graph.node:
        kept = [item for item in node.attribute if item.name != "sliding_window_cache"]
        del node.attribute[:]
        node.attribute.extend(kept)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    for tensor in decoder_in(case).cache:
        feeds[tensor.past] = np.zeros(replace(tensor, window=0).sized(1, 0), np.float32)
    scores: np.ndarray = session.run(["logits"], feeds)[0]
    return scores


@pytest.mark.live
@pytest.mark.parametrize("depth", [3, 20], ids=["in", "after"])
def test_what_stands_before_every_prompt_is_the_same_for_each_request(
    tmp_path: Path, engine: str, depth: int
) -> None:
    """A longer request pushes tokens out of the window, which the next one needs again."""
    case = planned(tmp_path, engine=engine, prompt=6, new=6, depth=depth)
    requests = opened(case).live_requests().engine
    random = np.random.default_rng(0)
    before, prompt = random.integers(0, 500, (1, depth)), random.integers(0, 500, (1, 6))
    requests.fill(before)
    written = []
    for _ in range(2):
        requests.request(prompt, 6)
        written.append(requests.written.tolist())
    assert written[0] == written[1] == greedy(case, np.concatenate([before, prompt], axis=1))


def greedy(case: Case, ids: np.ndarray) -> list[list[int]]:
    """The likeliest tokens after a text, each by a run over all of it."""
    ends = list(decoder_in(case).end_tokens)
    written = []
    for _ in range(generation_in(case).new_tokens):
        scores = uncached(case, ids)[:, -1]
        scores[:, ends] = -np.inf
        written.append(scores.argmax(axis=-1))
        ids = np.concatenate([ids, written[-1][:, None]], axis=1)
    return [list(row) for row in np.stack(written, axis=1).tolist()]


@pytest.mark.live
def test_genai_has_room_for_a_window_and_writes_as_much_as_was_asked(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai", reason="pip install onnxruntime-genai")
    measured = opened(planned(tmp_path, engine="genai", prompt=2, new=3))
    assert measured.options_in_force()["max_length"] == str(WINDOW)
    assert measured.live_requests().carry_out().new_tokens == 3


@pytest.mark.live
@pytest.mark.parametrize("prompt", [5, 13], ids=["in", "after"])
def test_outputs_of_both_engines_are_those_of_the_reference(
    tmp_path: Path, engine: str, prompt: int
) -> None:
    case = planned(tmp_path, engine=engine, prompt=prompt, new=2)
    measured = opened(case)
    assert ask(measured, CheckOutputs(run="first")).nonfinite == 0
    reference = tmp_path / "reference"
    write_reference_outputs(WriteReference(case=case, path=str(reference)), WorkerState(print))
    accuracy = ask(measured, CompareOutputs(reference=str(reference)))
    assert accuracy.reason == ""
    assert [output.name for output in accuracy.outputs] == [o.name for o in case.model.outputs]
    assert all(output.exact or (output.sqnr_db or 0) > 80 for output in accuracy.outputs)


@pytest.mark.live
@pytest.mark.parametrize(("past", "new"), [(0, 5), (0, 13), (6, 1), (11, 1)])
def test_single_inferences_are_compared_in_the_rows_that_hold_tokens(
    tmp_path: Path, past: int, new: int
) -> None:
    """The other rows of the buffer are memory that nobody wrote: they may hold anything."""
    folder = windowed_folder(tmp_path / "folder", {0: WINDOW})
    request = PlanRequest(
        models=(str(folder / "model.onnx"),),
        generate="off",
        dims={"past_sequence_length": (past,), "sequence_length": (new,)},
        threads=(1,),
    )
    models = resolve_models(request.models, root=tmp_path)
    (entry,) = build_plan(request, models, [CURRENT]).entries
    case = entry.case
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    by_name = dict(zip([info.name for info in case.model.outputs], measured.outputs(), strict=True))
    rows = min(past + new, WINDOW)
    assert np.shape(by_name["present.0.key"])[2] == rows
    assert np.shape(by_name["present.1.key"])[2] == past + new
    assert ask(measured, CheckOutputs(run="first")).nonfinite == 0
    reference = tmp_path / "reference"
    write_reference_outputs(WriteReference(case=case, path=str(reference)), WorkerState(print))
    accuracy = ask(measured, CompareOutputs(reference=str(reference)))
    assert accuracy.reason == ""
    assert all(output.exact or (output.sqnr_db or 0) > 80 for output in accuracy.outputs)


@pytest.mark.parametrize(
    ("tokens", "room", "rows"),
    [(3, 8, 3), (8, 8, 8), (9, 8, 8), (30, 8, 8), (10, 10, 10), (11, 10, 8), (13, 10, 10)],
)
def test_rows_of_a_buffer_that_hold_tokens(tokens: int, room: int, rows: int) -> None:
    assert rows_held(tokens, room, 8) == rows


def test_the_window_is_what_is_kept_of_a_longer_buffer() -> None:
    tensor = CacheTensor(
        past="past", present="present", type="tensor(float)", shape=(0, 1, 0, 2), window=4
    )
    value = np.arange(12).reshape(1, 1, 6, 2)
    assert held(value, tensor, 6).tolist() == value[:, :, 2:6].tolist()
    assert held(value, tensor, 7).tolist() == value[:, :, :4].tolist()
    assert held(value, tensor, 3).tolist() == value[:, :, :3].tolist()
    assert held(value, replace(tensor, window=0), 3).tolist() == value[:, :, :3].tolist()
