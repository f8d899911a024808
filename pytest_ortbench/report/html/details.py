"""What unfolds on the page: how a case was measured, where its time goes, where the run was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pytest_ortbench.analysis.input_sizes import fixed_words
from pytest_ortbench.core.accuracy import TRIALS
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.mantissa import format_words
from pytest_ortbench.core.outcome import Accuracy, CaseResult, Placement
from pytest_ortbench.core.placement import is_whole, missing_evidence
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report.certificates import page_facts
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.extent import extent_words
from pytest_ortbench.report.shards import shard_lines

#: Operators outside the provider that are named.
OPERATORS = 6


def origin(entry: Entry) -> tuple[str, ...]:
    """Say in short sentences how one case was measured: samples, warm-up, memory, proof."""
    result = entry.result
    facts = [
        *_sampling(entry),
        *_inputs(result.case),
        *_variant(result.case),
        *([] if result.placement is None else _placement(result.placement)),
        *_products(result),
        *(
            []
            if result.accuracy is None
            else _accuracy(
                result.accuracy,
                drawn=result.case.draws_inputs,
                beside=result.case.drawn_beside_files,
            )
        ),
        *(
            fact
            for entry in PASSES
            if entry.facts_of_case
            for fact in entry.load(entry.facts_of_case)(result)
        ),
        *(f"{flag.name}: {flag.detail}" for flag in result.flags if flag.detail),
    ]
    return tuple(one_line(fact) for fact in facts)


def _sampling(entry: Entry) -> list[str]:
    summary, workers = entry.summary, entry.result.measurements
    if not workers:
        return []
    first = workers[0]
    spread = "" if summary.spread is None else f", their medians {summary.spread * 100:.1f} % apart"
    stops = ", ".join(dict.fromkeys(worker.stop for worker in workers))
    warm = sum(worker.warm_up.count for worker in workers)
    facts = [
        f"{summary.samples} inferences in {format_amount(summary.timed_s, 's')} by "
        f"{counted(summary.workers, 'worker')}{spread}; ended by {stops}",
        f"warm-up: {warm} inferences, {first.warm_up.rule}"
        + ("" if all(worker.warm_up.steady for worker in workers) else " (not steady)"),
        f"memory: {first.memory.source}",
    ]
    if first.memory.device_source:
        facts.append(f"device memory: {first.memory.device_source}")
    if first.threads:
        threads = f"{first.threads} ({first.threads_source})"
        facts.append(f"threads: {threads}, {counted(first.cpus, 'CPU')}")
    return facts


def _inputs(case: Case) -> list[str]:
    return [
        f"input {spec.name}: {spec.type} {list(spec.shape)}"
        + (f", {spec.sizes_text}" if spec.sizes_text else "")
        + (f", from {spec.path}" if spec.path else f", {spec.hint.kind}")
        for spec in case.inputs
    ]


def _variant(case: Case) -> list[str]:
    facts = [extent_words(case.variant)]
    if case.variant.recipe:
        facts.append(f"{case.variant.precision} made by {_pairs(case.variant.recipe)}")
    facts.append(fixed_words(case))
    return [fact for fact in facts if fact]


def _placement(placement: Placement) -> list[str]:
    if placement.reason:
        return [f"placement: not judged, {missing_evidence(placement)}"]
    if not is_whole(placement):
        seen = ", ".join(f"{count} by {name}" for name, count in placement.seen.items())
        return [
            f"placement: not judged, {missing_evidence(placement)}",
            f"computing nodes seen until then: {seen or 'none'}",
        ]
    nodes = ", ".join(f"{count} by {name}" for name, count in placement.executed.items())
    facts = [f"computing nodes executed: {nodes or 'none'}"]
    facts += [_link(link, placement.executed.get(link.provider, 0)) for link in placement.links]
    if placement.partitions:
        facts.append(f"{placement.partitions} fused partitions")
    if placement.ops_elsewhere:
        ops = list(placement.ops_elsewhere.items())
        more = f" and {len(ops) - OPERATORS} more" if len(ops) > OPERATORS else ""
        named = ", ".join(f"{count} {name}" for name, count in ops[:OPERATORS])
        facts.append(f"elsewhere: {named}{more}")
    if placement.precision_executed:
        facts.append(f"kernels read {placement.precision_executed}")
    if placement.witness:
        facts.append(f"assignment interface: {placement.witness}")
    return facts


def _products(result: CaseResult) -> list[str]:
    bits = result.kept_bits
    return [] if bits is None else [f"products of float32 keep {format_words(bits)}"]


def _link(link: LinkPlacement, executed: int) -> str:
    """What one link of a chain ran; its flag says why it ran nothing."""
    words = f"link {link.label}: {executed} computing nodes"
    if link.partitions:
        words += f" in {link.partitions} fused partitions"
    return words if link.nodes is None else f"{words}, {link.nodes} nodes assigned"


def _accuracy(accuracy: Accuracy, *, drawn: bool, beside: Sequence[str] = ()) -> list[str]:
    if accuracy.reason:
        return [f"accuracy: not compared, {accuracy.reason}"]
    sets = f"{accuracy.samples} input set{'s' if accuracy.samples != 1 else ''}"
    inputs = f" ({DRAWN_INPUTS})" if drawn else ""
    if beside:
        inputs = f" (random: {', '.join(beside)})"
    facts = [f"accuracy: {sets}{inputs} against {accuracy.reference}"]
    if accuracy.repeatable is False:
        facts.append(f"not repeatable: {accuracy.repeat_note}")
    if accuracy.note:
        facts.append(f"accuracy: {accuracy.note}")
    if accuracy.spread is not None:
        ran = [
            TRIALS.get(trial.name, trial.name) for trial in accuracy.spread.trials if trial.outputs
        ]
        again = ", ".join(ran) or f"could not be run again: {accuracy.spread.reason}"
        facts.append(f"the reference against itself: {again}")
    return facts


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def log_tail(result: CaseResult) -> str:
    """Return what native code printed before a case failed."""
    return "" if result.failure is None else result.failure.log_tail


Facts = tuple[tuple[str, str], ...]


def environment(run: Run) -> tuple[tuple[str, Facts], ...]:
    """Return the surroundings of a run under headings: machine, runtimes, options."""
    commit = run.commit
    about = {
        "run": run.run_id,
        "started": run.started_at,
        "finished": run.finished_at or "not finished: it still runs, or was ended from outside",
        "command": " ".join(run.command),
        "commit": ""
        if commit is None
        else f"{commit.revision} {commit.branch}{' with uncommitted changes' * commit.dirty}",
        "canary": "" if run.canary is None else _canary(run),
    }
    sections = {
        "Run": about,
        "Machine": {"host": ", ".join(run.hosts), **run.machine.stable},
        "Shards": {str(number): line for number, line in enumerate(shard_lines(run), 1)},
        "Machine at the time": run.machine.volatile,
        **{
            f"Runtime {label}": {
                "distributions": _pairs(info.distributions),
                "ONNX Runtime": info.version,
                "Python": info.python,
                "numpy": info.numpy,
                "executable": info.executable,
                "providers that it claims": " ".join(info.available_providers),
                "plug-in providers": " ".join(info.plugin_providers),
                "build": info.build,
                "variables": ", ".join(f"{key}={text}" for key, text in info.variables.items()),
            }
            for label, info in run.runtimes.items()
        },
        **page_facts(run),
        "Options": run.options,
    }
    return tuple(
        (
            one_line(heading),
            tuple((one_line(name), one_line(value)) for name, value in facts.items() if value),
        )
        for heading, facts in sections.items()
        if any(facts.values())
    )


def _canary(run: Run) -> str:
    canary = run.canary
    if canary is None:
        return ""
    if not canary.durations_ns:
        return f"{canary.model}: {canary.reason or 'not measured'}"
    return f"{canary.model}: median {format_amount(median(canary.durations_ns) / 1e9, 's')}"
