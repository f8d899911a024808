"""Device memory and GPU facts, on a stand-in for pynvml."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.energy.worker.nvml_meter import NvmlMeter
from pytest_ortbench.worker.device_memory import DeviceMemory
from pytest_ortbench.worker.gpu_choice import chosen_gpu, number_of, uuid_of
from pytest_ortbench.worker.gpus import NoSuchGpu, gpus, visible_gpus

CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")
#: With it numbers are certain, though the stand-in's devices are of three models.
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


class FakeNvml(ModuleType):
    """Three devices; a test sets what each uses and which processes are seen."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.used = [1000, 2000, 3000]
        self.processes: dict[int, list[SimpleNamespace]] = {}
        self.broken = ""
        self.lost: set[int] = set()
        self.sliced: set[int] = set()
        self.tells_processes = True

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError(self.broken)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.used)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise self.NVMLError("GPU is lost")
        return index

    NVML_DEVICE_MIG_ENABLE = 1

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        if handle not in self.sliced:
            raise self.NVMLError("Not Supported")
        return [1, 1]

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return f"GPU-{'abc'[handle]}1234".encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"Example {handle}"

    def nvmlSystemGetDriverVersion(self) -> str:
        return "575.1"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=self.used[handle])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        if not self.tells_processes:
            raise self.NVMLError("Function Not Found")
        return self.processes.get(handle, [])


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def ours(size: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=os.getpid(), usedGpuMemory=size)


def test_our_own_share_over_the_bare_context(nvml: FakeNvml) -> None:
    memory = DeviceMemory(CUDA, BY_BUS)
    nvml.processes[0] = [SimpleNamespace(pid=1, usedGpuMemory=77), ours(300)]
    memory.note_context()
    nvml.processes[0] = [ours(1300)]
    assert (memory.read()[0], "300 bytes" in memory.read()[1]) == (1000, True)


@pytest.mark.parametrize("processes", [[], [SimpleNamespace(pid=1, usedGpuMemory=9)], [ours(None)]])
def test_where_we_are_not_seen_the_device_rise_is_labelled(
    nvml: FakeNvml, processes: list[SimpleNamespace]
) -> None:
    nvml.processes[0] = processes
    memory = DeviceMemory(CUDA, BY_BUS)
    nvml.used[0] += 400
    memory.note_context()
    nvml.used[0] += 600
    value, source = memory.read()
    assert (value, "whole device" in source, "400 bytes" in source) == (600, True, True)


@pytest.mark.parametrize(
    ("visible", "device_id", "index"),
    [(None, "1", 1), ("2,0", "0", 2), ("2,0", "1", 0), ("GPU-b1", "0", 1), ("1,GPU-c", "1", 2)],
)
def test_the_visible_devices_decide_which_one(
    nvml: FakeNvml, visible: str | None, device_id: str, index: int
) -> None:
    provider = Provider(alias="cuda", name=CUDA.name, options={"device_id": device_id})
    environment = BY_BUS if visible is None else {**BY_BUS, "CUDA_VISIBLE_DEVICES": visible}
    memory = DeviceMemory(provider, environment)
    nvml.used[index] += 50
    assert memory.read()[0] == 50
    assert memory.device == f"GPU-{'abc'[index]}1234"


