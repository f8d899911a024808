"""Builds results as workers would have given them, with defaults for what a test leaves out.

Use ``make_result`` for one case and ``make_run`` for a document; the smaller builders are there
for tests that need one part only. Durations come from ``draw_durations``: seeded, right-skewed,
in nanoseconds. Nothing here measures anything.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.core.case import (
    Case,
    InputSpec,
    Provider,
    Runtime,
    Sampling,
    SessionConfig,
    SymbolSize,
)
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint, Variant
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    CaseResult,
    Failure,
    Flag,
    Measurement,
    Memory,
    OutputAccuracy,
    OutputCheck,
    Placement,
    RuntimeInfo,
    Samples,
    Startup,
    WarmUp,
    YardstickTurns,
)
from pytest_ortbench.core.run import Commit, Machine, Run, Skip
from pytest_ortbench.core.yardstick import Yardstick
from pytest_ortbench.passes.energy.facts import Energy

PROVIDER_NAMES = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}


@cache
def draw_durations(
    count: int = 400,
    *,
    median_ns: int = 3_000_000,
    spread: float = 0.01,
    seed: int = 0,
) -> tuple[int, ...]:
    """Durations with a floor and a tail: ``median_ns`` in the middle, ``spread`` wide."""
    draw = random.Random(seed)
    return tuple(
        max(1, round(median_ns * (1 - spread + spread * draw.lognormvariate(0, 0.5))))
        for _ in range(count)
    )


def make_block(
    durations_ns: Sequence[int],
    *,
    cpu_share: float = 1.0,
    steal_ticks: int | None = 0,
    total_ticks: int | None = 50,
    throttled_ns: int | None = 0,
) -> Block:
    """A timed block whose loop costs 100 ns an inference."""
    wall_ns = sum(durations_ns) + 100 * len(durations_ns)
    return Block(
        durations_ns=tuple(durations_ns),
        wall_ns=wall_ns,
        cpu_ns=round(wall_ns * cpu_share),
        steal_ticks=steal_ticks,
        total_ticks=total_ticks,
        throttled_ns=throttled_ns,
    )


def make_samples(
    durations_ns: Sequence[int] | None = None,
    *,
    blocks: int = 5,
    keep: int = 1000,
    clock_pair_ns: int = 100,
    cpu_share: float = 1.0,
) -> Samples:
    """Samples of one worker, reduced from equal blocks as the product does it."""
    durations = draw_durations() if durations_ns is None else tuple(durations_ns)
    return _reduced(durations, blocks, keep, clock_pair_ns, cpu_share)


@lru_cache(maxsize=256)
def _reduced(
    durations: tuple[int, ...], blocks: int, keep: int, clock_pair_ns: int, cpu_share: float
) -> Samples:
    blocks = min(blocks, len(durations))
    bounds = [len(durations) * index // blocks for index in range(blocks + 1)]
    return reduce_blocks(
        [
            make_block(durations[start:stop], cpu_share=cpu_share)
            for start, stop in itertools.pairwise(bounds)
        ],
        keep=keep,
        clock_pair_ns=clock_pair_ns,
    )


def make_memory(*, peak_bytes: int | None = 60_000_000, worker: int = 0) -> Memory:
    """Memory with kilobytes of difference between workers."""
    if peak_bytes is None:
        return Memory(source="not readable here")
    peak = peak_bytes + 4096 * worker
    return Memory(
        source="VmHWM after clear_refs",
        baseline_bytes=45_000_000,
        session_bytes=peak - 20_000_000,
        after_session_bytes=peak - 25_000_000,
        peak_bytes=peak,
        after_runs_bytes=peak - 5_000_000,
        process_peak_bytes=peak + 45_000_000,
        device_source="no device",
    )


def make_runtime_info(*, version: str = "1.32.0") -> RuntimeInfo:
    """What a worker with the plain CPU wheel reports."""
    return RuntimeInfo(
        distributions={"onnxruntime": version},
        version=version,
        python="3.11.9",
        numpy="2.4.0",
        executable="/usr/bin/python3",
        available_providers=("AzureExecutionProvider", "CPUExecutionProvider"),
        build="git-branch=HEAD, build type=Release",
        pid=4242,
    )


def make_yardstick(
    name: str = "serial", *, threads: int = 1, version: str = "0.3.30", kernels: str = "SkylakeX"
) -> Yardstick:
    """A matrix product of OpenBLAS; ``threads`` is what ``parallel`` changes."""
    return Yardstick(
        name=name,
        digest="5e11a0b1c2d3",
        library="OpenBLAS",
        version=version,
        kernels=kernels,
        threads=threads,
    )


def make_turns(
    median_ns: int = 3_000_000,
    *,
    unit_ns: int = 500_000,
    rounds: int = 100,
    slower: Sequence[float] = (1.0,),
    spread: float = 0.01,
    floor: float = 0.97,
    seed: int = 0,
    yardstick: Yardstick | None = None,
    best_ns: int | None = 490_000,
    cpus: float = 1.0,
    handover_ns: Sequence[int | None] = (),
    best_handover_ns: int | None = None,
) -> YardstickTurns:
    """Blocks of a model and of a yardstick in turns, which the machine slows down alike.

    Args:
        median_ns: What an inference takes where the machine is not slowed down.
        unit_ns: Likewise a unit of work of the yardstick.
        rounds: How many there are.
        slower: Factors of the machine, each for as many rounds as the next one.
        spread: Of the means of either side alone, beside those factors.
        floor: The fastest of a block, as a share of its mean.
        seed: Of the draw.
        yardstick: By default ``make_yardstick()``.
        best_ns: The best known time of the yardstick.
        cpus: CPUs that both sides keep busy.
        handover_ns: What a value takes from CPU to CPU, each for as many rounds as the next one.
        best_handover_ns: Likewise what it takes at best.
    """
    draw = random.Random(f"{seed}/turns")
    factors = [slower[index * len(slower) // rounds] for index in range(rounds)]
    model, work = (
        [max(1, round(each_ns * factor * (1 + spread * draw.gauss(0, 1)))) for factor in factors]
        for each_ns in (median_ns, unit_ns)
    )
    return YardstickTurns(
        yardstick=make_yardstick() if yardstick is None else yardstick,
        rounds=rounds,
        model_mean_ns=tuple(model),
        model_low_ns=tuple(max(1, round(mean * floor)) for mean in model),
        yardstick_mean_ns=tuple(work),
        yardstick_low_ns=tuple(max(1, round(mean * floor)) for mean in work),
        model_runs=max(1, round(12e6 / median_ns)),
        yardstick_runs=max(1, round(3e6 / unit_ns)),
        model_cpus=cpus,
        yardstick_cpus=cpus,
        best_ns=best_ns,
        handover_ns=tuple(
            handover_ns[index * len(handover_ns) // rounds] for index in range(rounds)
        )
        if handover_ns
        else (),
        best_handover_ns=best_handover_ns,
    )


#: What a product and a pass over memory take in two states of a machine, in nanoseconds.
STATES = ((250_000, 260_000), (280_000, 350_000))


def make_turns_in_state(
    state: int, *, passes: float, slower: float = 1.0, yardstick: Yardstick | None = None
) -> YardstickTurns:
    """Turns of a model whose inferences are six products, and six times so many passes.

    Args:
        state: Index of :data:`STATES`.
        passes: Over memory, beside one product.
        slower: Factor of the model alone.
        yardstick: By default ``make_yardstick()``.
    """
    product_ns, memory_ns = STATES[state]
    inference_ns = round(6 * slower * (product_ns + passes * memory_ns))
    unit_ns = product_ns + memory_ns
    turns = make_turns(inference_ns, unit_ns=unit_ns, spread=0.0, yardstick=yardstick, floor=0.9)
    return replace(
        turns,
        memory_mean_ns=(memory_ns,) * turns.rounds,
        memory_low_ns=(round(0.9 * memory_ns),) * turns.rounds,
    )


def make_measurement(
    durations_ns: Sequence[int] | None = None,
    *,
    worker: int = 0,
    samples: Samples | None = None,
    threads: int = 2,
    cpus: int = 2,
    memory: Memory | None = None,
    output_checks: Sequence[OutputCheck] | None = None,
    version: str = "1.32.0",
    stop: str = "budget",
    yardstick: YardstickTurns | None = None,
) -> Measurement:
    """All of one worker, from its durations or from ready samples."""
    if samples is None:
        samples = make_samples(
            draw_durations(seed=worker) if durations_ns is None else durations_ns
        )
    warm_up = tuple(round(samples.sum_ns / samples.count * factor) for factor in (1.5, 1.1, 1.0))
    if output_checks is None:
        output_checks = [
            OutputCheck(run=run, nonfinite=0, constant=False, digest="d1f3")
            for run in ("first", "middle", "last")
        ]
    return Measurement(
        worker=worker,
        runtime=make_runtime_info(version=version),
        startup=Startup(
            import_ns=90_000_000 + worker,
            session_create_ns=25_000_000 + 1_000_000 * worker,
            first_inference_ns=6_000_000 + 1_000_000 * worker,
        ),
        warm_up=WarmUp(
            durations_ns=warm_up,
            count=len(warm_up),
            total_ns=sum(warm_up),
            steady=True,
            rule="no trend over 20, windows of 10 agree within 3 %",
        ),
        samples=samples,
        memory=make_memory(worker=worker) if memory is None else memory,
        threads=threads,
        threads_source="affinity",
        cpus=cpus,
        output_checks=tuple(output_checks),
        stop=stop,
        overhead_ns=600_000_000,
        yardstick=yardstick,
    )


def make_model(name: str = "mobilenet_v2", *, size_bytes: int = 14_000_000) -> Model:
    """A model with one image input and one output of logits."""
    return Model(
        name=name,
        path=f"/models/{name}.onnx",
        source=f"builtin:{name}",
        digest=hashlib.sha256(name.encode()).hexdigest(),
        size_bytes=size_bytes,
        ir_version=8,
        opsets={"ai.onnx": 13},
        inputs=(TensorInfo(name="input", type="tensor(float)", shape=("N", 3, 224, 224)),),
        outputs=(TensorInfo(name="logits", type="tensor(float)", shape=("N", 1000)),),
        parameters=3_504_872,
        nodes=100,
        op_types={"Conv": 52, "Clip": 35, "Gemm": 1},
    )


def make_case(
    *,
    model: str | Model = "mobilenet_v2",
    precision: str = "native",
    provider: str = "cpu",
    batch: int = 1,
    dims: Mapping[str, int] | None = None,
    knobs: Mapping[str, str] | None = None,
    runtime: str = "current",
    io: str = "end-to-end",
    variant_bytes: int | None = None,
    session: SessionConfig | None = None,
    sampling: Sampling | None = None,
    named: bool = True,
    inputs_file: str = "",
) -> Case:
    """A case; ``provider`` is an alias, with a device after a colon: ``openvino:GPU``.

    Its inputs are drawn unless they come from ``inputs_file``.
    """
    made = make_model(model) if isinstance(model, str) else model
    alias, _, device = provider.partition(":")
    size_bytes = made.size_bytes if variant_bytes is None else variant_bytes
    return Case(
        model=made,
        variant=Variant(
            precision=precision,
            path=f"/variants/{made.name}.{precision}.onnx",
            digest=hashlib.sha256(f"{made.name}/{precision}".encode()).hexdigest(),
            size_bytes=size_bytes,
            recipe={} if precision == "native" else {"tool": precision},
        ),
        provider=Provider(
            alias=alias,
            name=PROVIDER_NAMES.get(alias, f"{alias.title()}ExecutionProvider"),
            device=device,
            named=named,
        ),
        runtime=Runtime(label=runtime),
        session=SessionConfig() if session is None else session,
        batch=batch,
        dims=dict(dims or {}),
        knobs=dict(knobs or {}),
        inputs=(
            InputSpec(
                name="input",
                type="tensor(float)",
                shape=(batch, 3, 224, 224),
                hint=ValueHint(kind="normal"),
                path=inputs_file,
                resolved=(SymbolSize(symbol="N", size=batch, origin="batch", how="batch axis"),),
            ),
        ),
        io=io,
        sampling=Sampling() if sampling is None else sampling,
    )


def make_placement(
    provider: str = "CPUExecutionProvider",
    *,
    elsewhere: Mapping[str, int] | None = None,
    precision_executed: str | None = "float32",
) -> Placement:
    """Sixty computing nodes on ``provider``; those in ``elsewhere`` (by op) on the CPU."""
    others = dict(elsewhere or {})
    executed = {provider: 60}
    time_ns = {provider: 3_000_000}
    if others:
        executed["CPUExecutionProvider"] = sum(others.values())
        time_ns["CPUExecutionProvider"] = 1_000_000
    return Placement(
        provider=provider,
        executed=executed,
        shape_only={"CPUExecutionProvider": 4},
        time_ns=time_ns,
        ops_elsewhere=others,
        precision_executed=precision_executed,
        nodes_on_provider=100 - sum(others.values()),
        nodes_total=100,
        witness="agrees",
        session_providers=(provider, "CPUExecutionProvider"),
    )


def make_accuracy(
    *, sqnr_db: float | None = 120.0, finite: bool = True, agree: int = 8
) -> Accuracy:
    """Eight samples of one class-like output."""
    return Accuracy(
        reference="fp32 on CPUExecutionProvider, no optimisation",
        samples=8,
        magnitudes=(0.1, 1.0, 10.0),
        outputs=(
            OutputAccuracy(
                name="logits",
                kind="class",
                finite=finite,
                nan_count=0 if finite else 5,
                max_abs=0.0 if sqnr_db is None else 1e-5,
                max_rel=0.0 if sqnr_db is None else 1e-6,
                cosine=1.0,
                sqnr_db=sqnr_db,
                exact=sqnr_db is None,
                agree=agree,
                rows=8,
            ),
        ),
        repeatable=True,
    )


def make_failure(
    kind: str = "crash",
    *,
    phase: str = "measure",
    message: str = "the worker died",
    signal: str = "SIGSEGV",
) -> Failure:
    """A failure; a crash by default."""
    return Failure(
        kind=kind, phase=phase, message=message, signal=signal if kind == "crash" else ""
    )


def make_result(
    *,
    case: Case | None = None,
    status: str = "measured",
    median_ns: int = 3_000_000,
    count: int = 400,
    spread: float = 0.01,
    seed: int = 0,
    workers: int = 3,
    turns: Sequence[YardstickTurns] = (),
    measurements: Sequence[Measurement] | None = None,
    placement: Placement | None = None,
    accuracy: Accuracy | None = None,
    energy: Energy | None = None,
    failure: Failure | None = None,
    flags: Sequence[Flag] = (),
) -> CaseResult:
    """One result: measured by three workers of ``count`` samples each, or failed.

    Args:
        case: By default ``make_case()``.
        status: Any other than ``measured`` gives a failure of that kind and no measurements.
        median_ns: Where the durations lie; also ``count``, ``spread`` and ``seed``.
        workers: How many workers finished.
        turns: What the workers and a yardstick had in turns, one a worker; empty for none.
        measurements: Instead of drawn ones.
        placement: By default all nodes on the asked provider (measured cases only).
        accuracy: By default nearly exact (measured cases only).
        energy: By default not asked for.
        failure: By default one that fits ``status``.
        flags: Flags as they would be stored; none are computed here.
    """
    case = make_case() if case is None else case
    measured = status == "measured"
    if measurements is None:
        measurements = [
            make_measurement(
                draw_durations(count, median_ns=median_ns, spread=spread, seed=seed * 100 + worker),
                worker=worker,
                yardstick=turns[worker] if turns else None,
            )
            for worker in range(workers if measured else 0)
        ]
    if measured and placement is None:
        placement = make_placement(case.provider.name)
    if measured and accuracy is None:
        accuracy = make_accuracy()
    if not measured and failure is None:
        failure = make_failure(status)
    return CaseResult(
        case=case,
        status=status,
        measurements=tuple(measurements),
        placement=placement,
        accuracy=accuracy,
        energy=energy,
        failure=failure,
        flags=tuple(flags),
        started_at="2026-01-02T03:04:05Z",
        wall_s=8.0 if measured else 0.5,
    )


def make_engine_result(
    *,
    alias: str = "tract",
    title: str = "tract",
    role: str = "engine",
    device: str = "",
    case: Case | None = None,
    compile_ns: int | None = 40_000_000,
    compiled_bytes: int | None = 9_000_000,
    startup: Mapping[str, int] | None = None,
    memory: Memory | None = None,
    **changes: Any,
) -> CaseResult:
    """A result of an engine or framework, which has no placement and no version of ONNX Runtime.

    Args:
        alias: Of the engine; also ``title``, ``role`` and ``device``.
        case: What to run there; by default ``make_case()``.
        compile_ns: What compiling took; ``None`` for one that compiles nothing ahead.
        compiled_bytes: What came of it.
        startup: Other parts of the start that differ from those of ``make_measurement``.
        memory: Of each worker; by default that of ``make_memory``.
        changes: As of ``make_result``.
    """
    asked = replace(
        make_case() if case is None else case,
        provider=Provider(alias=alias, name=title, device=device, role=role),
    )
    result = make_result(case=asked, **changes)
    info = replace(
        make_runtime_info(), version="", distributions={}, engine=alias, engine_version="0.23.9"
    )
    measurements = tuple(
        replace(
            measurement,
            runtime=info,
            startup=replace(
                measurement.startup,
                compile_ns=compile_ns,
                compiled_bytes=compiled_bytes,
                **(startup or {}),
            ),
            memory=measurement.memory if memory is None else memory,
        )
        for measurement in result.measurements
    )
    return replace(result, measurements=measurements, placement=None)


def make_machine(host: str = "bench-1", *, cpu: str = "Example CPU 3000") -> Machine:
    """A machine of two CPUs."""
    return Machine(
        host=host,
        stable={"cpu_model": cpu, "cpus": "2", "memory": "8 GB"},
        volatile={"load_1min": "0.10"},
    )


def make_run(
    results: Sequence[CaseResult] | None = None,
    *,
    run_id: str = "20260102T030405Z-bench-1-0a1b",
    machine: Machine | None = None,
    finished: bool = True,
    skips: Sequence[Skip] = (),
) -> Run:
    """A run of the given results; by default two providers, one with a failure."""
    if results is None:
        results = [
            make_result(),
            make_result(case=make_case(provider="openvino"), median_ns=1_800_000, seed=1),
            make_result(case=make_case(provider="cuda"), status="unavailable"),
        ]
    return Run(
        run_id=run_id,
        ortbench_version="0.1.0",
        started_at="2026-01-02T03:04:05Z",
        finished_at="2026-01-02T03:05:05Z" if finished else None,
        command=("pytest", "--ort-providers=all"),
        options={"--ort-providers": "all"},
        machine=make_machine() if machine is None else machine,
        commit=Commit(revision="0123456789abcdef", branch="main"),
        runtimes={"current": make_runtime_info()},
        cases=tuple(results),
        skips=tuple(skips),
        expected=len(results),
    )
