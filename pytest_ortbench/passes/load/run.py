"""The load pass: a case under MLPerf's load generator, in a worker of its own."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.ids import model_of
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.execution.means import Means, let_go
from pytest_ortbench.execution.reference_file import path_of_reference
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.passes.load.numbers.peak import MOST_TESTS, RESOLUTION, LoadPeak, search_peak
from pytest_ortbench.passes.load.numbers.plan import (
    FIRST_PROBE,
    LEAST_S,
    OFFICIAL_S,
    PROBES,
    LoadPlan,
    plan_load,
    queries_asked,
)
from pytest_ortbench.passes.load.numbers.spec import (
    about_origin,
    fitting_loads,
    parse_load,
    why_unfit,
)
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: The generator gives up when working off the queue would take so long, and so many times the
#: bound, and so much of the test: whatever came later, no percentile from p90 on could be kept.
_BACKLOG_S, _BACKLOG_BOUNDS, _BACKLOG_SHARE = 2.0, 10.0, 0.2


#: Characters of the name of a folder of logs.
_LONGEST_NAME = 120


def announcements(*, load: tuple[str, ...], load_official: bool) -> list[str]:
    """Say beforehand what each load takes, as far as it is known before anything was measured."""
    specs = [parse_load(text, place="--ort-load") for text in load]
    return [
        *(_announcement(spec, official=load_official) for spec in specs),
        *(f"load {spec.text}: {about_origin(spec)}" for spec in specs if spec.origin is not None),
    ]


def _announcement(spec: LoadSpec, *, official: bool) -> str:
    least_s = OFFICIAL_S if official else LEAST_S
    label = "MLPerf's own durations" if official else "non-conforming: MLPerf requires 600 s"
    if spec.scenario == "offline":
        return f"load {spec.text}: at least {least_s:g} s per case ({label})"
    queries = queries_asked(spec.percent)
    asked = f"{queries} queries for p{spec.percent:g}"
    if spec.rate_per_s is not None:
        each_s = max(least_s, queries / spec.rate_per_s)
        return f"load {spec.text}: {format_amount(each_s, 's')} per case, {asked} ({label})"
    peak = spec.scenario == "peak"
    tests, until = (f"about {PROBES} tests of ", ", within --ort-timeout") if peak else ("", "")
    slow = f"longer below {significant(queries / least_s)} queries a second"
    return f"load {spec.text}: {tests}{least_s:g} s per case{until}, {slow} ({asked}; {label})"


def missing_loads(result: CaseResult, texts: tuple[str, ...]) -> list[str]:
    """Return those of the loads that a result lacks, or has as interrupted."""
    known = {load.spec.text for load in result.loads if not load.interrupted}
    return [text for text in texts if text not in known]


def measure(result: CaseResult, means: Means) -> tuple[Load, ...]:
    """Put a case under the loads that it lacks; never raises for what fails."""
    texts = _asked(result, means.argument)
    return measure_loads(
        result, texts, means.launcher, reference=means.reference, keep=means.keep
    ).loads


def is_over(result: CaseResult, argument: str) -> bool:
    """Return whether every load that was asked for has been tried."""
    return not missing_loads(result, _asked(result, argument))


def lacking(
    result: CaseResult, argument: str, *, reason: str, interrupted: bool
) -> tuple[Load, ...]:
    """Return the loads of a result, with a reason for each that it lacks.

    What an interrupted search found before stays.
    """
    begun = {load.spec.text: load for load in result.loads if load.tests}
    loads = result.loads
    for text in missing_loads(result, _asked(result, argument)):
        spec = LoadSpec(text=text, scenario="", percent=0.0)
        none = Load(spec=spec, reason=reason, interrupted=interrupted)
        loads = (*_others(loads, text), begun.get(text, none))
    return loads


def _asked(result: CaseResult, argument: str) -> tuple[str, ...]:
    """Return the load that a test asks for, else those of the case that fit it."""
    return (argument,) if argument else fitting_loads(result.case)


def measure_loads(
    result: CaseResult,
    texts: tuple[str, ...],
    launcher: Launcher,
    *,
    reference: Callable[[Case], Path] | None = None,
    keep: Callable[[tuple[Load, ...]], None] = let_go,
) -> CaseResult:
    """Add the loads that a result lacks, each in a fresh worker.

    Args:
        result: What the standard pass found.
        texts: Loads as written; ones that can't be read or don't fit get their reason.
        launcher: Starts the workers.
        reference: Gives the file of reference outputs of a case; ``None`` for none.
        keep: Takes all loads of the result as they are so far.
    """
    for text in missing_loads(result, texts):
        others = _others(result.loads, text)

        def keep_begun(load: Load, others: tuple[Load, ...] = others) -> None:
            keep((*others, load))

        load = _measure(result, text, launcher, reference, keep_begun)
        result = replace(result, loads=(*others, load))
        keep(result.loads)
    return result


def _others(loads: tuple[Load, ...], text: str) -> tuple[Load, ...]:
    return tuple(load for load in loads if load.spec.text != text)


def _measure(
    result: CaseResult,
    text: str,
    launcher: Launcher,
    reference: Callable[[Case], Path] | None,
    keep: Callable[[Load], None],
) -> Load:
    sampling = result.case.sampling
    try:
        spec = parse_load(text, place="load")
    except UsageError as error:
        return Load(spec=LoadSpec(text=text, scenario="", percent=0.0), reason=str(error))
    load = Load(spec=spec, official=sampling.load_official, capacity_per_s=_capacity(result))
    unfit = why_unfit(spec, result.case)
    if unfit:
        return replace(load, reason=unfit)
    plan = plan_load(
        spec,
        capacity_per_s=load.capacity_per_s,
        timeout_s=sampling.timeout_s,
        official=load.official,
        callers=result.case.callers,
    )
    if isinstance(plan, str):
        return replace(load, reason=plan)
    if result.case.call != "sync":
        return replace(load, reason="requests of a load call run, but this case calls run_async")
    if load.capacity_per_s is None:
        return replace(load, reason="the throughput of the standard pass is not known")
    # Opening and warming have the case's own timeout, the load has its own beside.
    deadline = time.monotonic() + 2 * sampling.timeout_s
    # Elsewhere the worker would write into a folder of that other machine.
    logs = sampling.load_logs if result.case.runtime.shares_files else ""
    logs = f"{logs}/{_file_name(result.case.case_id)}/{_file_name(text)}" if logs else ""
    right = path_of_reference(result.case, reference)
    try:
        with closing(launcher.open(result.case, worker=0, deadline=deadline)) as worker:
            worker.ask(WarmUpFor(budget_s=warm_up_budget_s(result.case)))
            load = _with_callers(replace(load, threads=worker.opened.threads), result.case)
            if spec.scenario == "peak":
                search = _PeakSearch(load, plan, sampling.timeout_s)
                return search.carried_out(worker, logs, right, keep)
            return _single(load, plan, worker, logs, right)
    except WorkerError as error:
        return replace(load, reason=f"{error.failure.kind}: {error.failure.told}")


def _with_callers(load: Load, case: Case) -> Load:
    """Note who takes queries: of single ones the first caller takes all."""
    if load.spec.scenario == "single-stream":
        return replace(load, callers=1, sessions=1)
    return replace(load, callers=case.callers, sessions=case.sessions)


def _capacity(result: CaseResult) -> float | None:
    """Requests a second in the standard pass, with as many callers."""
    throughput = summarise(result, percentiles=False).quantities.get("throughput")
    return None if throughput is None else throughput.value / result.case.batch


def _file_name(text: str) -> str:
    name = "".join(c if c.isalnum() or c in "-.+" else "_" for c in text)
    if len(name) <= _LONGEST_NAME and "/" not in model_of(text):
        return name
    # Without slashes, or cut, two models may read alike.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[9 - _LONGEST_NAME :]}-{digest}"


def _single(load: Load, plan: LoadPlan, worker: Worker, logs: str, reference: str) -> Load:
    test = worker.ask(_question(load, plan, load.spec.rate_per_s, logs, reference))
    if test.valid is None:
        return replace(load, reason=_no_verdict(test))
    return replace(load, tests=(test,), answer=0)


@dataclass(frozen=True, slots=True)
class _PeakSearch:
    """The search for the highest VALID rate of a load.

    Attributes:
        load: The load, without tests.
        plan: How long each test takes.
        budget_s: What all tests together may take.
    """

    load: Load
    plan: LoadPlan
    budget_s: float

    def carried_out(
        self, worker: Worker, logs: str, reference: str, keep: Callable[[Load], None]
    ) -> Load:
        """Return the load with its tests; what is known after each test is kept."""
        capacity = self.load.capacity_per_s or 0.0
        tests: list[LoadTest] = []
        until = time.monotonic() + self.budget_s

        def is_valid(rate: float) -> bool:
            folder = f"{logs}/{len(tests) + 1}" if logs else ""
            test = worker.ask(_question(self.load, self.plan, rate, folder, reference))
            if test.valid is None:
                raise _NoVerdict(_no_verdict(test))
            tests.append(test)
            so_far = self._ended(tests, _so_far(tests), stopped="interrupted")
            if so_far.answer is not None:
                keep(replace(so_far, interrupted=True))
            return test.valid

        try:
            peak = search_peak(
                is_valid,
                FIRST_PROBE * capacity,
                capacity_per_s=capacity,
                affordable=_affordable(self.plan, until),
            )
        except _NoVerdict as error:
            return self._ended(tests, _so_far(tests), stopped=str(error))
        except WorkerError as error:
            stopped = f"{error.failure.kind}: {error.failure.message}"
            return self._ended(tests, _so_far(tests), stopped=stopped)
        return self._ended(tests, peak)

    def _ended(self, tests: Sequence[LoadTest], peak: LoadPeak, *, stopped: str = "") -> Load:
        """The load with its tests and what they tell."""
        answer = next(
            (
                i
                for i, test in enumerate(tests)
                if test.valid and test.rate_per_s == peak.valid_per_s
            ),
            None,
        )
        # One test's latencies tell what the rate means; those of others would only fill the file.
        kept = [
            test if index == answer else replace(test, latencies_ns=(), latencies_note="not kept")
            for index, test in enumerate(tests)
        ]
        load = replace(self.load, tests=tuple(kept), answer=answer, beyond_per_s=peak.invalid_per_s)
        if answer is None:
            lowest = min((test.rate_per_s or 0.0 for test in tests), default=0.0)
            none = f"no rate was VALID down to {significant(lowest)}/s" if tests else "no time"
            return replace(load, reason=stopped or none)
        if peak.complete:
            return load
        ended = (
            f"the search was stopped ({stopped})"
            if stopped
            else f"the search ended at the timeout of {format_amount(self.budget_s, 's')} or its "
            f"{MOST_TESTS} tests"
        )
        note = _unfinished(peak.valid_per_s or 0.0, peak.invalid_per_s, ended)
        return replace(load, note=note)


def _so_far(tests: Sequence[LoadTest]) -> LoadPeak:
    """What the tests of a search that broke off tell."""
    valid = max((test.rate_per_s or 0.0 for test in tests if test.valid), default=None)
    invalid = [test.rate_per_s or 0.0 for test in tests if not test.valid]
    above = min((rate for rate in invalid if valid is None or rate > valid), default=None)
    return LoadPeak(valid_per_s=valid, invalid_per_s=above, complete=False)


def _unfinished(valid: float, invalid: float | None, ended: str) -> str:
    if invalid is None:
        return f"{ended}, and no rate was INVALID"
    if invalid <= valid * (1 + RESOLUTION):
        return f"{ended}, before the INVALID rate was tested again"
    return f"{ended}, {100 * (invalid / valid - 1):.0f} % apart instead of {100 * RESOLUTION:g} %"


def _affordable(plan: LoadPlan, until: float) -> Callable[[float], bool]:
    return lambda rate: time.monotonic() + max(plan.least_s, plan.least_queries / rate) <= until


class _NoVerdict(Exception):
    """The generator gave no verdict."""


def _no_verdict(test: LoadTest) -> str:
    return " ".join(test.reasons) or "the load generator gave no verdict"


def _question(
    load: Load, plan: LoadPlan, rate_per_s: float | None, logs: str, reference: str
) -> PutUnderLoad:
    spec, capacity = load.spec, load.capacity_per_s or 0.0
    outstanding = 0
    if rate_per_s is not None:
        length_s = max(plan.least_s, plan.least_queries / rate_per_s)
        bound_s = spec.latency_s or spec.first_token_s or 0.0
        backlog_s = max(_BACKLOG_S, _BACKLOG_BOUNDS * bound_s, _BACKLOG_SHARE * length_s)
        outstanding = math.ceil(backlog_s * capacity) + load.callers
    return PutUnderLoad(
        scenario="server" if spec.scenario == "peak" else spec.scenario,
        percent=spec.percent,
        expected_per_s=capacity,
        rate_per_s=rate_per_s,
        latency_s=spec.latency_s,
        first_token_s=spec.first_token_s,
        token_time_s=spec.token_time_s,
        least_s=plan.least_s,
        least_queries=plan.least_queries,
        most_outstanding=outstanding,
        official=load.official,
        keep_logs=logs,
        reference=reference,
    )
