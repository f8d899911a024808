"""What a worker looks at for a self-check besides time: nodes, values, memory, device, clocks."""

from __future__ import annotations

import json
import os
import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.cpus import read_text
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.selfcheck.facts import (
    Evaluated,
    MeteredMemory,
    ProfiledNodes,
    SeenClocks,
    SeenDevice,
)
from pytest_ortbench.selfcheck.questions import (
    CountProfile,
    Evaluate,
    SeeDevice,
    TakeMemory,
    WatchClocks,
)
from pytest_ortbench.selfcheck.worker.cuda_driver import CudaDriver, NoCudaDriver
from pytest_ortbench.worker.binding import device_of
from pytest_ortbench.worker.contention import counter_growth, most_growth
from pytest_ortbench.worker.gpu_choice import uuid_of
from pytest_ortbench.worker.gpus import handles, visible_gpus
from pytest_ortbench.worker.session import create, options_in_force, session_options

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

_COPIES = ("MemcpyToHost", "MemcpyFromHost")
#: Options by which providers are told their device.
_DEVICE_OPTIONS = ("device_id", "device_type", "backend_path", "backend_type", "deviceId")
#: Variables that choose among NVIDIA's devices.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")
_PAGE = 4096
#: Inferences between two readings of the clocks.
_BETWEEN_READINGS = 4
_CPUFREQ = Path("/sys/devices/system/cpu")


def count_profile(question: CountProfile, measured: MeasuredCase) -> ProfiledNodes:
    """Profile one run, and count the nodes in its file as it lies there."""
    del question
    measured.enter("profile")
    with OwnFolder("profile") as folder:
        options = session_options(
            measured.case.session, threads=measured.threads, profile_prefix=folder / "p"
        )
        session, _ = create(measured.case.variant.path, measured.uncaptured, options)
        session.run(None, measured.feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return counted_nodes(events)


def counted_nodes(events: list[dict[str, Any]]) -> ProfiledNodes:
    """Count the nodes of a profile by provider, each once."""
    seen: set[tuple[str, str, str, str]] = set()
    for event in events:
        facts = event.get("args", {})
        if event.get("cat") == "Node" and str(event.get("name", "")).endswith("_kernel_time"):
            seen.add(
                (
                    str(facts.get("provider", "")),
                    str(facts.get("op_name", "")),
                    str(event["name"]),
                    str(facts.get("node_index", "")),
                )
            )
    nodes: dict[str, int] = {}
    for provider, operator, _, _ in seen:
        if operator not in _COPIES:
            nodes[provider] = nodes.get(provider, 0) + 1
    copies = sum(operator in _COPIES for _, operator, _, _ in seen)
    return ProfiledNodes(nodes=dict(sorted(nodes.items())), copies=copies)


def evaluate_values(question: Evaluate, measured: MeasuredCase) -> Evaluated:
    """Feed values to the only input as the session declares it."""
    measured.enter("measure")
    import numpy as np  # comes with ONNX Runtime

    [(name, drawn)] = measured.feeds.items()
    assert isinstance(drawn, np.ndarray)
    fed = np.asarray(question.values, dtype=drawn.dtype).reshape(drawn.shape)
    first = np.asarray(measured.live().run(None, {name: fed})[0])
    flat = first.astype(np.float64).ravel()
    return Evaluated(values=tuple(float(value) for value in flat), type=str(first.dtype))


def take_memory(question: TakeMemory, measured: MeasuredCase) -> MeteredMemory:
    """Take memory of host and device, and read the meters of the case before and after."""
    measured.enter("memory")
    watch, size = measured.watch, question.bytes_taken
    with watch.counted():
        pass
    before = watch.rise()
    with watch.counted():
        taken = bytearray(size)
        for place in range(0, size, _PAGE):
            taken[place] = 1
    after = watch.rise()
    rise = None if before is None or after is None else after - before
    del taken
    device_rise, source = _device_rise(measured, size)
    return MeteredMemory(
        taken_bytes=size,
        host_rise_bytes=rise,
        host_source=watch.source,
        device_rise_bytes=device_rise,
        device_source=source,
    )


def _device_rise(measured: MeasuredCase, size: int) -> tuple[int | None, str]:
    """What the meter of the device shows of memory that is taken there, and its source."""
    before, source = measured.device.read()
    if before is None:
        return None, source
    try:
        driver = CudaDriver(device_of(measured.case.provider)[1])
        address = driver.take(size)
    except NoCudaDriver as error:
        return None, str(error)
    after, source = measured.device.read()
    driver.give_back(address)
    return (None if after is None else after - before), source


def see_device(question: SeeDevice, measured: MeasuredCase) -> SeenDevice:
    """Say which device is asked for, which is read, and where this process computes."""
    del question
    measured.enter("measure")
    provider = measured.case.provider
    in_force = {
        key: value
        for key, value in options_in_force(measured.live(), provider.name).items()
        if key in _DEVICE_OPTIONS
    }
    asked = next((provider.options[key] for key in _DEVICE_OPTIONS if key in provider.options), "")
    if provider.name not in NVIDIA:
        return SeenDevice(asked=asked, in_force=in_force)
    return SeenDevice(
        asked=asked,
        chosen=measured.device.device,
        computing=uuid_of(device_of(provider)[1]),
        seen_on=tuple(_seen_on()),
        visible=len(visible_gpus()),
        in_force=in_force,
        settings={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        reason=measured.device.reason,
    )


def _seen_on() -> list[str]:
    """UUIDs of the devices on which NVML sees this process."""
    try:
        import pynvml  # optional in a measured interpreter
    except ImportError:
        return []
    uuids: list[str] = []
    try:
        pynvml.nvmlInit()
        known = handles(pynvml)
    except pynvml.NVMLError:
        return []
    for handle in known:
        try:
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
        except pynvml.NVMLError:
            continue
        if any(process.pid == os.getpid() for process in processes):
            uuids.append(uuid.decode() if isinstance(uuid, bytes) else str(uuid))
    return uuids


def watch_clocks(question: WatchClocks, measured: MeasuredCase) -> SeenClocks:
    """Run inferences, and read the clocks of the CPUs of this process between them."""
    measured.enter("measure")
    loop, durations = measured.live_loop(), array("q", bytes(8 * _BETWEEN_READINGS))
    clocks: list[float] = []
    before = measured.contention.read()
    started = time.perf_counter_ns()
    while time.perf_counter_ns() - started < question.load_s * 1e9:
        loop(durations)
        clocks += clocks_now(_CPUFREQ, _cpus())
    wall_ns = time.perf_counter_ns() - started
    after = measured.contention.read()
    return SeenClocks(
        clocks_mhz=tuple(clocks),
        wall_ns=wall_ns,
        throttled_ns=most_growth(before.throttled_ns, after.throttled_ns),
        steal_ticks=counter_growth(before.steal_ticks, after.steal_ticks),
        total_ticks=counter_growth(before.total_ticks, after.total_ticks),
    )


def clocks_now(folder: Path, cpus: list[int]) -> list[float]:
    """Return the clocks of CPUs in MHz, as far as the kernel tells them."""
    told = (read_text(folder / f"cpu{cpu}/cpufreq/scaling_cur_freq").strip() for cpu in cpus)
    return [int(text) / 1000 for text in told if text.isdecimal()]


def _cpus() -> list[int]:
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity is not None else []
