"""What a yardstick costs, and whether the latency that is seen stays the same beside it.

    python benchmarks/yardstick_cost.py [--runs 10] [--seconds 5]

The same cases by the standard pass with ``--ort-yardstick=auto`` and ``off`` in turns, in random
order. Goals: the median over the pairs of runs of p50 with ÷ p50 without is within 2 %, and a case
takes at most 25 % longer. Each median has its 95 % interval by order statistics. A goal is
undecided where that spans it, as on a busy machine, which takes more runs. Interrupted, it prints
what it has.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from paired_cases import bench
from yardstick_trials import MODELS, THREADS

from pytest_ortbench.analysis.order import interval_ranks
from pytest_ortbench.analysis.samples import median_latency
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution import standard

AUTO, OFF = "auto", "off"

#: What is compared of both: name, and what it is of a result.
COMPARED: dict[str, Callable[[CaseResult], float]] = {
    "p50": lambda result: median_latency([own.samples for own in result.measurements]).value_ns,
    "fastest": lambda result: median(own.samples.min_ns for own in result.measurements),
    "time of the case": lambda result: result.wall_s,
}


#: By how much the first may differ either way, and the last may be more.
SAME, LONGER = 0.02, 0.25


def main() -> int:
    """Print the ratios of all runs; 1 if a goal is missed, 2 if one is undecided."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0, help="timed, over three processes")
    args = parser.parse_args()
    pairs: dict[str, list[dict[str, CaseResult]]] = defaultdict(list)
    verdicts: set[str] = set()
    with bench(MODELS, *THREADS) as ready:
        try:
            for _ in range(args.runs):
                for case in random.sample(ready.cases, len(ready.cases)):
                    pair = {}
                    for way in random.sample((AUTO, OFF), 2):
                        sampling = replace(case.sampling, time_s=args.seconds, yardstick=way)
                        asked = replace(case, sampling=sampling)
                        pair[way] = standard.measure(asked, ready.launcher, ready.folder)
                    if all(result.status == "measured" for result in pair.values()):
                        pairs[case.case_id].append(pair)
        except KeyboardInterrupt:
            print("stopped; this is what was measured")
    for name, of_case in sorted(pairs.items()):
        flags = sum(bool(result.flags) for pair in of_case for result in pair.values())
        print(f"{name}: {len(of_case)} pairs, {flags} of {2 * len(of_case)} runs with a flag")
        for what, value in COMPARED.items():
            more = sorted(value(pair[AUTO]) / value(pair[OFF]) - 1 for pair in of_case)
            ranks = interval_ranks(50, len(more))
            low, high = (more[ranks[0] - 1], more[ranks[1] - 1]) if ranks else (-1.0, 1.0)
            verdict = judged(what, low, high)
            verdicts.add(verdict)
            print(f"  {what:18}{median(more):+.1%} [{low:+.1%}, {high:+.1%}]  {verdict}")
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def judged(what: str, low: float, high: float) -> str:
    """Return whether an interval of a difference keeps the goal of what it is of."""
    if what == "time of the case":
        least, most = -1.0, LONGER
    elif what == "p50":
        least, most = -SAME, SAME
    else:
        return ""
    if least <= low and high <= most:
        return "kept"
    return "MISSED" if low > most or high < least else "undecided"


if __name__ == "__main__":
    sys.exit(main())
