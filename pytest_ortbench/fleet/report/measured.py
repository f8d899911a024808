"""What a bill rests on, in words: each machine, the model, and how it was measured."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.run import NO_HYPERVISOR
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.numbers.sides import hardware_parts, workload_parts
from pytest_ortbench.fleet.procurement.award import award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.ranking import Tender

#: Settings that have a word for themselves; others stand as in ids.
_NOUNS = {"threads": "thread", "sessions": "session", "concurrency": "caller"}
#: Inputs whose sizes are told.
_INPUTS = 3


def serving_words(case: CaseFacts) -> str:
    """Say how a case does its work without the words of ids: ``cpu, 1 thread, 2 processes``."""
    shown = {part.partition(":")[0] for part in workload_parts(case)} - set(_NOUNS)
    settings = [
        counted(int(value), _NOUNS[name])
        if name in _NOUNS and value.isdecimal()
        else f"{name} {value}"
        for name, value in case.knobs
        if name not in shown and name != "io"
    ]
    how = case.variant or case.provider + case.role_note
    precision = [] if case.variant or case.precision == "native" else [case.precision]
    several = [counted(case.processes, "process", "es")] if case.processes > 1 else []
    return ", ".join((*precision, how, *settings, *several))


def measured_texts(tenders: Sequence[Tender], runs: Sequence[RunFacts]) -> list[str]:
    """Describe the models of a bill, then each machine that is priced in it.

    Args:
        tenders: The offers.
        runs: The runs that they are of.
    """
    models: dict[str, list[CaseFacts]] = {}
    machines: dict[str, str] = {}
    for tender in tenders:
        for offer in award_of(tender).priced:
            variant = offer.economics
            for case in variant.parts or (variant.case,):
                models.setdefault(case.model_file or case.model, []).append(case)
            run = _run_of(variant, runs)
            if run is not None:
                machines.setdefault(variant.machine.name, _machine_text(variant, run))
    texts = [_model_text(name, cases) for name, cases in models.items()]
    return [*texts, *machines.values()]


def _run_of(variant: Economics, runs: Sequence[RunFacts]) -> RunFacts | None:
    """The newest run of the machine that has the case; ``None`` where none is known."""
    case = (variant.parts or (variant.case,))[0]
    names = (variant.machine.name, variant.machine.host)
    known = [
        run
        for run in runs
        if run.host in names and any(other.case_id == case.case_id for other in run.cases)
    ]
    return max(known, key=lambda run: run.started_at, default=None)


def _model_text(name: str, cases: Sequence[CaseFacts]) -> str:
    """``segment.onnx: 4.57 MB, input.1 [1, 3, 320, 320], random values``."""
    sizes = dict.fromkeys(case.model_bytes for case in cases if case.model_bytes)
    parts = [" or ".join(format_amount(size, "bytes") for size in sizes)] if sizes else []
    shapes: dict[str, dict[str, None]] = {}
    for case in cases:
        for input_name, shape in case.shapes:
            shapes.setdefault(input_name, {})[str(list(shape))] = None
    parts += [f"{of} {' or '.join(each)}" for of, each in list(shapes.items())[:_INPUTS]]
    more = len(shapes) - _INPUTS
    parts += [counted(more, "more input")] if more > 0 else []
    if shapes:
        parts.append(
            "random values" if any(case.drawn_values for case in cases) else "values of files"
        )
    return f"{name}: {', '.join(parts)}" if parts else name


def _machine_text(variant: Economics, run: RunFacts) -> str:
    """What a machine is, what ran on it, and when with how many processes it was measured."""
    case = (variant.parts or (variant.case,))[0]
    host = [f"host {run.own_host}"] if run.own_host not in ("", variant.machine.name) else []
    kind = run.machine.get("virtualisation", "")
    what = [
        *host,
        *hardware_parts(run),
        *filter(None, [run.machine.get("system", "")]),
        *([kind] if kind not in ("", NO_HYPERVISOR, "unknown") else []),
    ]
    runtime = run.runtimes.get(case.runtime, case.runtime)
    return (
        f"{variant.machine.name}: {', '.join(what)}; {runtime}, {serving_words(case)}; "
        f"{_how(case, run)}"
    )


def _how(case: CaseFacts, run: RunFacts) -> str:
    """``measured 2026-11-30 17:23 UTC in 3 processes, one after the other, 51 inferences``."""
    text = f"measured {run.started_at[:16].replace('T', ' ')} UTC"
    if case.workers:
        order = ", one after the other" if case.workers > 1 else ""
        text += f" in {counted(case.workers, 'process', 'es')}{order}"
    median = case.quantities.get("latency_p50")
    if median is not None and median.samples:
        text += f", {counted(median.samples, 'inference')}"
    return text
