"""The operators that account for a change between two runtimes, for ``ortbench bisect``."""

from __future__ import annotations

from pytest_ortbench.cli.terminal import table
from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.profile.numbers.changes import operator_changes
from pytest_ortbench.passes.profile.report import CHANGE_HEADER, change_rows
from pytest_ortbench.passes.profile.run import profile_sides


def explain_change(case: Case, before: Runtime, after: Runtime, launcher: Launcher) -> list[str]:
    """Return which operators take more or less time on the second runtime, as lines."""
    try:
        profiles_before, profiles_after = profile_sides(case, before, after, launcher)
    except WorkerError as error:
        return [f"the operators can't be compared: {error.failure.told}"]
    profiles = (*profiles_before, *profiles_after)
    missing = next((profile.reason for profile in profiles if profile.reason), "")
    if missing:
        return [f"the operators can't be compared: {missing}"]
    changes = operator_changes(profiles_before, profiles_after)
    return [
        "",
        f"where the time of a run goes, {before.label} and {after.label} (with the profiler on):",
        table(change_rows(changes), header=CHANGE_HEADER, indent=2),
    ]
