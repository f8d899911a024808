"""The standard pass of one case: fresh workers, one after the other, then the verdict on the case.

It gives latency, throughput at one caller, start-up, memory, placement and accuracy. What disturbs
those (profiling, comparing) happens in the first worker after its measuring is over; if the
provider then turns out to have run nothing, the other workers are not started.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.analysis.stopping import StopRule
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error, case_failure
from pytest_ortbench.core.outcome import (
    CHANGED_FILE,
    Accuracy,
    Block,
    CaseResult,
    Failure,
    Measurement,
    OutputCheck,
    Placement,
    WarmUp,
)
from pytest_ortbench.core.placement import is_fallback, required
from pytest_ortbench.core.run import Machine
from pytest_ortbench.core.units import counted
from pytest_ortbench.execution.evidence import (
    accuracy_afresh,
    accuracy_of,
    memory_of,
    placement_of,
    product_bits_of,
    with_orders,
)
from pytest_ortbench.execution.own_spread import with_spread
from pytest_ortbench.execution.pace import FixedPace, Pacing
from pytest_ortbench.execution.passes import without
from pytest_ortbench.execution.time_share import TimeShare, cpus_used, typical_ns, usual_ns
from pytest_ortbench.gate.numbers.verdict import SHARED, machine_class
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.fed_sizes import advice_on_empty
from pytest_ortbench.planning.fixed_sizes import needs_sizes, open_sizes
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import CheckOutputs, WarmUpFor
from pytest_ortbench.worker.accuracy import repeatability
from pytest_ortbench.yardstick.choice import absence_of, on_own_cpus
from pytest_ortbench.yardstick.measuring.best_known import with_best
from pytest_ortbench.yardstick.measuring.turns import OfCase, Turns


@dataclass(slots=True)
class _Findings:
    """What the first worker finds out besides its samples."""

    placement: Placement | None = None
    accuracy: Accuracy | None = None
    product_bits: int | None = None
    impossible: dict[str, str] = field(default_factory=dict)


def measure(
    case: Case,
    launcher: Launcher,
    scratch: Path,
    pace: Pacing | None = None,
    *,
    reference_runtime: Runtime | None = None,
) -> CaseResult:
    """Measure one case in fresh workers.

    Args:
        case: What to measure, prepared: its variant's file exists.
        launcher: Starts the workers.
        scratch: Folder for reference outputs, shared by the cases of a run.
        pace: Says how many workers there are, and how long each times; ``None`` takes what the
            case asks for.
        reference_runtime: Where the reference runs; ``None`` takes the case's own runtime.

    Returns:
        The result, with ``failure`` set if a worker failed; it never raises for one. What the
        earlier workers measured stands if a later one comes to the end of the case's time.
    """
    started, started_at = time.monotonic(), datetime.now(timezone.utc)
    findings = _Findings()
    measurements: list[Measurement] = []
    failure: Failure | None = None
    pace = FixedPace(case) if pace is None else pace
    yardstick = OfCase(case, launcher)
    try:
        reference = _reference(_asked(case, reference_runtime), launcher, scratch)
        # From here on: the reference has a limit of its own, and serves other cases, too.
        pace.begin()
        while (turn := pace.next_worker(measurements)) is not None:
            index = len(measurements)
            measurements.append(
                _one_worker(turn.case, launcher, index, turn.share, reference, findings, yardstick)
            )
            failure = _fallback(case, findings.placement)
            if failure is not None:
                break
    except WorkerError as error:
        # Fewer workers than asked for are said by a flag.
        failure = None if error.failure.kind == "timeout" and measurements else error.failure
    finally:
        yardstick.leave()
    if failure is not None and failure.kind == "fallback":
        # Durations of another provider must never stand under this one's name.
        measurements.clear()
    if failure is not None and failure.phase == CHANGED_FILE:
        # Nor those of one file beside another's digest.
        measurements.clear()
        findings = _Findings()
    result = CaseResult(
        case=case,
        status="measured" if failure is None else failure.kind,
        measurements=tuple(measurements),
        placement=findings.placement,
        accuracy=findings.accuracy,
        product_bits=findings.product_bits,
        failure=failure,
        started_at=started_at.isoformat(timespec="seconds"),
        wall_s=time.monotonic() - started,
    )
    for entry in PASSES:
        # Known without the pass, which is spared then. A worker may name anything.
        if entry.name in findings.impossible:
            result = without(result, [entry.name], findings.impossible[entry.name])
    result = with_spread(result, _asked(case, reference_runtime), launcher, scratch)
    return replace(result, flags=flags_of(result))


def _asked(case: Case, runtime: Runtime | None) -> Case:
    """The case whose reference is asked for, in the runtime where that runs."""
    return case if runtime is None else replace(case, runtime=runtime)


def _reference(case: Case, launcher: Launcher, scratch: Path) -> Path | Accuracy:
    """Reference outputs for the case's inputs, or an accuracy that says why there are none."""
    if case.model.random_ops:
        names = ", ".join(case.model.random_ops)
        return Accuracy(reason=f"the graph draws random numbers ({names})")
    if case.model.compiled and case.model.reference is None:
        made_for = ", ".join(part.text for part in case.model.compiled)
        return Accuracy(
            reason=f"the file is compiled for {made_for} and runs nowhere else: name the model "
            "that the file was compiled from as the reference"
        )
    try:
        return launcher.reference(case, scratch)
    except WorkerError as error:
        if error.failure.phase == CHANGED_FILE:
            raise
        # The case itself may still run (and if it doesn't, its own failure tells more).
        return Accuracy(reason=f"no reference: {error.failure.told}")


