"""Provider options: a key that nobody knows never passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.graph_capture import GRAPH_CAPTURE, captures_graph
from pytest_ortbench.core.provider_kinds import KINDS
from pytest_ortbench.core.session_entries import NO_CPU
from pytest_ortbench.planning.option_tables import ANY, SWITCH, TABLES, WHOLE
from pytest_ortbench.planning.provider_options import (
    check_allowed,
    check_options,
    refuse_capture,
    refuse_session,
    with_options,
)
from pytest_ortbench.planning.providers import parse_provider
from tests.refused import refused


@pytest.mark.parametrize(
    ("alias", "options"),
    [
        ("cuda", {"cudnn_conv_algo_search": "HEURISTIC", "gpu_mem_limit": "2147483648"}),
        ("cuda", {"device_id": "GPU-aa11", "enable_cuda_graph": "1", "use_tf32": "false"}),
        ("tensorrt", {"trt_fp16_enable": "True", "trt_max_workspace_size": "1073741824"}),
        ("openvino", {"device_type": "HETERO:GPU,CPU", "precision": "ACCURACY"}),
        ("openvino", {"device_type": "gpu.1", "load_config": '{"GPU": {}}'}),
        ("qnn", {"htp_performance_mode": "burst", "vtcm_mb": "8"}),
        ("webgpu", {"preferredLayout": "NHWC"}),
        ("webgpu", {"ep.webgpuexecutionprovider.preferredLayout": "NHWC"}),
        ("ggml", {"weights": "f32", "threads": "2"}),
        ("cpu", {}),
    ],
)
def test_what_is_documented_passes(alias: str, options: dict[str, str]) -> None:
    check_options(alias, options)


@pytest.mark.parametrize(
    ("alias", "options", "message"),
    [
        ("cpu", {"foo": "1"}, "cpu takes no options, but foo is given. Leave out cpu.foo=1"),
        ("cuda", {"cudnn_conv_algo_serach": "DEFAULT"}, "Did you mean 'cudnn_conv_algo_search'?"),
        (
            "qnn",
            {"foo": "1"},
            'write options = ["foo"] under [tool.ortbench.plugins.qnn] in pyproject.toml',
        ),
        (
            "cuda",
            {"cudnn_conv_algo_search": "FAST"},
            "'FAST' is not a value of cuda.cudnn_conv_algo_search. "
            "Choose one of: DEFAULT, EXHAUSTIVE, HEURISTIC",
        ),
        ("cuda", {"gpu_mem_limit": "2 GB"}, "cuda.gpu_mem_limit='2 GB' is not a whole number"),
        ("cuda", {"use_tf32": "yes"}, "Write cuda.use_tf32=1 or cuda.use_tf32=0"),
        # Seen to run on as if nothing had been asked.
        ("ggml", {"device": "nonsense"}, "Choose one of: auto, cpu, gpu"),
        ("qnn", {"htp_performance_mode": "bursty"}, "Did you mean 'burst'?"),
        ("qnn", {"backend_type": "saver"}, "'saver' is not a value of qnn.backend_type"),
        (
            "openvino",
            {"device_type": "FOO"},
            "but not 'FOO'. Write one of them, e.g. openvino.device_type=GPU",
        ),
        ("openvino", {"device_type": "CPU_FP32"}, "Write openvino.device_type=CPU in place"),
        ("openvino", {"device_type": "CPU,GPU"}, "openvino.device_type=HETERO:CPU,GPU"),
        ("tensorrt", {"trt_min_subgraph_size": "auto"}, "whole number of nodes. Write e.g. "),
        ("openvino", {"precision": "FP64"}, "'FP64' is not a value of openvino.precision"),
        (
            "acme",
            {"speed": "11"},
            "does not know the options of acme, so 'speed' could be a mistake. If acme "
            'has this option, write options = ["speed"] under [tool.ortbench.plugins.acme] in '
            "pyproject.toml. If not, leave out acme.speed=11",
        ),
    ],
)
def test_what_is_not_documented_is_refused(
    alias: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_options(alias, options)
    assert message in str(caught.value)
    assert caught.value.place == "--ort-provider-option"


def test_what_the_project_declares_passes() -> None:
    check_options("acme", {"speed": "11"}, declared=("speed",))
    check_options("qnn", {"foo": "1", "vtcm_mb": "4"}, declared=("foo",))
    with pytest.raises(UsageError, match="'other'"):
        check_options("acme", {"other": "1"}, declared=("speed",))


def test_the_tables_are_of_known_providers_and_known_kinds() -> None:
    assert set(TABLES) <= set(KINDS)
    kinds = [rule for table in TABLES.values() for rule in table.values() if isinstance(rule, str)]
    assert set(kinds) == {ANY, WHOLE, SWITCH}
    assert {key for table in TABLES.values() for key in table} >= GRAPH_CAPTURE


def test_options_and_device_must_not_contradict_each_other() -> None:
    gpu = parse_provider("openvino:GPU")
    assert with_options(gpu, {"device_type": "GPU", "num_streams": "2"}).options == {
        "device_type": "GPU",
        "num_streams": "2",
    }
    with refused(UsageError, "openvino:GPU", "device_type='GPU'"):
        with_options(gpu, {"device_type": "CPU"})


def test_qnn_takes_its_backend_in_one_way_only() -> None:
    htp = parse_provider("qnn:htp", platform="linux")
    assert htp.options == {"backend_path": "libQnnHtp.so"}
    with refused(UsageError, "qnn.backend_type='htp'", "qnn:htp"):
        with_options(htp, {"backend_type": "htp"})
    plain = parse_provider("qnn")
    assert with_options(plain, {"backend_type": "htp"}).options == {"backend_type": "htp"}


def cuda(**options: str) -> Provider:
    return Provider(alias="cuda", name="CUDAExecutionProvider", options=options)


def test_two_options_that_choose_the_backend_of_qnn() -> None:
    with refused(UsageError, "qnn.backend_path", hint="keep only qnn.backend_type=htp") as raised:
        with_options(parse_provider("qnn"), {"backend_type": "htp", "backend_path": "Htp.so"})
    assert "keep only qnn.backend_path=Htp.so" in raised.value.hint


def test_an_engine_is_not_declared_as_a_plug_in() -> None:
    """Such a table makes a provider of ONNX Runtime of its name."""
    with refused(UsageError, "'mode'") as raised:
        check_options("torch", {"mode": "fast"})
    assert "tool.ortbench.plugins" not in raised.value.hint


@pytest.mark.parametrize(
    ("specs", "value", "hint"),
    [
        (["cpu"], "the only provider", "--ort-providers=cuda"),
        (["openvino~cpu"], "openvino~cpu", "--ort-providers=openvino."),
        (["tensorrt~cuda~cpu", "cpu"], "tensorrt~cuda~cpu, cpu", "--ort-providers=tensorrt~cuda."),
    ],
)
def test_what_forbids_the_cpu_names_what_has_it(specs: list[str], value: str, hint: str) -> None:
    session = SessionConfig(entries={NO_CPU: "1"})
    with refused(UsageError, value, hint=hint):
        check_allowed([parse_provider(spec) for spec in specs], [session])


def test_a_chain_that_is_forbidden_is_written_without_the_cpu() -> None:
    failure = refuse_session(parse_provider("openvino~cpu"), SessionConfig(entries={NO_CPU: "1"}))
    assert failure is not None
    assert failure.hint.split()[:2] == ["Write", "openvino"]


@pytest.mark.parametrize(
    ("specs", "named", "step"),
    [
        (["cpu", "cuda"], True, "Leave cpu out of --ort-providers."),
        (["cpu", "openvino"], False, "Write --ort-providers=openvino in place of "),
        (["cpu"], False, "Leave cpu out of --ort-providers."),
        (["tensorrt~cuda~cpu"], True, "Write tensorrt~cuda in place of tensorrt~cuda~cpu."),
        (["tensorrt~cuda~cpu", "tensorrt~cuda"], True, "Leave tensorrt~cuda~cpu out of "),
    ],
)
def test_what_forbids_the_cpu_has_a_step_that_fits_what_was_asked(
    specs: list[str], named: bool, step: str
) -> None:
    asked = [replace(parse_provider(spec), named=named) for spec in specs]
    failure = refuse_session(asked[0], SessionConfig(entries={NO_CPU: "1"}), asked)
    assert failure is not None
    assert failure.hint.startswith(step)


def test_memory_of_a_provider_is_set_with_its_own_option() -> None:
    session = SessionConfig(
        arena_extend_strategy="kSameAsRequested", arena_initial_chunk_bytes=4096
    )
    gpu = cuda()
    own = refuse_session(gpu, session, [gpu])
    assert own is not None
    assert "--ort-provider-option=cuda.arena_extend_strategy=kSameAsRequested" in own.hint
    assert "cuda.arena_initial_chunk_bytes" not in own.hint
    for provider, asked in ((gpu, [gpu, parse_provider("cpu")]), (parse_provider("dml"), [])):
        other = refuse_session(provider, session, asked)
        assert other is not None
        assert "--ort-provider-option" not in other.hint


def test_further_options_are_declared_in_the_file_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "ortbench.toml").write_text('[plugins.acme]\nlibrary = "libacme.so"')
    for alias, option in (("acme", "speed"), ("openvino", "num_stream")):
        with refused(UsageError, hint=f"[plugins.{alias}] in ortbench.toml"):
            check_options(alias, {option: "2"}, root=tmp_path)


def test_memory_of_the_cpu_is_an_option_of_the_session() -> None:
    with refused(UsageError, hint="--ort-session-option=arena_extend_strategy=kSameAsRequested"):
        check_options("cpu", {"arena_extend_strategy": "kSameAsRequested"})
    with refused(UsageError, hint="Leave out cpu.speed=2"):
        check_options("cpu", {"speed": "2"})


def test_a_recorded_graph_needs_inputs_that_stay() -> None:
    recorded = cuda(enable_cuda_graph="1")
    assert captures_graph(recorded)
    assert refuse_capture(recorded, "device") is None
    failure = refuse_capture(recorded, "end-to-end")
    assert failure is not None
    assert failure.kind == "unsupported"
    assert "--ort-io=device" in failure.hint
    assert not captures_graph(cuda(enable_cuda_graph="0"))
    assert refuse_capture(cuda(enable_cuda_graph="0"), "end-to-end", 4) is None
    assert refuse_capture(cuda(), "end-to-end") is None


def test_a_recorded_graph_has_one_caller() -> None:
    failure = refuse_capture(cuda(enable_cuda_graph="1"), "device", 4)
    assert failure is not None
    assert failure.kind == "unsupported"
    assert " 4 callers" in failure.message
    assert "--ort-processes=4" in failure.hint
    assert "--ort-provider-option=cuda.enable_cuda_graph=1" in failure.hint
    assert "--ort-sessions" not in failure.hint
    both = refuse_capture(cuda(enable_cuda_graph="1"), "device", 2, 3)
    assert both is not None
    assert "--ort-processes=6" in both.hint
    assert "--ort-concurrency" in both.hint
    assert "--ort-sessions" in both.hint
    # First what one caller would be refused for, too.
    failure = refuse_capture(cuda(enable_cuda_graph="1"), "end-to-end", 4)
    assert failure is not None
    assert "--ort-io=device" in failure.hint


@pytest.mark.parametrize(
    ("alias", "switch"),
    [
        ("cuda", "enable_cuda_graph"),
        ("tensorrt", "trt_cuda_graph_enable"),
        ("nvtensorrtrtx", "nv_cuda_graph_enable"),
        ("rocm", "enable_hip_graph"),
    ],
)
def test_every_provider_that_records_graphs_on_an_nvidia_or_amd_gpu_needs_them(
    alias: str, switch: str
) -> None:
    recorded = with_options(parse_provider(alias), {switch: "1"})
    assert refuse_capture(recorded, "device") is None
    failure = refuse_capture(recorded, "end-to-end")
    assert failure is not None
    assert f"{alias}.{switch}=" in failure.message


@pytest.mark.parametrize("io", ["end-to-end", "device"])
def test_webgpus_inputs_can_not_be_bound_where_its_graph_replays(io: str) -> None:
    recorded = with_options(parse_provider("webgpu"), {"enableGraphCapture": "1"})
    failure = refuse_capture(recorded, io)
    assert failure is not None
    assert (failure.kind, failure.phase, bool(failure.hint)) == ("unsupported", "session", True)


@pytest.mark.parametrize(
    ("alias", "written", "taken"),
    [
        ("tensorrt", {"trt_fp16_enable": "1"}, {"trt_fp16_enable": "True"}),
        ("tensorrt", {"trt_int8_enable": "0"}, {"trt_int8_enable": "False"}),
        ("tensorrt", {"trt_bf16_enable": "true"}, {"trt_bf16_enable": "True"}),
        # A number, no switch.
        ("tensorrt", {"trt_min_subgraph_size": "1"}, {"trt_min_subgraph_size": "1"}),
        ("dml", {"disable_metacommands": "1"}, {"disable_metacommands": "True"}),
        ("coreml", {"EnableOnSubgraphs": "true"}, {"EnableOnSubgraphs": "1"}),
        ("coreml", {"RequireStaticInputShapes": "False"}, {"RequireStaticInputShapes": "0"}),
        ("cuda", {"use_tf32": "1"}, {"use_tf32": "1"}),
    ],
)
def test_switches_are_written_as_the_provider_takes_them(
    alias: str, written: dict[str, str], taken: dict[str, str]
) -> None:
    check_options(alias, written)
    assert with_options(parse_provider(alias), written).options == taken


def test_a_switch_of_tensorrt_that_records_graphs_counts_as_one() -> None:
    assert captures_graph(with_options(parse_provider("tensorrt"), {"trt_cuda_graph_enable": "1"}))


@pytest.mark.parametrize(
    ("alias", "refused"), [("cpu", False), ("cuda", True), ("openvino", True), ("dml", True)]
)
def test_the_arena_of_the_cpu_is_no_other_providers(alias: str, refused: bool) -> None:
    session = SessionConfig(arena_initial_chunk_bytes=4096)
    failure = refuse_session(parse_provider(alias), session)
    assert (failure is not None) is refused


@pytest.mark.parametrize(
    ("alias", "session", "message"),
    [
        (
            "dml",
            SessionConfig(execution_mode="parallel"),
            "execution_mode=parallel can't be used with dml, which runs a model's nodes only one "
            "after the other",
        ),
        (
            "dml",
            SessionConfig(enable_mem_pattern=True),
            "enable_mem_pattern=1 can't be used with dml, which has no memory patterns",
        ),
        ("dml", SessionConfig(enable_mem_pattern=False), ""),
        ("dml", SessionConfig(), ""),
        ("cpu", SessionConfig(execution_mode="parallel", enable_mem_pattern=True), ""),
    ],
)
def test_what_directml_would_change_by_itself_is_refused(
    alias: str, session: SessionConfig, message: str
) -> None:
    failure = refuse_session(parse_provider(alias), session)
    assert ("" if failure is None else failure.message) == message
