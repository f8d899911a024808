"""The commands with which a run ends: what its evidence suggests, as the user would type it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.next_step import NextStep
from pytest_ortbench.analysis.next_steps import next_steps
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.complaint import LIMIT
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.plugin.options import ROWS
from pytest_ortbench.report.escape import encodable

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case, Key
    from pytest_ortbench.plugin.bench import Bench

#: Metrics that a profile by node explains.
_SPEEDS = frozenset(name for name in METRICS if name.partition("_")[0] in ("latency", "throughput"))


def next_lines(bench: Bench, *, encoding: str) -> list[str]:
    """Return up to three suggestions, each with the command that carries it out.

    Args:
        bench: A run that is over.
        encoding: Of the stream that the lines go to.
    """
    run = bench.finished
    if run is None or run.finished_at is None or not run.cases:
        return []
    config = bench.config
    chosen = {row.flag for row in ROWS if row.field in bench.options.places}
    is_stored = bench.folder is not None
    # The console tool knows neither of another root nor of another configuration file.
    is_usual = config.getoption("rootdir") is None and config.getoption("inifilename") is None
    steps = next_steps(
        run,
        bench.shown.summaries,
        chosen=chosen,
        is_stored=is_stored,
        is_profiled_again=is_stored and is_usual,
        too_slow=_too_slow(bench),
    )
    if not steps:
        return []
    arguments = [str(argument) for argument in config.invocation_params.args]
    folder = config.invocation_params.dir
    lines = ["next:"]
    for step in steps:
        words = None
        if step.case_id:
            words = _profile_words(step, run.run_id, bench.options.results, folder)
        elif step.wrong is not None:
            words = _accuracy_words(step.wrong, folder)
        command = words or [*pytest_words(sys.argv[0]), *arguments_with(arguments, step.options)]
        lines += [f"  {step.why}", f"    {in_shell(command)}"]
    return [encodable(line, encoding) for line in lines]


def _too_slow(bench: Bench) -> set[Key]:
    """The cases that are beyond a limit on latency or throughput."""
    names = {
        complaint.case
        for complaint in bench.complaints.told(bench.outcomes.failed)
        if complaint.kind == LIMIT and complaint.about in _SPEEDS
    }
    return {key for key, planned in bench.planned.items() if bench.name_of(planned) in names}


def arguments_with(arguments: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command line with some options set, whatever they were.

    Args:
        arguments: As the user wrote them.
        options: Values by flag.
    """
    kept: list[str] = []
    behind = list(arguments)
    while behind:
        argument = behind.pop(0)
        if argument in options:
            del behind[:1]  # its value
        elif argument.partition("=")[0] not in options:
            kept.append(argument)
    return [*kept, *(f"{flag}={value}" for flag, value in options.items())]


def pytest_words(program: str) -> list[str]:
    """Return how pytest was started, so that the same one starts again.

    Args:
        program: As the interpreter was told.
    """
    path = Path(program)
    if path.stem == "__main__" and path.parent.name in ("pytest", "_pytest"):
        return [_on_path(sys.executable), "-m", "pytest"]
    if path.stem in ("pytest", "py.test"):
        return [_on_path(program)]
    return ["pytest"]


def _on_path(program: str) -> str:
    """Return the name of a program where that is enough to start it, else its path."""
    name = Path(program).name
    there = shutil.which(name)
    is_same = there is not None and Path(there).absolute() == Path(program).absolute()
    return name if is_same else program


def _profile_words(step: NextStep, run_id: str, results: Path, folder: Path) -> list[str]:
    is_default = folder / results == folder / "results"
    where = [] if is_default else [f"--results={results}"]
    return [*_tool_words(), "profile", step.case_id, f"--run={run_id}", *where]


def _accuracy_words(case: Case, folder: Path) -> list[str]:
    """The command that compares the nodes of a case, with its inputs and sizes."""
    files = dict.fromkeys(spec.path for spec in case.inputs if spec.path)
    return [
        *_tool_words(),
        "accuracy",
        _from(case.model.path, folder),
        f"--precision={case.variant.precision}",
        *(f"--inputs={_from(path, folder)}" for path in list(files)[:1]),
        *(f"--dims={name}:{size}" for name, size in case.dims.items()),
    ]


def _from(path: str, folder: Path) -> str:
    """Return a path as it is written in a folder; whole where it lies outside."""
    whole = Path(path)
    return str(whole.relative_to(folder)) if whole.is_relative_to(folder) else path


def _tool_words() -> list[str]:
    """Return how the console tool beside this interpreter is started."""
    tool = Path(sys.executable).with_name("ortbench.exe" if os.name == "nt" else "ortbench")
    if tool.is_file():
        return [_on_path(str(tool))]
    return [_on_path(sys.executable), "-m", "pytest_ortbench.cli"]
