"""What a comparison keeps of a run: fifty documents must fit into memory, their samples don't."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from pytest_ortbench.analysis.answers import ModelAnswer, answers
from pytest_ortbench.analysis.judgements import barring_words, flag_names
from pytest_ortbench.analysis.proof import Proof, needed_proof
from pytest_ortbench.analysis.relative_latency import (
    NoRelativeLatency,
    RelativeLatency,
    relative_latency,
)
from pytest_ortbench.analysis.scaling import total_threads
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.case import ROLES, WORKLOAD_KNOBS, Case, role_note
from pytest_ortbench.core.flags import ONE_WORKER
from pytest_ortbench.core.ids import model_part
from pytest_ortbench.core.outcome import CaseResult, RuntimeInfo
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.samples import Samples
from pytest_ortbench.passes.registry import PASSES

#: Points that stand for the distribution of a case's durations.
SERVICE_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRate:
    """A rate of random arrivals that MLPerf's load generator called VALID.

    Attributes:
        rate_per_s: Requests a second that arrived.
        beyond_per_s: The lowest rate above it that was INVALID; ``None`` if none was searched for.
        percent: Percentile that kept the bound.
        latency_s: The bound.
        searched: Whether it is the highest such rate, not just one that was tried.
    """

    rate_per_s: float
    beyond_per_s: float | None
    percent: float
    latency_s: float
    searched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakSearch:
    """What a search for the highest rate of arrival that keeps a limit would take.

    Attributes:
        percent: Percentile of the limit.
        takes_s: Seconds at the measured throughput.
        most_s: Seconds at the lower end of its interval.
    """

    percent: float
    takes_s: float
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPoint:
    """A case in several processes at a time.

    Attributes:
        processes: How many ran at a time.
        threads: Threads that compute, in all of them.
        rate_per_s: Items a second of all together.
        service_s: Equally likely durations of one call while all ran, in seconds, ascending.
        latency_s: Median of the processes' median latencies, as the run tells it.
    """

    processes: int
    threads: int
    rate_per_s: float
    service_s: tuple[float, ...]
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFacts:
    """One case of one run, without its samples.

    Attributes:
        case_id: Full id.
        model: Name of the model.
        precision: Its precision.
        provider: Alias and device, as in ids.
        role: What ``provider`` names, one of :data:`~pytest_ortbench.core.case.ROLES`;
            empty where the parts of a mix differ.
        runtime: Label of the runtime.
        batch: Batch size.
        dims: Sizes of symbolic dimensions that the user set.
        knobs: Further axes that the user set.
        io: ``end-to-end`` or ``device``.
        inputs: What is fed: names, sizes and seed. Cases that differ here are not comparable.
        digest: Digest of the model's files.
        quantities: Numbers by name of the metric, in SI units.
        reason: Why it has no number or must not be ranked; empty if it may.
        power: Power under load; ``None`` if not measured.
        power_reason: Why its power and energy must not be ranked; empty if they may.
        blurred_by: Flags that make gaps inside the intervals ties.
        one_worker: Whether all samples are of one process: small gaps are ties then, and no larger
            one recommends anything.
        service_s: Equally likely durations of one call in seconds, ascending; empty if not asked.
        idle_w: Idle power of the device before the load; ``None`` if not measured.
        served: Rates of arrival that it was seen to serve.
        served_at_most: Rate of arrival that it can't serve in time, of a mix whose models were put
            under load alone; ``None`` if unknown.
        callers: Inferences in flight at a time, over all sessions of a process.
        processes: Processes at a time that its numbers are of.
        threads: Threads that compute at a time, over all processes; 0 if unknown.
        cpus: CPUs that a process may use on its machine; 0 if unknown.
        parallel: Numbers of processes at a time that were measured beside.
        variant: How it does its work, where precision, provider and settings do not say it.
        kinds: Service times of each kind of request, where there are several; all must be in time.
        drawn_inputs: Whether the verdict on its answers rests on random inputs alone.
        needs: What it needs before it may be preferred to another precision: real inputs or
            labels; ``None`` for nothing.
        on_calibration: Whether it was compared on the inputs that it was calibrated on.
        relative: Its latency against a yardstick; ``None`` where there is none.
        software: Programs that computed in the place of its device; empty for hardware.
        noted: Flags of its numbers that only inform.
        model_file: The model's file, without its folder; empty where no file was named.
        model_bytes: Size of that file and of its external data; 0 if unknown.
        shapes: Sizes of each input, by its name.
        drawn_values: Whether values of an input were drawn at random.
        workers: Worker processes that measured it, one after the other.
        time_s: Seconds that its workers were given together; 0 if unknown.
        searches: What searches for the peak of its load would take, by percentile.
    """

    case_id: str
    model: str
    precision: str
    provider: str
    role: str = ROLES[0]
    runtime: str
    batch: int
    dims: tuple[tuple[str, int], ...] = ()
    knobs: tuple[tuple[str, str], ...] = ()
    io: str = "end-to-end"
    inputs: str = ""
    digest: str = ""
    quantities: dict[str, Quantity] = field(default_factory=dict)
    reason: str = ""
    power: Quantity | None = None
    power_reason: str = ""
    blurred_by: tuple[str, ...] = ()
    one_worker: bool = False
    service_s: tuple[float, ...] = ()
    idle_w: float | None = None
    served: tuple[ServedRate, ...] = ()
    served_at_most: float | None = None
    callers: int = 1
    processes: int = 1
    threads: int = 0
    cpus: int = 0
    parallel: tuple[ParallelPoint, ...] = ()
    variant: str = ""
    kinds: tuple[tuple[float, ...], ...] = ()
    drawn_inputs: bool = False
    needs: Proof | None = None
    on_calibration: bool = False
    relative: RelativeLatency | None = None
    software: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    model_file: str = ""
    model_bytes: int = 0
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    drawn_values: bool = False
    workers: int = 0
    time_s: float = 0.0
    searches: tuple[PeakSearch, ...] = ()

    @property
    def role_note(self) -> str:
        """What stands behind its name for people; nothing for several roles together."""
        return role_note(self.role) if self.role else ""

    @property
    def request(self) -> tuple[object, ...]:
        """What one call asks for: the workload without how many callers there are."""
        return (
            self.model,
            self.batch,
            tuple(sorted(self.dims)),
            self.io,
            dict(self.knobs).get("workload", ""),
        )

    @property
    def workload(self) -> tuple[object, ...]:
        """What must agree for two cases to do the same work: all but how it is done."""
        knobs = dict(self.knobs)
        return (
            self.model,
            self.batch,
            tuple(sorted(self.dims)),
            self.io,
            *(knobs.get(name, "") for name in WORKLOAD_KNOBS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run, without its samples.

    Attributes:
        run_id: Its id.
        host: What its machine is called: by the user, else by its host name.
        started_at: UTC, ISO 8601.
        machine: Stable facts of the machine.
        runtimes: By label, what the runtime is: ``onnxruntime 1.32.0``.
        devices: Names of the GPUs that a runtime saw.
        commit: Abbreviated revision, empty if unknown.
        canary_s: Median of the canary in seconds; ``None`` if it was not measured.
        cases: Its cases.
        answers: Which variant to use, for each model: what the run's own report says.
        failed_checks: Lines of its certificates that failed: ``cuda: energy``.
        own_host: Host name of its machine, whatever the user calls it.
    """

    run_id: str
    host: str
    started_at: str
    machine: dict[str, str] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    commit: str = ""
    canary_s: float | None = None
    cases: tuple[CaseFacts, ...] = ()
    answers: tuple[ModelAnswer, ...] = ()
    failed_checks: tuple[str, ...] = ()
    own_host: str = ""


