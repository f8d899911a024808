"""How many requests a second one machine can take before the p99 of waiting and service is late,
or another percentile of it.

The model is M/G/1: requests arrive at random (Poisson), one server takes them in order, service
times are the measured ones. The waiting time follows Pollaczek and Khinchine: with utilisation ρ
it is the sum of a geometric number (parameter ρ) of residual service times, whose density is
``P(S > x) / E[S]`` (L. Kleinrock, *Queueing Systems* 1, 5.7). The sum is computed on a grid by
Panjer's recursion for the geometric case (H. Panjer, ASTIN Bulletin 12 (1981) 22), which is exact
up to the limit without looking beyond it. Residuals are spread over the two neighbouring points of
the grid so that their mean stays exact (H. Gerber, Insurance 1 (1982) 13).

Several machines: each request goes to one of them at random, so each is such a queue by itself.
A dispatcher that sends to the emptiest does better; so the number of machines is on the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Points of the grid between 0 and the limit, and utilisations that are tried at a time.
GRID, TRIED = 500, 48
#: Above this a queue is never planned: its waiting time is all luck.
MOST_BUSY = 0.99


def capacity(
    service_s: Sequence[float],
    limit_s: float,
    *,
    scales: Sequence[float] = (1.0,),
    kinds: Sequence[Sequence[float]] = (),
    percent: float = 99.0,
) -> list[float]:
    """Return the highest rates at which so many of the requests end within a limit.

    Args:
        service_s: Equally likely service times in seconds, at least one, all above 0.
        limit_s: Latest end after arrival, in seconds.
        scales: Factors on the service times, one result each: what the interval of the mean
            leaves open.
        kinds: Service times of each kind of request, where all of them wait in one queue and each
            kind must be in time; by default there is but one kind.
        percent: How many of them, in per cent.

    Returns:
        Requests a second for each scale; 0 where not even an idle machine keeps the limit.
    """
    import numpy as np

    service = np.sort(np.asarray(service_s, dtype=np.float64))
    mean = float(service.mean())
    services = [np.asarray(kind, dtype=np.float64) for kind in kinds] or [service]
    # Slower service with this limit is the same as this service with a tighter limit.
    limits = [limit_s / scale for scale in scales]
    horizon = max(limits)
    residual = _residual(service, mean, horizon)
    low, high = np.zeros(len(limits)), np.full(len(limits), MOST_BUSY)
    tried = np.linspace(0.0, MOST_BUSY, TRIED)
    waiting = _waiting(residual, tried)
    for index, limit in enumerate(limits):
        low[index], high[index] = _bracket(tried, waiting, services, limit, horizon, percent)
    # A second look between the neighbours gives the utilisation to a two-thousandth.
    capacities = []
    for index, (limit, scale) in enumerate(zip(limits, scales, strict=True)):
        if high[index] > low[index]:
            tried = np.linspace(low[index], high[index], TRIED)
            finer = _waiting(residual, tried)
            low[index], _ = _bracket(tried, finer, services, limit, horizon, percent)
        capacities.append(float(low[index]) / (mean * scale))
    return capacities


def _residual(service: Floats, mean: float, horizon: float) -> Floats:
    """Mass of the residual service time at the points of the grid, its mean kept."""
    import numpy as np

    step = horizon / GRID
    edges = np.arange(GRID + 2) * step
    # ∫ P(S > x) dx up to each edge is the mean of min(S, edge); its own integral gives the mean
    # inside each cell.
    counts = np.searchsorted(service, edges, side="right")
    sums = np.concatenate([[0.0], np.cumsum(service)])
    squares = np.concatenate([[0.0], np.cumsum(service**2)])
    size = len(service)
    first = (sums[counts] + edges * (size - counts)) / size
    second = (squares[counts] / 2 + edges**2 / 2 * (size - counts)) / size
    mass = np.diff(first) / mean
    moment = np.diff(second) / mean
    start = edges[:-1]
    upper = (moment - start * mass) / step
    spread = np.zeros(GRID + 1)
    spread += (mass - upper)[: GRID + 1]
    spread[1:] += upper[:GRID]
    return spread


def _waiting(residual: Floats, busy: Floats) -> Floats:
    """Distribution function of the waiting time on the grid: a row for each utilisation."""
    import numpy as np

    masses = np.zeros((len(busy), GRID + 1))
    factor = 1.0 / (1.0 - busy * residual[0])
    masses[:, 0] = (1.0 - busy) * factor
    for index in range(1, GRID + 1):
        earlier = masses[:, index - 1 :: -1]
        masses[:, index] = busy * factor * (earlier @ residual[1 : index + 1])
    return np.cumsum(masses, axis=1)


def _bracket(
    busy: Floats,
    waiting: Floats,
    kinds: Sequence[Floats],
    limit: float,
    horizon: float,
    percent: float,
) -> tuple[float, float]:
    """The last utilisation that keeps the limit, and the first that does not."""
    import numpy as np

    grid = np.linspace(0.0, horizon, GRID + 1)
    slacks = [limit - service[service <= limit] for service in kinds]
    on_time = np.array(
        [
            min(
                np.interp(slack, grid, row).sum() / len(service)
                for slack, service in zip(slacks, kinds, strict=True)
            )
            for row in waiting
        ]
    )
    late = np.flatnonzero(on_time < percent / 100)
    if not len(late):
        return float(busy[-1]), float(busy[-1])
    first = int(late[0])
    if first == 0:
        return 0.0, 0.0
    return float(busy[first - 1]), float(busy[first])
