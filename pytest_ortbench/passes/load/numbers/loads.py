"""The numbers of a case under load, from the tests of MLPerf's generator."""

from __future__ import annotations

import json

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import amounts_apart, decimals_apart
from pytest_ortbench.passes.load.declaration import PASS
from pytest_ortbench.passes.load.facts import TOKEN_LIMITS, TPOT, TTFT, Load, LoadSpec, LoadTest
from pytest_ortbench.passes.load.numbers.spec import parse_load, why_unfit

#: Field of a test that each metric of a percentile reads, and the percentile.
_PERCENTILES = {
    f"load_{name}p{percent}": (of, percent)
    for name, of in (
        ("", "percentiles_ns"),
        (f"{TTFT}_", "first_token_percentiles_ns"),
        (f"{TPOT}_", "token_time_percentiles_ns"),
    )
    for percent in ("50", "90", "99")
}


#: Why a load has no times of tokens.
_UNBOUNDED_TOKENS = (
    "times of tokens are measured only where they have limits: server:RATE:ttft=TIME:tpot=TIME"
)


def add_load(collector: Collector, result: CaseResult) -> None:
    """Add the numbers of the case's first load; the case is VALID only if all of its loads are.

    Answers with NaN are no service, however fast they come: no load of such a case counts as VALID.
    """
    if not result.loads:
        asked = result.case.sampling.loads
        unfit = why_unfit(parse_load(asked[0], place="load"), result.case) if asked else ""
        collector.reject(PASS.metric_names, unfit or "no load was requested")
        return
    add_one_load(collector, result.loads[0])
    verdicts = [load.valid for load in result.loads]
    untested = next((load for load in result.loads if load.valid is None), None)
    wrong = _why_no_answers(result)
    collector.add(
        "load_valid",
        None if untested is not None else float(all(verdicts) and not wrong),
        reason=f"{untested.spec.text}: {untested.reason}" if untested else "",
        samples=len(verdicts),
    )
    invalid = [load for load in result.loads if load.valid is False]
    if invalid:
        collector.notes["load_valid"] = "; ".join(
            f"{load.spec.text} is INVALID: {main_reason(load)}" for load in invalid
        )
    elif wrong:
        collector.notes["load_valid"] = wrong
    peak = next((load for load in result.loads if load.spec.scenario == "peak"), None)
    if peak is not None and peak is not result.loads[0]:
        _add_peak(collector, peak)


def add_one_load(collector: Collector, load: Load) -> None:
    """Add the numbers of one load; an INVALID one has none but its verdict."""
    test, text = load.test, load.spec.text
    if load.valid is not None:
        collector.add("load_valid", float(load.valid))
    else:
        collector.add("load_valid", None, reason=f"{text}: {load.reason}")
    _add_peak(collector, load)
    names = ["load_rate", *_PERCENTILES, "load_token_rate"]
    if test is None or not test.valid:
        collector.reject(names, f"{text}: {_why_not(load)}")
        return
    collector.add("load_rate", test.completed_per_s, samples=test.requests)
    collector.add(
        "load_token_rate", test.tokens_per_s, reason=_UNBOUNDED_TOKENS, samples=test.requests
    )
    for name, (of, percent) in _PERCENTILES.items():
        latency_ns = getattr(test, of).get(percent)
        if load.spec.scenario == "offline":
            collector.add(name, None, reason="offline: latencies show only the waiting time")
        elif of != "percentiles_ns" and not load.spec.is_of_tokens:
            collector.add(name, None, reason=_UNBOUNDED_TOKENS)
        else:
            collector.add(
                name,
                None if latency_ns is None else latency_ns * 1e-9,
                reason="the generator did not report it",
                samples=test.queries,
            )


def _why_no_answers(result: CaseResult) -> str:
    """Why what a case answers is no answer; empty if nothing is known against it."""
    nonfinite = evidence_of(result).nonfinite
    return f"outputs hold NaN or infinity: {nonfinite}" if nonfinite else ""