def reduce_run(
    run: Run,
    summaries: Sequence[Summary] | None = None,
    *,
    percentiles: bool = False,
    service: bool = False,
) -> RunFacts:
    """Keep of a run what a comparison needs.

    Args:
        run: Any run.
        summaries: One for each of its cases, in their order, where the caller has them already.
        percentiles: Whether p90, p95 and p99 are wanted, which takes most of the time.
        service: Whether the distribution of durations is wanted (for queueing).
    """
    if summaries is None:
        summaries = [summarise(result, percentiles=percentiles) for result in run.cases]
    canary = run.canary.durations_ns if run.canary else ()
    cpus = _cpus(run.machine.stable)
    return RunFacts(
        run_id=run.run_id,
        host=run.machine.host,
        started_at=run.started_at,
        machine=dict(run.machine.stable),
        runtimes={label: runtime_name(info) for label, info in run.runtimes.items()},
        devices=tuple(
            dict.fromkeys(
                name.partition(",")[0]
                for info in run.runtimes.values()
                for name in info.devices.values()
            )
        ),
        commit=run.commit.revision[:12] if run.commit else "",
        canary_s=median(canary) * 1e-9 if canary else None,
        cases=tuple(
            _case_facts(result, summary, service=service, cpus=cpus)
            for result, summary in zip(run.cases, summaries, strict=True)
        ),
        answers=tuple(answers(run, summaries)),
        failed_checks=tuple(
            f"{certificate.provider}: {line.check}"
            for certificate in run.certificates
            for line in certificate.lines
            if line.verdict == "fail"
        ),
        own_host=run.machine.host,
    )


def called_alike(facts: RunFacts, names: Mapping[str, str]) -> RunFacts:
    """Return a run whose models have the names that another run has for them.

    Args:
        facts: The run.
        names: The other run's names, by those of this one.
    """
    cases = tuple(
        replace(
            case,
            model=names[case.model],
            case_id=model_part(names[case.model])
            + case.case_id.removeprefix(model_part(case.model)),
        )
        for case in facts.cases
    )
    return replace(facts, cases=cases)


