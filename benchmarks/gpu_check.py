"""Check CUDA placement, device memory and energy on a machine with an NVIDIA GPU.

It runs pytest on two builtin models on cpu and cuda, the energy pass on cuda included, and prints
every fact that bears on whether the figures hold: how NVML's counter and power behave here, what
CUDA and NVML call the device, counter against integrated power, clocks, temperatures. Nothing is
downloaded. Whatever fails is printed and the rest goes on; it takes less than four minutes.

    python benchmarks/gpu_check.py [--budget=230] [--models=builtin:resnet50,builtin:bert_tiny]

Exit code: 0 if placement, device memory and energy were all measured on cuda, else 1.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: Kept back from the budget for what is printed after the run.
_LAST_S = 8.0


def main() -> int:
    """Print all facts; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=230.0, help="seconds altogether")
    parser.add_argument("--models", default="builtin:resnet50,builtin:bert_tiny")
    parser.add_argument("--providers", default="cpu,cuda")
    arguments = parser.parse_args()
    began = time.monotonic()
    section("software", software)
    section("nvidia-smi", nvidia_smi)
    section("NVML and CUDA", names_of_the_device)
    section("how the meter behaves, idle", meter_idle)
    left = arguments.budget - (time.monotonic() - began) - _LAST_S
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        section(
            "pytest",
            lambda: run_pytest(Path(folder), arguments.models, arguments.providers, left),
        )
        found = section("cases", lambda: cases(Path(folder)))
    say(
        f"\n{time.monotonic() - began:.0f} s altogether; {'all there' if found else 'NOT COMPLETE'}"
    )
    return 0 if found else 1


def say(text: str) -> None:
    """Print now: whoever stops this early still has what was found."""
    print(text, flush=True)


def section(title: str, write: Callable[[], object]) -> object:
    """Print one part; what it raises is printed too, and does not stop the others."""
    say(f"\n== {title}")
    try:
        return write()
    except Exception:  # noqa: BLE001 - a check must go on whatever a driver does
        say(traceback.format_exc())
        return None


