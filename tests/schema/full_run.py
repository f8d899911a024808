"""A run in which every field of every type holds something, for the golden document."""

from __future__ import annotations

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
    CaseResult,
    Failure,
    Flag,
    Measurement,
    Memory,
    OrderStatistic,
    OutputAccuracy,
    OutputCheck,
    Placement,
    RuntimeInfo,
    Samples,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.run import Canary, Commit, Machine, Run, Skip
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow

IDS = ValueHint(kind="integers", low=0, high=9, why="Gather(table, axis 0 of size 10)")

MODEL = Model(
    name="tagger",
    path="/models/tagger.onnx",
    source="file",
    digest="5e" * 32,
    size_bytes=123_456,
    external_files=("weights.bin",),
    ir_version=8,
    opsets={"ai.onnx": 17, "ai.onnx.ml": 3},
    inputs=(
        TensorInfo(name="ids", type="tensor(int64)", shape=("batch", "seq"), hint=IDS),
        TensorInfo(name="x", type="tensor(float)", shape=(None, 3), optional=True),
        TensorInfo(name="anything", type="seq(tensor(float))", shape=None),
    ),
    outputs=(TensorInfo(name="y", type="tensor(float)", shape=("batch", 10)),),
    parameters=30_000,
    nodes=7,
    op_types={"Gather": 1, "MatMul": 2, "ai.onnx.ml::LabelEncoder": 1},
    default_dims={"seq": 128},
    random_ops=("Dropout",),
    notes=("optimised offline: tied to the machine that did it",),
)

CASE = Case(
    model=MODEL,
    variant=Variant(
        precision="fp16",
        path="/cache/tagger-fp16.onnx",
        digest="16" * 32,
        size_bytes=61_728,
        recipe={"tool": "onnxruntime.transformers.float16", "keep_io_types": "true"},
    ),
    provider=Provider(
        alias="cuda",
        name="CUDAExecutionProvider",
        device="1",
        options={"cudnn_conv_algo_search": "HEURISTIC"},
        library="/opt/libprovider.so",
        named=False,
    ),
    runtime=Runtime(
        label="onnxruntime-1.30.0",
        command=("/runtimes/a/bin/python",),
        environment={"OMP_NUM_THREADS": "2"},
        isolated=True,
        requirements=("onnxruntime==1.30.0",),
        shares_files=False,
    ),
    session=SessionConfig(
        intra_op_num_threads=2,
        inter_op_num_threads=1,
        graph_optimization_level="extended",
        execution_mode="parallel",
        enable_mem_pattern=True,
        enable_cpu_mem_arena=False,
        entries={"session.intra_op.allow_spinning": "0"},
        custom_ops=("/opt/libops.so",),
    ),
    batch=8,
    dims={"seq": 128},
    knobs={"threads": "2"},
    inputs=(
        InputSpec(
            name="ids",
            type="tensor(int64)",
            shape=(8, 128),
            hint=IDS,
            path="/data/ids.npz",
            member="ids",
            resolved=(
                SymbolSize(symbol="batch", size=8, origin="batch", how="--ort-batch-sizes"),
                SymbolSize(symbol="seq", size=128, origin="catalogue", how="catalogue"),
            ),
        ),
        InputSpec(
            name="mode",
            type="tensor(string)",
            shape=(),
            hint=ValueHint(kind="choice", choices=("cat", "dog")),
        ),
    ),
    io="device",
    sampling=Sampling(
        time_s=2.5, target=0.02, workers=2, min_samples=368, timeout_s=60.0, keep=1000
    ),
    seed=7,
)

RUNTIME = RuntimeInfo(
    distributions={"onnxruntime": "1.30.0"},
    version="1.30.0",
    python="3.11.9",
    numpy="2.1.0",
    executable="/runtimes/a/bin/python",
    available_providers=("CUDAExecutionProvider", "CPUExecutionProvider"),
    plugin_providers=("QNNExecutionProvider",),
    build="git-branch=rel-1.30.0, build type=Release",
    pid=4242,
)

