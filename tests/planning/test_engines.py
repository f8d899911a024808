"""Engines of language models: which are measured, where, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.passes.registry import can_have, metrics_beside
from pytest_ortbench.planning.engines import engines_lacking, may_use_genai
from pytest_ortbench.planning.matrix import Plan, Target, build_plan
from pytest_ortbench.planning.request import PlanRequest

PAST = ("N", 2, "past", 16)
CACHE = CacheTensor(
    past="past_key_values.0.key", present="present.0.key", type="tensor(float)", shape=(0, 2, 0, 16)
)
DECODER = Decoder(
    ids="input_ids", logits="logits", vocabulary=50, cache=(CACHE,), folder="/models/llm"
)
MODEL = Model(
    name="llm",
    path="/models/llm/model.onnx",
    source="file",
    digest="d" * 64,
    size_bytes=100,
    inputs=(
        TensorInfo(name="input_ids", type="tensor(int64)", shape=("N", "tokens")),
        TensorInfo(name=CACHE.past, type="tensor(float)", shape=PAST),
    ),
    decoder=DECODER,
)
ALONE = replace(MODEL, decoder=replace(DECODER, folder=""))
CPU = Provider(alias="cpu", name="CPUExecutionProvider")


def info(**distributions: str) -> RuntimeInfo:
    names = {name.replace("_", "-"): version for name, version in distributions.items()}
    return RuntimeInfo(
        distributions=names, version="1.32.0", python="3.12", numpy="2.0", executable="python"
    )


WITH = info(onnxruntime="1.32.0", onnxruntime_genai_cuda="0.18.0")
WITHOUT = info(onnxruntime="1.32.0")


def plan(
    model: Model,
    what: RuntimeInfo,
    *,
    engines: Sequence[str] = (),
    batch: int = 1,
    depth: int = 0,
    prompt: int = 16,
) -> Plan:
    request = PlanRequest(
        models=(),
        generate="only",
        engines=tuple(engines),
        batch_sizes=(batch,),
        depths=(depth,),
        prompt_tokens=(prompt,),
    )
    target = Target(runtime=Runtime(), providers=(CPU,), lacking=engines_lacking(Runtime(), what))
    return build_plan(request, [model], [target])


def seen(made: Plan) -> list[tuple[str, str]]:
    """Engine and kind of the refusal of each row."""
    return [
        (entry.case.knobs["engine"], entry.refusal.kind if entry.refusal else "")
        for entry in made.entries
    ]


def test_a_folder_is_measured_under_both_engines() -> None:
    made = plan(MODEL, WITH)
    assert seen(made) == [("genai", ""), ("session", "")]
    assert made.skips == ()


def test_an_engine_that_nobody_named_and_that_is_not_there_is_left_out_with_a_reason() -> None:
    made = plan(MODEL, WITHOUT)
    assert seen(made) == [("session", "")]
    (skip,) = made.skips
    assert (skip.what, skip.runtime) == ("llm × engine:genai", "current")


def test_an_engine_that_was_named_and_is_not_there_is_a_row_with_a_refusal() -> None:
    made = plan(MODEL, WITHOUT, engines=("genai", "session"))
    assert seen(made) == [("genai", "unavailable"), ("session", "")]
    assert made.skips == ()


@pytest.mark.parametrize("what", [WITH, WITHOUT])
def test_a_file_that_no_configuration_names_is_measured_under_a_session(what: RuntimeInfo) -> None:
    made = plan(ALONE, what)
    assert seen(made) == [("session", "")]
    assert made.skips == ()


def test_genai_without_a_configuration_is_refused() -> None:
    assert seen(plan(ALONE, WITH, engines=("genai",))) == [("genai", "unsupported")]


def test_a_decoder_whose_every_token_ends_a_text_writes_none() -> None:
    ending = replace(ALONE, decoder=replace(ALONE.decoder, end_tokens=tuple(range(50))))
    assert seen(plan(ending, WITH)) == [("session", "unsupported")]
    nearly = replace(ALONE, decoder=replace(ALONE.decoder, end_tokens=tuple(range(1, 50))))
    assert seen(plan(nearly, WITH)) == [("session", "")]


@pytest.mark.parametrize(
    ("depth", "prompt", "told", "step"),
    [
        (0, 600, "600 prompt tokens and 32 new tokens (default)", "--ort-prompt-tokens=480"),
        (500, 16, "500 earlier tokens, 16 prompt tokens and 32", "--ort-depth=464"),
        (512, 512, "512 prompt tokens", "--ort-depth and --ort-prompt-tokens and"),
    ],
)
def test_a_request_that_is_longer_than_the_context_says_what_fits(
    depth: int, prompt: int, told: str, step: str
) -> None:
    short = replace(ALONE, decoder=replace(ALONE.decoder, context=512))
    (entry,) = plan(short, WITH, depth=depth, prompt=prompt).entries
    assert entry.refusal is not None
    assert told in entry.refusal.message
    assert step in entry.refusal.hint


def test_genai_reads_no_prompt_behind_others_of_several_sequences() -> None:
    made = plan(MODEL, WITH, batch=2, depth=32)
    assert seen(made) == [("genai", "unsupported"), ("session", "")]
    assert seen(plan(MODEL, WITH, batch=2)) == [("genai", ""), ("session", "")]


def test_metrics_of_requests_are_not_asked_of_inferences_beside_them() -> None:
    request = PlanRequest(models=())
    target = Target(runtime=Runtime(), providers=(CPU,))
    cases = [entry.case for entry in build_plan(request, [ALONE], [target]).entries]
    assert [case.knobs["workload"] for case in cases] == ["decode", "prefill", "generate"]
    beside = metrics_beside(cases)
    assert [can_have("ttft", case, beside) for case in cases] == [False, False, True]
    assert [can_have("latency_p50", case, beside) for case in cases] == [True, True, True]
    # Where no case times requests, nobody is spared: the limit can't be kept.
    alone = metrics_beside(cases[:2])
    assert [can_have("ttft", case, alone) for case in cases[:2]] == [True, True]


def test_grouped_attention_on_the_cpu_reads_behind_a_cache_for_one_sequence() -> None:
    grouped = replace(ALONE, op_types={"com.microsoft::GroupQueryAttention": 2})
    assert seen(plan(grouped, WITH, batch=2, depth=32)) == [("session", "unsupported")]
    assert seen(plan(grouped, WITH, batch=2)) == [("session", "")]
    assert seen(plan(grouped, WITH, depth=32)) == [("session", "")]
    assert seen(plan(grouped, WITH, batch=2, depth=32, prompt=1)) == [("session", "")]


def test_a_version_that_was_asked_for_stays_beside_the_engine() -> None:
    for label, expected in (("onnxruntime==1.30.0", True), ("current", False)):
        pinned = Runtime(label=label, requirements=(label,) if expected else ())
        failure = engines_lacking(pinned, WITHOUT)["genai"]
        assert ("onnxruntime==1.30.0+onnxruntime-genai" in failure.hint) is expected


def test_a_machine_that_is_sent_single_files_has_no_folder_for_genai() -> None:
    far = Runtime(label="far", shares_files=False)
    assert engines_lacking(far, WITH)["genai"].kind == "unsupported"


@pytest.mark.parametrize(
    ("model", "changes", "asks"),
    [
        (MODEL, {}, True),
        (MODEL, {"engines": ("session",)}, False),
        (MODEL, {"generate": "off"}, False),
        (ALONE, {}, False),
        (ALONE, {"engines": ("genai",)}, False),
        (replace(MODEL, decoder=None), {}, False),
    ],
)
def test_runtimes_are_asked_only_where_genai_may_be_used(
    model: Model, changes: dict[str, object], asks: bool
) -> None:
    request = replace(PlanRequest(models=()), **changes)
    assert may_use_genai([model], request) is asks
