"""Until when one worker of a case may time, so that the later ones have their share, too."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.outcome import Startup, WarmUp
from pytest_ortbench.worker.accuracy import SAMPLES

#: Runs at the end of the warm-up that say how long one inference takes.
_LAST_OF_WARM_UP = 5

#: What a process has of a CPU that it has for itself.
_ONE_CPU = 0.9

#: Runs at its end among which some are undisturbed.
_UNDISTURBED_OF = 20

#: What profiling and comparing are expected to take, in times of the same work unprofiled.
_WITH_PROFILER = 1.25

#: Kept for what takes time besides inferences, in seconds, and at most as a share of the worker's.
_SLACK_S, _SLACK_SHARE = 1.0, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShare:
    """What one worker may take of the time that a case has left.

    Attributes:
        began: When the worker was started, of ``time.monotonic()``.
        deadline: When the case must be over, likewise.
        workers_left: Workers that share the time in between, this one included.
    """

    began: float
    deadline: float
    workers_left: int

    def end(self, *, more_s: float = 0.0) -> float:
        """When the share is over, of ``time.monotonic()``.

        Args:
            more_s: Seconds of work that only this worker has; all workers give of theirs for it.
        """
        return self.began + (self.deadline - self.began - more_s) / self.workers_left

    def timed_until(self, each_ns: float, startup: Startup, *, first: bool) -> float:
        """When timing must stop, of ``time.monotonic()``; it may have passed already.

        Behind it there is room for one more look at the outputs and, in the first worker, for
        profiling and comparing in another session.

        Args:
            each_ns: What an inference takes, see :func:`typical_ns`.
            startup: Its start, which says what another session takes.
            first: Whether it is the first worker.
        """
        each_s = each_ns * 1e-9
        more_s = 0.0
        if first:
            again_s = (startup.session_create_ns + startup.first_inference_ns) * 1e-9
            more_s = _WITH_PROFILER * (again_s + SAMPLES * each_s)
        whole_s = self.end() - self.began
        slack_s = min(_SLACK_S, max(0.0, _SLACK_SHARE * whole_s))
        return self.end(more_s=more_s) - each_s - slack_s


def typical_ns(warm_up: WarmUp) -> float:
    """Nanoseconds of one inference at the end of a warm-up; 0 if there was none."""
    last = warm_up.durations_ns[-_LAST_OF_WARM_UP:]
    return sum(last) / len(last) if last else 0.0


def usual_ns(warm_up: WarmUp) -> float:
    """Nanoseconds of one inference of a warm-up where nothing disturbs it; 0 if there was none.

    Unlike :func:`typical_ns` it is no upper bound of what the next ones take.
    """
    last = sorted(warm_up.durations_ns[-_UNDISTURBED_OF:])
    return last[len(last) // 4] if last else 0.0


def cpus_used(warm_up: WarmUp) -> float | None:
    """CPUs that a model keeps busy where nothing disturbs it; ``None`` if that is not known.

    Beside other work an inference takes longer, and its CPU time stays about the same. Where a
    process did not even have one CPU, nothing is known.
    """
    usual = usual_ns(warm_up)
    if warm_up.cpu_ns is None or not usual or warm_up.cpu_ns < _ONE_CPU * warm_up.total_ns:
        return None
    return warm_up.cpu_ns / warm_up.count / usual