MEASUREMENT = Measurement(
    worker=0,
    runtime=RUNTIME,
    startup=Startup(
        import_ns=90_000_000,
        session_create_ns=25_000_000,
        first_inference_ns=3_000_000,
        cache="cold",
    ),
    warm_up=WarmUp(
        durations_ns=(1_300_000, 1_100_000, 1_010_000),
        count=3,
        total_ns=3_410_000,
        steady=True,
        rule="no trend over 20, windows of 10 agree within 3 %",
    ),
    samples=Samples(
        count=6,
        sum_ns=6_060_000,
        sum_of_squares_s2=6.1214e-06,
        min_ns=1_000_000,
        max_ns=1_030_000,
        durations_ns=(1_000_000, 1_010_000, 1_030_000),
        stride=2,
        order_statistics=(
            OrderStatistic(percent=50, value_ns=1_010_000, low_ns=1_000_000, high_ns=1_030_000),
            OrderStatistic(percent=99.9, value_ns=1_030_000),
        ),
        thirds_ns=(1_000_000, 1_010_000, 5_000),
        wall_ns=6_100_000,
        cpu_ns=12_000_000,
        blocks=2,
        starved_blocks=1,
        steal_ratio=0.0125,
        throttled_ns=0,
        clock_pair_ns=101,
    ),
    memory=Memory(
        source="VmHWM after clear_refs",
        baseline_bytes=60_000_000,
        session_bytes=1_000_000,
        after_session_bytes=900_000,
        peak_bytes=2_000_000,
        after_runs_bytes=1_900_000,
        process_peak_bytes=62_000_000,
        device_bytes=300_000_000,
        device_source="rise of the device, no process of ours visible",
    ),
    threads=2,
    threads_source="option",
    cpus=2,
    options_in_force={"device_id": "1"},
    output_checks=(OutputCheck(run="first", nonfinite=0, constant=False, digest="ab" * 16),),
    stop="target",
    overhead_ns=400_000_000,
)

MEASURED = CaseResult(
    case=CASE,
    status="measured",
    measurements=(MEASUREMENT,),
    placement=Placement(
        provider="CUDAExecutionProvider",
        executed={"CUDAExecutionProvider": 6, "CPUExecutionProvider": 1},
        shape_only={"CPUExecutionProvider": 2},
        time_ns={"CUDAExecutionProvider": 900_000, "CPUExecutionProvider": 20_000},
        partitions=1,
        ops_elsewhere={"ai.onnx.ml::LabelEncoder": 1},
        copies=2,
        precision_executed="float16",
        nodes_on_provider=6,
        nodes_total=7,
        witness="agrees",
        session_providers=("CUDAExecutionProvider", "CPUExecutionProvider"),
    ),
    accuracy=Accuracy(
        reference="fp32 on CPUExecutionProvider, no optimisation",
        samples=8,
        magnitudes=(0.1, 1.0, 10.0),
        outputs=(
            OutputAccuracy(
                name="y",
                kind="class",
                finite=True,
                nan_count=0,
                inf_count=0,
                max_abs=0.003,
                max_rel=0.001,
                cosine=0.99999,
                sqnr_db=61.5,
                exact=False,
                agree=64,
                rows=64,
            ),
        ),
        repeatable=True,
        repeat_note="differs in the last bit",
    ),
    energy=Energy(
        windows=(
            EnergyWindow(
                source="nvml energy counter",
                device="GPU-1234",
                duration_ns=5_000_000_000,
                inferences=4_900,
                energy_j=350.5,
                idle_w=15.25,
                counter_j=350.5,
                integral_j=349.0,
            ),
        ),
    ),
    flags=(Flag(name="PARTIAL", detail="1 of 7 nodes on cpu"),),
    started_at="2026-03-04T05:06:07Z",
    wall_s=9.75,
)

CRASHED = CaseResult(
    case=Case(
        model=MODEL,
        variant=Variant(
            precision="native", path=MODEL.path, digest=MODEL.digest, size_bytes=MODEL.size_bytes
        ),
        provider=Provider(alias="cpu", name="CPUExecutionProvider"),
    ),
    status="crash",
    accuracy=Accuracy(reason="the worker died first"),
    energy=Energy(reason="no counter here"),
    failure=Failure(
        kind="crash",
        phase="measure",
        message="the worker was ended by SIGSEGV",
        hint="Try another version of ONNX Runtime",
        exit_code=-11,
        signal="SIGSEGV",
        log_tail="Segmentation fault\n",
        tells_signal=True,
    ),
    started_at="2026-03-04T05:06:17Z",
    wall_s=0.5,
)

RUN = Run(
    run_id="20260304T050600Z-lab-1-0a1b",
    ortbench_version="0.1.0",
    started_at="2026-03-04T05:06:00Z",
    finished_at="2026-03-04T05:06:20Z",
    command=("pytest", "tagger.onnx", "--ort-providers=cpu,cuda:1"),
    options={"ort_time": "2.5"},
    machine=Machine(
        host="lab-1",
        stable={"cpu": "AMD EPYC 9B14", "cores": "2"},
        volatile={"load": "0.10", "governor": "performance"},
    ),
    commit=Commit(revision="c0" * 20, branch="main", dirty=True),
    runtimes={"onnxruntime-1.30.0": RUNTIME},
    canary=Canary(
        model="builtin:mlp@1", durations_ns=(100_000, 101_000), reason="stopped after two"
    ),
    cases=(MEASURED, CRASHED),
    skips=(
        Skip(what="azure", reason="it takes no node", runtime="onnxruntime-1.30.0"),
        Skip(what="tagger × int4", reason="no MatMul with constant weights"),
    ),
    expected=2,
    plan="f1" * 16,
)
