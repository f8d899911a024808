"""Comparisons to render: three machines with ties and holes, hostile names, and a price list."""

from __future__ import annotations

import dataclasses
from functools import cache

from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.fleet.numbers.facts import RunFacts, reduce_run
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.report.procurement import Procurement, procure
from pytest_ortbench.fleet.report.view import ComparisonView, build_view
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from tests import results_factory as factory
from tests.report import sample_runs

#: Watts of the device under load.
POWER_W = {"desk": 60.0, "rack": 210.0, "edge": 9.0}
TERMS = Terms(
    currency="EUR",
    years=3,
    rate_per_s=900,
    limit_s=0.02,
    machines=(
        PricedMachine(name="desk", host="desk", price=2400, power_price=0.3, idle_power_w=45),
        PricedMachine(name="rack", host="rack", price=6200, power_price=0.3, idle_power_w=80),
        PricedMachine(name="edge", host="edge", price_per_hour=0.09),
    ),
)


def with_energy(result: CaseResult, watts: float) -> CaseResult:
    """Add an energy pass of three trials around a power."""
    if not result.measurements:
        return result
    samples = result.measurements[0].samples
    inferences = round(5e9 * samples.count / samples.sum_ns)
    windows = tuple(
        EnergyWindow(
            source="nvml energy counter",
            device="GPU-1",
            duration_ns=5_000_000_000,
            inferences=inferences,
            energy_j=5 * watts * factor,
            idle_w=watts / 5,
        )
        for factor in (0.98, 1.0, 1.02)
    )
    return dataclasses.replace(result, energy=Energy(windows=windows))


def machine(host: str, factor: float, day: int, *, crashed: str = "") -> RunFacts:
    """Two models at two precisions and two batch sizes on one machine."""
    results = []
    for model in ("mobilenet_v2", "bert"):
        for precision, share in (("native", 1.0), ("int8-static", 0.4)):
            for batch in (1, 8):
                case = sample_runs.case(model, precision, "cpu", batch)
                if precision == crashed:
                    results.append(sample_runs.failed(case, "crash"))
                    continue
                wrong = model == "bert" and precision == "int8-static"
                result = sample_runs.measured(
                    case,
                    0.004 * share * batch**0.8 * factor,
                    flags=(Flag(name="INACCURATE"),) if wrong else (),
                )
                results.append(with_energy(result, POWER_W[host]))
    run = factory.make_run(
        results,
        run_id=f"202601{day:02d}T030405Z-{host}-0a1b",
        machine=factory.make_machine(host, cpu=f"CPU of {host}"),
    )
    return reduce_run(run, percentiles=True, service=True)


@cache
def machines() -> list[RunFacts]:
    """A slow one, a fast one, and one that can't be told from the slow one and has holes."""
    return [
        machine("desk", 1.0, 1),
        machine("rack", 0.5, 2),
        machine("edge", 1.02, 3, crashed="int8-static"),
    ]


@cache
def view() -> ComparisonView:
    """The comparison of the three."""
    return build_view(machines())


@cache
def costs() -> Procurement:
    """What the three cost."""
    return procure(machines(), TERMS)


@cache
def hostile() -> tuple[ComparisonView, Procurement]:
    """Two runs whose every name is hostile, and a table of machines that knows them."""
    name = sample_runs.HOSTILE
    first = sample_runs.hostile()
    second = dataclasses.replace(
        first,
        run_id="other",
        machine=dataclasses.replace(first.machine, host=name + "2"),
    )
    runs = [reduce_run(run, percentiles=True, service=True) for run in (first, second)]
    terms = Terms(
        currency=name,
        rate_per_s=1,
        limit_s=10,
        machines=tuple(
            PricedMachine(name=host, host=host, price=3, power_price=None)
            for host in (name, name + "2")
        ),
    )
    return build_view(runs), procure(runs, terms)
