"""Validity flags: when a number must not be trusted, and what to do about it."""

from __future__ import annotations

from pytest_ortbench.core.flag_kind import FlagKind, flag_kind
from pytest_ortbench.core.placing import placed
from pytest_ortbench.passes.registry import PASSES

#: ``bars`` never ranked and never gated; ``blurs`` makes gaps inside the intervals ties and a gate
#: inconclusive; ``notes`` only informs.
SEVERITIES = ("bars", "blurs", "notes")


#: Flags without those of passes.
_STANDARD: tuple[FlagKind, ...] = (
    flag_kind(
        "NONFINITE",
        "bars",
        "outputs hold NaN or infinity",
        "Check the model, its inputs and the provider; nothing can be said of its accuracy.",
    ),
    flag_kind(
        "EMULATED",
        "bars",
        "kernels ran in another precision than asked",
        "Read it as the cost of conversion, not as this precision's speed.",
    ),
    flag_kind(
        "INACCURATE",
        "bars",
        "outputs are below the accuracy floor of this precision, or the task metric is",
        "Do not ship it; see the accuracy columns, or set a limit that your task allows.",
    ),
    flag_kind(
        "UNJUDGED",
        "bars",
        "a judgement lacks its evidence: accuracy, placement, warm-up or the labelled task",
        "The last lines say which one, and why; real inputs (--ort-inputs) or labels "
        "(--ort-dataset) often mend it.",
    ),
    flag_kind("SHAPES", "bars", "inputs differ between the two sides", "Compare equal shapes."),
    flag_kind(
        "UNSTEADY",
        "blurs",
        "the last third of the samples differs from the first third",
        "Measure longer (--ort-time) or on a quieter machine.",
    ),
    flag_kind(
        "STEAL",
        "blurs",
        "the hypervisor took more than 2 % of the CPU time",
        "Use a machine that is not shared, or compare both sides in one run (--ort-against).",
    ),
    flag_kind(
        "CPU-SHARE",
        "blurs",
        "in over a quarter of the blocks the process got less than 90 % of its CPU time",
        "Stop other load on this machine.",
    ),
    flag_kind(
        "OTHER-RUN",
        "blurs",
        "another run of pytest-ortbench measured on this machine at the same time",
        "Leave --ort-no-lock out: then one waits for the other.",
    ),
    flag_kind(
        "THROTTLED",
        "blurs",
        "the cgroup or the device slowed the process down",
        "Raise the quota, or let the device cool down.",
    ),
    flag_kind(
        "THREADS>CPUS",
        "blurs",
        "more threads than the process may use CPUs",
        "Lower --ort-threads.",
    ),
    flag_kind(
        "SPIN",
        "blurs",
        "threads of two live sessions spun on shared cores",
        "Use a runtime on this machine, whose workers can be suspended.",
    ),
    flag_kind(
        "PARTIAL",
        "notes",
        "some computing nodes ran on another provider",
        "See ops_elsewhere for the operators that the provider did not take.",
    ),
    flag_kind(
        "PYTHON-OPS",
        "notes",
        "operators are functions of Python, which run while they hold its global lock",
        "The row is that of this Python code; callers in one process wait for each other there. "
        "Write the operator in C++ for serving.",
    ),
    flag_kind(
        "UNCONFIRMED",
        "notes",
        "an option was given of which nothing proves that it does something",
        "The HTML report and the document name it; take the number as that of the case without "
        "it, unless you know better.",
    ),
    flag_kind(
        "RESOLUTION",
        "notes",
        "reading the clock costs more than 1 % of the median",
        "Use a larger batch for a number of this size.",
    ),
    flag_kind(
        "LOW-N",
        "notes",
        "fewer samples than the printed percentiles need",
        "Raise --ort-time.",
    ),
    flag_kind(
        "WARM-UP",
        "notes",
        "the warm-up was cut off before its runs were seen to be steady",
        "Raise --ort-time, which the warm-up is measured by.",
    ),
    flag_kind(
        "DRIFT",
        "notes",
        "workers became steadily slower or faster, in turn and each within itself",
        "Wait until the machine is quiet or thermally stable.",
    ),
    flag_kind(
        "NEIGHBOUR",
        "notes",
        "another process computed on the device before or after the runs",
        "Stop it and measure again.",
    ),
    flag_kind(
        "BIMODAL",
        "notes",
        "durations fall into two groups",
        "Look at the distribution plot; the median hides one of the groups.",
    ),
    flag_kind(
        "SPREAD",
        "notes",
        "medians of the worker processes differ by more than their own intervals and 10 %",
        "Trust the interval, not the value; more --ort-workers narrow it.",
    ),
    flag_kind(
        "ONE-WORKER",
        "notes",
        "one process only: the spread between processes is unknown, so intervals are widened "
        "by 5 % each way",
        "Use --ort-workers=3.",
    ),
    flag_kind(
        "FEWER-WORKERS",
        "notes",
        "not every worker finished within --ort-timeout; the others' samples stand",
        "Raise --ort-timeout, or ask for fewer --ort-workers.",
    ),
    flag_kind(
        "BUDGET",
        "notes",
        "it was measured for less time than without --ort-budget",
        "Its interval is wider and holds as often; raise --ort-budget, or ask for fewer cases.",
    ),
    flag_kind(
        "INPUT-DEPENDENT",
        "notes",
        "the work depends on the values of the inputs, and these were drawn",
        "The row is that of one drawn set; measure it with real inputs (--ort-inputs).",
    ),
    flag_kind(
        "SUBNORMAL",
        "notes",
        "outputs or weights hold subnormal numbers, which are slow on many CPUs",
        "Measure with real inputs (--ort-inputs), or with "
        "--ort-session-option=session.set_denormal_as_zero=1.",
    ),
    flag_kind(
        "CONSTANT",
        "notes",
        "every output is one repeated value",
        "Check the inputs; the measured work may not be the model's real work.",
    ),
    flag_kind(
        "EMPTY",
        "notes",
        "every output is empty",
        "A model that finds nothing works less than with real inputs (--ort-inputs); where inputs "
        "are empty too, the time is that of the call alone.",
    ),
    flag_kind(
        "NAN-INPUTS",
        "notes",
        "the inputs of the measured runs hold NaN or infinity",
        "Look at how they were made, unless the model takes NaN for a missing value.",
    ),
)

#: Every flag by name, in the order in which they are listed.
FLAGS: dict[str, FlagKind] = {
    kind.name: kind
    for kind in placed(
        _STANDARD,
        [placed_kind for entry in PASSES for placed_kind in entry.flags],
        lambda kind: kind.name,
    )
}
