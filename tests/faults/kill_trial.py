"""A run that is killed again and again, and what is stored after each time.

    python -m tests.faults.kill_trial [--kills=20] [--write]

``--write`` keeps the record in ``results/faults/kills.json``. Some minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults.runs import started, stored_results, write_model

#: Where ``--write`` puts the record.
RECORD = Path(__file__).parents[2] / "results" / "faults" / "kills.json"
_QUICK = ("--ort-time=0.05", "--ort-workers=1", "-p", "no:cacheprovider", "-p", "no:benchmark")
#: A run of a few dozen cases, on a busy machine.
_LONG_S = 600.0
#: From its start until a run measures, about: moments of a kill are drawn up to here.
_STARTED_S = 4.0
#: A case takes about so long.
_CASE_S = 0.4


def trial(folder: Path, kills: int) -> dict[str, Any]:
    """Kill a run at random moments, let it come to its end, and return what was stored.

    Every other kill comes behind a new case, so that the run gets on; the others come at any moment
    from the start of the process on.

    Args:
        folder: Where it runs.
        kills: How often it is killed.
    """
    write_model(folder / "m.onnx")
    wanted = list(range(1, kills + 6))
    sizes = f"--ort-batch-sizes={','.join(map(str, wanted))}"
    arguments = ["m.onnx", "-k", "latency", sizes, "--ort-resume", *_QUICK]
    moments = random.Random(kills)
    steps = [_killed(folder, arguments, moments, waits=kill % 2 == 0) for kill in range(kills)]
    known = _batches(folder)
    with started(folder, arguments) as run:
        run.end(_LONG_S)
        left = run.left()
    last = max(folder.glob("results/*/run.json"), key=lambda path: path.stat().st_mtime)
    document = json.loads(last.read_text())
    return {
        "kills": steps,
        "stored": sorted(known),
        "wanted": wanted,
        "cases": sorted(case["case"]["batch"] for case in document["cases"]),
        "resumed": document["resumed"],
        "left": left,
    }


def _killed(
    folder: Path, arguments: Sequence[str], moments: random.Random, *, waits: bool
) -> dict[str, Any]:
    """Start the run, kill it once, and say when that was and what was stored before and after."""
    before = _batches(folder)
    began = time.monotonic()
    with started(folder, arguments) as run:
        while waits and _batches(folder) == before and run.process.poll() is None:
            time.sleep(0.02)
        time.sleep(moments.random() * (_CASE_S if waits else _STARTED_S))
        moment, alive = time.monotonic() - began, run.process.poll() is None
        run.signal(signal.SIGKILL)
        printed = run.end()
    after = _batches(folder)
    return {
        "moment_s": round(moment, 2),
        "before": len(before),
        "after": len(after),
        "lost": sorted(before - after),
        **({} if alive else {"ended": printed[-500:]}),
    }


def _batches(folder: Path) -> set[int]:
    return {case["case"]["batch"] for case in stored_results(folder)}


def main(arguments: Sequence[str]) -> None:
    """Make the trial, print what it found, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(trial(Path(folder), chosen.kills), indent=1) + "\n"
    if chosen.write:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