def _one_worker(
    case: Case,
    launcher: Launcher,
    index: int,
    share: TimeShare,
    reference: Path | Accuracy,
    findings: _Findings,
    yardstick: OfCase,
) -> Measurement:
    began = time.monotonic_ns()
    with closing(launcher.open(case, worker=index, deadline=share.deadline)) as worker:
        opened = worker.opened
        checks = [worker.ask(CheckOutputs(run="first"))]
        _require_work(case, checks[0])
        budget_s = warm_up_budget_s(case, within_s=share.end() - time.monotonic())
        warm_up = worker.ask(WarmUpFor(budget_s=budget_s))
        until = share.timed_until(typical_ns(warm_up), opened.startup, first=index == 0)
        turns = Turns(worker, yardstick, seed=index, absence=absence_of(case, opened))
        turns.begin(typical_ns=usual_ns(warm_up), cpus_used=cpus_used(warm_up))
        blocks, stop = _measure_blocks(worker, turns, case.sampling, warm_up, checks, until)
        checks.append(worker.ask(CheckOutputs(run="last")))
        memory = memory_of(worker)
        if index == 0:
            findings.impossible = opened.impossible
            if case.provider.is_execution_provider:
                findings.placement = placement_of(worker, case)
            released = findings.placement is not None and findings.placement.reason
            findings.accuracy = (
                accuracy_afresh(
                    launcher,
                    case,
                    reference,
                    deadline=share.deadline,
                    left_s=share.deadline - time.monotonic(),
                )
                if released
                else accuracy_of(worker, reference)
            )
            # Last, since an order that nobody asked for may end the process.
            findings.placement = with_orders(worker, case, findings.placement)
            if case.provider.role == "engine" and case.generation is None:
                findings.product_bits = product_bits_of(worker)
            repeatable, note = repeatability(checks)
            findings.accuracy = replace(findings.accuracy, repeatable=repeatable, repeat_note=note)
        samples = reduce_blocks(
            blocks, keep=_kept(case.sampling), clock_pair_ns=opened.clock_pair_ns
        )
        if on_own_cpus(case, opened) and machine_class(_machine()).name == SHARED:
            samples = replace(samples, on_shared_machine=True)
        timed_ns = warm_up.total_ns + samples.wall_ns
        return Measurement(
            worker=index,
            runtime=opened.info,
            startup=opened.startup,
            warm_up=warm_up,
            samples=samples,
            memory=memory,
            threads=opened.threads,
            threads_source=opened.threads_source,
            cpus=opened.cpus,
            options_in_force=opened.options_in_force,
            unconfirmed=opened.unconfirmed,
            output_checks=tuple(checks),
            stop=stop,
            overhead_ns=time.monotonic_ns() - began - timed_ns,
            yardstick=with_best(turns.facts(), samples),
        )


