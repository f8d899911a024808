"""The gate on itself, live on this machine: equal sides, and sides of which one does more work."""

from __future__ import annotations

import itertools
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.gate import GateResult, PairedLaunch
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import SideFailed, measure_launch
from pytest_ortbench.gate.numbers.rules import rules_for
from pytest_ortbench.gate.numbers.self_test import EQUAL, Trial
from pytest_ortbench.gate.numbers.signed_rank import hodges_lehmann
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.worker.added_work import with_added_work

#: What is compared, in turn. Equal sides come most often: a false alarm is rare and has to be
#: looked for; the last one is the network with more channels.
WIDER = "wider"
_TURNS: tuple[str | float, ...] = (
    EQUAL,
    0.05,
    EQUAL,
    0.10,
    EQUAL,
    0.05,
    EQUAL,
    WIDER,
    0.03,
    EQUAL,
    0.10,
    0.05,
)

#: How much work is added to learn what it costs: about as much as the inference takes, so that what
#: a busy machine adds is a small part of it, and about as much as the trials add.
_MUCH, _LITTLE = 1.0, 0.05
#: Launches for each. Little work takes more of them: seen on an inference of 0.11 ms, whose
#: launches scatter by 1 %, five of them made "+5 %" anything from 4.2 to 6.8 %.
_LAUNCHES_MUCH, _LAUNCHES_LITTLE = 5, 12
#: The first number costs no more on top: a call, and code and tables that are out of the cache.
_MOST_FIXED_S = 6e-6
#: Where that is less than this share of an inference it is not looked for.
_NEGLIGIBLE = 0.002
#: A difference so many times off what the same work takes in this process was the machine's. Then
#: it is measured again, so often.
_OFF = 3.0
_ATTEMPTS = 3
#: How this process times the added work: the fastest of so many times so many numbers.
_TIMES, _NUMBERS = 200, 10240


