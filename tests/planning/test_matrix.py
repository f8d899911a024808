import dataclasses
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime, Sampling, SessionConfig
from pytest_ortbench.core.errors import UnknownSizeError, UsageError
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.run import Skip
from pytest_ortbench.planning.matrix import Plan, Target, build_plan, with_inputs
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.unreadable import UnreadableModel
from tests.counted_calls import counted
from tests.refused import refused

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CUDA = Provider(alias="cuda", name="CUDAExecutionProvider", device="1")
CURRENT = Target(runtime=Runtime(), providers=(CPU,))


def make_model(name: str = "m", shape: tuple[int | str | None, ...] = ("N", 4)) -> Model:
    return Model(
        name=name,
        path=f"/models/{name}.onnx",
        source="file",
        digest=name * 4,
        size_bytes=100,
        inputs=(TensorInfo(name="x", type="tensor(float)", shape=shape),),
    )


def _ids(plan: Plan) -> list[str]:
    return [planned.case.case_id for planned in plan.entries]


def test_the_matrix_is_the_product_of_its_axes_in_reading_order() -> None:
    request = PlanRequest(models=(), batch_sizes=(1, 8))
    target = Target(runtime=Runtime(), providers=(CPU, CUDA))
    plan = build_plan(request, [make_model("a"), make_model("b")], [target])
    assert _ids(plan) == [
        "a/native/cpu/b1",
        "a/native/cpu/b8",
        "a/native/cuda:1/b1",
        "a/native/cuda:1/b8",
        "b/native/cpu/b1",
        "b/native/cpu/b8",
        "b/native/cuda:1/b1",
        "b/native/cuda:1/b8",
    ]
    assert [planned.case.inputs[0].shape for planned in plan.entries[:2]] == [(1, 4), (8, 4)]


def test_what_the_user_sets_stands_in_the_id_even_with_one_value() -> None:
    request = PlanRequest(models=(), dims={"seq": (128, 512)}, threads=(2,), graph_opts=("basic",))
    plan = build_plan(request, [make_model(shape=("N", "seq"))], [CURRENT])
    assert _ids(plan) == [
        "m/native/cpu/b1/seq:128/threads:2/opt:basic",
        "m/native/cpu/b1/seq:512/threads:2/opt:basic",
    ]
    session = plan.entries[0].case.session
    assert (session.intra_op_num_threads, session.graph_optimization_level) == (2, "basic")
    assert [planned.case.inputs[0].shape for planned in plan.entries] == [(1, 128), (1, 512)]


def test_a_dimension_applies_to_the_models_that_have_it() -> None:
    request = PlanRequest(models=(), dims={"seq": (7,)})
    plan = build_plan(request, [make_model("a"), make_model("b", ("N", "seq"))], [CURRENT])
    assert _ids(plan) == ["a/native/cpu/b1", "b/native/cpu/b1/seq:7"]


def test_a_dimension_that_no_model_has_is_refused_with_the_nearest_one() -> None:
    request = PlanRequest(models=(), dims={"sep": (7,)})
    with refused(UnknownSizeError, "'sep'", place="--ort-dims", hint="'seq'"):
        build_plan(request, [make_model(shape=("N", "seq"))], [CURRENT])


def test_a_model_that_is_fixed_to_batch_1_is_refused_at_4_and_stays_a_row() -> None:
    request = PlanRequest(models=(), batch_sizes=(1, 4))
    plan = build_plan(request, [make_model(shape=(1, 4)), make_model("free")], [CURRENT])
    refusals = {planned.case.case_id: planned.refusal for planned in plan.entries}
    assert refusals["m/native/cpu/b1"] is None
    refusal = refusals["m/native/cpu/b4"]
    assert refusal is not None
    assert refusal.kind == "unsupported"
    assert refusals["free/native/cpu/b4"] is None


def test_an_unreadable_model_is_a_failed_row_and_the_others_go_on() -> None:
    broken = UnreadableModel(name="bad", path="/models/bad.onnx", message="bad.onnx: is empty")
    plan = build_plan(PlanRequest(models=()), [broken, make_model()], [CURRENT])
    assert _ids(plan) == ["bad/native/cpu/b1", "m/native/cpu/b1"]
    refusal = plan.entries[0].refusal
    assert refusal is not None
    assert (refusal.kind, refusal.message.partition(": ")[0]) == ("error", "bad.onnx")
    assert plan.entries[1].refusal is None


