"""Measure the files of the manifest as bare files, beside a loop written by hand.

    python -m tests.bare_files.driver RECORDS [NAME…] [--rounds=15] [--write]

RECORDS is a folder that keeps one line a file, so that a call which stopped goes on; ``--write``
makes ``results/bare-files/`` of it, from which docs/generate.py makes a page. About fifteen minutes
on two quiet CPUs; the ratios say nothing on busy ones.

A round is a block of ours and a block of the loop, in random order, each in a process of its own
that sleeps meanwhile; its ratio is that of their medians. Both processes start anew every five
rounds, since a process may be lucky with its memory.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.report.cells import accuracy_text
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor
from pytest_ortbench.session import Session
from pytest_ortbench.worker.inputs import make_feeds
from tests.bare_files.files import BareFile, bare_files, fetched

#: Where ``--write`` puts what is recorded.
RESULTS = Path(__file__).parents[2] / "results" / "bare-files"
ROUNDS = 15
_ROUNDS_A_LAUNCH = 5
#: A block lasts so long, and holds at least so many inferences.
_BLOCK_S, _FEWEST = 0.4, 4
_WARM_UP_S = 0.5
_HAND_LOOP = Path(__file__).with_name("hand_loop.py")

Record = dict[str, Any]


def record_of(file: BareFile, session: Session, folder: Path, rounds: int) -> Record:
    """Return what became of one file that was named without any option.

    Args:
        file: The file.
        session: Plans and measures.
        folder: For the file, its feeds and reference outputs.
        rounds: Pairs of blocks, ours and by hand; 0 leaves the loop out.
    """
    path = fetched(file, cache_folder(), folder)
    sampling = Sampling(time_s=0.3, workers=1)
    try:
        plan = session.plan(PlanRequest(models=(str(path),), sampling=sampling))
        planned = plan.entries[0]
        if planned.refusal is not None:
            return {"name": file.name, "status": "refused", "reason": planned.refusal.message}
        case = session.prepare(planned)
    except OrtbenchError as error:
        return {"name": file.name, "status": "refused", "reason": str(error)}
    result = measure(case, session.launcher, folder)
    record: Record = {"name": file.name, "fed": fed(case), **facts_of(result, session)}
    record |= {"items": case.batch, "no_batch": case.no_batch}
    if rounds and result.status == "measured":
        record |= beside_hand_loop(case, session, folder, rounds)
    return record


def fed(case: Case) -> list[dict[str, Any]]:
    """Return what each input was fed, and why."""
    return [
        {
            "name": spec.name,
            "shape": list(spec.shape),
            "sizes": spec.sizes_text,
            "values": values_of(spec.hint.kind, spec.hint.choices, spec.hint.low, spec.hint.high),
            "why": spec.hint.why,
        }
        for spec in case.inputs
    ]


def values_of(kind: str, choices: Sequence[str], low: float, high: float) -> str:
    """Return what an input holds, for people."""
    if kind in ("integers", "uniform"):
        return f"{kind} {low:g} to {high:g}"
    return f"{kind} {', '.join(choices[:3])}" if kind == "constant" else kind


def facts_of(result: CaseResult, session: Session) -> Record:
    """Return status, flags about the answers, and how near they are to the reference."""
    summary = session.summary_of(result)
    found = summary.quantities.get("accuracy_sqnr")
    return {
        "accuracy": accuracy_text(Entry(result=result, label="", summary=summary, row={})),
        "status": result.status,
        "reason": "" if result.failure is None else result.failure.message,
        "flags": [flag.name for flag in result.flags if flag.name in _ABOUT_ANSWERS],
        "sqnr_db": None if found is None else round(found.value, 1),
    }


#: Flags that say something of the answers; others are about the machine.
_ABOUT_ANSWERS = frozenset({"NONFINITE", "INACCURATE", "EMPTY", "NAN-INPUTS", "CONSTANT"})


def beside_hand_loop(case: Case, session: Session, folder: Path, rounds: int) -> Record:
    """Return the median of ours and of the ratios to a loop by hand, in turns with it."""
    feeds = folder / f"{case.variant.digest[:16]}.npz"
    arrays: dict[str, Any] = make_feeds(case.inputs, seed=case.seed)
    np.savez(feeds, **arrays)
    draw = random.Random(case.variant.digest)
    ratios: list[float] = []
    ours_ms: list[float] = []
    while len(ratios) < rounds:
        deadline = time.monotonic() + 600
        opened = session.launcher.open(case, worker=len(ratios), deadline=deadline)
        with closing(opened) as worker, hand_loop(case.variant.path, feeds) as by_hand:
            typical = worker.ask(WarmUpFor(budget_s=_WARM_UP_S)).durations_ns[-1] / 1e9
            count = max(_FEWEST, min(20_000, round(_BLOCK_S / typical)))
            by_hand(max(2, round(_WARM_UP_S / typical)))
            for _ in range(min(_ROUNDS_A_LAUNCH, rounds - len(ratios))):
                sides = {}
                for side in draw.sample(("ours", "hand"), 2):
                    block = TimeBlock(iterations=count)
                    asked = worker.ask(block).durations_ns if side == "ours" else by_hand(count)
                    sides[side] = median(asked)
                ratios.append(sides["ours"] / sides["hand"])
                ours_ms.append(sides["ours"] / 1e6)
    return {
        "p50_ms": round(median(ours_ms), 4),
        "ratio": round(median(ratios), 4),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


@contextmanager
def hand_loop(model: str, feeds: Path) -> Iterator[Any]:
    """Start the loop; yield what makes it run so many inferences and returns their durations."""
    command = [sys.executable, str(_HAND_LOOP), model, str(feeds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = process.stdout

        def run(count: int) -> list[int]:
            assert process.stdin is not None
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            return [int(text) for text in answers.readline().split()]

        yield run
        process.stdin.close()


def read_records(folder: Path) -> dict[str, Record]:
    """Return what was recorded, the newest of each file, by name."""
    file = folder / "records.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return {record["name"]: record for record in found}


def main(arguments: Sequence[str]) -> None:
    """Measure what is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_intermixed_args(arguments)
    chosen.records.mkdir(parents=True, exist_ok=True)
    known = read_records(chosen.records)
    if chosen.write:
        RESULTS.mkdir(parents=True, exist_ok=True)
        text = json.dumps([known[name] for name in bare_files() if name in known], indent=1)
        (RESULTS / "table.json").write_text(text + "\n", encoding="utf-8")
        return
    wanted = chosen.names or [name for name in bare_files() if name not in known]
    with (
        tempfile.TemporaryDirectory(prefix="bare-") as folder,
        Session(Path(folder), notify=lambda _: None, named_from=Path(folder)) as session,
        (chosen.records / "records.jsonl").open("a", encoding="utf-8") as file,
    ):
        for name in wanted:
            began = time.monotonic()
            record = record_of(bare_files()[name], session, Path(folder), chosen.rounds)
            file.write(json.dumps(record) + "\n")
            file.flush()
            told = {key: record.get(key) for key in ("status", "flags", "p50_ms", "ratio")}
            print(f"{name}: {told}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
