"""Facts of runs, written down as a comparison would have reduced them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_ortbench.analysis.proof import Proof
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts

#: Low, value and high.
Span = tuple[float, float, float]


def quantity(metric: str, span: Span) -> Quantity:
    """A number of a metric with its interval."""
    low, value, high = span
    return Quantity(value=value, unit=METRICS[metric].unit, low=low, high=high, samples=1000)


def exact(value: float) -> Span:
    """A number whose interval is a point."""
    return value, value, value


def case(
    spans: Mapping[str, Span] | None = None,
    *,
    model: str = "net",
    precision: str = "native",
    provider: str = "cpu",
    batch: int = 1,
    runtime: str = "current",
    reason: str = "",
    blurred_by: Sequence[str] = (),
    inputs: str = "x:[1, 3]",
    digest: str = "d",
    knobs: Mapping[str, str] | None = None,
    service_s: Sequence[float] = (),
    idle_w: float | None = None,
    callers: int = 1,
    cpus: int = 1,
    needs: Proof | None = None,
) -> CaseFacts:
    """One case, of a machine with one CPU; without ``spans`` it has no number."""
    parts = [model, precision, provider, f"b{batch}"]
    parts += [f"{name}:{value}" for name, value in (knobs or {}).items()]
    quantities = {name: quantity(name, span) for name, span in (spans or {}).items()}
    return CaseFacts(
        case_id="/".join(parts),
        model=model,
        precision=precision,
        provider=provider,
        runtime=runtime,
        batch=batch,
        knobs=tuple((knobs or {}).items()),
        inputs=inputs,
        digest=digest,
        quantities=quantities,
        power=quantities.get("power"),
        reason=reason,
        blurred_by=tuple(blurred_by),
        service_s=tuple(service_s),
        idle_w=idle_w,
        callers=callers,
        threads=callers,
        cpus=cpus,
        drawn_inputs=needs is Proof.REAL_INPUTS,
        needs=needs,
    )


def latency(low: float, value: float, high: float) -> dict[str, Span]:
    """The one number that most comparisons are about."""
    return {"latency_p50": (low, value, high)}


def run(
    host: str,
    *cases: CaseFacts,
    day: int = 1,
    cpu: str = "",
    runtime: str = "onnxruntime 1.32.0",
    canary_s: float | None = None,
) -> RunFacts:
    """One run of a machine on a day."""
    return RunFacts(
        run_id=f"202601{day:02d}T030405Z-{host}-0a1b",
        host=host,
        started_at=f"2026-01-{day:02d}T03:04:05Z",
        machine={"cpu": cpu or f"CPU of {host}"},
        runtimes={"current": runtime},
        canary_s=canary_s,
        cases=cases,
    )