@pytest.mark.parametrize(
    ("told", "device", "reason"),
    [
        ("c1234", "GPU-c1234", ""),
        ("", "", "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ("d9", "", "NVML knows no GPU GPU-d9"),
    ],
)
def test_among_several_models_cuda_says_which_is_first(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, told: str, device: str, reason: str
) -> None:
    asked: list[int] = []

    def cuda(ordinal: int) -> str:
        asked.append(ordinal)
        return told

    if reason:
        with pytest.raises(LookupError, match=reason):
            chosen_gpu(nvml, CUDA, {}, ask_cuda=cuda)
    else:
        assert chosen_gpu(nvml, CUDA, {}, ask_cuda=cuda).uuid == device
    assert asked == [0]


def test_a_number_beyond_the_last_device_is_said(nvml: FakeNvml) -> None:
    provider = Provider(alias="cuda", name=CUDA.name, options={"device_id": "3"})
    value, source = DeviceMemory(provider, BY_BUS).read()
    assert (value, re.findall(r"\d+", source)) == (None, ["3", "3"])


def test_without_a_driver_cuda_names_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert uuid_of(0) == ""


@pytest.mark.parametrize(
    ("visible", "words"),
    [
        ("", "hides device 0"),
        ("-1", "hides device 0"),
        ("MIG-GPU-a/1/0", "is a MIG slice"),
        ("GPU-zz", "which NVML does not know"),
    ],
)
def test_a_device_that_can_not_be_told_is_null_with_the_reason(
    nvml: FakeNvml, visible: str, words: str
) -> None:
    size, source = DeviceMemory(CUDA, {"CUDA_VISIBLE_DEVICES": visible}).read()
    assert size is None
    assert words in source


def test_no_driver_is_null_with_the_reason(nvml: FakeNvml) -> None:
    nvml.broken = "Driver Not Loaded"
    assert DeviceMemory(CUDA, {}).read() == (None, "NVML: Driver Not Loaded")
    assert gpus() == {}


def test_no_pynvml_is_null_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    size, source = DeviceMemory(CUDA, {}).read()
    assert size is None
    assert "nvidia-ml-py" in source
    assert gpus() == {}


def test_other_processes_on_the_device_are_counted(nvml: FakeNvml) -> None:
    stranger = SimpleNamespace(pid=1, usedGpuMemory=77)
    assert DeviceMemory(CUDA, BY_BUS).neighbours() == 0
    nvml.processes[0] = [stranger]
    memory = DeviceMemory(CUDA, BY_BUS)
    assert memory.neighbours() == 1
    nvml.processes[0] = [stranger, SimpleNamespace(pid=2, usedGpuMemory=1), ours(300)]
    assert memory.neighbours() == 2
    # Where our own process is not among them, ids are those of another namespace: what was there
    # before us is all that is certain.
    nvml.processes[0] = [SimpleNamespace(pid=3, usedGpuMemory=1)] * 4
    assert memory.neighbours() == 1


def test_without_a_device_nobody_knows_of_neighbours(nvml: FakeNvml) -> None:
    nvml.broken = "Driver Not Loaded"
    assert DeviceMemory(CUDA, {}).neighbours() is None


def test_other_providers_have_no_source() -> None:
    provider = Provider(alias="openvino", name="OpenVINOExecutionProvider")
    value, source = DeviceMemory(provider, {}).read()
    assert value is None
    assert "OpenVINOExecutionProvider" in source.split()


def test_gpus_are_facts_of_a_runtime(nvml: FakeNvml) -> None:
    assert gpus() == {
        "GPU-a1234": "Example 0, driver 575.1",
        "GPU-b1234": "Example 1, driver 575.1",
        "GPU-c1234": "Example 2, driver 575.1",
    }


def test_a_driver_that_tells_no_processes_tells_the_rise_of_the_device(nvml: FakeNvml) -> None:
    nvml.tells_processes = False
    memory = DeviceMemory(CUDA, BY_BUS)
    nvml.used[0] += 400
    memory.note_context()
    nvml.used[0] += 600
    assert memory.read()[0] == 600
    assert memory.neighbours() is None


def test_a_gpu_that_fell_off_the_bus_hides_no_other(nvml: FakeNvml) -> None:
    nvml.lost = {0}
    assert list(gpus()) == ["GPU-b1234", "GPU-c1234"]
    assert DeviceMemory(CUDA, BY_BUS).device == "GPU-b1234"


def test_a_gpu_in_slices_is_not_read_as_a_whole(nvml: FakeNvml) -> None:
    nvml.sliced = {0}
    memory = DeviceMemory(CUDA, BY_BUS)
    value, source = memory.read()
    assert (value, "GPU-a1234" in source, "MIG" in source) == (None, True, True)


def test_the_gpu_of_a_uuid_is_read_whatever_number_cuda_gives_it(nvml: FakeNvml) -> None:
    # CUDA puts the fastest first: not the first one on the bus.
    cudas = ["c1234", "a1234", "b1234"]
    provider = replace(CUDA, options={"device_id": "GPU-c"})
    found = chosen_gpu(nvml, provider, {}, ask_cuda=cudas.__getitem__)
    assert (found.uuid, found.handle) == ("GPU-c1234", 2)
    assert number_of("GPU-c", visible_gpus({}), ask_cuda=cudas.__getitem__) == 0
    assert number_of("GPU-b", visible_gpus({}), ask_cuda=cudas.__getitem__) == 2
    with pytest.raises(NoSuchGpu, match="GPU-c1234"):
        number_of("GPU-c", visible_gpus({}), ask_cuda=lambda _: "")


def test_a_driver_before_535_says_by_the_old_name_why_the_clock_is_held_back() -> None:
    class OldDriver(FakeNvml):
        def nvmlDeviceGetCurrentClocksEventReasons(self, _: int) -> int:
            raise self.NVMLError("Function Not Found")

        def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: int) -> int:
            return 0x40

    meter = NvmlMeter.__new__(NvmlMeter)
    meter._nvml, meter._handle = OldDriver(), 0
    assert meter._throttle_bits() == 0x40