def runtime_name(info: RuntimeInfo) -> str:
    """Name a runtime by what is installed in it: ``onnxruntime 1.32.0``."""
    named = " + ".join(f"{name} {version}" for name, version in info.distributions.items())
    return named or (f"onnxruntime {info.version}" if info.version else "without ONNX Runtime")


def _cpus(stable: Mapping[str, str]) -> int:
    """CPUs that a process may use on a machine; 0 where its facts do not say."""
    written = stable.get("cpus_usable") or stable.get("cpus") or ""
    return int(written) if written.isdecimal() else 0


def _case_facts(result: CaseResult, summary: Summary, *, service: bool, cpus: int) -> CaseFacts:
    case = result.case
    of_passes: dict[str, Any] = {}
    for entry in PASSES:
        if entry.for_fleet:
            of_passes |= entry.load(entry.for_fleet)(result, summary)
    shapes = " ".join(f"{spec.name}:{list(spec.shape)}" for spec in case.inputs)
    return CaseFacts(
        case_id=case.case_id,
        model=case.model.name,
        precision=case.variant.precision,
        provider=case.provider.label,
        role=case.provider.role,
        runtime=case.runtime.label,
        batch=case.batch,
        dims=tuple(case.dims.items()),
        knobs=tuple(case.knobs.items()),
        io=case.io,
        inputs=f"{shapes} seed:{case.seed}{_contents(case)}",
        digest=case.model.digest,
        quantities=summary.quantities,
        reason=_why_not(summary),
        blurred_by=flag_names(summary.flags, "blurs"),
        one_worker=ONE_WORKER in flag_names(summary.flags, "notes"),
        service_s=(
            service_times([measurement.samples for measurement in result.measurements])
            if service
            else ()
        ),
        callers=case.callers,
        threads=total_threads(result) if result.measurements else 0,
        cpus=max((measurement.cpus for measurement in result.measurements), default=0) or cpus,
        drawn_inputs=summary.on_drawn_inputs,
        needs=needed_proof(summary),
        on_calibration=case.variant.on_calibration,
        relative=_relative(result),
        software=result.software_devices,
        noted=flag_names(summary.flags, "notes"),
        model_file=case.model.place.rpartition("/")[2],
        model_bytes=case.model.size_bytes,
        shapes=tuple((spec.name, spec.shape) for spec in case.inputs),
        drawn_values=any(spec.is_drawn for spec in case.inputs),
        workers=len(result.measurements),
        time_s=case.sampling.time_s,
        **of_passes,
    )


def _relative(result: CaseResult) -> RelativeLatency | None:
    if result.status != "measured":
        return None
    relative = relative_latency(result)
    return None if isinstance(relative, NoRelativeLatency) else relative


def _contents(case: Case) -> str:
    """What files of inputs held, so that other data is never compared as the same."""
    held = [case.file_contents.get(spec.path, "") for spec in case.inputs if spec.path]
    return f" files:{','.join(dict.fromkeys(held))}" if held else ""


def _why_not(summary: Summary) -> str:
    """Why a case can't be ranked; empty if it can."""
    if summary.status != "measured":
        return summary.missing.get("latency_p50", summary.status)
    barring = flag_names(summary.flags, "bars")
    told = [
        f"{flag.name}: {flag.detail}" if flag.detail else flag.name
        for flag in summary.flags
        if flag.name in barring
    ]
    return "; ".join(told) or barring_words(summary.judgements)


def service_times(workers: Sequence[Samples]) -> tuple[float, ...]:
    """Return equally likely durations of one call in seconds, each worker by what it measured."""
    weighted = [
        (duration, samples.count / len(samples.durations_ns))
        for samples in workers
        for duration in samples.durations_ns
    ]
    return quantiles([value * 1e-9 for value, _ in weighted], [weight for _, weight in weighted])


def quantiles(values: Sequence[float], weights: Sequence[float]) -> tuple[float, ...]:
    """Return at most :data:`SERVICE_POINTS` equally likely points of a weighted sample, ascending.

    Each is the mean of its share of the sample, so that the mean of all stays exact.
    """
    import numpy as np  # only where a queue is asked for

    if not values:
        return ()
    order = np.argsort(values)
    ordered = np.asarray(values, dtype=np.float64)[order]
    weight = np.asarray(weights, dtype=np.float64)[order]
    share = np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])
    total = np.concatenate([[0.0], np.cumsum(weight * ordered) / weight.sum()])
    points = min(SERVICE_POINTS, len(ordered))
    ends = np.interp(np.linspace(0, 1, points + 1), share, total)
    return tuple((np.diff(ends) * points).tolist())
