"""Each line of a self-check on facts that were made up: what it passes, fails, and leaves open."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.mantissa import mantissa_steps
from pytest_ortbench.core.outcome import Block, Memory, Placement
from pytest_ortbench.models.builders.check_models import HALF_STEP, PROBE_ROWS, WEIGHTS_BYTES
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow, MeterTicks
from pytest_ortbench.passes.energy.selfcheck import _Clocked, _Metered
from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.passes.load.selfcheck import _Served
from pytest_ortbench.selfcheck.check import LineFinding
from pytest_ortbench.selfcheck.checks.callers import _Busy
from pytest_ortbench.selfcheck.checks.fp16 import _Halves
from pytest_ortbench.selfcheck.checks.fp32 import _Products
from pytest_ortbench.selfcheck.checks.graphs import _GIVEN, _RECORDED, _Graphs
from pytest_ortbench.selfcheck.checks.memory import TAKEN_BYTES, _Memories
from pytest_ortbench.selfcheck.checks.placement import _Placed
from pytest_ortbench.selfcheck.facts import (
    Evaluated,
    EventTimes,
    LoopTimes,
    MeteredMemory,
    ProfiledNodes,
    Replayed,
    SeenClocks,
    SeenDevice,
    WaitTimes,
)
from pytest_ortbench.selfcheck.registry import all_checks
from tests.results_factory import (
    make_accuracy,
    make_case,
    make_measurement,
    make_placement,
    make_result,
)

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")
WEBGPU = Provider(alias="webgpu", name="WebGpuExecutionProvider")
QNN = Provider(alias="qnn", name="QNNExecutionProvider", device="htp")
OPENVINO = Provider(alias="openvino", name="OpenVINOExecutionProvider")

CHECKS = {check.name: check for check in all_checks()}


def judged(name: str, facts: Any, provider: Provider = CPU) -> LineFinding:
    finding = CHECKS[name].judge(facts, provider)
    assert finding.reason
    return finding


def verdict(name: str, facts: Any, provider: Provider = CPU) -> tuple[str, str]:
    """Return what a check comes to, and by which way."""
    finding = judged(name, facts, provider)
    return finding.verdict, finding.cause


def test_names_are_unique_and_every_line_has_a_sentence() -> None:
    names = [check.name for check in all_checks()]
    assert len(set(names)) == len(names) == 15
    assert all(check.about for check in all_checks())
    assert [check.name for check in all_checks() if not check.in_short] == ["energy", "load"]


# -- loop, events, synchronisation -----------------------------------------------------------------


def loops(ours_ns: int, bare_ns: int, rounds: int = 33, spread: int = 0) -> LoopTimes:
    return LoopTimes(
        ours_ns=tuple(ours_ns + spread * (number % 3) for number in range(rounds)),
        bare_ns=tuple(bare_ns + spread * ((number + 1) % 3) for number in range(rounds)),
        iterations=2,
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (loops(1_000_000, 998_000), ("pass", "agrees")),
        (loops(1_000_000, 998_000, spread=700_000), ("pass", "agrees")),
        # Something that an application need not do is inside of the timed region.
        (loops(1_100_000, 1_000_000), ("fail", "differs")),
        # The timed region leaves out what an application pays.
        (loops(900_000, 1_000_000), ("fail", "differs")),
        (loops(1_000_000, 1_000_000, rounds=3), ("unchecked", "unclear")),
        (LoopTimes(ours_ns=(), bare_ns=(), iterations=2), ("unchecked", "no times")),
        (loops(0, 1_000_000), ("unchecked", "no times")),
    ],
    ids=["equal", "busy", "slow", "fast", "few", "none", "zero"],
)
def test_loop(facts: LoopTimes, expected: tuple[str, str]) -> None:
    assert verdict("loop", facts) == expected


def test_the_line_of_the_loop_has_its_numbers() -> None:
    ratio, ours, bare = judged("loop", loops(1_010_000, 1_000_000)).amounts
    assert (ratio.value, ratio.low, ratio.high) == (1.01, 1.01, 1.01)
    assert (ours.value, bare.value, ours.unit) == (0.00101, 0.001, "s")


def events(ours_ns: int, device_ns: int) -> EventTimes:
    return EventTimes(ours_ns=(ours_ns,) * 33, device_ns=(device_ns,) * 33)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (events(1_020_000, 1_000_000), ("pass", "agrees")),
        # A loop that does not wait is faster than the device.
        (events(30_000, 1_000_000), ("fail", "too fast")),
        (events(3_000_000, 1_000_000), ("unchecked", "overhead")),
        (EventTimes(reason="no driver"), ("unchecked", "no events")),
        (EventTimes(), ("unchecked", "no times")),
    ],
    ids=["equal", "unsynchronised", "overhead", "no driver", "none"],
)
def test_events(facts: EventTimes, expected: tuple[str, str]) -> None:
    assert verdict("events", facts, CUDA) == expected


def waits(ours_left_ns: int, launched_ns: int, launched_left_ns: int) -> WaitTimes:
    return WaitTimes(
        device="cuda:0",
        ours_ns=(20_000_000,) * 5,
        ours_left_ns=(ours_left_ns,) * 5,
        launched_ns=(launched_ns,) * 5,
        launched_left_ns=(launched_left_ns,) * 5,
        idle_ns=(10_000,) * 5,
        arbiter="cuCtxSynchronize",
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (waits(12_000, 500_000, 19_500_000), ("pass", "synchronised")),
        # The timed loop itself leaves out the synchronisation.
        (waits(19_000_000, 500_000, 19_500_000), ("fail", "not synchronised")),
        # What was left out on purpose is not noticed: the check proves nothing.
        (waits(12_000, 20_000_000, 12_000), ("unchecked", "never asynchronous")),
        (waits(2_000_000, 500_000, 19_500_000), ("unchecked", "unclear")),
        (WaitTimes(on_host=True), ("unchecked", "host memory")),
        (WaitTimes(device="cuda:0"), ("unchecked", "no times")),
    ],
    ids=["waits", "does not wait", "not noticed", "unclear", "host", "none"],
)
def test_synchronisation(facts: WaitTimes, expected: tuple[str, str]) -> None:
    assert verdict("synchronisation", facts, CUDA) == expected


# -- placement, accuracy ---------------------------------------------------------------------------


def placed(
    placement: Placement | None = None, nodes: dict[str, int] | None = None, **changes: Any
) -> _Placed:
    placement = make_placement() if placement is None else placement
    counted = {"CPUExecutionProvider": 64} if nodes is None else nodes
    return _Placed(
        result=make_result(placement=replace(placement, **changes)),
        counted=ProfiledNodes(nodes=counted, copies=0),
    )


ON_CUDA = make_placement("CUDAExecutionProvider")


@pytest.mark.parametrize(
    ("facts", "provider", "expected"),
    [
        (placed(), CPU, ("pass", "agrees")),
        (
            placed(
                make_placement("CUDAExecutionProvider", elsewhere={"Loop": 3}),
                {"CUDAExecutionProvider": 60, "CPUExecutionProvider": 7},
            ),
            CUDA,
            ("pass", "partial"),
        ),
        # A provider that falls back.
        (
            placed(
                ON_CUDA,
                {"CPUExecutionProvider": 64},
                executed={"CPUExecutionProvider": 60},
            ),
            CUDA,
            ("fail", "fallback"),
        ),
        # A profile that disagrees.
        (placed(nodes={"CPUExecutionProvider": 63}), CPU, ("fail", "profile disagrees")),
        (
            placed(ON_CUDA, {"CPUExecutionProvider": 64}),
            CUDA,
            ("fail", "profile disagrees"),
        ),
        (placed(copies=2), CPU, ("fail", "profile disagrees")),
        (placed(nodes_on_provider=0), CPU, ("fail", "assignment disagrees")),
        (placed(reason="the disk is full"), CPU, ("unchecked", "no profile")),
        (placed(cut_after=1_000_000), CPU, ("unchecked", "no profile")),
        (_Placed(result=make_result(), counted=None), CPU, ("unchecked", "no profile")),
        (
            _Placed(result=make_result(status="fallback"), counted=None),
            CUDA,
            ("fail", "fallback"),
        ),
        (
            _Placed(result=make_result(status="crash"), counted=None),
            CUDA,
            ("unchecked", "crash"),
        ),
    ],
)
def test_placement(facts: _Placed, provider: Provider, expected: tuple[str, str]) -> None:
    assert verdict("placement", facts, provider) == expected


def test_accuracy() -> None:
    assert verdict("accuracy", make_result()) == ("pass", "accurate")
    off = make_result(accuracy=make_accuracy(sqnr_db=20.0))
    assert verdict("accuracy", off) == ("fail", "inaccurate")
    broken = make_result(accuracy=make_accuracy(finite=False))
    assert verdict("accuracy", broken) == ("fail", "inaccurate")
    nothing = make_result(accuracy=replace(make_accuracy(), outputs=(), reason="no reference"))
    assert verdict("accuracy", nothing) == ("unchecked", "not compared")
    assert verdict("accuracy", make_result(status="timeout")) == ("unchecked", "timeout")
    [told, floor] = judged("accuracy", off).amounts
    assert (told.value, floor.value) == (20.0, 60.0)


# -- precisions ------------------------------------------------------------------------------------


def products(bits: int) -> Evaluated:
    """What a product gives that keeps so many bits, as hardware that cuts off the others does."""
    step = 2.0**bits
    return Evaluated(
        values=tuple(int(value * step) / step for value in mantissa_steps(PROBE_ROWS)),
        type="float32",
    )


@pytest.mark.parametrize(
    ("facts", "provider", "expected"),
    [
        (_Products(default=products(23)), CPU, ("pass", "float32")),
        (_Products(default=products(10), without=products(23)), CUDA, ("pass", "TF32")),
        # A GPU without TF32: it could not be seen at work.
        (_Products(default=products(23), without=products(23)), CUDA, ("unchecked", "no TF32")),
        # The switch does nothing.
        (_Products(default=products(10), without=products(10)), CUDA, ("fail", "lowered")),
        # A provider that lowers the precision by itself.
        (_Products(default=products(7)), OPENVINO, ("fail", "lowered")),
        (_Products(default=products(10)), WEBGPU, ("fail", "lowered")),
        (_Products(default=Evaluated(values=(0.0,) * PROBE_ROWS, type="float32")), CPU,
         ("fail", "wrong product")),
        (_Products(default=Evaluated(values=(), type="float32")), CPU, ("fail", "wrong product")),
        (_Products(default=Evaluated(values=(math.nan,) * PROBE_ROWS, type="float32")), CPU,
         ("fail", "wrong product")),
    ],
)  # fmt: skip
def test_fp32(facts: _Products, provider: Provider, expected: tuple[str, str]) -> None:
    assert verdict("fp32", facts, provider) == expected


def halves(executed: str | None, rest: float | None) -> _Halves:
    result = make_result(placement=make_placement(precision_executed=executed))
    seen = None if rest is None else Evaluated(values=(rest,) * PROBE_ROWS, type="float16")
    return _Halves(result=result, seen=seen)


@pytest.mark.parametrize(
    ("facts", "provider", "expected"),
    [
        (halves("float16", 0.0), CUDA, ("pass", "float16")),
        (halves(None, 0.0), QNN, ("pass", "held in float16")),
        # fp16 that ran as fp32.
        (halves("float32", 1.0), CUDA, ("fail", "emulated")),
        (halves("float32", 0.0), WEBGPU, ("fail", "emulated")),
        (halves("float16", 1.0), CUDA, ("fail", "profile disagrees")),
        # The CPU has no arithmetic of its own in it, and says so by a flag.
        (halves("float32", 1.0), CPU, ("unchecked", "no float16")),
        (halves(None, 1.0), OPENVINO, ("unchecked", "not told")),
        (halves("float16", None), CUDA, ("unchecked", "not told")),
        (halves(None, None), QNN, ("unchecked", "not told")),
        (halves("float16", 7.0), CUDA, ("unchecked", "not told")),
        (_Halves(result=make_result(status="unsupported")), CUDA, ("unchecked", "unsupported")),
        (_Halves(result=make_result(status="fallback")), CUDA, ("fail", "fallback")),
    ],
)
def test_fp16(facts: _Halves, provider: Provider, expected: tuple[str, str]) -> None:
    assert verdict("fp16", facts, provider) == expected


def test_the_model_of_fp16_tells_what_was_kept() -> None:
    """In float16 the square of 1 + 2^-10 is 1 + 2^-9; what is missing is 2^-20."""
    square = (1 + HALF_STEP) ** 2
    assert (square - (1 + 2 * HALF_STEP)) / HALF_STEP**2 == 1.0


@pytest.mark.parametrize(
    ("executed", "sqnr_db", "expected"),
    [
        ("int8", 36.0, ("pass", "int8")),
        ("uint8", 36.0, ("pass", "int8")),
        ("float32", 36.0, ("fail", "emulated")),
        (None, 36.0, ("unchecked", "inside a compiler")),
        ("int8", 3.0, ("fail", "inaccurate")),
    ],
)
def test_int8(executed: str | None, sqnr_db: float, expected: tuple[str, str]) -> None:
    result = make_result(
        case=make_case(precision="int8-static"),
        placement=make_placement(precision_executed=executed),
        accuracy=make_accuracy(sqnr_db=sqnr_db),
    )
    assert verdict("int8", result) == expected


def test_int8_without_a_profile_or_a_case() -> None:
    result = make_result(placement=replace(make_placement(), reason="the disk is full"))
    assert verdict("int8", result) == ("unchecked", "no profile")
    assert verdict("int8", make_result(status="unsupported")) == ("unchecked", "unsupported")


def test_a_provider_without_int8_shows_what_its_float_kernels_take() -> None:
    result = make_result(placement=make_placement(precision_executed="float32"))
    assert verdict("int8", result, CUDA) == ("unchecked", "no int8")
    assert verdict("int8", result, WEBGPU) == ("unchecked", "no int8")
    tensorrt = Provider(alias="tensorrt", name="TensorrtExecutionProvider")
    assert verdict("int8", result, tensorrt) == ("fail", "emulated")


def graphs(in_force: dict[str, str], sqnr_db: float = 120.0, switch: str = "1") -> _Graphs:
    provider = replace(CUDA, options={"enable_cuda_graph": switch})
    measurement = replace(make_measurement(), options_in_force=in_force)
    recorded = make_result(
        case=replace(make_case(provider="cuda"), provider=provider),
        measurements=[measurement],
        accuracy=make_accuracy(sqnr_db=sqnr_db),
    )
    return _Graphs(
        recorded=recorded,
        plain=make_result(case=make_case(provider="cuda")),
        replayed=Replayed(answers=_GIVEN),
    )


def test_graphs() -> None:
    on = {"enable_cuda_graph": "1"}
    assert verdict("graphs", graphs(on), CUDA) == ("pass", "replayed")
    for answers, cause in (
        # A replay reads the inputs that were recorded, whatever it is given.
        (_RECORDED, "stale"),
        ((0.0,) * len(_GIVEN), "wrong replay"),
        ((math.nan,) * len(_GIVEN), "wrong replay"),
        ((), "wrong replay"),
    ):
        replayed = replace(graphs(on), replayed=Replayed(answers=answers))
        assert verdict("graphs", replayed, CUDA) == ("fail", cause)
    nothing = replace(graphs(on), replayed=None)
    assert verdict("graphs", nothing, CUDA) == ("unchecked", "not replayed")
    assert verdict("graphs", graphs(on, sqnr_db=2.0), CUDA) == ("fail", "inaccurate")
    assert verdict("graphs", graphs({}), CUDA) == ("unchecked", "not recorded")
    assert verdict("graphs", graphs(on, switch="0"), CUDA) == ("unchecked", "not recorded")
    crashed = replace(graphs(on), recorded=make_result(status="crash"))
    assert verdict("graphs", crashed, CUDA) == ("unchecked", "crash")
    [ratio] = judged("graphs", graphs(on), CUDA).amounts
    assert ratio.value == pytest.approx(1.0, rel=0.05)


# -- callers, memory, device -----------------------------------------------------------------------


def busy(duration_ns: int, wall_ns: int, count: int = 60) -> _Busy:
    block = Block(
        durations_ns=(duration_ns,) * count,
        wall_ns=wall_ns,
        cpu_ns=0,
        steal_ticks=None,
        total_ticks=None,
        throttled_ns=None,
    )
    return _Busy(blocks=(block,) * 5)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (busy(1_000_000, 31_000_000), ("pass", "closed")),
        (busy(1_000_000, 25_000_000), ("fail", "too much")),
        (busy(1_000_000, 60_000_000), ("fail", "too little")),
        (busy(1_000_000, 38_000_000), ("unchecked", "unclear")),
        (_Busy(blocks=()), ("unchecked", "no times")),
    ],
    ids=["closed", "overlapping", "waiting", "unclear", "none"],
)
def test_callers(facts: _Busy, expected: tuple[str, str]) -> None:
    assert verdict("callers", facts) == expected


def memories(
    *,
    host: int | None = TAKEN_BYTES,
    session: int | None = 2 * WEIGHTS_BYTES,
    device: int | None = None,
    on_device: int | None = None,
) -> _Memories:
    return _Memories(
        session=Memory(source="VmHWM", peak_bytes=session, device_bytes=on_device),
        metered=MeteredMemory(
            taken_bytes=TAKEN_BYTES,
            host_rise_bytes=host,
            host_source="VmHWM",
            device_rise_bytes=device,
            device_source="NVML",
        ),
    )


@pytest.mark.parametrize(
    ("facts", "provider", "expected"),
    [
        (memories(), CPU, ("pass", "agrees")),
        (memories(), OPENVINO, ("pass", "agrees")),
        # A meter that reads half.
        (memories(host=TAKEN_BYTES // 2), CPU, ("fail", "meter off")),
        (memories(host=2 * TAKEN_BYTES), CPU, ("fail", "meter off")),
        (memories(session=WEIGHTS_BYTES // 2), CPU, ("fail", "weights missing")),
        (memories(host=None), CPU, ("unchecked", "no meter")),
        (memories(session=None), CPU, ("unchecked", "no meter")),
        # Nothing tells the memory of the device, and that of the host stands for nothing.
        (memories(), WEBGPU, ("unchecked", "no meter of the device")),
        (memories(), replace(OPENVINO, device="GPU"), ("unchecked", "no meter of the device")),
        (memories(), CUDA, ("unchecked", "no meter")),
        (
            memories(device=TAKEN_BYTES, on_device=WEIGHTS_BYTES),
            CUDA,
            ("pass", "agrees"),
        ),
        (
            memories(device=TAKEN_BYTES // 2, on_device=WEIGHTS_BYTES),
            CUDA,
            ("fail", "meter off"),
        ),
        (memories(device=TAKEN_BYTES, on_device=0), CUDA, ("fail", "weights missing")),
    ],
)
def test_memory(facts: _Memories, provider: Provider, expected: tuple[str, str]) -> None:
    assert verdict("memory", facts, provider) == expected


SEEN = SeenDevice(
    asked="1",
    chosen="GPU-AB12",
    computing="ab12",
    seen_on=("GPU-AB12",),
    visible=2,
)


@pytest.mark.parametrize(
    ("facts", "provider", "expected"),
    [
        (SEEN, CUDA, ("pass", "same device")),
        (replace(SEEN, seen_on=()), CUDA, ("pass", "same UUID")),
        # Another device is read than computes.
        (replace(SEEN, computing="cd34"), CUDA, ("fail", "another device")),
        (replace(SEEN, seen_on=("GPU-CD34",)), CUDA, ("fail", "another device")),
        # A MIG slice: what is read would be that of the whole device.
        (replace(SEEN, chosen="", reason="a MIG slice"), CUDA, ("unchecked", "not read")),
        (replace(SEEN, computing=""), CUDA, ("unchecked", "not told")),
        (SeenDevice(), CPU, ("unchecked", "host")),
        (SeenDevice(in_force={"device_type": "CPU"}), OPENVINO, ("unchecked", "not told")),
        (
            SeenDevice(asked="GPU", in_force={"device_type": "CPU"}),
            OPENVINO,
            ("fail", "another device"),
        ),
    ],
)
def test_device(facts: SeenDevice, provider: Provider, expected: tuple[str, str]) -> None:
    assert verdict("device", facts, provider) == expected


# -- energy, clocks, load --------------------------------------------------------------------------

WINDOW = EnergyWindow(
    source="nvml energy counter",
    device="GPU-1",
    duration_ns=5_000_000_000,
    inferences=5000.0,
    energy_j=1500.0,
    idle_w=80.0,
    counter_j=1500.0,
    integral_j=1510.0,
    clock_mhz=(1740.0, 1755.0),
    hottest_c=61.0,
    throttled=("power cap",),
)
TICKS = MeterTicks(source="nvml", device="GPU-1", reading_ns=900_000, tick_ns=(100_000_000,) * 9)


def metered(**changes: Any) -> _Metered:
    return _Metered(energy=Energy(windows=(replace(WINDOW, **changes),) * 2), ticks=TICKS)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (metered(), ("pass", "agrees")),
        # A wrong reading of power.
        (metered(integral_j=3000.0), ("fail", "disagrees")),
        (metered(integral_j=700.0), ("fail", "disagrees")),
        (metered(integral_j=0.0), ("fail", "stuck")),
        # The meter of another device does not hear of the load.
        (metered(idle_w=300.0), ("fail", "no rise")),
        (metered(integral_j=None), ("unchecked", "one meter")),
        (metered(counter_j=None), ("unchecked", "one meter")),
        (_Metered(energy=Energy(reason="no RAPL"), ticks=MeterTicks()), ("unchecked", "no meter")),
        (_Metered(energy=Energy(), ticks=MeterTicks()), ("unchecked", "no meter")),
    ],
)
def test_energy(facts: _Metered, expected: tuple[str, str]) -> None:
    assert verdict("energy", facts, CUDA) == expected


def test_the_line_of_energy_tells_how_the_meter_behaves() -> None:
    told = {amount.name: amount.value for amount in judged("energy", metered(), CUDA).amounts}
    assert told["under load"] == 300.0
    assert told["counter to power"] == pytest.approx(1500 / 1510)
    assert told["counter moves every"] == pytest.approx(0.1)
    assert told["a reading takes"] == pytest.approx(0.0009)


def on_device(**changes: Any) -> _Clocked:
    return _Clocked(metered=metered(**changes))


def on_cpus(*clocks: float, throttled_ns: int | None = 0) -> _Clocked:
    return _Clocked(
        clocks=SeenClocks(clocks_mhz=clocks, wall_ns=3_000_000_000, throttled_ns=throttled_ns)
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (on_device(), ("pass", "steady")),
        (on_device(throttled=("thermal",)), ("fail", "held back")),
        (on_device(clock_mhz=(1200.0, 1755.0)), ("fail", "moved")),
        (on_device(clock_mhz=None), ("unchecked", "not read")),
        (_Clocked(metered=_Metered(energy=Energy(), ticks=TICKS)), ("unchecked", "not read")),
        (on_cpus(3000.0, 3010.0), ("pass", "steady")),
        (on_cpus(3000.0, 2000.0), ("fail", "moved")),
        (on_cpus(3000.0, 3010.0, throttled_ns=300_000_000), ("fail", "quota")),
        (on_cpus(throttled_ns=300_000_000), ("fail", "quota")),
        (on_cpus(), ("unchecked", "not read")),
        (on_cpus(throttled_ns=None), ("unchecked", "not read")),
        (_Clocked(), ("unchecked", "not read")),
    ],
)
def test_clocks(facts: _Clocked, expected: tuple[str, str]) -> None:
    assert verdict("clocks", facts, CUDA) == expected


def served(**changes: Any) -> _Served:
    spec = LoadSpec(text="server:100:10s", scenario="server", percent=99.0, rate_per_s=100.0)
    test = LoadTest(
        rate_per_s=100.0,
        scheduled_per_s=98.0,
        completed_per_s=97.0,
        valid=True,
        percentiles_ns={"50": 3_100_000},
    )
    load = Load(spec=spec, tests=(replace(test, **changes),), answer=0)
    return _Served(result=make_result(), load=load, service_s=0.003)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (served(), ("pass", "served")),
        (served(scheduled_per_s=60.0), ("fail", "other arrivals")),
        # Answered before an inference can be over.
        (served(percentiles_ns={"50": 100_000}), ("fail", "too fast")),
        (served(completed_per_s=50.0), ("unchecked", "behind")),
        (served(scheduled_per_s=None), ("unchecked", "no rates")),
        (
            replace(
                served(), load=replace(served().load, tests=(), answer=None, reason="no generator")
            ),
            ("unchecked", "no test"),
        ),
        (_Served(result=make_result()), ("unchecked", "no test")),
        (_Served(result=make_result(status="fallback")), ("fail", "fallback")),
    ],
)
def test_load(facts: _Served, expected: tuple[str, str]) -> None:
    assert verdict("load", facts) == expected


# -- every line ------------------------------------------------------------------------------------

#: What each line fails for: facts in which something is wrong, on a provider, and the cause.
FAULTS: dict[str, tuple[Any, Provider, str]] = {
    "loop": (loops(1_100_000, 1_000_000), CPU, "differs"),
    "events": (events(30_000, 1_000_000), CUDA, "too fast"),
    "synchronisation": (waits(19_000_000, 500_000, 19_500_000), CUDA, "not synchronised"),
    "placement": (
        _Placed(result=make_result(status="fallback"), counted=None),
        CUDA,
        "fallback",
    ),
    "accuracy": (make_result(accuracy=make_accuracy(sqnr_db=20.0)), CPU, "inaccurate"),
    "fp32": (_Products(default=products(7)), OPENVINO, "lowered"),
    "fp16": (halves("float32", 1.0), CUDA, "emulated"),
    "int8": (
        make_result(placement=make_placement(precision_executed="float32")),
        CPU,
        "emulated",
    ),
    "graphs": (
        replace(graphs({"enable_cuda_graph": "1"}), replayed=Replayed(answers=_RECORDED)),
        CUDA,
        "stale",
    ),
    "callers": (busy(1_000_000, 25_000_000), CPU, "too much"),
    "memory": (memories(host=TAKEN_BYTES // 2), CPU, "meter off"),
    "device": (replace(SEEN, computing="cd34"), CUDA, "another device"),
    "energy": (metered(integral_j=3000.0), CUDA, "disagrees"),
    "clocks": (on_device(throttled=("thermal",)), CUDA, "held back"),
    "load": (served(percentiles_ns={"50": 100_000}), CPU, "too fast"),
}


def test_every_line_fails_for_a_reason_of_its_own() -> None:
    assert {
        name: verdict(name, facts, provider) for name, (facts, provider, _) in FAULTS.items()
    } == {name: ("fail", FAULTS[name][2]) for name in CHECKS}
