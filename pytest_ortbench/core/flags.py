"""Validity flags: when a number must not be trusted, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

#: ``bars`` never ranked and never gated; ``blurs`` makes gaps inside the intervals ties and a gate
#: inconclusive; ``notes`` only informs.
SEVERITIES = ("bars", "blurs", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagKind:
    """What a flag means: its severity and one sentence of advice."""

    name: str
    severity: str
    meaning: str
    advice: str


def _kind(name: str, severity: str, meaning: str, advice: str) -> tuple[str, FlagKind]:
    return name, FlagKind(name=name, severity=severity, meaning=meaning, advice=advice)


FLAGS: dict[str, FlagKind] = dict(
    (
        _kind(
            "NONFINITE",
            "bars",
            "outputs hold NaN or infinity",
            "Check the model, its inputs and the provider; nothing can be said of its accuracy.",
        ),
        _kind(
            "EMULATED",
            "bars",
            "kernels ran in another precision than asked",
            "Read it as the cost of conversion, not as this precision's speed.",
        ),
        _kind(
            "INACCURATE",
            "bars",
            "outputs are below the accuracy floor of this precision, or the task metric is",
            "Do not ship it; see the accuracy columns, or set a limit that your task allows.",
        ),
        _kind(
            "UNJUDGED",
            "bars",
            "a judgement lacks its evidence: accuracy, placement, warm-up or the labelled task",
            "The last lines say which one, and why; real inputs (--ort-inputs) or labels "
            "(--ort-dataset) often mend it.",
        ),
        _kind("SHAPES", "bars", "inputs differ between the two sides", "Compare equal shapes."),
        _kind(
            "UNSTEADY",
            "blurs",
            "the last third of the samples differs from the first third",
            "Measure longer (--ort-time) or on a quieter machine.",
        ),
        _kind(
            "STEAL",
            "blurs",
            "the hypervisor took more than 2 % of the CPU time",
            "Use a machine that is not shared, or compare both sides in one run (--ort-against).",
        ),
        _kind(
            "CPU-SHARE",
            "blurs",
            "in over a quarter of the blocks the process got less than 90 % of its CPU time",
            "Stop other load on this machine.",
        ),
        _kind(
            "THROTTLED",
            "blurs",
            "the cgroup or the device slowed the process down",
            "Raise the quota, or let the device cool down.",
        ),
        _kind(
            "THREADS>CPUS",
            "blurs",
            "more threads than the process may use CPUs",
            "Lower --ort-threads.",
        ),
        _kind(
            "SPIN",
            "blurs",
            "threads of two live sessions spun on shared cores",
            "Use a runtime on this machine, whose workers can be suspended.",
        ),
        _kind(
            "PARTIAL",
            "notes",
            "some computing nodes ran on another provider",
            "See ops_elsewhere for the operators that the provider did not take.",
        ),
        _kind(
            "UNCONFIRMED",
            "notes",
            "an option was given of which nothing proves that it does something",
            "The HTML report and the document name it; take the number as that of the case without "
            "it, unless you know better.",
        ),
        _kind(
            "RESOLUTION",
            "notes",
            "reading the clock costs more than 1 % of the median",
            "Use a larger batch for a number of this size.",
        ),
        _kind(
            "LOW-N",
            "notes",
            "fewer samples than the printed percentiles need",
            "Raise --ort-time.",
        ),
        _kind(
            "WARM-UP",
            "notes",
            "the warm-up was cut off before its runs were seen to be steady",
            "Raise --ort-time, which the warm-up is measured by.",
        ),
        _kind("CLOCK", "notes", "clock frequency changed by more than 5 %", "Fix the frequency."),
        _kind(
            "DRIFT",
            "notes",
            "workers became steadily slower or faster, in turn and each within itself",
            "Wait until the machine is quiet or thermally stable.",
        ),
        _kind(
            "NEIGHBOUR",
            "notes",
            "another process computed on the device before or after the runs",
            "Stop it and measure again.",
        ),
        _kind(
            "BIMODAL",
            "notes",
            "durations fall into two groups",
            "Look at the distribution plot; the median hides one of the groups.",
        ),
        _kind(
            "SPREAD",
            "notes",
            "medians of the worker processes differ by more than their own intervals and 10 %",
            "Trust the interval, not the value; more --ort-workers narrow it.",
        ),
        _kind(
            "ONE-WORKER",
            "notes",
            "one process only: the spread between processes is unknown, so intervals are widened "
            "by 5 % each way",
            "Use --ort-workers=3.",
        ),
        _kind(
            "FEWER-WORKERS",
            "notes",
            "not every worker finished within --ort-timeout; the others' samples stand",
            "Raise --ort-timeout, or ask for fewer --ort-workers.",
        ),
        _kind(
            "ENERGY-DISAGREE",
            "notes",
            "energy counter and integrated power differ by more than 10 %",
            "Trust neither: power and energy of the case are not ranked.",
        ),
        _kind(
            "SUBNORMAL",
            "notes",
            "outputs hold subnormal numbers, which are slow on CPUs",
            "Measure with real inputs (--ort-inputs).",
        ),
        _kind(
            "CONSTANT",
            "notes",
            "every output is one repeated value",
            "Check the inputs; the measured work may not be the model's real work.",
        ),
        _kind(
            "NAN-INPUTS",
            "notes",
            "the inputs of the measured runs hold NaN or infinity",
            "Look at how they were made, unless the model takes NaN for a missing value.",
        ),
    )
)
