"""Validity flags: when a number must not be trusted, and what to do about it."""

from __future__ import annotations

from pytest_ortbench.core.flag_kind import FlagKind, flag_kind
from pytest_ortbench.core.placing import placed
from pytest_ortbench.passes.registry import PASSES

#: ``bars`` never ranked and never gated; ``blurs`` makes gaps inside the intervals ties and a gate
#: inconclusive; ``notes`` only informs.
SEVERITIES = ("bars", "blurs", "notes")

#: The flag of a number whose samples are all of one process.
ONE_WORKER = "ONE-WORKER"

#: The flag of a case of which something could not be judged.
UNJUDGED = "UNJUDGED"

#: The flag of a number whose processes did not get their CPU time.
CPU_SHARE = "CPU-SHARE"

#: Flags of a number beside which other work used the machine.
OF_OTHER_WORK = ("STEAL", CPU_SHARE, "FAR-CPUS", "OTHER-RUN", "MEMORY-BUSY")


#: Flags without those of passes.
_STANDARD: tuple[FlagKind, ...] = (
    flag_kind(
        "NONFINITE",
        "bars",
        "outputs hold NaN or infinity",
        "Check the model, its inputs and the provider. The accuracy can't be judged.",
    ),
    flag_kind(
        "EMULATED",
        "bars",
        "kernels ran in another precision than requested",
        "Read the latency as the cost of conversion, not as the speed of this precision.",
    ),
    flag_kind(
        "INACCURATE",
        "bars",
        "the accuracy of the outputs, or the task metric, is below the minimum for this precision",
        "Do not deploy this variant as it is. See the accuracy columns, or set a limit that your "
        "task allows.",
    ),
    flag_kind(
        UNJUDGED,
        "bars",
        "accuracy, placement, warm-up, the labelled task or the export could not be judged for "
        "lack of evidence",
        "The last lines say what and why. Real inputs (--ort-inputs) or labels (--ort-dataset) "
        "often help.",
    ),
    flag_kind(
        "SHAPES",
        "bars",
        "the two sides had different inputs",
        "Compare both sides with equal shapes.",
    ),
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
        CPU_SHARE,
        "blurs",
        "in over a quarter of the blocks the process got less than 90 % of its CPU time",
        "Stop other programs on this machine.",
    ),
    flag_kind(
        "FAR-CPUS",
        "blurs",
        "the host had moved the machine's CPUs far apart, so that threads of a model wait longer "
        "for each other",
        "Measure again in a minute, with fewer --ort-threads, or on a machine that is not shared.",
    ),
    flag_kind(
        "OTHER-RUN",
        "blurs",
        "another run of pytest-ortbench measured on this machine at the same time",
        "Measure again when the other run is over. Runs without --ort-no-lock wait for each other.",
    ),
    flag_kind(
        "THROTTLED",
        "blurs",
        "a CPU quota (cgroup) or the device slowed the process down",
        "Raise the quota, or let the device cool down.",
    ),
    flag_kind(
        "THREADS>CPUS",
        "blurs",
        "there are more threads than CPUs that the process may use",
        "Lower --ort-threads.",
    ),
    flag_kind(
        "SPIN",
        "blurs",
        "spinning threads of two sessions shared cores",
        "Use a runtime on this machine, where workers can be suspended.",
    ),
    flag_kind(
        "PARTIAL",
        "notes",
        "some computing nodes ran on another provider",
        "See ops_elsewhere for the operators that the provider did not run.",
    ),
    flag_kind(
        "LOWERED",
        "notes",
        "the provider multiplies float32 in fewer bits than float32 has",
        "Read the row as one of that precision; an option of the provider may choose another.",
    ),
    flag_kind(
        "IDLE-LINK",
        "notes",
        "a link of the chain of providers ran no computing node",
        "See the lines about the chain. If they name an order in which this link runs nodes, use "
        "that order. If not, leave the link out.",
    ),
    flag_kind(
        "SOFTWARE",
        "notes",
        "the device is a program on this machine's CPU, in the place of a GPU or an accelerator",
        "The row shows that the model runs there and what its outputs are. Measure latency on the "
        "hardware.",
    ),
    flag_kind(
        "IN-TURN",
        "notes",
        "callers of one session waited for each other, since the provider runs one at a time",
        "A latency includes the wait. Several processes (--ort-processes) may raise throughput.",
    ),
    flag_kind(
        "PYTHON-OPS",
        "notes",
        "operators are Python functions, which hold Python's global lock while they run",
        "The row measures this Python code, and callers in one process wait for each other. "
        "Write the operator in C++ for serving.",
    ),
    flag_kind(
        "UNCONFIRMED",
        "notes",
        "an option was given, and nothing shows that it has an effect",
        "The HTML report and the document name the option. Read the number as if the option were "
        "not set, unless you know that it has an effect.",
    ),
    flag_kind(
        "RESOLUTION",
        "notes",
        "reading the clock costs more than 1 % of the median",
        "Use a larger batch, so that one inference takes longer.",
    ),
    flag_kind(
        "LOW-N",
        "notes",
        "there are fewer samples than the printed percentiles need",
        "Raise --ort-time.",
    ),
    flag_kind(
        "WARM-UP",
        "notes",
        "the warm-up ended before latencies were steady",
        "Raise --ort-time, which also gives the warm-up more time.",
    ),
    flag_kind(
        "DRIFT",
        "notes",
        "latency rose or fell steadily, from worker to worker and within each worker",
        "Measure again when the machine is quiet and its temperature is steady.",
    ),
    flag_kind(
        "NEIGHBOUR",
        "notes",
        "another process used the device before or after the runs",
        "Stop that process, and measure again.",
    ),
    flag_kind(
        "MEMORY-BUSY",
        "notes",
        "other work used the machine's memory or its last cache, which makes models slower, each "
        "by another share",
        "Compare with --ort-against, which measures both sides in the same minutes, or measure "
        "again at a calmer time, or on a machine that is not shared.",
    ),
    flag_kind(
        "BIMODAL",
        "notes",
        "durations fall into two groups",
        "See the distribution plot. The median hides one of the groups.",
    ),
    flag_kind(
        "SPREAD",
        "notes",
        "medians of the worker processes differ by more than 10 % and by more than their intervals",
        "Rely on the interval, not on the value. More --ort-workers narrow the interval.",
    ),
    flag_kind(
        ONE_WORKER,
        "notes",
        "only one process was measured, so the spread between processes is unknown and intervals "
        "are widened by 5 % each way",
        "Use --ort-workers=3.",
    ),
    flag_kind(
        "FEWER-WORKERS",
        "notes",
        "not every worker finished within --ort-timeout, or within the case's share of "
        "--ort-budget, and the samples of the others are used",
        "Raise --ort-timeout (or --ort-budget), or ask for fewer --ort-workers.",
    ),
    flag_kind(
        "BUDGET",
        "notes",
        "the case was measured for less time than without --ort-budget",
        "The interval is wider, and with three workers or more it holds as often. Raise "
        "--ort-budget, or request fewer cases.",
    ),
    flag_kind(
        "INPUT-DEPENDENT",
        "notes",
        "the work depends on the input values, and these were random",
        "The row is valid for one random set. Measure with real inputs (--ort-inputs).",
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
        "every output consists of one repeated value",
        "Check the inputs. The measured work may differ from the model's real work.",
    ),
    flag_kind(
        "EMPTY",
        "notes",
        "every output is empty",
        "A model that finds nothing does less work than on real inputs (--ort-inputs). With "
        "empty inputs, the time is that of the call alone.",
    ),
    flag_kind(
        "NAN-INPUTS",
        "notes",
        "the inputs of the measured runs hold NaN or infinity",
        "Check how the inputs were made, unless the model reads NaN as a missing value.",
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
