"""What a run keeps and judges once its last test is over, before its files are written."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import OrtbenchError

if TYPE_CHECKING:
    from pytest_ortbench.plugin.bench import Bench

#: What an error that nobody foresaw is followed by.
DEFECT = "This is a defect of pytest-ortbench, please report it"


def keep(bench: Bench) -> None:
    """Write the document before anything is compared; it counts as unfinished until then."""
    if bench.started and bench.engine.results and bench.folder is not None:
        # What fails here fails again where it is reported.
        with bench.shield.held(), suppress(OrtbenchError):
            bench.folder.keep(bench.engine.run(interrupted=True))


def settle(bench: Bench) -> bool:
    """Judge what no test carried; say what was not judged, and whether that fails the run.

    Nothing is missing in a run of pytest-xdist, whose tests fail, nor where no test was run.
    """
    if not bench.ran or bench.collection.usage_errors or hasattr(bench.config, "workerinput"):
        return False
    try:
        bench.judging.settle()
    except OrtbenchError as error:
        bench.errors.append(f"gate: {error}")
        return True
    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost what was measured
        bench.errors.append(f"gate: {type(error).__name__}: {error}. {DEFECT}")
        return True
    problems = [*bench.judging.problems(), *bench.asked_limits.problems()]
    if bench.gating is not None:
        problems += [f"gate: {text}" for text in bench.gating.problems()]
        bench.remarks += [f"gate: {text}" for text in bench.gating.remarks()]
    problems += bench.misplaced.problems(bench.fates)
    # Where all that was asked for is gone, the verdicts on that are what the run says.
    if bench.collection.left_out and not (bench.gating and bench.gating.items):
        problems.append(f"no case was measured: {bench.collection.why_no_case}")
    bench.errors += problems
    bench.remarks += [*bench.judging.remarks(), *bench.asked_limits.remarks()]
    bench.remarks += bench.marked_limits.remarks(bench.fates)
    return bool(problems)
