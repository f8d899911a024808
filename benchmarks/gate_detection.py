"""A network with 7.1 % more multiply-accumulates, its swapped pair, and a file against itself.

    python benchmarks/gate_detection.py [--tries 10] [--minutes 60] [--threads 2]

Each try is three runs of pytest as a user starts them, ``pytest NEW --ort-against=model:OLD``:
the wide network against the narrow one has to be ``slower`` and to fail, the narrow one against the
wide one ``faster``, and the narrow one against itself ``same``. Prints what each run said, and how
often it said it. Exit status 0 if every run of every try said what it has to, 1 if one did not, 2
if fewer tries were finished than asked for. Interrupted, it prints what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.models.widened import CHANNELS, network_macs, write_widened

#: pytest's own exit statuses.
_FINE, _FAILED = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One run of pytest."""

    expected: str
    verdict: str
    ratio: str
    launches: int
    status: int
    seconds: float
    load: float

    @property
    def right(self) -> bool:
        """Whether verdict and exit status are what they have to be."""
        status = _FAILED if self.expected == "slower" else _FINE
        return self.verdict == self.expected and self.status == status


class _NoDocumentError(Exception):
    """A run of pytest ended before it measured anything."""


def main() -> int:
    """Try until the time is over or all tries are made, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=60.0, help="no try begins after this")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    less, more = (network_macs(channels) for channels in CHANNELS)
    print(
        f"{less / 1e6:.1f} and {more / 1e6:.1f} million multiply-accumulates: "
        f"{more / less - 1:+.1%}; {args.threads} threads"
    )
    print(f"{'sides':14}{'verdict':14}{'ratio':>24}{'launches':>10}{'s':>6}{'load':>6}")
    said: list[Said] = []
    until = time.monotonic() + 60 * args.minutes
    with tempfile.TemporaryDirectory(prefix="ortbench-benchmark-") as name:
        narrow, wide = write_widened(Path(name))
        try:
            for _ in range(args.tries):
                if time.monotonic() >= until:
                    break
                for new, old, expected in (
                    (wide, narrow, "slower"),
                    (narrow, wide, "faster"),
                    (narrow, narrow, "same"),
                ):
                    said.append(_run(new, old, expected, args.threads))
                    _tell(said[-1])
        except KeyboardInterrupt:
            print("stopped; the run that was under way is not counted")
        except _NoDocumentError as error:
            print(f"ended: pytest wrote no document:\n{error}")
    return _report(said, args.tries)


def _run(new: Path, old: Path, expected: str, threads: int) -> Said:
    report = new.parent / "run.json"
    report.unlink(missing_ok=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", str(new), f"--ort-against=model:{old}"),
            *("-k", "test_latency", f"--ort-threads={threads}", "--ort-time=0.5"),
            *("--ort-workers=1", "--ort-no-results", f"--ort-json={report}"),
            # Networks of other widths answer otherwise; only their times are on trial.
            *("--ort-gate=sides_sqnr:>=-200dB", "--ort-gate-remeasure"),
            *("-q", "-p", "no:cacheprovider", f"--rootdir={new.parent}"),
        ],
        capture_output=True,
        text=True,
        cwd=new.parent,
        check=False,
    )
    if not report.exists():
        raise _NoDocumentError(f"{done.stdout}\n{done.stderr}")
    (verdict,) = json.loads(report.read_text())["gate"]
    contrast = verdict["contrasts"][0] if verdict["contrasts"] else None
    return Said(
        expected=expected,
        verdict=verdict["verdict"],
        ratio="" if contrast is None else _ratio(contrast),
        launches=len(verdict["launches"]) + len(verdict["confirmation"]),
        status=done.returncode,
        seconds=time.monotonic() - began,
        load=load,
    )


def _ratio(contrast: dict[str, float | None]) -> str:
    effect, low, high = (contrast[name] for name in ("effect", "low", "high"))
    if effect is None or low is None or high is None:
        return ""
    return f"{1 + effect:.3f} [{1 + low:.3f}, {1 + high:.3f}]"


def _tell(said: Said) -> None:
    sides = {"slower": "wide/narrow", "faster": "narrow/wide", "same": "narrow/narrow"}
    mark = "" if said.right else f"  NOT {said.expected}, exit status {said.status}"
    print(
        f"{sides[said.expected]:14}{said.verdict:14}{said.ratio:>24}{said.launches:10}"
        f"{said.seconds:6.0f}{said.load:6.1f}{mark}",
        flush=True,
    )


def _report(said: Sequence[Said], tries: int) -> int:
    fewest = tries
    for expected in ("slower", "faster", "same"):
        chosen = [one for one in said if one.expected == expected]
        fewest = min(fewest, len(chosen))
        if chosen:
            right = sum(one.right for one in chosen)
            low, high = proportion_interval(right, len(chosen))
            print(
                f"{expected}: {right} of {len(chosen)}, {right / len(chosen):.0%} "
                f"[{low:.0%}, {high:.0%}]"
            )
    if not all(one.right for one in said):
        return 1
    if fewest < tries:
        print(f"only {fewest} of {tries} tries were finished")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
