"""Sessions as asked for, or a named refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import onnxruntime
import pytest

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.worker import session as sessions
from pytest_ortbench.worker.session import (
    CPU,
    CustomOpsRefused,
    FellBack,
    LevelMissing,
    OptionIgnored,
    ProviderMissing,
    create,
    session_options,
)
from pytest_ortbench.worker.tiny import MATRIX_PRODUCT

ON_CPU = Provider(alias="cpu", name=CPU)


@pytest.mark.parametrize(
    ("level", "member"),
    [
        ("disable", "ORT_DISABLE_ALL"),
        ("basic", "ORT_ENABLE_BASIC"),
        ("extended", "ORT_ENABLE_EXTENDED"),
        ("all", "ORT_ENABLE_ALL"),
    ],
)
def test_levels(level: str, member: str) -> None:
    options = session_options(SessionConfig(graph_optimization_level=level), threads=1)
    assert options.graph_optimization_level == getattr(onnxruntime.GraphOptimizationLevel, member)


def test_a_level_that_an_old_version_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL = 0, 1, 2, 99

    monkeypatch.setattr(onnxruntime, "GraphOptimizationLevel", Old)
    with pytest.raises(LevelMissing, match="'layout'"):
        session_options(SessionConfig(graph_optimization_level="layout"), threads=1)


def test_every_field_reaches_the_options(tmp_path: Path) -> None:
    config = SessionConfig(
        inter_op_num_threads=3,
        execution_mode="parallel",
        enable_mem_pattern=False,
        enable_mem_reuse=False,
        enable_cpu_mem_arena=False,
        entries={"session.disable_prepacking": "1"},
    )
    options = session_options(config, threads=2, profile_prefix=tmp_path / "p")
    assert options.intra_op_num_threads == 2
    assert options.inter_op_num_threads == 3
    assert options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert not options.enable_mem_pattern
    assert not options.enable_mem_reuse
    assert not options.enable_cpu_mem_arena
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    assert options.enable_profiling
    assert options.profile_file_prefix == str(tmp_path / "p")


def test_what_is_not_set_keeps_onnxruntimes_default() -> None:
    options, plain = session_options(SessionConfig(), threads=1), onnxruntime.SessionOptions()
    for name in (
        "enable_mem_pattern",
        "enable_mem_reuse",
        "enable_cpu_mem_arena",
        "inter_op_num_threads",
        "enable_profiling",
        "execution_mode",
        "graph_optimization_level",
    ):
        assert getattr(options, name) == getattr(plain, name)


def test_a_missing_custom_operator_library(tmp_path: Path) -> None:
    with pytest.raises(CustomOpsRefused, match=r"nope\.so"):
        session_options(SessionConfig(custom_ops=(str(tmp_path / "nope.so"),)), threads=1)


def make(provider: Provider) -> Any:
    return create(MATRIX_PRODUCT.content, provider, session_options(SessionConfig(), threads=1))


@pytest.mark.live
def test_a_session_has_no_fallback_left() -> None:
    session, elapsed_ns = make(ON_CPU)
    assert elapsed_ns > 0
    assert session.get_providers() == [CPU]
    assert session._enable_fallback is False


def test_a_provider_that_is_not_available_is_refused_before_onnxruntime_warns() -> None:
    with pytest.raises(ProviderMissing, match=r"CudExecutionProvider is not among .*CPU"):
        make(Provider(alias="x", name="CudExecutionProvider"))


def test_a_session_that_fell_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the GPU wheel does without a GPU: it lists CUDA and runs on the CPU."""

    class FallingBack:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def disable_fallback(self) -> None:
            pass

        def get_providers(self) -> list[str]:
            return [CPU]

    monkeypatch.setattr(onnxruntime, "InferenceSession", FallingBack)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    with pytest.raises(FellBack) as caught:
        make(Provider(alias="cuda", name="CUDAExecutionProvider"))
    assert caught.value.session_providers == (CPU,)


