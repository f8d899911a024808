"""What a reader needs beside the table: what the numbers include, runtimes, what is missing.

As data; the terminal, Markdown and HTML each write it in their way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.between_processes import PROCESS_SPREAD
from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.analysis.chains import chain_words
from pytest_ortbench.analysis.cpu_time import runs_on_cpus
from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.input_sizes import (
    default_sizes,
    fed_shapes,
    fixed_words,
    resolved_sizes,
)
from pytest_ortbench.core.case import FIX_DIMS, Case
from pytest_ortbench.core.flags import CPU_SHARE
from pytest_ortbench.core.interval import UNSTABLE
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.outcome import FAILURE_KINDS, CaseResult, Failure, RuntimeInfo
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.passes.pass_object import Pass
from pytest_ortbench.passes.registry import PASSES, owner_of
from pytest_ortbench.report.arithmetic import format_count
from pytest_ortbench.report.entries import Entry, ModelGroup
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.weights import weights_as_inputs_text, zeros_text

#: Shapes of inputs that a model's line spells out; a model with a cache has many inputs of few.
_SHAPES = 4

#: Models that are asked about for their sizes.
_QUESTIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Cases of one model that failed in the same way.

    Attributes:
        entries: The cases.
        status: Kind of the failure.
        sentence: Phase, reason and next step on one line.
        log_tail: What native code printed in the first of them that kept something.
    """

    entries: tuple[Entry, ...]
    status: str
    sentence: str
    log_tail: str


def includes(shown: Sequence[Entry]) -> tuple[str, ...]:
    """Return sentences that say what the numbers of these cases include."""
    cases = [entry.result.case for entry in shown]
    if not cases:
        return ()
    io = {
        "end-to-end": "host arrays in and out (end-to-end)",
        "device": "device-resident arrays, outputs synchronised inside the timed region (device)",
    }
    modes = list(dict.fromkeys(case.io for case in _timing(cases, None)))
    workers = _range([_workers(entry.result) for entry in shown])
    threads = sorted(
        {
            (measurement.threads, measurement.threads_source)
            for entry in shown
            for measurement in entry.result.measurements
            if measurement.threads
        }
    )
    sentences = [
        f"Latency: one inference, {' or '.join(io.get(mode, mode) for mode in modes)}; "
        f"closed loop, {_callers(inferences)}; profiler off; warm-up excluded."
        for inferences in (_timing(cases, None),)
        if inferences
    ]
    sentences += [
        owner.load(owner.unit.about)(_timing(cases, owner))
        for owner in PASSES
        if owner.unit is not None and _timing(cases, owner)
    ]
    sentences.append(
        f"{_processes(workers, _median_names(cases))}; n<368: too few samples for that percentile."
    )
    if any(is_unstable_row(entry) for entry in shown):
        sentences.append(
            f"{UNSTABLE}: the 95 % interval is wider than the value, so not even its first digit "
            "is sure. End other programs; where none ran, measure longer (--ort-time, "
            "--ort-workers)."
        )
    if any(entry.summary.lacked is not None for entry in shown):
        sentences.append(
            "Where a process lacked CPUs (CPU-SHARE), its interval reaches to what the same CPU "
            "time would take on all of them."
        )
    blind = [
        entry.result.case.case_id
        for entry in shown
        if entry.result.measurements
        and CPU_SHARE not in entry.flags
        and runs_on_cpus(entry.result) is None
    ]
    if blind:
        sentences.append(
            f"Nothing tells on which device {named(blind)} ran, so a lack of CPU time may have "
            "gone unseen."
        )
    if threads:
        used = ", ".join(
            f"{count} ({source})" if source else f"{count}" for count, source in threads
        )
        sentences.append(f"Threads of one operator: {used}.")
    sentences += _names(cases)
    mapped = dict.fromkeys(
        case.model.name
        for case in cases
        if any("map(" in output.type for output in case.model.outputs)
    )
    if mapped:
        sentences.append(
            f"Outputs of {', '.join(mapped)} are dictionaries, one a row (ZipMap): making them "
            "from arrays, in Python, is part of the latency. Converted with zipmap=False they are "
            "arrays."
        )
    if any(
        size.origin == "catalogue"
        for case in cases
        for spec in case.inputs
        for size in spec.resolved
    ):
        sentences.append(
            "catalogue: the list of known models that this package has (ortbench models), or your "
            "catalogue.toml, gives these sizes; --ort-dims changes them."
        )
    sentences += _size_questions(cases)
    return tuple(one_line(sentence) for sentence in sentences)