@cache
def _machine() -> Machine:
    """This machine, looked at once: what it is does not change while it is up."""
    return fingerprint()


def _require_work(case: Case, first: OutputCheck) -> None:
    """Refuse to time a model that computes nothing, because of an input that holds nothing.

    What a file holds is timed as it is, with a flag.

    Raises:
        WorkerError: if no output holds a value.
    """
    if case.generation is not None and case.provider.is_endpoint:
        return  # what comes back is text
    empty = [spec for spec in case.inputs if 0 in spec.shape and not spec.path]
    if empty and first.empty:
        raise case_error(
            f"every output and the input {empty[0].name!r} are empty, so there is nothing to time",
            advice_on_empty(case.model, empty[0]),
            phase="first",
        )


def _measure_blocks(
    worker: Worker,
    turns: Turns,
    sampling: Sampling,
    warm_up: WarmUp,
    checks: list[OutputCheck],
    until: float,
) -> tuple[list[Block], str]:
    """Time blocks until the rule is content; look at the outputs once in between."""
    rule = StopRule.for_worker(sampling, typical_ns=typical_ns(warm_up), least_ns=turns.least_ns)
    blocks: list[Block] = []
    while True:
        iterations = rule.next_block(blocks, left_s=until - time.monotonic())
        if iterations is None:
            return blocks, rule.reason
        blocks.append(turns.time(iterations))
        if len(blocks) == 1:
            checks.append(worker.ask(CheckOutputs(run="middle")))


def _kept(sampling: Sampling) -> int:
    """Durations that one worker may keep, so that the case keeps ``sampling.keep``."""
    return 0 if sampling.keep == 0 else max(1, sampling.keep // sampling.workers)


def _step_to_run(case: Case) -> str:
    """Return the step for a provider that runs here and took no node of the model."""
    label, found = case.provider.label, open_sizes(case)
    if needs_sizes(case) and not case.session.fixed_dims:
        if found.reason:
            return (
                f"{label} takes only nodes of known sizes, but {found.reason}. Export the model "
                "with fixed sizes"
            )
        if found.sizes:
            return (
                f"{label} takes only nodes of known sizes. Leave out --ort-fix-dims=off, which "
                f"keeps {', '.join(map(repr, found.sizes))} open"
            )
    other = "native" if case.variant.precision == "fp16" else "fp16"
    return f"If {label} runs here, try another precision, e.g. --ort-precisions={other}"


def _learnt_alone(case: Case, ops: Mapping[str, int]) -> bool:
    """Whether all of some operators are of classical machine learning, which the CPU alone has."""
    return bool(ops) and all(f"ai.onnx.ml::{name}" in case.model.op_types for name in ops)


def _fallback(case: Case, placement: Placement | None) -> Failure | None:
    if placement is None or not is_fallback(placement):
        return None
    ran = ", ".join(
        f"{name} ({counted(count, 'node')})" for name, count in sorted(placement.executed.items())
    )
    elsewhere = ", ".join(sorted(placement.ops_elsewhere))
    asked, label = " or ".join(required(placement)), case.provider.label
    return case_failure(
        f"{asked} computed no node of the model"
        + (f", since all ran on {ran}" if ran else "")
        + (f". It did not take these operators: {elsewhere}" if elsewhere else ""),
        f"{label} has no operators of ai.onnx.ml. Measure the model with --ort-providers=cpu"
        if _learnt_alone(case, placement.ops_elsewhere)
        else f"Run 'ortbench providers'. If it says that {label} does not run here, do what it "
        f"says. {_step_to_run(case)}",
        kind="fallback",
        phase="profile",
    )