def test_provider_options_reach_the_provider_they_name() -> None:
    request = PlanRequest(models=(), provider_options={"cuda": {"cudnn_conv_algo_search": "X"}})
    target = Target(runtime=Runtime(), providers=(CPU, CUDA))
    cpu, cuda = (p.case.provider for p in build_plan(request, [make_model()], [target]).entries)
    assert cpu.options == {}
    assert cuda.options == {"cudnn_conv_algo_search": "X"}


def test_each_runtime_has_its_own_cases_with_equal_ids() -> None:
    other = Target(runtime=Runtime(label="onnxruntime-1.20.1"), providers=(CPU,))
    plan = build_plan(PlanRequest(models=()), [make_model()], [CURRENT, other])
    assert [planned.case.key for planned in plan.entries] == [
        ("m/native/cpu/b1", "current"),
        ("m/native/cpu/b1", "onnxruntime-1.20.1"),
    ]


def test_what_was_left_out_before_is_passed_on() -> None:
    skip = Skip(what="azure", reason="it takes no node")
    assert build_plan(PlanRequest(models=()), [make_model()], [CURRENT], [skip]).skips == (skip,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"intra_op_threads": "1"}, "Did you mean 'intra_op_num_threads'?"),
        ({"intra_op_num_threads": "0"}, "positive whole number"),
        ({"enable_mem_pattern": "maybe"}, "neither true nor false"),
        ({"execution_mode": "paralel"}, "Did you mean 'parallel'?"),
    ],
)
def test_a_wrong_session_option_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        build_plan(PlanRequest(models=(), session_options=options), [make_model()], [CURRENT])
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"enable_mem_reuse": "0"}, SessionConfig(enable_mem_reuse=False)),
        ({"enable_mem_reuse": "TRUE"}, SessionConfig(enable_mem_reuse=True)),
        (
            {"arena_extend_strategy": "kSameAsRequested", "arena_initial_chunk_bytes": "4096"},
            SessionConfig(arena_extend_strategy="kSameAsRequested", arena_initial_chunk_bytes=4096),
        ),
    ],
)
def test_what_the_memory_of_a_session_does(options: dict[str, str], found: SessionConfig) -> None:
    request = PlanRequest(models=(), session_options=options)
    (planned,) = build_plan(request, [make_model()], [CURRENT]).entries
    assert (planned.case.session, planned.refusal) == (found, None)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"enable_mem_reuse": "maybe"}, "enable_mem_reuse=1 or enable_mem_reuse=0"),
        ({"arena_extend_strategy": "kSameAsRequired"}, "'kSameAsRequested'"),
        ({"arena_initial_chunk_bytes": "0"}, "arena_initial_chunk_bytes=1048576"),
        ({"arena_initial_chunk_bytes": "2147483648"}, "arena_initial_chunk_bytes=2147483647"),
        # Nobody would use it.
        (
            {"arena_extend_strategy": "kSameAsRequested", "enable_cpu_mem_arena": "0"},
            "either enable_cpu_mem_arena=0 or",
        ),
        (
            {"arena_extend_strategy": "kSameAsRequested", "session.use_env_allocators": "0"},
            "either session.use_env_allocators=0 or",
        ),
        ({"log_severity_level": "3"}, "Leave it out"),
        # Nobody makes it.
        ({"session.use_env_allocators": "1"}, "arena_extend_strategy=kSameAsRequested"),
    ],
)
def test_memory_of_a_session_that_can_not_be_as_asked(options: dict[str, str], hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        build_plan(PlanRequest(models=(), session_options=options), [make_model()], [CURRENT])
    assert raised.value.place == "--ort-session-option"
    assert hint in raised.value.hint


def test_config_entries_are_passed_through() -> None:
    request = PlanRequest(
        models=(),
        session_options={"session.disable_prepacking": "1", "enable_cpu_mem_arena": "false"},
    )
    session = build_plan(request, [make_model()], [CURRENT]).entries[0].case.session
    assert session.entries == {"session.disable_prepacking": "1"}
    assert session.enable_cpu_mem_arena is False


def test_inputs_of_a_file_replace_drawn_ones(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "feeds.npz", x=np.ones((1, 4), np.float32))
    (planned,) = build_plan(PlanRequest(models=()), [make_model()], [CURRENT]).entries
    fed = with_inputs(planned, tmp_path / "feeds.npz")
    assert fed.refusal is None
    assert fed.case.inputs[0].path == str(tmp_path / "feeds.npz")
    assert fed.case.inputs[0].member == "x"


def _decoder() -> Model:
    return Model(
        name="decoder",
        path="/models/decoder.onnx",
        source="file",
        digest="d",
        size_bytes=1,
        inputs=(
            TensorInfo(name="input_ids", type="tensor(int64)", shape=("B", "S")),
            TensorInfo(name="past", type="tensor(float)", shape=("B", 2, "P", 4)),
        ),
        workloads={"decode": {"S": 1, "P": 127}, "prefill": {"S": 128, "P": 0}},
    )


def test_prefill_and_decode_are_two_cases_with_their_own_names() -> None:
    plan = build_plan(PlanRequest(models=()), [_decoder()], [CURRENT])
    shapes = {
        planned.case.case_id: [spec.shape for spec in planned.case.inputs]
        for planned in plan.entries
    }
    assert shapes == {
        "decoder/native/cpu/b1/workload:decode": [(1, 1), (1, 2, 127, 4)],
        "decoder/native/cpu/b1/workload:prefill": [(1, 128), (1, 2, 0, 4)],
    }


def test_sizes_of_a_workload_are_not_said_to_be_typed() -> None:
    plan = build_plan(PlanRequest(models=()), [_decoder()], [CURRENT])
    told = {
        (planned.case.knobs["workload"], size.symbol): size.how
        for planned in plan.entries
        for spec in planned.case.inputs
        for size in spec.resolved
        if size.origin == "dims"
    }
    assert told == {
        ("decode", "S"): "workload decode",
        ("decode", "P"): "workload decode",
        ("prefill", "S"): "workload prefill",
        ("prefill", "P"): "workload prefill",
    }


def test_sizes_that_the_user_sets_replace_the_workloads() -> None:
    request = PlanRequest(models=(), dims={"P": (15,)})
    (planned,) = build_plan(request, [_decoder()], [CURRENT]).entries
    assert planned.case.case_id == "decoder/native/cpu/b1/P:15"
    assert planned.case.inputs[1].shape == (1, 2, 15, 4)


def test_a_batch_that_is_set_as_a_dimension_counts_as_the_batch() -> None:
    request = PlanRequest(models=(), dims={"N": (8,)}, batch_sizes=(1, 4))
    (planned,) = build_plan(request, [make_model()], [CURRENT]).entries
    assert (planned.case.case_id, planned.case.batch) == ("m/native/cpu/b8", 8)
    assert planned.case.inputs[0].shape == (8, 4)
    assert planned.case.dims == {}


def test_a_name_that_is_the_batch_of_one_model_only_stays_a_dimension_of_the_other() -> None:
    request = PlanRequest(models=(), dims={"N": (4,)})
    other = make_model("other", shape=("batch", "N"))
    plan = build_plan(request, [make_model(), other], [CURRENT])
    assert _ids(plan) == ["m/native/cpu/b4", "other/native/cpu/b1/N:4"]
    assert [planned.case.inputs[0].shape for planned in plan.entries] == [(4, 4), (1, 4)]


def test_a_batch_of_zero_is_refused_however_it_is_written() -> None:
    request = PlanRequest(models=(), dims={"N": (1, 0)})
    with pytest.raises(UsageError) as raised:
        build_plan(request, [make_model()], [CURRENT])
    assert raised.value.place == "--ort-dims"
    for value in ("N:0 ", "'N'", "'m'"):
        assert value in raised.value.message
    assert raised.value.hint == "Write e.g. N:1"


def test_callers_and_sessions_are_axes_that_stand_in_the_id() -> None:
    request = PlanRequest(models=(), concurrency=(1, 4), sessions=(2,))
    cases = [planned.case for planned in build_plan(request, [make_model()], [CURRENT]).entries]
    assert [(case.concurrency, case.sessions, case.callers) for case in cases] == [
        (1, 2, 2),
        (4, 2, 8),
    ]
    assert [case.knobs for case in cases] == [
        {"concurrency": "1", "sessions": "2"},
        {"concurrency": "4", "sessions": "2"},
    ]
    [plain] = build_plan(PlanRequest(models=()), [make_model()], [CURRENT]).entries
    assert (plain.case.concurrency, plain.case.sessions, plain.case.knobs) == (1, 1, {})


def test_spinning_and_the_way_of_calling_are_axes() -> None:
    request = PlanRequest(models=(), spinning=("on", "off"), calls=("sync", "async"))
    plan = build_plan(request, [make_model()], [CURRENT])
    assert _ids(plan) == [
        "m/native/cpu/b1/spin:on",
        "m/native/cpu/b1/spin:on/call:async",
        "m/native/cpu/b1/spin:off",
        "m/native/cpu/b1/spin:off/call:async",
    ]
    entries = [planned.case.session.entries for planned in plan.entries]
    assert [each["session.intra_op.allow_spinning"] for each in entries] == ["1", "1", "0", "0"]
    assert [planned.case.call for planned in plan.entries] == ["sync", "async"] * 2
    [plain] = build_plan(PlanRequest(models=()), [make_model()], [CURRENT]).entries
    assert (plain.case.session.entries, plain.case.call) == ({}, "sync")


def test_a_size_of_the_soak_that_no_model_has_is_refused() -> None:
    request = PlanRequest(models=(), sampling=Sampling(soak_dims={"M": (1, 2)}))
    with refused(UnknownSizeError, "'M'", place="--ort-soak-dims"):
        build_plan(request, [make_model()], [CURRENT])


def test_a_captured_graph_is_a_label_of_its_own_and_needs_bound_inputs() -> None:
    cuda = Provider(alias="cuda", name="CUDAExecutionProvider")
    target = Target(runtime=Runtime(), providers=(cuda,))
    request = PlanRequest(
        models=(),
        io=("end-to-end", "device"),
        provider_options={"cuda": {"enable_cuda_graph": "1", "use_tf32": "0"}},
    )
    host, device = build_plan(request, [make_model()], [target]).entries
    assert host.case.case_id == "m/native/cuda/b1/graph:captured"
    assert host.refusal is not None
    assert "--ort-io=device" in host.refusal.hint
    assert device.case.knobs == {"graph": "captured", "io": "device"}
    assert device.refusal is None
    assert device.case.provider.options == {"enable_cuda_graph": "1", "use_tf32": "0"}
    request = dataclasses.replace(request, io=("device",), concurrency=(1, 4), sessions=(1, 2))
    planned = build_plan(request, [make_model()], [target]).entries
    assert [(one.case.concurrency, one.case.sessions, one.refusal is None) for one in planned] == [
        (1, 1, True),
        (1, 2, False),
        (4, 1, False),
        (4, 2, False),
    ]


NO_CPU = {"session.disable_cpu_ep_fallback": "1"}


def test_a_run_that_forbids_its_only_provider_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        build_plan(PlanRequest(models=(), session_options=NO_CPU), [make_model()], [CURRENT])
    assert raised.value.place == "--ort-session-option"
    assert raised.value.message.startswith("session.disable_cpu_ep_fallback=1 ")


def test_beside_another_provider_the_cpu_is_a_row_that_can_t_run() -> None:
    target = Target(runtime=Runtime(), providers=(CPU, CUDA))
    plan = build_plan(PlanRequest(models=(), session_options=NO_CPU), [make_model()], [target])
    cpu, cuda = plan.entries
    assert cpu.refusal is not None
    assert (cpu.refusal.kind, cuda.refusal) == ("unsupported", None)
    off = {"session.disable_cpu_ep_fallback": "0"}
    request = PlanRequest(models=(), session_options=off)
    assert build_plan(request, [make_model()], [CURRENT]).entries[0].refusal is None


@pytest.mark.parametrize("value", ["yes", "true", "2", "on", ""])
def test_a_value_that_onnx_runtime_would_ignore_is_refused(value: str) -> None:
    request = PlanRequest(models=(), session_options={"session.disable_prepacking": value})
    with refused(
        UsageError, f"session.disable_prepacking={value!r}", hint="session.disable_prepacking=1"
    ):
        build_plan(request, [make_model()], [CURRENT])


@pytest.mark.parametrize("batches", [(2,), (1, 2, 4, 8)])
def test_a_model_is_looked_at_once_and_fed_once_at_each_size(batches: tuple[int, ...]) -> None:
    request = PlanRequest(
        models=(),
        precisions=("native", "fp16", "simplified"),
        batch_sizes=batches,
        threads=(1, 2),
    )
    other = Target(runtime=Runtime(label="onnxruntime-1.20.1"), providers=(CPU, CUDA))
    with counted() as calls:
        plan = build_plan(request, [make_model(shape=("N", "S", None))], [CURRENT, other])
    assert len(plan.entries) == 3 * len(batches) * 2 * (len(CURRENT.providers) + 2)
    # Once for what the conversions are calibrated on.
    assert calls["inputs_at"] == calls["find_sizes"] == len(batches) + 1
    assert calls["default_size"] == 3
    # By the plan, by the check of the names of sizes, and by that of a pass.
    assert calls["find_batch"] == calls["named_shapes"] == 3


def test_the_id_of_a_case_is_spelt_once() -> None:
    with counted() as calls:
        plan = build_plan(PlanRequest(models=(), batch_sizes=(1, 2)), [make_model()], [CURRENT])
        keys = [planned.case.key for planned in plan.entries for _ in range(3)]
    assert calls["_spelt"] == 2
    first = plan.entries[0].case
    assert keys[0] == (first.case_id, "current")
    assert dataclasses.replace(first, batch=7).case_id == "m/native/cpu/b7"