def _names(cases: Sequence[Case]) -> list[str]:
    """What the parts of a case's name are that nobody asked for."""
    sentences = []
    if any(case.variant.precision == "native" for case in cases):
        sentences.append("native: the file as it is, in its own precision.")
    labels = dict.fromkeys(case.runtime.label for case in cases)
    if len(labels) > 1:
        sentences.append(f"+{next(reversed(labels))} behind a name: the runtime that ran the case.")
    return sentences


def is_unstable_row(entry: Entry) -> bool:
    """Whether the number that a case is ranked by is shown as unstable."""
    quantity = entry.quantity(speed_metric(entry.result.case))
    return quantity is not None and quantity.is_unstable


def _timing(cases: Sequence[Case], owner: Pass | None) -> list[Case]:
    """Return the cases that time the unit of a pass; with ``None``, those that time inferences."""
    return [case for case in cases if owner_of(case) is owner]


def _median_names(cases: Sequence[Case]) -> str:
    """What the median is called that tables give with its interval."""
    units = [entry.unit for entry in PASSES if entry.unit is not None and _timing(cases, entry)]
    speeds = ", ".join(unit.speed[1] for unit in units)
    if not units:
        return "p50"
    return f"p50 (of {units[0].name}: {speeds})" if _timing(cases, None) else speeds


def _size_questions(cases: Sequence[Case]) -> list[str]:
    """What to ask of sizes that nobody named: one question a model, at most as many as are read."""
    asked: dict[str, str] = {}
    for case in cases:
        sizes = ",".join(f"{name}:{size}" for name, size in default_sizes(case).items())
        if sizes:
            asked.setdefault(case.model.name, sizes)
    questions = [
        f"The sizes {sizes} of {name} are defaults, because none were set; --ort-dims={sizes} "
        "with other sizes changes them."
        for name, sizes in list(asked.items())[:_QUESTIONS]
    ]
    more = len(asked) - _QUESTIONS
    rest = [f"The sizes of {counted(more, 'more model')} are defaults, too."] if more > 0 else []
    return [*questions, *rest]


def _workers(result: CaseResult) -> int:
    """How many processes a case was asked to have; within a budget, how many it had."""
    had = 0 if result.budget is None else len(result.measurements)
    return had or result.case.sampling.workers


def _processes(workers: str, medians: str) -> str:
    """How many processes a case has, and what the median over them is."""
    if workers == "1":
        return (
            f"1 fresh worker process a case; {medians} is its median, with its 95 % interval "
            f"widened by {100 * PROCESS_SPREAD:g} % each way, because only one process was "
            "measured"
        )
    text = (
        f"{workers} fresh worker processes a case; {medians} is the median of their medians, with "
        "its 95 % interval"
    )
    if workers != "2":
        return text
    return (
        f"{text} widened by {100 * PROCESS_SPREAD:g} % each way, or by as much as they differ, "
        "because there are only two"
    )


def _callers(cases: Sequence[Case]) -> str:
    """How many inferences are in flight at a time, and how they are started."""
    callers = _range([case.callers for case in cases])
    words = "one caller" if callers == "1" else f"{callers} callers"
    calls = {case.call for case in cases}
    if calls == {"sync"}:
        return words
    return f"{words} (run_async{' and run' if len(calls) > 1 else ''})"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def runtime_line(label: str, info: RuntimeInfo, machine: str) -> str:
    """Name a runtime: ``current: onnxruntime 1.32.0, Python 3.11.9, numpy 2.4.0``.

    Args:
        label: What ids call it.
        info: What its workers said.
        machine: Name of the run's machine; one that ran elsewhere names its own.
    """
    distributions = " + ".join(
        f"{name} {version}" for name, version in info.distributions.items()
    ) or (f"onnxruntime {info.version}" if info.version else "without ONNX Runtime")
    elsewhere = f", on {info.host}" if info.host not in ("", machine) else ""
    return one_line(
        f"{label}: {distributions}, Python {info.python}, numpy {info.numpy}{elsewhere}"
    )


