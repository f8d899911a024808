"""Which device a plug-in gets: the one of its option, a UUID by its number, or ``alias:DEVICE``."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker import session
from pytest_ortbench.worker.gpus import Gpu
from pytest_ortbench.worker.plugins import Plugin, PluginMissing
from tests.worker.test_plugins import device

CUDA = "CUDAExecutionProvider"
GPUS = [device("GPU", ep=CUDA), device("GPU", ep=CUDA)]
MIXED = [device("CPU"), device("GPU"), device("NPU")]


class Taken(Exception):
    """Ends the making of a session where the device is known."""


class Options:
    """Keeps what a plug-in is given."""

    def __init__(self) -> None:
        self.given: tuple[list[Any], dict[str, str]] | None = None

    def add_provider_for_devices(self, devices: list[Any], options: dict[str, str]) -> None:
        self.given = devices, options
        raise Taken


def given_to(
    provider: Provider, offered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, dict[str, str]]:
    """Position of the chosen device, and the options that are left."""
    monkeypatch.setattr(session, "_plugin", lambda _: Plugin(name=provider.name, library=""))
    monkeypatch.setattr(session, "devices", lambda _: offered)
    options = Options()
    with pytest.raises(Taken):
        session.create(b"", provider, options)
    assert options.given is not None
    (chosen,), rest = options.given
    return next(i for i, each in enumerate(offered) if each is chosen), rest


@pytest.mark.parametrize(
    ("spec", "options", "index", "rest"),
    [
        ("", {}, 0, {}),
        ("", {"device_id": "1"}, 1, {}),
        ("1", {"device_id": "1", "use_tf32": "0"}, 1, {"use_tf32": "0"}),
        ("GPU-ef99", {"device_id": "GPU-ef99"}, 1, {}),
        ("", {"device_id": "GPU-ab12"}, 0, {}),
    ],
)
def test_the_option_names_the_device(
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    options: dict[str, str],
    index: int,
    rest: dict[str, str],
) -> None:
    seen = [Gpu(ordinal=0, uuid="GPU-ab12", name="A"), Gpu(ordinal=1, uuid="GPU-ef99", name="A")]
    monkeypatch.setattr(session, "visible_gpus", lambda: seen)
    provider = Provider(alias="cuda", name=CUDA, device=spec, options=options)
    assert given_to(provider, GPUS, monkeypatch) == (index, rest)


def test_a_number_that_is_not_offered_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(alias="cuda", name=CUDA, options={"device_id": "2"})
    with pytest.raises(PluginMissing, match=r"'2' .* gpu, gpu\.1"):
        given_to(provider, GPUS, monkeypatch)


def test_openvinos_option_names_its_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(
        alias="openvino", name="OpenVINOExecutionProvider", options={"device_type": "NPU"}
    )
    assert given_to(provider, MIXED, monkeypatch) == (2, {})


def test_a_plug_in_without_such_an_option_goes_by_its_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = Provider(alias="acme", name="AcmeEP", device="gpu", options={"device_id": "2"})
    assert given_to(provider, MIXED, monkeypatch) == (1, {"device_id": "2"})


def test_a_plug_in_that_tells_cudas_number_is_taken_at_its_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = [
        device("GPU", ep=CUDA, options={"device_id": "1"}),
        device("GPU", ep=CUDA, options={"device_id": "0"}),
    ]
    for number, index in (("0", 1), ("1", 0)):
        provider = Provider(alias="cuda", name=CUDA, device=number, options={"device_id": number})
        assert given_to(provider, offered, monkeypatch) == (index, {})
    absent = Provider(alias="cuda", name=CUDA, device="2", options={"device_id": "2"})
    monkeypatch.setattr(session, "_plugin", lambda _: Plugin(name=CUDA, library=""))
    monkeypatch.setattr(session, "devices", lambda _: offered)
    with pytest.raises(PluginMissing, match="device '2'"):
        session.create(b"", absent, Options())
