"""Waiting for outputs on a device whose ``synchronize_outputs`` returns at once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.worker import device_wait
from pytest_ortbench.worker.binding import output_device_of
from pytest_ortbench.worker.device_wait import DeviceWait, waiting

WEBGPU = parse_provider("webgpu")
CUDA = parse_provider("cuda")


class Output:
    """A value on a device."""

    def __init__(self, device: str = "cuda") -> None:
        self.device = device

    def device_name(self) -> str:
        """*Seen*: ONNX Runtime 1.27 calls WebGPU's memory ``cuda``."""
        return self.device

    def tensor_size_in_bytes(self) -> int:
        return 32


class Session:
    """A session with one output, and its binding."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.bound: dict[str, tuple[str, int]] = {}
        self.runs = self.copies = 0

    def io_binding(self) -> Session:
        return self

    def copy_outputs_to_cpu(self) -> None:
        self.copies += 1

    def get_outputs(self) -> Any:
        return [SimpleNamespace(name="y")] if not self.runs else [self.output]

    def bind_ortvalue_input(self, name: str, value: object) -> None:
        del name, value

    def bind_output(self, name: str, device: str, index: int) -> None:
        self.bound[name] = (device, index)

    def run_with_iobinding(self, _: object) -> None:
        self.runs += 1


class Binding:
    def synchronize_outputs(self) -> None: ...


@pytest.fixture(autouse=True)
def _nothing_made() -> Iterator[None]:
    device_wait._made.cache_clear()
    yield
    device_wait._made.cache_clear()


def device(monkeypatch: pytest.MonkeyPatch, output: Output) -> Session:
    """Let sessions of WebGPU be one whose output lies there."""
    session = Session(output)
    monkeypatch.setattr(device_wait, "create", lambda *_: (session, 1))
    monkeypatch.setattr(device_wait, "session_options", lambda *_, **__: None)
    return session


def test_a_few_bytes_are_copied_from_a_device_that_can_not_be_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = device(monkeypatch, Output())
    binding: Any = Binding()
    wait = waiting(binding, WEBGPU)
    assert isinstance(wait, DeviceWait)
    assert session.bound == {"y": ("webgpu", 0)}
    before = session.copies
    wait()
    assert session.copies == before + 1
    assert wait.copied_bytes == 32
    assert wait._session is session  # the binding does not keep it
    # One a process: the next binding waits in the same way.
    assert waiting(binding, WEBGPU) is wait
    assert session.runs == 1


def test_other_providers_are_asked_to_synchronise() -> None:
    binding: Any = Binding()
    assert waiting(binding, CUDA) == binding.synchronize_outputs
    assert output_device_of(CUDA) == ("cuda", 0)


def test_outputs_stay_on_a_device_that_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch, Output())
    assert output_device_of(WEBGPU) == ("webgpu", 0)


@pytest.mark.parametrize("output", [Output("cpu"), None], ids=["on the host", "no session"])
def test_outputs_are_brought_to_the_host_where_nothing_can_wait(
    monkeypatch: pytest.MonkeyPatch, output: Output | None
) -> None:
    if output is not None:
        device(monkeypatch, output)
    binding: Any = Binding()
    assert output_device_of(WEBGPU) == ("cpu", 0)
    assert waiting(binding, WEBGPU) == binding.synchronize_outputs


def test_devices_have_waits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch, Output())
    binding: Any = Binding()
    other = Provider(alias="webgpu", name=WEBGPU.name, device="gpu.1")
    assert waiting(binding, WEBGPU) is not waiting(binding, other)