def engine_lines(shown: Sequence[Entry]) -> tuple[str, ...]:
    """Name what ran cases in place of ONNX Runtime: ``tract (engine): tract 0.23.9``.

    Args:
        shown: All cases.

    Returns:
        One line for each version of each engine and framework, those of processes that told it.
    """
    several = len({entry.result.case.runtime.label for entry in shown}) > 1
    lines: dict[str, None] = {}
    for entry in shown:
        case = entry.result.case
        for measurement in entry.result.measurements:
            if measurement.runtime.engine:
                where = f"+{case.runtime.label}" if several else ""
                version = measurement.runtime.engine_version or "of unknown version"
                named = f"{case.provider.alias}{where}{case.provider.role_note}"
                lines[one_line(f"{named}: {case.provider.name} {version}")] = None
    return tuple(lines)


def chain_lines(shown: Sequence[Entry]) -> tuple[str, ...]:
    """Say of cases on a chain of providers what its links ran, and what an idle one lacks.

    Args:
        shown: All cases.
    """
    return _of_cases((entry.result.case, chain_words(entry.result)) for entry in shown)


def fixed_lines(shown: Sequence[Entry]) -> tuple[str, ...]:
    """Say which sizes sessions were told, of cases whose id does not say that they were.

    Args:
        shown: All cases.
    """
    cases = (entry.result.case for entry in shown)
    return _of_cases((case, fixed_words(case)) for case in cases if FIX_DIMS not in case.knobs)


def _of_cases(said: Iterable[tuple[Case, str]]) -> tuple[str, ...]:
    """A line for all cases of which the same is said; none for those of which nothing is."""
    cases: dict[str, list[str]] = {}
    for case, words in said:
        if words:
            cases.setdefault(words, []).append(case.case_id)
    return tuple(
        one_line(f"{first}{f' and {len(others)} more' if others else ''}: {words}")
        for words, (first, *others) in cases.items()
    )


#: The stable facts that tell machines apart at a glance, and how each is written.
_MACHINE = {
    "cpu": "{}",
    "cpus_usable": "{}",
    "memory": "{}",
    "gpu": "{}",
    "system": "{}",
    "virtualisation": "{}",
}


#: Instructions that decide how fast a precision is, among the CPU's flags.
_INSTRUCTIONS = re.compile(r"avx2|avx512f|\w*vnni|\w*(?:fp16|fphp|bf16|i8mm)|amx_\w+|asimddp|sve2?")


def machine_line(run: Run) -> str:
    """Name the machine: ``ci-7: AMD EPYC (avx2), 2 CPUs, 23.5 GiB, Linux 6.18``."""
    stable = dict(run.machine.stable)
    flags = [flag for flag in stable.get("cpu_flags", "").split() if _INSTRUCTIONS.fullmatch(flag)]
    if flags and "cpu" in stable:
        stable["cpu"] += f" ({' '.join(flags)})"
    cpus = "{} CPU" if stable.get("cpus_usable") == "1" else "{} CPUs"
    forms = _MACHINE | {"cpus_usable": cpus}
    facts = [form.format(stable[name]) for name, form in forms.items() if stable.get(name)]
    if "cpu" not in stable:
        # Written by another version: whatever it held to be stable.
        facts = [f"{name} {value}" for name, value in list(stable.items())[:6]]
    more = len(run.hosts) - 1
    host = f"{run.machine.host} and {more} more" if more else run.machine.host
    return one_line(f"{host}: {', '.join(facts)}" if facts else host)


def model_line(group: ModelGroup) -> str:
    """Say what a model is, what it was fed, and how: what is alike in all of its cases.

    Args:
        group: All cases of the model.

    Returns:
        ``14.0 MB, 3.50 M parameters, x [1|8, 3, 224, 224] (H, W: default), all rows threads:1,
        accuracy on random inputs``; empty for a model that could not be read.
    """
    cases = [entry.result.case for entry in group.entries]
    model = cases[0].model
    parts = [format_amount(model.size_bytes, "bytes")] if model.size_bytes else []
    if model.parameters:
        noun = "parameter" if model.parameters == 1 else "parameters"
        parts.append(f"{format_count(model.parameters)} {noun}")
    if model.is_pruned:
        parts.append(zeros_text(model))
    if model.weights_as_inputs:
        parts.append(weights_as_inputs_text(model))
    if model.source != "file" and not model.is_made:
        parts.append(model.source)
    inferences = _timing(cases, None)
    if inferences:
        parts += _fed(inferences)
    if group.alike:
        parts.append(f"{'all rows' if len(cases) > 1 else 'with'} {' '.join(group.alike)}")
    steps = dict.fromkeys(
        step.text for case in cases for spec in case.inputs for step in spec.prepared
    )
    if steps:
        parts.append(f"real inputs: {', '.join(steps)}")
        compared = [
            entry.result.accuracy.samples for entry in group.entries if entry.result.accuracy
        ]
        if any(compared):
            parts.append(f"accuracy on {counted(max(compared), 'input set')}")
    beside = dict.fromkeys(name for case in cases for name in case.drawn_beside_files)
    if beside:
        parts.append(f"accuracy with random {', '.join(beside)}")
    if all_on_drawn_inputs(group.entries):
        parts.append(f"accuracy on {DRAWN_INPUTS}")
    return one_line(", ".join(parts))