@pytest.mark.live
@pytest.mark.skipif(
    "AzureExecutionProvider" not in onnxruntime.get_available_providers(),
    reason="needs a second provider that is compiled in",
)
def test_without_fallback_to_the_cpu_what_the_provider_leaves_is_an_error() -> None:
    """Azure's provider takes no node; naming the CPU behind it would be refused first."""
    azure = Provider(alias="azure", name="AzureExecutionProvider")
    config = SessionConfig(entries={"session.disable_cpu_ep_fallback": "1"})
    options = session_options(config, threads=1)
    with pytest.raises(Exception, match="nodes that are assigned to the default CPU EP"):
        create(MATRIX_PRODUCT.content, azure, options)
    allowed = SessionConfig(entries={"session.disable_cpu_ep_fallback": "0"})
    session, _ = create(MATRIX_PRODUCT.content, azure, session_options(allowed, threads=1))
    assert session.get_providers() == [azure.name, CPU]


@pytest.mark.live
def test_an_option_of_the_cpu_is_refused() -> None:
    with pytest.raises(OptionIgnored, match="'foo'"):
        make(Provider(alias="cpu", name=CPU, options={"foo": "1"}))


class ReadsBack:
    """A session that reads back some options."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {"XExecutionProvider": self._options}


def test_an_option_that_a_provider_dropped_is_refused() -> None:
    provider = Provider(alias="x", name="XExecutionProvider", options={"device_id": "0", "b": "1"})
    with pytest.raises(OptionIgnored, match=r"'b'; .*: device_id, stream"):
        sessions._require_options(ReadsBack({"device_id": "0", "stream": "1"}), provider)


def test_a_provider_that_reads_nothing_back_can_not_be_checked() -> None:
    provider = Provider(alias="x", name="XExecutionProvider", options={"b": "1"})
    sessions._require_options(ReadsBack({}), provider)


def test_a_plug_in_library_that_is_missing(tmp_path: Path) -> None:
    library = str(tmp_path / "nope.so")
    with pytest.raises(ProviderMissing, match=r"nope\.so"):
        make(Provider(alias="x", name="X", library=library))


def test_a_runtime_that_knows_no_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(onnxruntime, "register_execution_provider_library")
    with pytest.raises(ProviderMissing, match=r"1\.22 "):
        make(Provider(alias="x", name="X", library="/x.so"))


class Made:
    """A session that says which providers it was made with."""

    providers: ClassVar[object] = None

    def __init__(self, *_: object, providers: object, **__: object) -> None:
        Made.providers = providers

    def disable_fallback(self) -> None:
        pass

    def get_providers(self) -> list[str]:
        return ["TensorrtExecutionProvider", "CUDAExecutionProvider", CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {"TensorrtExecutionProvider": {"device_id": "1", "trt_fp16_enable": "1"}}

    def get_inputs(self) -> list[object]:
        return []

    get_outputs = get_inputs


@pytest.mark.live
@pytest.mark.parametrize("built", [True, False])
def test_behind_tensorrt_comes_cuda_on_the_same_gpu(
    monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    names = ["TensorrtExecutionProvider", *(["CUDAExecutionProvider"] if built else []), CPU]
    monkeypatch.setattr(onnxruntime, "InferenceSession", Made)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: names)
    monkeypatch.setattr(sessions, "_preloaded", ["CUDAExecutionProvider"])
    options = {"device_id": "1", "trt_fp16_enable": "True"}
    make(Provider(alias="tensorrt", name="TensorrtExecutionProvider", options=options))
    cuda = [("CUDAExecutionProvider", {"device_id": "1"})] if built else []
    assert Made.providers == [("TensorrtExecutionProvider", options), *cuda, (CPU, {})]


def test_libraries_of_packages_are_loaded_before_a_plug_in_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else one that ONNX Runtime brings finds no CUDA, and offers no device."""
    done: list[str] = []

    def asked(_: Provider) -> None:
        done.append("plug-in")
        raise ProviderMissing("none")

    monkeypatch.setattr(sessions, "_preloaded", [])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: done.append("preload"), raising=False)
    monkeypatch.setattr(sessions, "_plugin", asked)
    with pytest.raises(ProviderMissing):
        make(Provider(alias="cuda", name="CUDAExecutionProvider"))
    assert done == ["preload", "plug-in"]