def one_load(load: Load, wrong: str = "") -> dict[str, str | float | bool | None]:
    """Return what a load is, its verdict and its numbers in SI units; ``None`` where there is none.

    The names are those of the columns without ``load_``: ``rate_per_s``, ``p99_s``.

    Args:
        load: The load.
        wrong: Why what the case answers is no answer; then no load of it is VALID.
    """
    collector = Collector()
    add_one_load(collector, load)
    valid = False if wrong and load.valid else load.valid
    values: dict[str, str | float | bool | None] = {"load": load.spec.text, "valid": valid}
    for name in PASS.metric_names:
        if name != "load_valid":
            quantity = collector.quantities.get(name)
            column = METRICS[name].column.removeprefix("load_")
            values[column] = None if quantity is None else quantity.value
    values["reason"] = main_reason(load) or wrong or None
    return values


def main_reason(load: Load) -> str:
    """Say what decided against a load: one reason, with the latency where the bound was broken.

    Empty for a VALID one.
    """
    if load.valid:
        return ""
    if load.reason or not load.tests:
        return load.reason
    test = load.tests[-1]
    reason = test.reasons[0].rstrip(".") if test.reasons else "no reason was given"
    broken = "; ".join(broken_bounds(load.spec, test))
    return f"{reason} ({broken})" if broken else reason


def broken_bounds(spec: LoadSpec, test: LoadTest) -> list[str]:
    """Say which bounds of a load a test broke, and by how much."""
    own = f"{spec.percent:g}"
    bounds = (
        (f"p{own}", test.percentiles_ns, spec.latency_s),
        (
            f"p{own} of the {TOKEN_LIMITS[TTFT]}",
            test.first_token_percentiles_ns,
            spec.first_token_s,
        ),
        (f"p{own} of the {TOKEN_LIMITS[TPOT]}", test.token_time_percentiles_ns, spec.token_time_s),
    )
    broken = []
    for name, percentiles, bound_s in bounds:
        time_s = percentiles.get(own, 0) * 1e-9
        if bound_s is not None and time_s > bound_s:
            took, bound = amounts_apart(time_s, bound_s, "s")
            broken.append(f"{name} is {took}, the limit is {bound}: {_over(time_s / bound_s)}")
    return broken


def _over(ratio: float) -> str:
    """Say how far a time is beyond its bound."""
    if ratio >= 2:
        return f"{ratio:.1f} times as long"
    return f"{decimals_apart(100 * (ratio - 1), 0)} % over"


def _add_peak(collector: Collector, load: Load) -> None:
    """The highest VALID rate, up to the lowest INVALID one."""
    test = load.test
    if load.spec.scenario != "peak":
        collector.add("load_peak", None, reason="no search for the peak was requested")
    elif test is None:
        collector.add("load_peak", None, reason=load.reason or "no rate was VALID")
    else:
        collector.add(
            "load_peak",
            test.rate_per_s,
            low=test.rate_per_s if load.beyond_per_s is not None else None,
            high=load.beyond_per_s,
            samples=len(load.tests),
        )


def _why_not(load: Load) -> str:
    if load.reason:
        return load.reason
    reasons = load.tests[-1].reasons if load.tests else ()
    return "INVALID: " + "; ".join(reasons)


#: Columns of one load: empty where a case has several, which ``loads`` tells apart.
_OF_ONE_LOAD = tuple(metric.column for metric in PASS.metrics if metric.name != "load_valid")


def cells(result: CaseResult) -> dict[str, str | None]:
    """Return what a flat row says of loads beside the numbers of the first.

    ``load`` names every load of the case and ``load_valid`` judges them all; the numbers of a load
    stand in its columns only where it is the case's only one, and ``loads`` holds those of each as
    a JSON list.
    """
    if not result.loads:
        return {}
    wrong = _why_no_answers(result)
    blank: dict[str, str | None] = dict.fromkeys(_OF_ONE_LOAD) if len(result.loads) > 1 else {}
    return {
        **blank,
        "load": " ".join(load.spec.text for load in result.loads) or None,
        "loads": json.dumps([one_load(load, wrong) for load in result.loads], ensure_ascii=False),
    }
