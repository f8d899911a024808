"""Runs that look like real ones, from seeded draws: the input of every test of the reports."""

from __future__ import annotations

import dataclasses
import math
import random
from functools import cache

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import CaseResult, Failure, Flag, Measurement, WarmUp
from pytest_ortbench.core.run import Run, Skip
from tests import results_factory as factory

SPEED = {
    "cpu": 1.0,
    "openvino": 0.6,
    "cuda": 0.12,
    "tensorrt": 0.07,
    "xnnpack": 0.9,
    "dnnl": 0.8,
}

#: A name that tries everything: markup of HTML, Markdown, rich, templates and terminals, and a
#: formula.
HOSTILE = "=<script>alert(1)</script>|`[bold]x[/bold]\x1b[31m\u202e\r\n\"'&{{7*7}}$x$"

FAILURES = {
    "unavailable": Failure(
        kind="unavailable",
        phase="session",
        message="libcudnn.so.9 can't be loaded (cuDNN 9, for CUDA 12)",
        hint="Install 'onnxruntime-gpu[cuda,cudnn]'",
        log_tail="[E:onnxruntime] Failed to load libonnxruntime_providers_cuda.so:\n"
        "\tlibcudnn.so.9: cannot open shared object file\n",
    ),
    "unsupported": Failure(
        kind="unsupported",
        phase="first",
        message="Got invalid dimensions for input: input index: 0 Got: 4 Expected: 1",
        hint="The model fixes its batch to 1",
    ),
    "crash": Failure(
        kind="crash",
        phase="measure",
        message="the worker died",
        signal="SIGSEGV",
        log_tail="munmap_chunk(): invalid pointer\n",
    ),
    "timeout": Failure(kind="timeout", phase="session", message="no answer for 300 s"),
    "fallback": Failure(
        kind="fallback",
        phase="profile",
        message="all 60 computing nodes ran on CPUExecutionProvider",
    ),
}

SKIPS = (
    Skip(what="azure", reason="takes no node of a local model"),
    Skip(what="gbdt × fp16", reason="tree ensembles have no half-precision kernels"),
)


def draw_ns(rng: random.Random, median_s: float, count: int, *, tail: float = 0.02) -> list[int]:
    """Log-normal durations with a few slow ones, as on a shared machine."""
    return [
        int(
            median_s
            * 1e9
            * math.exp(rng.gauss(0, 0.015))
            * (1 + (rng.expovariate(3) if rng.random() < tail else 0))
        )
        for _ in range(count)
    ]


@cache
def _measurements(
    key: tuple[str, ...], size_bytes: int, workers: int, median_s: float, count: int
) -> tuple[Measurement, ...]:
    """Measurements of a case by its key, drawn once for all tests."""
    rng = random.Random("/".join(key))
    return tuple(
        _measurement(size_bytes, worker, rng, median_s, count) for worker in range(workers)
    )


def _measurement(
    size_bytes: int, worker: int, rng: random.Random, median_s: float, count: int
) -> Measurement:
    warm = [
        int(duration * (1 + 1.5 * math.exp(-index / 3)))
        for index, duration in enumerate(draw_ns(rng, median_s, 30))
    ]
    median_s *= math.exp(rng.gauss(0, 0.006))
    made = factory.make_measurement(
        draw_ns(rng, median_s, count),
        worker=worker,
        memory=factory.make_memory(peak_bytes=int(size_bytes * 2.5) + 25_000_000, worker=worker),
    )
    startup = dataclasses.replace(
        made.startup,
        session_create_ns=40_000_000 + size_bytes * 2 + rng.randrange(2_000_000),
        first_inference_ns=int(median_s * 2.2e9),
    )
    warm_up = WarmUp(
        durations_ns=tuple(warm),
        count=len(warm),
        total_ns=sum(warm),
        steady=True,
        rule="no trend over 20, windows of 10 agree within 3 %",
    )
    return dataclasses.replace(made, startup=startup, warm_up=warm_up)


def measured(
    of: Case,
    median_s: float,
    *,
    count: int = 400,
    flags: tuple[Flag, ...] = (),
    sqnr_db: float | None = 96.3,
    elsewhere: dict[str, int] | None = None,
) -> CaseResult:
    """A measured case, its workers' medians within about a percent of each other."""
    workers, size_bytes = of.sampling.workers, of.variant.size_bytes
    return factory.make_result(
        case=of,
        measurements=_measurements(of.key, size_bytes, workers, median_s, count),
        placement=factory.make_placement(of.provider.name, elsewhere=elsewhere),
        accuracy=factory.make_accuracy(sqnr_db=sqnr_db),
        flags=flags,
    )


def failed(of: Case, kind: str = "unavailable") -> CaseResult:
    """A case without a number, with a message as the product would give it."""
    return factory.make_result(case=of, status=kind, failure=FAILURES[kind])


