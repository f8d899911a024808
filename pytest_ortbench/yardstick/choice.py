"""Whether a case takes turns with a yardstick, and with which."""

from __future__ import annotations

import platform

from pytest_ortbench.core.case import Case
from pytest_ortbench.launch.process import can_stop_processes
from pytest_ortbench.schema.case_questions import Opened

#: Timed seconds of a worker from which on the start of a yardstick is a small part of its time.
LEAST_TIMED_S = 0.5

#: All that turns of the yardstick take, as a share of what the model is timed for: with the start
#: of its process a case of 5 s takes a quarter longer, its own starts included.
SHARE = 0.25

#: What the start of a yardstick takes: Python and numpy.
START_S = 0.3


def absence_of(case: Case, opened: Opened) -> str:
    """Return why a worker takes no turns, a key of ``ABSENCES``; empty if it does.

    Args:
        case: Its case, with the workers and seconds that it has.
        opened: What the worker said of itself.
    """
    if _is_elsewhere(opened):
        return "remote"
    # Its name tells nothing of a provider that was given no device.
    seen = case.provider.runs_on_cpus(opened.info.provider_devices)
    return _absence(case, on_cpus=True) if seen else expected_absence(case)


def on_own_cpus(case: Case, opened: Opened) -> bool:
    """Return whether it is the CPUs of this machine that compute, as far as is known."""
    runtime = case.runtime
    is_remote = _is_elsewhere(opened) or not runtime.shares_files or runtime.through_shell
    return not is_remote and case.provider.works_on_cpus


def expected_absence(case: Case) -> str:
    """Return the same as far as it is known before a worker of the case was started."""
    return _absence(case, on_cpus=all(link.works_on_cpus for link in case.provider.links))


def _absence(case: Case, *, on_cpus: bool) -> str:
    sampling, runtime = case.sampling, case.runtime
    reasons = {
        "off": sampling.yardstick == "off",
        "requests": case.generation is not None,
        "callers": case.callers > 1,
        "device": not on_cpus,
        "remote": not runtime.shares_files or runtime.through_shell,
        "suspension": not can_stop_processes(),
        "short": sampling.time_s < LEAST_TIMED_S * max(1, sampling.workers),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def chosen_yardstick(asked: str, *, threads: int, cpus_used: float | None) -> str:
    """Return which yardstick a case takes.

    By itself it takes the parallel one if the model keeps more than half of its further threads
    busy, which threads that spin are, too: fewer CPUs slow both down alike then. Else it takes the
    mixed one.

    Args:
        asked: One of ``YARDSTICK_CHOICES`` but ``off``.
        threads: Threads of the model.
        cpus_used: CPUs that it keeps busy; ``None`` where that is not known.
    """
    if asked != "auto":
        return asked
    is_busy = cpus_used is None or cpus_used > (1 + threads) / 2
    return "parallel" if threads > 1 and is_busy else "mixed"


def yardstick_threads(name: str, *, threads: int, cpus: int) -> int:
    """Return on how many threads a yardstick works.

    Args:
        name: Which yardstick.
        threads: Threads of the model.
        cpus: CPUs that it may use.
    """
    return max(1, min(threads, cpus)) if name == "parallel" else 1


def _is_elsewhere(opened: Opened) -> bool:
    """Whether a worker names another machine: a container has a name of its own, too."""
    return opened.info.host not in ("", platform.node())
