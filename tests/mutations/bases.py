"""The documents that are changed: every field of every type, and runs with all passes."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

from pytest_ortbench.core.gate import (
    Acceptance,
    ContrastVerdict,
    GateFinding,
    GateResult,
    MetricVerdict,
    PairedLaunch,
)
from pytest_ortbench.core.run import Canary, Run
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.passes.processes.facts import OneOfSeveral, ProcessPoint
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.stages.facts import Stages, StageWorker
from pytest_ortbench.passes.startup.facts import ShapeStart, StartTrial, StartUps
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.schema.document import encode_run
from tests.cli.test_stored_services import run_of
from tests.mutations.mutator import mutated
from tests.passes.endurance.test_numbers import FOUND
from tests.passes.profile.profiled_runs import profiled
from tests.report.fleet_views import with_energy
from tests.results_factory import (
    draw_durations,
    make_case,
    make_engine_result,
    make_failure,
    make_model,
    make_result,
    make_run,
    make_samples,
    make_turns,
)
from tests.schema.full_run import RUN

EXAMPLE = Path(__file__).parents[2] / "results" / "example" / "run.json"


@cache
def bases() -> tuple[dict[str, Any], ...]:
    """Plain documents to start from."""
    runs = (RUN, everything(), beside_engines(), run_of("desk", FOUND))
    plain = [json.loads(encode_run(run)) for run in runs]
    example = json.loads(EXAMPLE.read_bytes())
    example["cases"] = example["cases"][:3]
    return (*plain, example)


def changed_document(seed: int) -> tuple[bytes, str]:
    """Return one of the documents, changed, and what was changed."""
    documents = bases()
    return mutated(documents[seed % len(documents)], seed)


def good() -> Run:
    """A run beside which a changed one is read."""
    return dataclasses.replace(everything(), run_id="20260101T000000Z-good-0001")


@cache
def beside_engines() -> Run:
    """A run of a provider, an engine and a framework."""
    source = Source(path="/net.py", function="build", framework="torch", files=("/net.py",))
    case = make_case(model=dataclasses.replace(make_model("net"), exported_from=source))
    framework = make_engine_result(
        alias="torch", title="PyTorch", role="framework", case=case, compile_ns=None,
        compiled_bytes=None, startup={"build_ns": 300_000_000},
    )  # fmt: skip
    return make_run([make_result(case=case), make_engine_result(case=case), framework])


@cache
def everything() -> Run:
    """A run in which every pass was made, and which was compared with another one."""
    turns = [make_turns(rounds=3, seed=worker) for worker in range(3)]
    plain = make_result(case=make_case(model="net"), turns=turns)
    every = dataclasses.replace(
        with_energy(profiled(plain), 40.0),
        soak=Soak(
            seconds=20.0, inferences=400, at=tuple(range(0, 400, 20)),
            resident_bytes=tuple(60_000_000 + 100 * i for i in range(20)), source="statm",
        ),
        loads=(_load(),),
        processes=(
            ProcessPoint(asked=1, processes=(_one_process(1),), threads=1),
            ProcessPoint(asked=2, processes=(_one_process(2), _one_process(3)), threads=1),
        ),
        start_ups=_start_ups(),
        stages=_stages(),
        task=TaskAccuracy(
            dataset="digits.npz", metric="top-1 of 'y'", samples=100, score_sum=96.0, largest=1.0,
            reference="fp32", reference_sum=97.0, difference_squares=3.0, better=1, worse=2,
        ),
    )  # fmt: skip
    batches = [make_result(case=make_case(model="net", batch=size), seed=size) for size in (2, 4)]
    case = make_case(model="net", provider="cuda")
    failed = make_result(case=case, status="crash", failure=make_failure())
    run = make_run([every, *batches, failed])
    return dataclasses.replace(
        run,
        canary=Canary(model="builtin:mlp@1", durations_ns=draw_durations(200, median_ns=100_000)),
        gate=(_gate(every.case.case_id),),
        expected=4,
    )


def _one_process(seed: int) -> OneOfSeveral:
    return OneOfSeveral(samples=make_samples(draw_durations(100, seed=seed)), peak_bytes=5 * 10**7)


def _load() -> Load:
    latencies = draw_durations(300, median_ns=5_000_000)
    test = LoadTest(
        rate_per_s=100.0, least_s=3.0, least_queries=100, most_outstanding=1000, valid=True,
        queries=300, requests=300, late=3, duration_s=3.0, scheduled_per_s=100.0,
        completed_per_s=99.5, min_ns=min(latencies), max_ns=max(latencies),
        mean_ns=sum(latencies) // 300, latencies_ns=latencies,
        percentiles_ns={"50": sorted(latencies)[150], "90": sorted(latencies)[270],
                        "99": sorted(latencies)[297]},
        seeds={"qsl": "12345678901234567890"}, version="6.0",
    )  # fmt: skip
    spec = LoadSpec(
        text="server:100:20ms", scenario="server", percent=99.0, rate_per_s=100.0, latency_s=0.02
    )
    return Load(spec=spec, tests=(test,), answer=0, threads=1, capacity_per_s=330.0)


def _start_ups() -> StartUps:
    shape = ShapeStart(label="b8", first_ns=9_000_000, again_ns=8_000_000)
    return StartUps(
        trials=tuple(
            StartTrial(
                page_cache=cache_state, resident=0.0 if cache_state == "cold" else 1.0,
                import_ns=90_000_000 + trial, session_create_ns=20_000_000 + trial,
                first_inference_ns=4_000_000, again_ns=3_000_000, shapes=(shape,),
            )
            for cache_state in ("cold", "warm")
            for trial in range(3)
        )
    )  # fmt: skip


def _stages() -> Stages:
    frame, inference = (draw_durations(100, median_ns=size) for size in (5_000_000, 3_000_000))
    worker = StageWorker(
        frame=make_samples(frame), inference=make_samples(inference),
        preprocess=make_samples(draw_durations(100, median_ns=1_000_000)),
        overlapped=90, overlapped_ns=400_000_000,
    )  # fmt: skip
    functions = ("frames", "preprocess")
    return Stages(
        file="stages.py", digest="ab" * 32, functions=functions, frames=4, workers=(worker,)
    )


def _gate(case_id: str) -> GateResult:
    launch = PairedLaunch(
        seed=7, iterations=20, warm_up_runs=10,
        baseline_min_ns=(1_000_000,) * 8, contender_min_ns=(1_060_000,) * 8,
        baseline_median_ns=(1_010_000.0,) * 8, contender_median_ns=(1_070_000.0,) * 8,
        baseline_core_ratio=(1.0,) * 8, contender_core_ratio=(1.0,) * 8,
        baseline_peak_bytes=50_000_000, contender_peak_bytes=50_100_000,
        steal_ratio=0.0, throttled_ns=0, wall_s=2.0,
    )  # fmt: skip
    contrast = ContrastVerdict(
        statistic="floor", verdict="slower", effect=0.06, low=0.05, high=0.07, margin=0.03,
        p=0.004, launches=8, detectable=0.01,
    )  # fmt: skip
    accepted = Acceptance(state="accepted", case="net*", metric="latency", reason="a new kernel")
    return GateResult(
        case_id=case_id, runtime="current", baseline="model:old.onnx", verdict="slower",
        decided_by="floor", contrasts=(contrast,),
        metrics=(MetricVerdict(metric="peak_rss", verdict="same", baseline=5e7, contender=5.01e7,
                               allowed="+2 % or +1 MiB, whichever is more"),),
        launches=(launch,) * 8, confirmation=(launch,) * 5, confirmed=contrast,
        failures=("latency is 6 % worse",),
        findings=(GateFinding(about="latency", text="latency is 6 % worse", worse_by=0.06,
                              slack=0.01, acceptance=accepted),),
        wall_s=30.0,
    )  # fmt: skip
