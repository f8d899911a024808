"""What a process got of its CPUs, and how far that leaves its time open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.certainty import Certainty, certainty_of
from pytest_ortbench.analysis.cpu_time import cpu_time, lacked_cpus
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.flags import CPU_SHARE
from pytest_ortbench.core.outcome import CaseResult, Flag
from tests.results_factory import (
    draw_durations,
    make_case,
    make_measurement,
    make_result,
    make_run,
    make_samples,
)
from tests.summarised import answers_of


def _got(
    cpus: float,
    *,
    threads: int = 2,
    flagged: bool = True,
    provider: str = "cpu",
    median_ns: int = 30_000_000,
) -> CaseResult:
    durations = draw_durations(median_ns=median_ns)
    measured = make_measurement(samples=make_samples(durations, cpu_share=cpus), threads=threads)
    result = make_result(case=make_case(provider=provider))
    return replace(
        result,
        measurements=(measured,) * 3,
        flags=(Flag(name=CPU_SHARE),) if flagged else (),
    )


def test_cpus_are_those_that_threads_or_callers_could_use() -> None:
    time = cpu_time(_got(0.4))
    assert time is not None
    assert (time.used, time.usable) == (pytest.approx(0.4), 2)
    assert time.share == pytest.approx(0.2)
    alone = cpu_time(_got(0.8, threads=1))
    assert alone is not None
    assert alone.usable == 1
    result = _got(0.8, threads=1)
    callers = cpu_time(replace(result, case=replace(result.case, concurrency=8)))
    assert callers is not None
    assert callers.usable == 2


def test_nothing_is_known_where_nothing_was_read() -> None:
    assert cpu_time(_got(0.0)) is None
    assert cpu_time(make_result(case=make_case(), status="crash")) is None
    assert cpu_time(_got(0.4, threads=0)) is None


@pytest.mark.parametrize(
    ("result", "lacked"),
    [
        (_got(0.4), True),
        (_got(0.4, flagged=False), False),
        (_got(2.0), False),
        # A device computes while the process waits.
        (_got(0.4, provider="cuda"), False),
        (_got(0.4, provider="openvino"), False),
        (_got(0.4, provider="openvino:CPU"), True),
    ],
)
def test_who_lacked_cpus(result: CaseResult, lacked: bool) -> None:
    assert (lacked_cpus(result) is not None) == lacked


def test_an_interval_reaches_to_what_all_cpus_would_give() -> None:
    sure, starved = (summarise(_got(0.4, flagged=flagged)) for flagged in (False, True))
    for name in ("latency_p50", "latency_p99", "latency_mean"):
        before, after = sure.quantities[name], starved.quantities[name]
        assert after.low == pytest.approx(0.2 * before.low)
        assert (after.value, after.high) == (before.value, before.high)
    before, after = sure.quantities["throughput"], starved.quantities["throughput"]
    assert after.high == pytest.approx(before.high / 0.2)
    assert after.low == before.low


def test_of_short_inferences_the_fastest_had_its_cpus() -> None:
    starved = summarise(_got(0.4, median_ns=30_000))
    assert starved.quantities["latency_p50"].low == starved.quantities["latency_min"].value
    (answer,) = answers_of(make_run([_got(0.4, median_ns=30_000)]))
    assert answer.lacked is None


def test_a_case_without_its_cpus_is_no_sure_answer_and_beats_nobody() -> None:
    (alone,) = answers_of(make_run([_got(0.4)]))
    assert alone.lacked is not None
    assert alone.lacked.time.words == "0.40 of 2 CPUs"
    (calm,) = answers_of(make_run([_got(2.0, flagged=False)]))
    assert calm.lacked is None
    quick = make_result(case=make_case(provider="openvino:CPU"), median_ns=15_000_000)
    (both,) = answers_of(make_run([_got(0.4), quick]))
    assert certainty_of(both) is Certainty.NOISY
