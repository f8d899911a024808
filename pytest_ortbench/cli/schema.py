"""``ortbench schema``: the JSON Schema of run documents, and documents checked against it."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn, write
from pytest_ortbench.core.errors import OrtbenchError


@click.command(
    epilog=epilog(
        "ortbench schema > run.schema.json",
        "ortbench schema latest results/20260304T050600Z-lab-1-0a1b/run.json",
    )
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@results_option
def command(runs: tuple[str, ...], results: Path) -> int:
    """Print the JSON Schema of run documents, or check each RUN against it.

    A document of an older version is checked as it reads after its migration. Exit code 2 if one
    of them can't be read.
    """
    if not runs:
        import json

        from pytest_ortbench.schema.document import json_schema

        write(json.dumps(json_schema(), indent=2) + "\n")
        return ExitCode.FINE
    bad = [run for run in runs if not _is_valid(run, results)]
    return ExitCode.WRONG_CALL if bad else ExitCode.FINE


def _is_valid(spec: str, results: Path) -> bool:
    from pytest_ortbench.store.documents import read, resolve_run

    try:
        loaded = read(resolve_run(spec, results))
    except OrtbenchError as error:
        warn(f"ortbench: {' '.join(str(error).split())}")
        return False
    run = loaded.run
    say(f"{loaded.path}: valid, schema version {run.schema_version}, {len(run.cases)} cases")
    for note in loaded.notes:
        warn(f"note: {note}")
    return True
