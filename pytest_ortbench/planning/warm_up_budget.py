"""How long a worker may warm up: in proportion to what it is warmed up for."""

from __future__ import annotations

from pytest_ortbench.core.case import Case
from pytest_ortbench.worker.warm_up import least_seconds

#: Times the timed seconds of one worker. Seen with the timeout as the only bound: a detector of
#: 1.3 s an inference ran 33 times, 43 s, to be timed for 1.7 s.
_TIMES_TIMED = 2.0

#: A warm-up may in no case take more than this share of the time that there is.
_SHARE_OF_TIME = 0.25


def warm_up_budget_s(case: Case, *, within_s: float | None = None) -> float:
    """Return the seconds after which a worker's warm-up is cut off; three runs happen anyway.

    Twice the worker's share of ``--ort-time``, but not less than what its provider needs at least,
    nor more than a quarter of the time that there is.

    Args:
        case: What is warmed up for.
        within_s: Seconds that its worker has for everything; ``None`` for ``--ort-timeout``.
    """
    sampling = case.sampling
    timed_s = sampling.time_s / max(1, sampling.workers)
    wanted = max(least_seconds(case.provider), _TIMES_TIMED * timed_s)
    whole_s = sampling.timeout_s if within_s is None else max(0.0, within_s)
    return min(wanted, _SHARE_OF_TIME * whole_s)
