"""How far an interval reaches whose samples are of a few fresh processes.

What differs between processes (layout of memory, placement on cores, the load of that minute) is
the same for all samples inside one, so however many they are, each process is one observation. The
lowest and the highest of ``k`` independent ones hold the median over processes with
``1 - 2 * 0.5 ** k``: 50 % for two, 75 % for three, 94 % for five. So to reach 95 %

- the range of six or more is enough, and of nine or more a part of it: ranks that bracket the
  median whatever the distribution (see :mod:`pytest_ortbench.analysis.order`);
- three to five reach as far as Student's t says of the logarithms of their numbers, if that is
  farther: ratios between processes are taken to be log-normal;
- two would reach 6.4 times as far as they are apart, which says nothing. Their range is moved
  outwards, each way, by as much as they differ (80 % where that is all there is), and by what
  processes were often seen to differ, if that is more;
- one is moved outwards by the latter.

All processes of a run are of the same minutes. On a shared machine those differ, too: the medians
of runs minutes apart scatter more than the processes of each say. What is known of that
(:data:`BETWEEN_RUNS`) joins what the processes say as independent deviations do: the root of the
sum of the squares.

Trials in one process that measure one number again (the windows of an energy pass) follow the same
rule, but that nothing is known of how far apart they are often seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import NamedTuple

from pytest_ortbench.analysis.order import DEVIATE, interval_ranks

#: By how much the ends of an interval that knows one or two processes are moved outwards at least:
#: between processes the same model was often seen to differ by this share.
PROCESS_SPREAD = 0.05

#: Standard deviation, as a share, by which latencies of runs of the same code differ on a shared
#: machine beside what their processes tell, and ratios to a yardstick, which move less. Counted in
#: ``docs/concepts/yardstick.md``.
BETWEEN_RUNS = 0.02
BETWEEN_RATIOS = 0.01

#: Quantiles of Student's t for 2.5 % beyond each end, by the number of observations: 2, 3 and 4
#: degrees of freedom. M. Abramowitz and I. A. Stegun, *Handbook of Mathematical Functions*,
#: table 26.10.
STUDENT = {3: 4.302653, 4: 3.182446, 5: 2.776445}


class OfProcess(NamedTuple):
    """The number of one process, and the interval that its own samples give, in any one unit.

    Where the latter is not known, ``low`` and ``high`` are the number itself.
    """

    low: float
    value: float
    high: float

    @classmethod
    def alone(cls, value: float) -> OfProcess:
        """Return a number without an interval."""
        return cls(value, value, value)


def over_processes(
    own: Sequence[OfProcess],
    also: tuple[float, float] | None = None,
    *,
    least: float = PROCESS_SPREAD,
    between_runs: float = 0.0,
) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a number over fresh processes.

    Args:
        own: What each process says, at least one.
        also: What the interval must hold in any case: one over all samples together.
        least: By which share the ends of one or two are moved outwards at least.
        between_runs: Standard deviation of runs beside that of processes, as a share.

    Returns:
        Low and high, which hold the median of the numbers. Of numbers that are not above 0, which
        have no ratios, the range.
    """
    low, high = _of_these_minutes(own, also, least)
    if not between_runs or low <= 0:
        return low, high
    return over_runs(median([process.value for process in own]), (low, high), between_runs)


def over_runs(middle: float, ends: tuple[float, float], between_runs: float) -> tuple[float, float]:
    """Return the ends of an interval that holds the median over runs of other minutes, too.

    Args:
        middle: The number, above 0.
        ends: Low and high as far as the processes of one run tell.
        between_runs: Standard deviation of runs beside that of processes, as a share.
    """
    low, high = ends
    apart = DEVIATE * between_runs
    return (
        middle * math.exp(-math.hypot(math.log(middle / low), apart)),
        middle * math.exp(math.hypot(math.log(high / middle), apart)),
    )


def _of_these_minutes(
    own: Sequence[OfProcess], also: tuple[float, float] | None, least: float
) -> tuple[float, float]:
    """The ends as far as the processes tell."""
    processes = len(own)
    first, last = interval_ranks(50, processes) or (1, processes)
    low = sorted(process.low for process in own)[first - 1]
    high = sorted(process.high for process in own)[last - 1]
    if also is not None:
        low, high = min(low, also[0]), max(high, also[1])
    values = [process.value for process in own]
    if min(values) <= 0:
        return low, high
    if processes < min(STUDENT):
        apart = max(values) / min(values)
        outwards = min(1 - least, 1 / apart), max(1 + least, apart)
        return min(low, low * outwards[0]), high * outwards[1]
    if processes in STUDENT:
        logarithms = [math.log(value) for value in values]
        middle = fmean(logarithms)
        reach = STUDENT[processes] * stdev(logarithms) / math.sqrt(processes)
        return min(low, math.exp(middle - reach)), max(high, math.exp(middle + reach))
    return low, high
