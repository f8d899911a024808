"""Execution providers as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS, supplied_by
from pytest_ortbench.planning.providers import (
    RuntimeOffer,
    check_specs,
    expand,
    is_known,
    parse_provider,
    parse_provider_options,
    refuse_unused_options,
    split_specs,
)
from tests.refused import refused

#: ``get_available_providers()`` of the plain wheel on Linux, and of the GPU one.
PLAIN = ("AzureExecutionProvider", "CPUExecutionProvider")
GPU = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("cpu", ("cpu",)),
        ("all,cuda:1", ("all", "cuda:1")),
        ("openvino:HETERO:GPU,CPU", ("openvino:HETERO:GPU,CPU",)),
        ("openvino:HETERO:GPU,CPU,cpu", ("openvino:HETERO:GPU,CPU", "cpu")),
        ("CUDAExecutionProvider,cpu", ("CUDAExecutionProvider", "cpu")),
        ("cpu,CUDAExecutionProvider:0", ("cpu", "CUDAExecutionProvider:0")),
        ("cpu,AcmeExecutionProvider", ("cpu", "AcmeExecutionProvider")),
        ("cpu, openvino:AUTO", ("cpu", "openvino:AUTO")),
        # A plug-in of the project is known only where its configuration is read.
        ("cpu,acme", ("cpu", "acme")),
        ("cpu, acme:1,other", ("cpu", "acme:1,other")),
        ("openvino:GPU~cpu,acme", ("openvino:GPU~cpu", "acme")),
    ],
)
def test_a_comma_splits_in_front_of_a_provider_only(text: str, specs: tuple[str, ...]) -> None:
    assert split_specs(text) == specs


@given(st.lists(st.sampled_from([*KINDS, *BY_NAME, "all", "cuda:1", "openvino:MULTI:GPU,CPU"])))
def test_any_list_of_known_providers_splits_into_itself(specs: list[str]) -> None:
    if specs:
        assert split_specs(",".join(specs)) == tuple(specs)


@pytest.mark.parametrize(
    ("spec", "label", "name", "options"),
    [
        ("cpu", "cpu", "CPUExecutionProvider", {}),
        ("CPUExecutionProvider", "cpu", "CPUExecutionProvider", {}),
        ("cuda:1", "cuda:1", "CUDAExecutionProvider", {"device_id": "1"}),
        ("cuda:01", "cuda:1", "CUDAExecutionProvider", {"device_id": "1"}),
        ("CUDAExecutionProvider:2", "cuda:2", "CUDAExecutionProvider", {"device_id": "2"}),
        ("tensorrt:0", "tensorrt:0", "TensorrtExecutionProvider", {"device_id": "0"}),
        ("migraphx:3", "migraphx:3", "MIGraphXExecutionProvider", {"device_id": "3"}),
        ("cann:0", "cann:0", "CANNExecutionProvider", {"device_id": "0"}),
        ("openvino", "openvino", "OpenVINOExecutionProvider", {}),
        ("openvino:GPU", "openvino:GPU", "OpenVINOExecutionProvider", {"device_type": "GPU"}),
        ("openvino:gpu.1", "openvino:GPU.1", "OpenVINOExecutionProvider", {"device_type": "GPU.1"}),
        ("openvino:AUTO", "openvino:AUTO", "OpenVINOExecutionProvider", {"device_type": "AUTO"}),
        (
            "openvino:HETERO:GPU,CPU",
            "openvino:HETERO:GPU,CPU",
            "OpenVINOExecutionProvider",
            {"device_type": "HETERO:GPU,CPU"},
        ),
        ("dml:1", "dml:1", "DmlExecutionProvider", {"device_id": "1"}),
        ("dml:NPU", "dml:npu", "DmlExecutionProvider", {"device_filter": "npu"}),
        ("coreml:gpu", "coreml:gpu", "CoreMLExecutionProvider", {"MLComputeUnits": "CPUAndGPU"}),
        ("qnn:htp", "qnn:htp", "QNNExecutionProvider", {"backend_path": "libQnnHtp.so"}),
        ("ggml:gpu", "ggml:gpu", "ggml", {"device": "gpu"}),
        ("mlx", "mlx", "MLXExecutionProvider", {}),
        ("nxrt", "nxrt", "cpu_ep", {}),
    ],
)
def test_one_provider(spec: str, label: str, name: str, options: dict[str, str]) -> None:
    provider = parse_provider(spec, platform="linux")
    assert (provider.label, provider.name, provider.options) == (label, name, options)
    assert provider.named


def test_qnn_library_is_named_as_on_the_measuring_machine() -> None:
    assert parse_provider("qnn:cpu", platform="win32").options == {"backend_path": "QnnCpu.dll"}


@pytest.mark.parametrize("alias", KINDS)
def test_every_alias_and_full_name_mean_the_same(alias: str) -> None:
    assert parse_provider(alias) == parse_provider(KINDS[alias].name)


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("CpuExecutionProvider", "Did you mean 'CPUExecutionProvider'?"),
        ("CUADExecutionProvider", "Did you mean 'CUDAExecutionProvider'?"),
        ("cdua", "Did you mean 'cuda'?"),
        ("CUDA", "Did you mean 'cuda'?"),
        ("cuda,opnvino", "Did you mean 'openvino'?"),
        ("xyz", "Choose one of: mlx, jax, nxrt"),
    ],
)
def test_an_unknown_provider_names_the_nearest_known_one(spec: str, hint: str) -> None:
    with pytest.raises(UsageError, match=r"^--ort-providers: ") as error:
        parse_provider(spec)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("nnapi", "NnapiExecutionProvider"),
        ("NNAPI", "NnapiExecutionProvider"),
        ("NnapiExecutionProvider", "NnapiExecutionProvider"),
        ("tpu", "TPU"),
        ("TPU", "TPU"),
        ("fpga", "FPGA"),
        ("ANE", "Apple Neural Engine"),
        ("RKNPU", "RknpuExecutionProvider"),
        ("armnn", "ArmNNExecutionProvider"),
        ("ArmNN", "ArmNNExecutionProvider"),
        ("ACL", "ACLExecutionProvider"),
        ("XNNPACK", "XnnpackExecutionProvider"),
        ("DirectML", "DmlExecutionProvider"),
        ("migraphx", "MIGraphXExecutionProvider"),
        ("coreml", "CoreMLExecutionProvider"),
        ("oneDNN", "DnnlExecutionProvider"),
    ],
)
def test_a_word_for_hardware_that_is_not_here_is_a_case(word: str, name: str) -> None:
    check_specs(["cpu", word])
    assert split_specs(f"cpu,{word}") == ("cpu", word)
    providers, _ = expand([f"cpu,{word}"], RuntimeOffer(available=PLAIN))
    assert [provider.name for provider in providers] == ["CPUExecutionProvider", name]
    assert supplied_by(providers[1].alias)


@pytest.mark.parametrize("word", ["gpu", "NPU", "cpu,npu"])
def test_hardware_of_several_providers_asks_for_one_of_them(word: str) -> None:
    with pytest.raises(UsageError) as error:
        check_specs([word])
    # What it names is understood, but for who makes it.
    named = re.findall(r"[\w:]+(?= or | \()", error.value.hint.partition(": ")[2])
    assert len(named) >= 5
    check_specs(named)


def test_a_plug_in_of_the_project_may_be_called_like_hardware() -> None:
    [provider], _ = expand(
        ["tpu:npu"], RuntimeOffer(available=PLAIN, aliases={"tpu": "AcmeTpuExecutionProvider"})
    )
    assert (provider.name, provider.device) == ("AcmeTpuExecutionProvider", "npu")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cpu:0", "'cpu' takes no device, but '0' is given"),
        (
            "cuda:x",
            "'x' is not a device of 'cuda', which takes an index or a UUID (GPU-…, MIG-…). "
            "Write e.g. cuda:0",
        ),
        ("cuda:-1", "'-1' is not a device of 'cuda'"),
        ("cuda:", "'cuda:' has no device after"),
        (":0", "the name of an execution provider is missing"),
        ("dml:tpu", "which takes gpu, npu or an index"),
        ("qnn:dsp", "'qnn' has no device 'dsp'. Write one of: qnn:htp, qnn:cpu"),
        ("openvino:FOO", "but not 'FOO'. Write one of them, e.g. openvino:GPU"),
        (
            "openvino:GPU,opnvino",
            "'opnvino' is neither a device of OpenVINO nor a provider. Did you mean 'openvino'?",
        ),
        ("openvino:GPU.x", "but not 'GPU.x'. Did you mean 'GPU'?"),
        ("openvino:gpu.", "but not 'gpu.'"),
        ("openvino:HETERO", "openvino:HETERO:GPU,CPU"),
        ("openvino:HETERO:GPU,FOO", "'FOO' is neither"),
        ("openvino:GPU,CPU", "openvino:HETERO:GPU,CPU"),
        ("openvino:AUTO:GPU,GUP", "'GUP' is neither a device of OpenVINO nor a provider"),
        ("openvino:-GPU", "but not '-GPU'"),
        ("openvino:CPU_FP16", "--ort-provider-option=openvino.precision=FP16"),
    ],
)
def test_a_device_that_does_not_fit_is_refused(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_provider(spec)
    assert message in str(error.value)


def test_before_a_runtime_is_asked_only_typing_errors_are_refused() -> None:
    check_specs(["all", "cpu", "openvino:GPU", "AcmeExecutionProvider", "acme"])
    for spec in ("CpuExecutionProvider", "cdua", "cuda,opnvino", "cuda:x", "cpu,"):
        with pytest.raises(UsageError):
            check_specs([spec])


def test_all_is_what_is_available_without_azure_and_the_cpu_first() -> None:
    providers, skips = expand(["all"], RuntimeOffer(available=PLAIN), runtime="current")
    assert [(p.alias, p.named) for p in providers] == [("cpu", False)]
    assert [(s.what, s.runtime) for s in skips] == [("azure", "current")]
    assert "no node" in skips[0].reason
    providers, skips = expand(["all"], RuntimeOffer(available=GPU))
    assert [p.alias for p in providers] == ["cpu", "tensorrt", "cuda"]
    assert skips == []


def test_azure_by_name_is_a_case() -> None:
    providers, skips = expand(["azure", "all"], RuntimeOffer(available=PLAIN))
    assert [(p.alias, p.named) for p in providers] == [("azure", True), ("cpu", False)]
    assert skips == []


def test_a_provider_named_beside_all_stays_named() -> None:
    for specs in (["all", "cuda:1"], ["cuda:1", "all"]):
        providers, _ = expand(specs, RuntimeOffer(available=GPU))
        assert {p.label: p.named for p in providers} == {
            "cpu": False,
            "tensorrt": False,
            "cuda:1": True,
        }


def test_a_named_provider_that_is_not_there_is_still_a_case() -> None:
    providers, skips = expand(["openvino"], RuntimeOffer(available=PLAIN))
    assert [(p.alias, p.named) for p in providers] == [("openvino", True)]
    assert skips == []


def test_a_repeated_provider_is_one_case() -> None:
    providers, _ = expand(["cpu", "CPUExecutionProvider", "cpu,all"], RuntimeOffer(available=PLAIN))
    assert [p.label for p in providers] == ["cpu"]


def test_an_unknown_plug_in_keeps_its_own_name() -> None:
    available = (*PLAIN, "AcmeExecutionProvider")
    providers, _ = expand(["all"], RuntimeOffer(available=available))
    assert [(p.alias, p.name) for p in providers] == [
        ("cpu", "CPUExecutionProvider"),
        ("AcmeExecutionProvider", "AcmeExecutionProvider"),
    ]
    providers, _ = expand(["AcmeExecutionProvider"], RuntimeOffer(available=available))
    assert providers[0].named
    with refused(UsageError, "'AcmeExecutionProvider'"):
        expand(["AcmeExecutionProvider"], RuntimeOffer(available=PLAIN))


def test_who_supplies_a_provider() -> None:
    assert "--ort-runtimes=onnxruntime-openvino" in supplied_by("openvino").split()
    assert "onnxruntime-gpu" in supplied_by("cuda")
    assert "cuDNN" in supplied_by("cuda")
    assert "on PyPI" in supplied_by("xnnpack")
    assert "pip install" not in supplied_by("xnnpack")
    assert supplied_by("AcmeExecutionProvider") == ""


@pytest.mark.parametrize("alias", KINDS)
def test_every_provider_says_where_it_comes_from(alias: str) -> None:
    assert KINDS[alias].name in supplied_by(alias)
    assert bool(KINDS[alias].distributions) is not bool(KINDS[alias].elsewhere)


def test_provider_options_by_alias() -> None:
    assert parse_provider_options(
        ("cuda.device_id=1,openvino.precision=FP16", "webgpu.ep.webgpuexecutionprovider.a=b")
    ) == {
        "cuda": {"device_id": "1"},
        "openvino": {"precision": "FP16"},
        "webgpu": {"ep.webgpuexecutionprovider.a": "b"},
    }
    assert parse_provider_options("CUDAExecutionProvider.a=1,cuda.b=2") == {
        "cuda": {"a": "1", "b": "2"}
    }
    assert parse_provider_options('openvino.load_config={"CPU":{"a":"1","b":"2"}}') == {
        "openvino": {"load_config": '{"CPU":{"a":"1","b":"2"}}'}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "device_id=1",
            "'device_id=1' does not say which provider has the option. Write "
            "PROVIDER.OPTION=VALUE, e.g. cuda.device_id=1",
        ),
        ("num_streams=2", "e.g. openvino.num_streams=2"),
        ("no_such=2", "e.g. cuda.use_tf32=1"),
        (".device_id=1", "'.device_id=1' does not say which provider"),
        ("cuda.=1", "'cuda.=1' has no option"),
        ("cdua.device_id=1", "'cdua' is not a known execution provider. Did you mean 'cuda'?"),
        ("cuda.device_id", "'cuda.device_id' has no '='"),
        ("cuda.a=1,CUDAExecutionProvider.a=2", "cuda.a has two values, '1' and '2'"),
    ],
)
def test_a_malformed_provider_option_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^--ort-provider-option: ") as error:
        parse_provider_options(text)
    assert message in str(error.value)


QNN = "QNNExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"


def labels(specs: list[str], offer: RuntimeOffer) -> list[str]:
    return [provider.label for provider in expand(specs, offer, platform="linux")[0]]


def test_several_devices_of_one_provider_are_several_cases() -> None:
    available = (OPENVINO, "CPUExecutionProvider")
    one = RuntimeOffer(available=available, devices={OPENVINO: ("CPU",)})
    assert labels(["all"], one) == ["cpu", "openvino"]
    several = RuntimeOffer(available=available, devices={OPENVINO: ("CPU", "GPU.0", "GPU.1")})
    assert labels(["all"], several) == ["cpu", "openvino:CPU", "openvino:GPU.0", "openvino:GPU.1"]
    providers, _ = expand(["all"], several)
    assert providers[2].options == {"device_type": "GPU.0"}
    assert not providers[2].named
    # Who names one of them means this one.
    assert labels(["openvino:GPU", "all"], several) == ["openvino:GPU", "cpu"]


def test_qnn_always_names_its_backend() -> None:
    offer = RuntimeOffer(available=("CPUExecutionProvider", QNN), devices={QNN: ("htp",)})
    assert labels(["all"], offer) == ["cpu", "qnn:htp"]


def test_a_plug_in_that_can_not_be_used_is_left_out_with_its_reason() -> None:
    offer = RuntimeOffer(
        available=PLAIN, problems={"WebGpuExecutionProvider": "no device", "Acme": "no"}
    )
    providers, skips = expand(["all"], offer, runtime="r")
    assert [provider.alias for provider in providers] == ["cpu"]
    found = {skip.what: (skip.reason, skip.runtime) for skip in skips}
    assert found["webgpu"] == ("no device", "r")
    assert found["Acme"] == ("no", "r")
    # Named, it stays a case: the runtime itself will say why not.
    assert labels(["webgpu", "all"], offer) == ["webgpu", "cpu"]


def test_plug_ins_of_the_project_have_alias_and_library() -> None:
    offer = RuntimeOffer(
        available=(*PLAIN, "AcmeExecutionProvider"),
        devices={"AcmeExecutionProvider": ("gpu", "npu")},
        libraries={"AcmeExecutionProvider": "/lib/acme.so"},
        aliases={"acme": "AcmeExecutionProvider"},
    )
    providers, _ = expand(["acme:npu"], offer)
    assert providers == [
        Provider(
            alias="acme",
            name="AcmeExecutionProvider",
            device="npu",
            library="/lib/acme.so",
        )
    ]
    assert labels(["all"], offer) == ["cpu", "acme:gpu", "acme:npu"]
    assert is_known("acme:gpu", offer.aliases)
    assert not is_known("other", offer.aliases)


@pytest.mark.parametrize(
    ("spec", "label", "options"),
    [
        ("cuda:GPU-8f6d3f1c", "cuda:GPU-8f6d3f1c", {"device_id": "GPU-8f6d3f1c"}),
        ("tensorrt:MIG-1a2b", "tensorrt:MIG-1a2b", {"device_id": "MIG-1a2b"}),
        ("webgpu:gpu.1", "webgpu:gpu.1", {}),
        ("webgpu:GPU.0", "webgpu:gpu", {}),
    ],
)
def test_devices_by_uuid_and_by_hardware(spec: str, label: str, options: dict[str, str]) -> None:
    provider = parse_provider(spec)
    assert (provider.label, provider.options) == (label, options)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("qnn:saver", "qnn:saver computes nothing and only records the graph"),
        ("qnn:npu", "'qnn' has no device 'npu'. Write one of: qnn:htp, qnn:cpu, qnn:gpu"),
        ("webgpu:tpu", "'webgpu' has no device 'tpu'. Write webgpu:gpu"),
        ("webgpu:vulkan", "--ort-provider-option=webgpu.dawnBackendType=Vulkan"),
    ],
)
def test_devices_that_a_provider_has_not(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_provider(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("alias", "specs"),
    [
        ("cuda", ["cpu,cuda:1"]),
        ("cuda", ["CUDAExecutionProvider"]),
        ("cuda", ["cpu", "all"]),
        ("npu", ["npu:0"]),
        ("FancyExecutionProvider", ["fancy"]),
    ],
)
def test_options_of_a_provider_that_is_asked_for_are_taken(alias: str, specs: list[str]) -> None:
    assert refuse_unused_options({alias: {"a": "1"}}, specs) is None


@pytest.mark.parametrize("specs", [["cpu,openvino:GPU"], ["cpu", "openvino:GPU"]])
def test_options_of_a_provider_that_is_not_asked_for_are_refused(specs: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_unused_options({"cpu": {"b": "2"}, "cuda": {"a": "1"}}, specs)
    assert raised.value.place == "--ort-provider-option"
    assert raised.value.message.startswith("cuda.a ")
    assert raised.value.message.endswith(" cpu, openvino:GPU")
    assert "--ort-providers" in raised.value.hint
