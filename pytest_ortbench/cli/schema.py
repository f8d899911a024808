"""``ortbench schema``: the JSON Schema of run documents, and documents checked against it."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn, write
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.schema.document import json_schema
from pytest_ortbench.schema.meaning import MOST_FAULTS
from pytest_ortbench.store.documents import faults_of_file, read, resolve_run

#: Faults of one document that are spelt out.
MOST_LINES = 50


@click.command(
    epilog=epilog(
        "ortbench schema > run.schema.json",
        "ortbench schema latest results/20260304T050600Z-lab-1-0a1b/run.json",
    )
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@results_option
def command(runs: tuple[str, ...], results: Path) -> int:
    """Print the JSON Schema of run documents, or check each RUN: its types, and its sense.

    Each fault is named with its place: $.cases[0].measurements[1].samples.count. A document of an
    older version is checked as it reads after its migration. Exit code 2 if one of them can't be
    read.
    """
    if not runs:
        import json

        write(json.dumps(json_schema(), indent=2) + "\n")
        return ExitCode.FINE
    bad = [run for run in runs if not _is_valid(run, results)]
    return ExitCode.WRONG_CALL if bad else ExitCode.FINE


def _is_valid(spec: str, results: Path) -> bool:
    try:
        path = resolve_run(spec, results)
        faults = faults_of_file(path)
        if len(faults) > 1:  # of a single one, reading it says where it stands and what to do
            for fault in faults[:MOST_LINES]:
                warn(f"ortbench: {path}: {fault}")
            if len(faults) > MOST_LINES:
                more = "" if len(faults) < MOST_FAULTS else " or more"
                warn(f"ortbench: {path}: {len(faults) - MOST_LINES}{more} further faults")
            return False
        loaded = read(path)
    except OrtbenchError as error:
        warn(f"ortbench: {' '.join(str(error).split())}")
        return False
    run = loaded.run
    say(f"{loaded.path}: valid, schema version {run.schema_version}, {len(run.cases)} cases")
    for note in loaded.notes:
        warn(f"note: {note}")
    return True