def software() -> None:
    """Versions of whatever may matter."""
    say(f"python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} CPUs")
    for name in ("pytest-ortbench", "onnxruntime-gpu", "onnxruntime", "nvidia-ml-py", "numpy"):
        try:
            say(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            say(f"{name} is not installed")
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")
    say(", ".join(f"{name}={os.environ.get(name)!r}" for name in names))
    import onnxruntime

    say(f"available: {onnxruntime.get_available_providers()}")


def nvidia_smi() -> None:
    """What the driver's own tool says."""
    fields = (
        "name,uuid,pci.bus_id,driver_version,temperature.gpu,power.draw,power.limit,"
        "clocks.sm,clocks.max.sm,memory.used,mig.mode.current,persistence_mode"
    )
    done = subprocess.run(
        ["nvidia-smi", f"--query-gpu={fields}", "--format=csv"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    say(done.stdout + done.stderr)


def names_of_the_device() -> None:
    """Whether everybody means the same device by number 0."""
    from pytest_ortbench.core.case import Provider
    from pytest_ortbench.worker.device_memory import DeviceMemory
    from pytest_ortbench.worker.gpu_choice import uuid_of
    from pytest_ortbench.worker.gpus import gpus, visible_gpus

    say(f"NVML: {gpus()}")
    say(f"visible, in CUDA's order as we read it: {visible_gpus()}")
    say(f"CUDA's device 0 has the UUID {uuid_of(0) or 'unknown'}")
    memory = DeviceMemory(Provider(alias="cuda", name="CUDAExecutionProvider"))
    say(f"device memory: device {memory.device!r}, {memory.read()}, others {memory.neighbours()}")


def meter_idle() -> None:
    """Ticks of the energy counter and steps of power, polled for two seconds without a pause."""
    from pytest_ortbench.core.case import Provider
    from pytest_ortbench.passes.energy.worker.meter_choice import open_meter

    meter = open_meter(Provider(alias="cuda", name="CUDAExecutionProvider"))
    say(f"source {meter.source}, device {meter.device}, note {meter.note!r}")
    say(f"state {meter.state()}")
    ticks: list[tuple[float, float]] = []
    powers: list[tuple[float, float]] = []
    reads = 0
    began = time.perf_counter()
    while time.perf_counter() - began < 2.0:
        energy, power = meter.energy_j(), meter.power_w()
        now = time.perf_counter() - began
        reads += 1
        if energy is not None and (not ticks or ticks[-1][1] != energy):
            ticks.append((now, energy))
        if power is not None and (not powers or powers[-1][1] != power):
            powers.append((now, power))
    say(f"{reads} readings in 2 s: {2e6 / reads:.0f} us each, counter and power together")
    gaps = [1000 * (b[0] - a[0]) for a, b in itertools.pairwise(ticks)]
    say(f"counter moved {len(gaps)} times, every {_spread(gaps, 'ms')}")
    if len(ticks) > 2:
        watts = (ticks[-1][1] - ticks[1][1]) / (ticks[-1][0] - ticks[1][0])
        say(f"power by the counter: {watts:.1f} W")
    gaps = [1000 * (b[0] - a[0]) for a, b in itertools.pairwise(powers)]
    say(f"power moved {len(gaps)} times, every {_spread(gaps, 'ms')}")
    say(f"power as polled: {_spread([watts for _, watts in powers], 'W')}")


def _spread(values: list[float], unit: str) -> str:
    if not values:
        return "never"
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return f"{middle:.1f} {unit} ({ordered[0]:.1f} to {ordered[-1]:.1f})"


def run_pytest(folder: Path, models: str, providers: str, left_s: float) -> None:
    """The shipped suites, as a user runs them."""
    command = [
        *(sys.executable, "-m", "pytest", "--pyargs", "pytest_ortbench.suites"),
        *("-rA", "-p", "no:cacheprovider", "-p", "no:benchmark"),
        # The energy of the CPU is another question and would take as long again.
        *("-k", "not (test_energy and cpu)"),
        f"--ort-models={models}",
        f"--ort-providers={providers}",
        *("--ort-time=2", "--ort-workers=2", "--ort-timeout=75"),
        f"--ort-results={folder / 'results'}",
    ]
    say(" ".join(command[2:]))
    environment = {**os.environ, "ORTBENCH_OFFLINE": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    environment["PYTHONUNBUFFERED"] = "1"
    began = time.monotonic()
    # Not captured: whoever stops this early still has what was found.
    process = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        code = process.wait(timeout=max(10.0, left_s))
        say(f"exit code {code} after {time.monotonic() - began:.0f} s")
    except subprocess.TimeoutExpired:
        # As Ctrl-C does it: pytest then writes what it has.
        process.send_signal(2)
        try:
            process.wait(timeout=_LAST_S - 2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        say(f"stopped after {time.monotonic() - began:.0f} s: the budget is used up")


def cases(folder: Path) -> bool:
    """Print what the run document, or its journal, holds; return whether cuda has everything."""
    from pytest_ortbench.analysis.summary import summarise
    from pytest_ortbench.core.units import format_amount
    from pytest_ortbench.store.documents import load

    paths = [*folder.glob("results/*/run.json"), *folder.glob("results/*/journal.jsonl")]
    if not paths:
        say("there is no run document")
        return False
    run = load(paths[0])
    complete = {"cuda": False}
    for result in run.cases:
        summary = summarise(result)
        say(f"\n-- {result.case.case_id}: {result.status}, {result.wall_s:.0f} s")
        if result.failure is not None:
            say(f"   {result.failure.message}\n   {result.failure.hint}\n{result.failure.log_tail}")
        for name, quantity in summary.quantities.items():
            low, high = quantity.low, quantity.high
            interval = f" [{low:.6g}, {high:.6g}]" if low is not None and high is not None else ""
            say(f"   {name}: {format_amount(quantity.value, quantity.unit)}{interval}")
        for name, reason in summary.missing.items() if result.failure is None else ():
            say(f"   {name}: - ({reason})")
        for measurement in result.measurements:
            memory = measurement.memory
            say(
                f"   worker {measurement.worker}: {memory.device_bytes} bytes on "
                f"{memory.device!r}, {memory.device_source}, others {memory.device_neighbours}, "
                f"provider init {measurement.startup.provider_init_ns} ns"
            )
        if result.placement is not None:
            say(f"   executed {result.placement.executed}, copies {result.placement.copies}, "
                f"session {result.placement.session_providers}")  # fmt: skip
        energy = result.energy
        for window in energy.windows if energy is not None else ():
            counter, integral = window.counter_j, window.integral_j
            apart = f"{counter / integral - 1:+.2%}" if counter and integral else "-"
            say(f"   {window}")
            watts = window.energy_j / window.duration_ns * 1e9
            joules = window.energy_j / max(window.inferences, 1e-9)
            say(f"     {watts:.1f} W, {joules:.6f} J/inference, counter to power {apart}")
        if energy is not None:
            say(f"   energy note {energy.note!r}, reason {energy.reason!r}")
        for flag in result.flags:
            say(f"   {flag.name}: {flag.detail}")
        if result.case.provider.alias == "cuda":
            needed = ("latency_p50", "placement", "device_memory", "energy_per_inference")
            has_all = all(name in summary.quantities for name in needed)
            complete[result.case.case_id] = has_all
            complete["cuda"] = True
    return all(complete.values())


if __name__ == "__main__":
    sys.exit(main())
