"""Endpoints as options and among providers: addresses, plans, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.extras import install_command
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.planning.endpoints import (
    PLACE,
    parse_address,
    read_encodings,
    read_endpoint,
    refuse_several,
    refuse_several_targets,
    refuse_without_endpoint,
    with_endpoint,
)
from pytest_ortbench.planning.engines import carries_out, provider_refusal
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from tests.results_factory import draw_durations, make_case, make_measurement, make_result

URL = "http://127.0.0.1:8000/v2/models/det/infer"


def written(*texts: str) -> OptionText:
    return OptionText(texts=texts, place="--here", is_typed=True, base=Path())


@pytest.mark.parametrize(
    ("url", "root", "model", "version"),
    [
        (URL, "http://127.0.0.1:8000", "det", ""),
        (
            "https://[::1]:8443/proxy/v2/models/a.b-c/versions/2/infer",
            "https://[::1]:8443/proxy",
            "a.b-c",
            "/versions/2",
        ),
    ],
)
def test_an_address_says_where_the_model_is(url: str, root: str, model: str, version: str) -> None:
    address = parse_address(f" {url} ", place="")
    assert (address.url, address.root, address.model, address.version) == (
        url, root, model, version,
    )  # fmt: skip
    assert address.model_url == f"{root}/v2/models/{model}{version}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "det",
        "127.0.0.1:8000/v2/models/det/infer",
        "ftp://127.0.0.1/v2/models/det/infer",
        "file:///v2/models/det/infer",
        "http:///v2/models/det/infer",
        "http://127.0.0.1:0/v2/models/det/infer",
        "http://127.0.0.1:99999/v2/models/det/infer",
        "http://[::1/v2/models/det/infer",
        "http://127.0.0.1:8000/v2/models//infer",
        "http://127.0.0.1:8000/v2/models/a/b/infer",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000/v2/models/det/infer/more",
        "http://127.0.0.1:8000/v2/models/d t/infer",
        "http://127.0.0.1:8000/v2/models/d\tt/infer",
        "http://127.0.0.1:8000\\@x/v2/models/det/infer",
        "http://127.0.0.1:8000/v2/models/dät/infer",
        f"{URL}?key=1234",
        f"{URL}#part",
        "http://127.0.0.1:8000/v1/chat/completions",
        "grpc://127.0.0.1/det",
        "grpc://127.0.0.1:8001/",
        "grpc://127.0.0.1:8001/v2/models/det/infer",
        "grpc://127.0.0.1:8001/v1/completions",
        "custom:own.py",
        "custom:own.txt:call",
        "http://127.0.0.1:8000/v2/models/" + "x" * 3000 + "/infer",
    ],
)
def test_what_is_no_address_is_refused_at_its_place(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_endpoint(written(url))
    assert caught.value.place == "--here"
    assert caught.value.hint


@pytest.mark.parametrize("user", ["name:secret-word@", ":secret-word@", "secret-word@"])
def test_a_password_is_refused_and_not_repeated(user: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_endpoint(written(URL.replace("//", f"//{user}")))
    assert "secret-word" not in str(caught.value)
    assert "base64" in caught.value.hint


def test_a_key_in_the_address_has_a_step_of_its_own() -> None:
    with pytest.raises(UsageError) as caught:
        read_endpoint(written(f"{URL}?key=secret-word"))
    assert "secret-word" not in str(caught.value)
    assert "base64" not in caught.value.hint
    assert "custom:" in caught.value.hint


def test_a_path_of_another_protocol_is_told_from_an_address_without_one() -> None:
    with pytest.raises(UsageError) as caught:
        parse_address("http://10.0.0.5:8000/predict", place="")
    assert "http://10.0.0.5:8000/v2/models/NAME/infer" in caught.value.hint
    assert "custom:" in caught.value.hint
    assert "completions" not in caught.value.hint


def test_an_address_without_its_scheme_is_completed() -> None:
    with pytest.raises(UsageError) as caught:
        read_endpoint(written(URL.removeprefix("http://")))
    assert caught.value.hint.endswith(f" {URL}")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/v2/models/det", URL),
        ("127.0.0.1:8000/v2/models/det/", URL),
        (f"{URL}/", URL),
        ("http://127.0.0.1:8000/v2/models/a/b/infer", URL.replace("det", "a-b")),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/completions"),
        ("localhost:8000/v1/chat/completions", "http://localhost:8000/v1/completions"),
        ("custom:own.py", "custom:own.py:FUNCTION"),
    ],
)
def test_an_address_that_is_nearly_right_is_completed(url: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url, place="")
    assert caught.value.hint.endswith(f" {expected}")
    assert parse_address(expected, place="").url == expected


@pytest.mark.parametrize("url", ["http://10.0.0.7:8000/", "10.0.0.7:8000"])
def test_forms_of_an_address_have_the_host_that_was_written(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url, place="")
    assert " http://10.0.0.7:8000/v2/models/NAME/infer " in caught.value.hint
    assert "http://127.0.0.1:0/" not in _refused("http://127.0.0.1:0/").hint


def _refused(url: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_address(url, place="")
    return caught.value


@pytest.mark.parametrize(
    ("device", "left_out"), [("", False), ("json", True)], ids=["plain", "encoded"]
)
def test_all_options_of_an_endpoint_are_named_that_another_precision_needs_gone(
    device: str, left_out: bool
) -> None:
    case = make_case()
    case = replace(
        case,
        variant=replace(case.variant, precision="fp16", recipe={}),
        provider=replace(parse_provider("endpoint"), options={"url": URL}, device=device),
    )
    refusal = provider_refusal(case)
    assert refusal is not None
    assert "--ort-precisions" in refusal.hint
    assert "--ort-providers=cpu" in refusal.hint
    assert "--ort-endpoint" in refusal.hint
    assert ("--ort-endpoint-encoding" in refusal.hint) == left_out


@pytest.mark.parametrize(
    ("knobs", "option"),
    [({}, "--ort-session-option=intra_op_num_threads"), ({"threads": "1"}, "--ort-threads")],
)
def test_the_option_is_named_that_sets_threads(knobs: dict[str, str], option: str) -> None:
    case = make_case()
    case = replace(
        case,
        variant=replace(case.variant, precision="native", recipe={}),
        provider=replace(parse_provider("endpoint"), options={"url": URL}),
        session=SessionConfig(intra_op_num_threads=1),
        knobs=knobs,
    )
    refusal = provider_refusal(case)
    assert refusal is not None
    assert refusal.message.startswith(f"{option} ")


def test_encodings_are_two() -> None:
    assert read_encodings(written("json,binary", "json")) == ("json", "binary")
    with pytest.raises(UsageError) as caught:
        read_encodings(written("jsn"))
    assert "json" in caught.value.hint
    with pytest.raises(UsageError) as alone:
        refuse_without_endpoint(value=("json",), place="", endpoint="", serve="")
    assert "--ort-endpoint=" in alone.value.hint
    # A service that is started has no address to add.
    with pytest.raises(UsageError) as started:
        refuse_without_endpoint(value=("json",), place="", endpoint="", serve="app.py:app")
    assert "--ort-endpoint" not in started.value.hint
    refuse_without_endpoint(value=("json",), place="", endpoint=URL, serve="")


@pytest.mark.parametrize(
    ("providers", "encodings", "expected"),
    [
        (("cpu",), (), ("cpu", "endpoint")),
        (("endpoint",), (), ("endpoint",)),
        (("endpoint:json",), (), ("endpoint:json",)),
        (("endpoint", "cpu"), ("binary",), ("cpu", "endpoint:binary")),
        (("endpoint:json",), ("binary",), ("endpoint:json", "endpoint:binary")),
        (("cpu", "xnnpack"), ("json", "binary"),
         ("cpu", "xnnpack", "endpoint:json", "endpoint:binary")),
    ],
)  # fmt: skip
def test_an_endpoint_is_measured_beside_what_else_is(
    providers: tuple[str, ...], encodings: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    request = PlanRequest(
        models=("m.onnx",), providers=providers, endpoint=URL, endpoint_encodings=encodings
    )
    planned = with_endpoint(request)
    assert planned.providers == expected
    assert planned.provider_options == {"endpoint": {"url": URL}}
    assert with_endpoint(planned) == planned


TEXTS = "http://127.0.0.1:8000/v1/completions"


def test_a_service_of_language_models_is_asked_for_texts() -> None:
    request = PlanRequest(models=("m.onnx",), endpoint=TEXTS)
    assert with_endpoint(request).providers == ("cpu", "endpoint:openai")
    alone = replace(request, providers=("endpoint",))
    assert with_endpoint(alone).providers == ("endpoint:openai",)
    with pytest.raises(UsageError):
        with_endpoint(replace(request, endpoint_encodings=("json",)))
    address = parse_address(TEXTS, place="")
    assert (address.protocol, address.models_url) == ("openai", "http://127.0.0.1:8000/v1/models")
    provider = parse_provider("endpoint:openai")
    assert carries_out(provider, "generate", make_case().model)
    assert not carries_out(provider, "session", make_case().model)
    assert not carries_out(parse_provider("endpoint"), "generate", make_case().model)
    # Of a single inference nothing comes back.
    case = replace(make_case(), provider=replace(provider, options={"url": TEXTS}))
    refusal = provider_refusal(case)
    assert refusal is not None
    assert refusal.kind == "unsupported"


def test_a_service_over_grpc_is_named_by_host_port_and_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = parse_address("grpc://127.0.0.1:8001/det/versions/3", place="")
    assert (address.protocol, address.root, address.model, address.version) == (
        "grpc", "127.0.0.1:8001", "det", "3",
    )  # fmt: skip
    request = PlanRequest(models=("m.onnx",), endpoint="grpc://127.0.0.1:8001/det")
    assert with_endpoint(request).providers == ("cpu", "endpoint")
    with pytest.raises(UsageError):
        with_endpoint(replace(request, endpoint_encodings=("json",)))
    # Without its client one message says what brings it.
    monkeypatch.setattr("pytest_ortbench.core.extras.find_spec", lambda _: None)
    with pytest.raises(UsageError) as caught:
        read_endpoint(written("grpc://127.0.0.1:8001/det"))
    assert caught.value.hint == install_command("grpc")
    with pytest.raises(UsageError) as caught:
        read_endpoint(written(URL))
    assert caught.value.hint == install_command("endpoint")


def test_a_function_is_found_where_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    given = replace(written("custom:own.py:call"), base=tmp_path)
    assert read_endpoint(given) == f"custom:{(tmp_path / 'own.py').resolve()}:call"
    with pytest.raises(UsageError) as caught:
        read_endpoint(replace(given, texts=("custom:other.py:call",)))
    assert caught.value.place == "--here"
    provider = replace(parse_provider("endpoint"), options={"url": read_endpoint(given)})
    case = replace(make_case(), provider=provider)
    # What it holds counts for the case, as other files of the user's do.
    assert str((tmp_path / "own.py").resolve()) in case.further_files()
    encoded = replace(provider, device="json")
    assert provider_refusal(replace(case, provider=encoded)) is not None


def test_without_one_nothing_changes_and_two_are_too_many() -> None:
    request = PlanRequest(models=("m.onnx",))
    assert with_endpoint(request) is request
    other = {"endpoint": {"url": URL.replace("det", "seg")}}
    with pytest.raises(UsageError):
        with_endpoint(replace(request, endpoint=URL, provider_options=other))
    with pytest.raises(UsageError):
        refuse_several([1, 2], replace(request, endpoint=URL))
    refuse_several([1, 2], request)


def test_why_a_model_is_none_of_language_is_told() -> None:
    case = replace(
        make_case(), provider=replace(parse_provider("endpoint:openai"), options={"url": TEXTS})
    )
    refusal = provider_refusal(case)
    assert refusal is not None
    assert "input_ids" in refusal.message
    assert PLACE in refusal.hint


def test_files_with_a_plan_each_are_several_models_too() -> None:
    case = make_case()
    provider = replace(parse_provider("endpoint"), options={"url": URL})
    served = [
        replace(case, provider=provider, model=replace(case.model, path=path))
        for path in ("/models/net.onnx", "/models/det.onnx")
    ]
    with pytest.raises(UsageError) as caught:
        refuse_several_targets(served)
    assert caught.value.place == "--ort-endpoint"
    refuse_several_targets([served[0], served[0], replace(served[1], provider=case.provider)])
    # Without an address each row says that it is missing.
    refuse_several_targets([replace(own, provider=parse_provider("endpoint")) for own in served])


def test_an_endpoint_is_what_it_is_wherever_it_is_named() -> None:
    provider = parse_provider("endpoint:binary")
    assert (provider.role, provider.label) == ("endpoint", "endpoint:binary")
    assert not provider.is_execution_provider
    assert not provider.computes_on_host
    assert provider.described != provider.label
    with pytest.raises(UsageError):
        parse_provider("endpoint:grpc")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, None),
        ({"concurrency": 4}, None),
        ({"options": {}}, "unavailable"),
        ({"precision": "fp16"}, "unsupported"),
        ({"session": SessionConfig(intra_op_num_threads=1)}, "unsupported"),
        ({"io": "device"}, "unsupported"),
        ({"call": "async"}, "unsupported"),
    ],
)
def test_what_a_service_decides_for_itself_is_refused(
    changes: dict[str, Any], kind: str | None
) -> None:
    provider = replace(parse_provider("endpoint"), options=changes.pop("options", {"url": URL}))
    case = make_case()
    variant = replace(case.variant, precision=changes.pop("precision", "native"), recipe={})
    refusal = provider_refusal(replace(case, variant=variant, provider=provider, **changes))
    assert (refusal and refusal.kind) == kind


def test_what_the_client_takes_is_not_told_as_what_the_service_takes() -> None:
    case = make_case()
    measurement = make_measurement(draw_durations(400, median_ns=1_000_000, spread=0.0))
    here = summarise(make_result(case=case, measurements=[measurement]))
    there = summarise(
        make_result(
            case=replace(case, provider=parse_provider("endpoint")), measurements=[measurement]
        )
    )
    of_a_process = {
        "cpu_per_inference", "cpu_utilisation", "import_time", "session_create",
        "first_inference", "ready_time", "warmup",
    }  # fmt: skip
    assert of_a_process & set(there.quantities) == set()
    assert of_a_process <= set(there.missing)
    assert of_a_process & set(here.quantities)
    assert there.quantities["latency_p50"] == here.quantities["latency_p50"]