def all_on_drawn_inputs(shown: Sequence[Entry]) -> bool:
    """Whether every verdict on answers rests on random inputs alone, and there is one.

    Where some do and some do not, each says it for itself.
    """
    known = [entry.summary.on_drawn_inputs for entry in shown if _has_verdict(entry)]
    return bool(known) and all(known)


def _has_verdict(entry: Entry) -> bool:
    return any(
        judgement.of == ACCURACY and not judgement.is_unjudged
        for judgement in entry.summary.judgements
    )


def _fed(cases: Sequence[Case]) -> list[str]:
    """Shapes of the inputs, and behind the last of them where sizes of symbols came from."""
    named_by_shape: dict[tuple[str, ...], list[str]] = {}
    for name, shapes in fed_shapes(cases):
        named_by_shape.setdefault(shapes, []).append(name)
    texts = [f"{named(names)} {' '.join(shapes)}" for shapes, names in named_by_shape.items()]
    if len(texts) > _SHAPES:
        texts = [*texts[:_SHAPES], f"{len(texts) - _SHAPES} more shapes"]
    origins: dict[str, dict[str, None]] = {}
    for case in cases:
        for name, resolved in resolved_sizes(case).items():
            origins.setdefault(resolved.origin, {})[name] = None
    if texts and origins:
        by_origin = "; ".join(
            f"{named(list(names))}: {origin}" for origin, names in origins.items()
        )
        texts[-1] += f" ({by_origin})"
    reason = cases[0].no_batch
    if reason and all(case.no_batch for case in cases):
        texts.append(f"items = 1 inference: {reason}")
    return texts


def failure_sentence(failure: Failure) -> str:
    """Return reason, phase and next step of a failure on one line: ``died (measuring).``"""
    text = failure.message.rstrip(". \n")
    if failure.signal and not failure.tells_signal:
        text += f", {failure.signal}"
    elif failure.exit_code:
        text += f", exit code {failure.exit_code}"
    text += f" ({failure.doing})" if failure.doing else ""
    if failure.hint:
        text += f". {failure.hint.rstrip('. ')}"
    return f"{one_line(text)}.".replace("?.", "?")


def failure_groups(shown: Sequence[Entry]) -> tuple[FailureGroup, ...]:
    """Group failed cases that share status and reason, in the order of the plan."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in shown:
        if not entry.measured:
            failure = entry.result.failure
            sentence = (
                failure_sentence(failure)
                if failure
                else FAILURE_KINDS.get(entry.result.status, "no reason was recorded") + "."
            )
            groups.setdefault((entry.failed_as, sentence), []).append(entry)
    return tuple(
        FailureGroup(
            entries=tuple(members),
            status=status,
            sentence=sentence,
            log_tail=next(
                (
                    entry.result.failure.log_tail
                    for entry in members
                    if entry.result.failure and entry.result.failure.log_tail.strip()
                ),
                "",
            ),
        )
        for (status, sentence), members in groups.items()
    )


def skip_lines(run: Run) -> tuple[str, ...]:
    """Say what was left out and why, one line a reason: ``azure, snpe: takes no node``."""
    # Plain pytest has one runtime, and naming it says nothing.
    several = len({"current", *(result.case.runtime.label for result in run.cases)}) > 1
    reasons: dict[tuple[str, str], list[str]] = {}
    for skip in run.skips:
        runtime = skip.runtime if several or skip.runtime != "current" else ""
        reasons.setdefault((skip.reason, runtime), []).append(skip.what)
    return tuple(
        one_line(f"{named(whats)}{f' (+{runtime})' if runtime else ''}: {reason}")
        for (reason, runtime), whats in reasons.items()
    )


def named(names: Sequence[str], limit: int = 3) -> str:
    """Spell out some names and count the rest: ``a, b, c and 4 more``."""
    unique = list(dict.fromkeys(names))
    rest = len(unique) - limit
    if rest < 1:
        return ", ".join(unique)
    return f"{', '.join(unique[:limit])} and {rest} more"