class TooBusyError(Exception):
    """The machine does not let it be told how much work makes a model slower by how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AddedWork:
    """What added work costs: so much on top, and so much a number."""

    plain_s: float
    fixed_s: float
    number_s: float

    def numbers(self, slowdown: float) -> int:
        """Return how many numbers make an inference slower by so much."""
        return max(1, round((slowdown * self.plain_s - self.fixed_s) / self.number_s))


@dataclass(slots=True)
class SelfTest:
    """Runs trials until the time is over.

    Attributes:
        launcher: Starts the workers.
        machine: Decides the profile.
        cases: Models to test on, prepared.
        wider: A network and the same with more channels, and by how much slower it should be;
            ``None`` where no turn asks for it.
        scratch: Folder for reference outputs.
        version: Version of this package, for the record.
        seed: Decides every order.
        notify: Told of trials that can't be made.
        number_ns: What one number of added work takes, roughly; 0: it is measured.
        left_out: Trials that could not be made.
        turns: What is compared, in turn.
        baselines: What a case is held against where that is not the case itself (an older release),
            by the case's id.
    """

    launcher: Launcher
    machine: Machine
    cases: Sequence[Case]
    wider: tuple[Pair, float] | None
    scratch: Path
    version: str = ""
    seed: int = 0
    notify: Callable[[str], None] = lambda _: None
    number_ns: float = 0.0
    left_out: int = 0
    turns: tuple[str | float, ...] = _TURNS
    baselines: Mapping[str, Case] = field(default_factory=dict)
    _works: dict[str, _AddedWork] = field(default_factory=dict)

    def run(self, until: float, *, done: int = 0) -> Iterator[Trial]:
        """Yield trials until ``until`` of ``time.monotonic()``; one that began is finished.

        Args:
            until: When to stop.
            done: Trials that were made before, so that the turns go on where they stopped.

        Raises:
            WorkerError: if a model can't be measured.
        """
        for number in itertools.count(done):
            if time.monotonic() >= until:
                return
            turn, index = divmod(number, len(self.cases))
            seed = random.Random(f"{self.seed} {number}").getrandbits(31)
            try:
                yield self._trial(self.turns[turn % len(self.turns)], self.cases[index], seed)
            except TooBusyError:
                self.left_out += 1
                self.notify(
                    f"{self.cases[index].model.name}: a gate with added work was left out: the "
                    "machine is too busy to tell how much work makes how much difference"
                )

    def _trial(self, turn: str | float, case: Case, seed: int) -> Trial:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        pair, slowdown = self._pair(turn, case)
        gate = Gate(
            launcher=self.launcher,
            machine=self.machine,
            cases=1,
            scratch=self.scratch,
            seed=seed,
        )
        result = gate.judge(pair, rules_for(case.case_id, ()), baseline="itself")
        # The wider network has other answers, and nothing but its times is on trial.
        if result.latency_verdict == "incomparable":
            # Nothing was tried, so nothing may be counted.
            raise case_error(result.reason, kind="error", phase="measure")
        return _record(
            result,
            kind=turn if isinstance(turn, str) else f"+{100 * turn:g} %",
            slowdown=slowdown,
            model=pair.baseline.model.name,
            load=load,
            version=self.version,
            threads=case.session.intra_op_num_threads or 0,
        )

    def _pair(self, turn: str | float, case: Case) -> tuple[Pair, float]:
        if turn == WIDER and self.wider is not None:
            return self.wider
        baseline = self.baselines.get(case.case_id, case)
        if not isinstance(turn, float):
            return Pair(baseline=baseline, contender=case), 0.0
        numbers = self._work_of(case).numbers(turn)
        return Pair(baseline=baseline, contender=replace(case, added_work=numbers)), turn

    def _work_of(self, case: Case) -> _AddedWork:
        """What added work costs after an inference of this case, measured once a model.

        Raises:
            TooBusyError: if the machine does not let it be told.
        """
        key = case.case_id
        if key not in self._works:
            tries = (self._measured_work(case) for _ in range(_ATTEMPTS))
            added_work = next((work for work in tries if work is not None), None)
            if added_work is None:
                raise TooBusyError
            self._works[key] = added_work
        return self._works[key]

    def _measured_work(self, case: Case) -> _AddedWork | None:
        if not self.number_ns:
            self.number_ns = _number_ns()
        expected_s = _runs_of(case) * self.number_ns / 1e9
        plain_s, _ = self._against_more(case, 0, 1)
        much = max(1, round(_MUCH * plain_s / expected_s))
        fastest_s, much_s = self._against_more(case, much, _LAUNCHES_MUCH)
        plain_s = min(plain_s, fastest_s)
        number_s, fixed_s = much_s / much, 0.0
        if plain_s * _NEGLIGIBLE < _MOST_FIXED_S:
            little = max(1, round(_LITTLE * plain_s / expected_s))
            _, little_s = self._against_more(case, little, _LAUNCHES_LITTLE)
            if much > little:
                number_s = (much_s - little_s) / (much - little)
            fixed_s = min(max(little_s - little * number_s, 0.0), _MOST_FIXED_S)
        if not expected_s / _OFF < number_s < expected_s * _OFF:
            return None
        return _AddedWork(plain_s=plain_s, fixed_s=fixed_s, number_s=number_s)

    def _against_more(self, case: Case, numbers: int, launches: int) -> tuple[float, float]:
        """The case against itself with so much work added.

        Returns:
            Its fastest inference, and what the work adds to it, in seconds: a difference within
            each launch, not a share of its inferences. Seen: while other work ran, inferences on
            two threads took 1.7 times as long and the added work, on one, as long as ever; taken as
            a share, five launches made "+5 %" 8.5 %.
        """
        pair = Pair(baseline=case, contender=replace(case, added_work=numbers))
        made = [self._launch(pair, index) for index in range(launches)]
        fastest_ns = min(min(launch.baseline_min_ns) for launch in made)
        added_ns = hodges_lehmann(
            [min(launch.contender_min_ns) - min(launch.baseline_min_ns) for launch in made]
        )
        return fastest_ns / 1e9, added_ns / 1e9

    def _launch(self, pair: Pair, index: int) -> PairedLaunch:
        deadline = time.monotonic() + pair.baseline.sampling.timeout_s
        try:
            return measure_launch(
                pair, self.launcher, seed=index, index=index, deadline=deadline
            ).launch
        except SideFailed as failed:
            raise WorkerError(failed.failure) from failed


def _runs_of(case: Case) -> int:
    """How often the model is run, and work added, in what is timed: once for every token."""
    return 1 if case.generation is None else case.generation.new_tokens


def _number_ns() -> float:
    """What one number of the added work takes in this process, where nothing disturbs it."""
    work = with_added_work(lambda *_: None, _NUMBERS)
    fastest = math.inf
    for _ in range(_TIMES):
        began = time.perf_counter_ns()
        work(None, {})
        fastest = min(fastest, time.perf_counter_ns() - began)
    return fastest / _NUMBERS


def _record(
    result: GateResult,
    *,
    kind: str,
    slowdown: float,
    model: str,
    load: float,
    version: str,
    threads: int,
) -> Trial:
    contrast = result.contrasts[0] if result.contrasts else None
    launches = (*result.launches, *result.confirmation)
    return Trial(
        kind=kind,
        slowdown=slowdown,
        model=model,
        verdict=result.latency_verdict,
        effect=None if contrast is None else contrast.effect,
        detectable=None if contrast is None else contrast.detectable,
        launches=len(launches),
        latency_s=min((min(launch.baseline_min_ns) for launch in launches), default=0) / 1e9,
        wall_s=round(result.wall_s, 2),
        flags=tuple(flag.name for flag in result.flags),
        load=round(load, 2),
        at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        version=version,
        threads=threads,
        decided_by=result.decided_by,
        other_effect=result.contrasts[1].effect if len(result.contrasts) > 1 else None,
        reason=result.reason,
    )