def case(
    model: str | Model = "mobilenet_v2",
    precision: str = "native",
    provider: str = "cpu",
    batch: int = 1,
    *,
    seq: int = 0,
    runtime: str = "current",
    inputs_file: str = "",
) -> Case:
    """A case whose file is as small as its precision makes it."""
    of = factory.make_model(model) if isinstance(model, str) else model
    share = {"fp16": 0.5, "int8-dynamic": 0.26, "int8-static": 0.26}.get(precision, 1.0)
    return factory.make_case(
        model=of,
        precision=precision,
        provider=provider,
        batch=batch,
        dims={"seq": seq} if seq else None,
        runtime=runtime,
        inputs_file=inputs_file,
        variant_bytes=int(of.size_bytes * share),
    )


@cache
def one_case() -> Run:
    """The smallest run with a number."""
    return factory.make_run([measured(case(), 0.0123)])


@cache
def ten_cases() -> Run:
    """Two models, three providers, precisions, batches; failures, flags and skips."""
    tagger = factory.make_model("lstm_tagger", size_bytes=1_200_000)
    return factory.make_run(
        [
            measured(case(), 0.0123),
            measured(case(batch=8), 0.081, count=90),
            measured(case(precision="fp16"), 0.0171, flags=(Flag(name="EMULATED"),)),
            measured(
                case(precision="int8-static"),
                0.0061,
                sqnr_db=22.4,
                flags=(Flag(name="SPREAD", detail="7.9 % between workers"),),
            ),
            measured(
                case(provider="openvino"),
                0.0079,
                elsewhere={"ai.onnx.ml::LabelEncoder": 3, "ArgMax": 1},
                flags=(Flag(name="PARTIAL"),),
            ),
            failed(case(provider="cuda")),
            failed(case(provider="cuda", batch=8)),
            measured(case(tagger, seq=128), 0.00061, count=1200, sqnr_db=None),
            measured(
                case(tagger, provider="openvino", seq=128),
                0.00058,
                count=1200,
                sqnr_db=8.0,
                flags=(Flag(name="INACCURATE", detail="8.0 dB, floor 60 dB"),),
            ),
            failed(case(tagger, seq=128, batch=8), "unsupported"),
        ],
        skips=SKIPS,
    )


@cache
def hostile() -> Run:
    """One measured and one failed case whose every foreign text is :data:`HOSTILE`."""
    of = case(factory.make_model(HOSTILE))
    failure = dataclasses.replace(
        FAILURES["crash"], message=HOSTILE, hint=HOSTILE, log_tail=HOSTILE
    )
    result = measured(of, 0.01, elsewhere={HOSTILE: 1})
    return factory.make_run(
        [
            dataclasses.replace(result, case=dataclasses.replace(of, dims={HOSTILE: 3})),
            factory.make_result(
                case=dataclasses.replace(of, knobs={HOSTILE: HOSTILE}),
                status="crash",
                failure=failure,
            ),
        ],
        machine=factory.make_machine(HOSTILE, cpu=HOSTILE),
        skips=(Skip(what=HOSTILE, reason=HOSTILE),),
    )


def many_cases(count: int, *, samples: int = 100, workers: int = 3) -> Run:
    """``count`` cases over models, precisions, providers, batches; every 17th one fails."""
    kinds = list(FAILURES)
    factors = {"native": 1.0, "fp16": 0.7, "int8-dynamic": 0.55, "int8-static": 0.45}
    batches = (1, 2, 4, 8, 16)
    per_model = len(factors) * len(batches) * len(SPEED)
    results: list[CaseResult] = []
    for index in range(count):
        number, within = divmod(index, per_model)
        provider = list(SPEED)[within % len(SPEED)]
        precision = list(factors)[within // len(SPEED) % len(factors)]
        batch = batches[within // len(SPEED) // len(factors)]
        size = 3_000_000 * (1 + number % 7)
        of = case(
            factory.make_model(f"network_{number:02d}", size_bytes=size),
            precision,
            provider,
            batch,
        )
        of = dataclasses.replace(of, sampling=Sampling(workers=workers))
        median_s = 0.004 * (1 + number % 5) * (0.6 + 0.4 * batch)
        median_s *= SPEED[provider] * factors[precision]
        flags = (Flag(name="UNSTEADY"),) if index % 23 == 5 else ()
        results.append(
            failed(of, kinds[index // 17 % len(kinds)])
            if index % 17 == 3
            else measured(of, median_s, count=samples, flags=flags)
        )
    return factory.make_run(results, skips=SKIPS)


@cache
def three_hundred_cases() -> Run:
    """More than a figure can show."""
    return many_cases(300, samples=40)
