"""Gates on requests of a language model: equal sides, and sides with 10 % more work per token.

    python benchmarks/generation_gate.py [--trials 20] [--model builtin:decoder] [--engine session]
                                         [--runtimes OLD,NEW]
                                         [--file results/self-test/requests.jsonl]

A gate of equal sides has to say ``same``, one with added work ``slower``. The work is added behind
every run of the model, so behind every token alike: as much as makes the request 10 % slower.
With two runtimes the first one is the baseline, such as the release of before, and what differs
between them is part of every gate. Under genai a model of the catalogue gets the configuration that
onnxruntime-genai needs.
Each gate is on disk once it is over: interrupted, it goes on where it stopped. Prints the table of
``ortbench gate --self-test``. Exit status 0 if every gate said what it has to, 1 if one did not, 2
if there are fewer than asked for.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from genai_folder import write_genai_folder

from pytest_ortbench.cli.terminal import say, table, warn
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.gate.measuring.self_test import SelfTest
from pytest_ortbench.gate.measuring.trial_log import TrialLog
from pytest_ortbench.gate.numbers.self_test import EQUAL, Trial
from pytest_ortbench.gate.report.self_test import HEADER, self_test_rows, self_test_sentences
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.runtimes.specs import CURRENT
from pytest_ortbench.session import Session

#: What is compared, in turn.
_TURNS = (EQUAL, 0.10)
_FINE, _WRONG, _TOO_FEW = 0, 1, 2


def main() -> int:
    """Make the trials that are missing, and print what all of them say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20, help="of each kind")
    parser.add_argument("--model", default="builtin:decoder")
    parser.add_argument("--engine", default="session")
    parser.add_argument(
        "--runtimes", default=CURRENT, help="one, or two with a comma: baseline and contender"
    )
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hours", type=float, default=4.0, help="no trial begins after this")
    parser.add_argument("--file", type=Path, default=Path("results/self-test/requests.jsonl"))
    args = parser.parse_args()
    log = TrialLog(args.file)
    trials = list(log.read())
    wanted = len(_TURNS) * args.trials
    if len(trials) < wanted:
        _try(args, log, trials, wanted)
    if not trials:
        warn("no trial was finished")
        return _TOO_FEW
    say(table(self_test_rows(trials), header=HEADER))
    for sentence in self_test_sentences(trials):
        say(sentence)
    return _status(trials, wanted)


def _try(args: argparse.Namespace, log: TrialLog, trials: list[Trial], wanted: int) -> None:
    runtimes = tuple(args.runtimes.split(","))
    with (
        OwnFolder("self-test") as folder,
        Session(Path.cwd(), runtimes=runtimes, notify=warn) as session,
    ):
        entries = session.plan(_request(args, folder)).entries
        for entry in entries:
            if entry.refusal is not None:
                raise SystemExit(f"{entry.case.case_id}: {entry.refusal.message}")
        if len(entries) != len(runtimes):
            raise SystemExit(f"{args.model} under {args.engine} gives {len(entries)} cases")
        baseline, contender = entries[0].case, entries[-1].case
        test = SelfTest(
            launcher=session.launcher,
            machine=fingerprint(),
            cases=[contender],
            baselines={contender.case_id: baseline},
            wider=None,
            scratch=folder,
            version=VERSION,
            seed=time.time_ns() % 2**31,
            notify=warn,
            turns=_TURNS,
        )
        try:
            for trial in test.run(time.monotonic() + 3600 * args.hours, done=len(trials)):
                log.append(trial)
                trials.append(trial)
                _tell(trial, len(trials), wanted)
                if len(trials) >= wanted:
                    return
        except WorkerError as error:
            warn(f"ended: {error}")
        except KeyboardInterrupt:
            warn("stopped; the trials so far are stored")


def _request(args: argparse.Namespace, folder: Path) -> PlanRequest:
    model = args.model
    if args.engine == "genai" and model.startswith("builtin:"):
        named = folder / model.removeprefix("builtin:")
        named.mkdir()
        model = str(write_genai_folder(model, named))
    return PlanRequest(
        models=(model,),
        generate="only",
        engines=(args.engine,),
        prompt_tokens=(args.prompt,),
        new_tokens=(args.new,),
        threads=(args.threads,),
    )


def _tell(trial: Trial, number: int, wanted: int) -> None:
    effect = "" if trial.effect is None else f" {100 * trial.effect:+.2f} %"
    warn(
        f"{number} of {wanted}: {trial.kind}: {trial.verdict}{effect}, {trial.launches} launches, "
        f"{trial.wall_s:.0f} s, load {trial.load:.1f}"
    )


def _status(trials: Sequence[Trial], wanted: int) -> int:
    right = [trial.verdict == ("same" if trial.kind == EQUAL else "slower") for trial in trials]
    if len(trials) < wanted:
        return _TOO_FEW
    return _FINE if all(right) else _WRONG


if __name__ == "__main__":
    sys.exit(main())
