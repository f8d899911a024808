"""Chains of providers as people write them, and what becomes of them in a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import CHAIN, FIX_DIMS, Case, LaterLink, Provider
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.graph_capture import captures_graph, without_capture
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.planned_again import TrustedOptions, choose_case, request_of
from pytest_ortbench.planning.provider_options import with_options_of_links
from pytest_ortbench.planning.providers import (
    RuntimeOffer,
    check_specs,
    expand,
    is_known,
    parse_provider,
    refuse_unused_options,
    split_specs,
)
from pytest_ortbench.store.resume import plan_fingerprint
from tests.refused import refused
from tests.results_factory import make_case

GPU = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")


@pytest.mark.parametrize(
    ("spec", "label", "names"),
    [
        ("tensorrt~cuda~cpu", "tensorrt~cuda~cpu", GPU),
        (" cuda:01 ~ cpu ", "cuda:1~cpu", GPU[1:]),
        ("CPUExecutionProvider~openvino", "cpu~openvino", (GPU[2], "OpenVINOExecutionProvider")),
        (
            "openvino:HETERO:GPU,CPU~cpu",
            "openvino:HETERO:GPU,CPU~cpu",
            ("OpenVINOExecutionProvider", GPU[2]),
        ),
    ],
)
def test_the_links_stand_in_the_order_in_which_they_are_written(
    spec: str, label: str, names: tuple[str, ...]
) -> None:
    chain = parse_provider(spec)
    assert chain.label == label
    assert tuple(link.name for link in chain.links) == names
    assert all(not link.then and link.named for link in chain.links)
    assert Provider.chain(chain.links) == chain
    assert parse_provider(chain.label) == chain


def test_one_link_is_a_provider() -> None:
    assert parse_provider("cpu").links == (parse_provider("cpu"),)
    assert CHAIN not in parse_provider("cpu").label


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("tensorrt~cdua~cpu", "cuda"),
        ("opnvino~cpu", "openvino"),
        ("openvino~CpuExecutionProvider", "CPUExecutionProvider"),
    ],
)
def test_a_misspelt_link_names_the_nearest_provider(spec: str, word: str) -> None:
    with refused(UsageError, place="--ort-providers", hint=f"{word!r}"):
        check_specs([spec])


@pytest.mark.parametrize(
    "spec",
    [
        "cpu~",
        "~cpu",
        "cuda~~cpu",
        "cpu~cpu",
        "cuda:0~cuda:1~cpu",
        "cuda~CUDAExecutionProvider",
        "all~cpu",
        "cpu~all",
        "tract~cpu",
        "cpu~torch",
        "cpu:0~cuda",
    ],
)
def test_what_is_no_chain_is_refused_before_a_runtime_is_asked(spec: str) -> None:
    with refused(UsageError, place="--ort-providers") as raised:
        check_specs([spec])
    assert isinstance(raised.value, UsageError)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("cpu~cpu", "Write cpu"),
        ("cuda~~cpu", "Write cuda~cpu, or add the missing provider"),
        (
            "cuda:0~cuda:1~cpu",
            "Write cuda:0~cpu. To measure each by itself, write cuda:0,cuda:1,cpu",
        ),
    ],
)
def test_a_chain_that_can_not_be_is_written_as_it_can(spec: str, hint: str) -> None:
    with refused(UsageError, repr(spec)) as raised:
        check_specs([spec])
    assert raised.value.hint == hint


def test_chains_in_a_list() -> None:
    text = "cpu,openvino:HETERO:GPU,CPU~cpu, tensorrt ~ cuda,all"
    assert split_specs(text) == ("cpu", "openvino:HETERO:GPU,CPU~cpu", "tensorrt ~ cuda", "all")


def test_a_chain_leaves_its_links_to_all() -> None:
    offer = RuntimeOffer(available=GPU)
    providers, skips = expand(("all", "cuda~cpu"), offer)
    assert [provider.label for provider in providers] == ["cpu", "tensorrt", "cuda", "cuda~cpu"]
    assert [provider.named for provider in providers] == [False, False, False, True]
    assert not skips


def test_a_link_that_only_the_runtime_explains() -> None:
    offer = RuntimeOffer(
        available=("CPUExecutionProvider", "acme_ep"),
        libraries={"acme_ep": "/lib/acme.so"},
        aliases={"acme": "acme_ep"},
    )
    assert is_known("cuda~cpu", {})
    assert not is_known("acme~cpu", {})
    assert is_known("acme~cpu", offer.aliases)
    check_specs(["acme~cpu"])
    [chain], _ = expand(("acme~cpu",), offer)
    assert [(link.alias, link.library) for link in chain.links] == [
        ("acme", "/lib/acme.so"),
        ("cpu", ""),
    ]
    with pytest.raises(UsageError):
        expand(("other~cpu",), offer)


def test_each_link_takes_the_options_of_its_own() -> None:
    options = {
        "cuda": {"use_tf32": "0"},
        "tensorrt": {"trt_fp16_enable": "1"},
        "TensorrtExecutionProvider": {"trt_int8_enable": "0"},
        "openvino": {"num_streams": "2"},
    }
    chain = with_options_of_links(parse_provider("tensorrt:1~cuda~cpu"), options)
    tensorrt, cuda, cpu = chain.links
    # TensorRT takes its switches as words.
    assert tensorrt.options == {
        "device_id": "1",
        "trt_fp16_enable": "True",
        "trt_int8_enable": "False",
    }
    assert (cuda.options, cpu.options) == ({"use_tf32": "0"}, {})
    refuse_unused_options({"cuda": {"use_tf32": "0"}}, ["tensorrt~cuda~cpu"])
    with pytest.raises(UsageError):
        refuse_unused_options({"openvino": {"num_streams": "2"}}, ["tensorrt~cuda~cpu"])


def test_a_graph_is_captured_by_any_link() -> None:
    options = {"cuda": {"enable_cuda_graph": "1", "use_tf32": "0"}}
    chain = with_options_of_links(parse_provider("tensorrt~cuda"), options)
    assert captures_graph(chain)
    assert [link.options for link in without_capture(chain).links] == [{}, {"use_tf32": "0"}]


def test_only_a_chain_of_the_cpu_computes_on_the_host_for_sure() -> None:
    assert parse_provider("cpu").computes_on_host
    assert not parse_provider("cpu~cuda").computes_on_host
    assert not parse_provider("cuda~cpu").computes_on_host


def case_on(provider: Provider) -> Case:
    return replace(make_case(), provider=provider)


def test_ids_and_plans_tell_orders_apart() -> None:
    specs = ("cpu", "openvino", "cpu~openvino", "openvino~cpu", "openvino:CPU~cpu")
    cases = [case_on(parse_provider(spec)) for spec in specs]
    assert len({case.case_id for case in cases}) == len(specs)
    assert len({plan_fingerprint([case]) for case in cases}) == len(specs)


def test_a_stored_chain_is_planned_again_as_it_was_written(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"")
    case = case_on(parse_provider("tensorrt:1~cuda~cpu"))
    case = replace(
        case,
        model=replace(case.model, path=str(model), source="file"),
        knobs={FIX_DIMS: "on"},
    )
    request = request_of(case, TrustedOptions(), tmp_path)
    assert request.providers == ("tensorrt:1~cuda~cpu",)
    assert request.fix_dims == ("on",)
    changed = replace(
        case, provider=replace(case.provider, then=(LaterLink(alias="-x", name="y"),))
    )
    with refused(UsageError, "'-x'"):
        request_of(changed, TrustedOptions(), tmp_path)
    with refused(UsageError, "'maybe'"):
        request_of(replace(case, knobs={FIX_DIMS: "maybe"}), TrustedOptions(), tmp_path)


@pytest.mark.parametrize("given", [{}, {"cuda": {"use_tf32": "0"}}])
def test_options_of_a_stored_chain_have_to_be_given_again(given: dict[str, dict[str, str]]) -> None:
    stored = case_on(
        with_options_of_links(parse_provider("tensorrt~cuda"), {"cuda": {"use_tf32": "0"}})
    )
    again = case_on(with_options_of_links(parse_provider("tensorrt~cuda"), given))
    plan = Plan(entries=(Planned(case=again),))
    if given:
        assert choose_case(stored, plan, TrustedOptions(), Path()).planned.case == again
    else:
        with refused(UsageError, hint="cuda.use_tf32=0"):
            choose_case(stored, plan, TrustedOptions(), Path())


def test_a_plan_without_chains_goes_on_where_earlier_versions_stopped() -> None:
    # Its fingerprint before there were chains.
    before = "8113f50f09db4ec205d1ae33702adc2e"
    assert plan_fingerprint([case_on(parse_provider("cuda:1"))]) == before


def test_a_model_that_gives_another_case_today_is_told_from_other_settings() -> None:
    stored = make_case(batch=1)
    same = make_case(batch=4)
    exported = replace(same, model=replace(same.model, digest="0" * 64))
    file = Path(stored.model.path).name
    for again, changed in ((exported, True), (same, False)):
        with refused(UsageError, again.case_id, place=stored.case_id, hint=file) as caught:
            choose_case(stored, Plan(entries=(Planned(case=again),)), TrustedOptions(), Path())
        assert caught.value.message.startswith(file) is changed
