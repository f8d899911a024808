"""The gate of a suite: pairs are measured launch by launch until each has its verdict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from pytest_ortbench.analysis.labels import scores_of
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of as flags_of_case
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.gate import (
    ContrastVerdict,
    GateResult,
    Hindrance,
    PairedLaunch,
)
from pytest_ortbench.core.outcome import Accuracy, Answers, CaseResult, Flag, Memory
from pytest_ortbench.core.placement import is_fallback
from pytest_ortbench.core.run import Machine
from pytest_ortbench.execution.default_retry import DefaultRetry
from pytest_ortbench.execution.own_spread import with_spread
from pytest_ortbench.gate.measuring.answers import Exchange, compare_labels, with_spreads
from pytest_ortbench.gate.measuring.identical import identical
from pytest_ortbench.gate.measuring.pair import (
    BASELINE,
    CONTENDER,
    Pair,
    can_suspend,
    input_difference,
    without_spinning,
)
from pytest_ortbench.gate.measuring.paired import (
    Launched,
    SideFacts,
    SideFailed,
    measure_launch,
)
from pytest_ortbench.gate.measuring.until import Until, out_of_time, side_failed
from pytest_ortbench.gate.numbers.answers import judge_answers
from pytest_ortbench.gate.numbers.family import correct_for_suite
from pytest_ortbench.gate.numbers.looks import GO_ON, SLOWER, LookVerdict, take_looks
from pytest_ortbench.gate.numbers.metrics import MetricSide, judge_metrics, medians_of_units
from pytest_ortbench.gate.numbers.outcome import is_nonfinite, overall, spared, with_outcome
from pytest_ortbench.gate.numbers.rules import CaseRules
from pytest_ortbench.gate.numbers.sentences import unconfirmed
from pytest_ortbench.gate.numbers.verdict import (
    Decided,
    MachineClass,
    among_callers,
    choose_statistic,
    confirms,
    decide,
    launch_flags,
    machine_class,
    statistics,
)
from pytest_ortbench.launch.launcher import Launcher

#: So many flagged cases confirm each other; fewer are measured again before they fail anything.
_LONE = 2


@dataclass(slots=True)
class Gate:
    """Judges the pairs of one suite, each when it is asked for, at one error rate for all.

    Attributes:
        launcher: Starts the workers.
        machine: Decides whether floor or typical contrast counts.
        cases: Number of pairs in the suite; those that were not measured yet count as unflagged,
            so that what is said of a case never has to be taken back.
        scratch: Folder for reference outputs.
        seed: Decides every order; another one for every launch is drawn from it, and stands in its
            record. Drawn anew for each gate unless it is given, so that no order favours one side
            in every run.
        on_launch: Called before each launch with how many were made and may be needed.
        spares_identical: Whether sides that are the same files under the same settings are called
            the same without measuring.
        retry: Finds other default sizes where a side refuses the first ones; ``None`` tries none.
        results: Verdicts so far, in the order of measuring.
    """

    launcher: Launcher
    machine: Machine
    cases: int
    scratch: Path
    seed: int = field(default_factory=lambda: random.SystemRandom().getrandbits(31))
    on_launch: Callable[[int, int], None] | None = None
    spares_identical: bool = False
    retry: DefaultRetry | None = None
    results: dict[Key, GateResult] = field(default_factory=dict)
    _looks: dict[Key, LookVerdict] = field(default_factory=dict)

    def judge(
        self,
        pair: Pair,
        rules: CaseRules,
        *,
        baseline: str,
        standard: MetricSide | None = None,
        until: Until | None = None,
    ) -> GateResult:
        """Measure a pair until there is a verdict.

        Args:
            pair: Baseline and contender.
            rules: What holds for the case.
            baseline: What the other side is called: ``model:old.onnx``.
            standard: The contender's standard pass, if there is one, for absolute limits.
            until: When its launches must be over, beside its own timeout; ``None``: that alone.
        """
        key = pair.contender.key
        if key not in self.results:
            began = time.monotonic()
            result = self._judge(pair, rules, baseline, standard, until)
            self.results[key] = replace(result, wall_s=time.monotonic() - began)
        return self.results[key]

    def _judge(
        self,
        pair: Pair,
        rules: CaseRules,
        baseline: str,
        standard: MetricSide | None,
        until: Until | None,
    ) -> GateResult:
        profile = machine_class(self.machine, rules.margin)
        profile = among_callers(profile, pair.contender.callers, rules.margin)
        result = replace(
            GateResult.undecided(pair.contender, baseline=baseline, before=pair.baseline),
            baseline_case_id=pair.baseline.case_id,
            decided_by=profile.decides,
            model_digest=pair.contender.model.digest,
        )
        shapes = input_difference(pair)
        if shapes:
            return with_outcome(
                replace(
                    result,
                    cause="inputs",
                    reason=shapes,
                    flags=(Flag(name="SHAPES", detail=shapes),),
                )
            )
        if self.spares_identical and not is_nonfinite(standard) and identical(pair):
            return spared(result, rules, standard)
        first_look = profile.plan.looks[0].launches
        if until is not None and not until.allows(1):
            return out_of_time(result, until.hindrance(0, first_look), rules, standard)
        measuring = _Measuring(gate=self, pair=without_spinning(pair), profile=profile, until=until)
        try:
            decided, confirmed = measuring.run()
        except SideFailed as failed:
            if until is not None and failed.failure.kind == "timeout" and until.is_over:
                return out_of_time(result, until.hindrance(0, first_look), rules, standard)
            other = self._at_other_sizes(pair, failed)
            if other is None:
                return with_outcome(
                    side_failed(
                        replace(result, launches=tuple(measuring.launches)),
                        failed,
                        timeout_s=measuring.pair.contender.sampling.timeout_s,
                        until=measuring.until if measuring.is_ended_by_budget else None,
                    )
                )
            return self._judge(other, rules, baseline, standard, until)
        # Only the contender's answers were held against labels.
        metrics = judge_metrics(
            measuring.side(BASELINE, {}),
            measuring.side(CONTENDER, {} if standard is None else scores_of(standard.result)),
            rules,
            standard=None if standard is None else standard.summary,
        )
        answers = measuring.answers()
        judged = judge_answers(answers, rules.answers)
        verdict, hindrance = decided.verdict, decided.hindrance
        if verdict == "slower" and confirmed is not None and confirmed.verdict != "slower":
            verdict = "inconclusive"
            hindrance = Hindrance(cause="unconfirmed", reason=unconfirmed(confirmed))
        return with_outcome(
            replace(
                result,
                verdict=overall(verdict, judged),
                cause="" if hindrance is None else hindrance.cause,
                reason="" if hindrance is None else hindrance.reason,
                decided_by=measuring.profile.decides,
                contrasts=decided.contrasts,
                metrics=(*metrics, *judged.metrics),
                launches=tuple(measuring.launches),
                confirmation=tuple(measuring.confirmation),
                confirmed=confirmed,
                flags=decided.flags,
                latency=verdict if overall(verdict, judged) != verdict else "",
                answers=answers,
            ),
            judged,
        )

    def _at_other_sizes(self, pair: Pair, failed: SideFailed) -> Pair | None:
        """The pair at default sizes that both sides take, where one refuses the first ones."""
        if self.retry is None:
            return None
        cases = self.retry.together(pair.baseline, pair.contender, failed.failure)
        return None if cases is None else Pair(baseline=cases[0], contender=cases[1])

    def _family(self, key: Key, judgement: LookVerdict, profile: MachineClass) -> int | None:
        """What the other cases leave of a flagged one.

        Returns:
            Launches to go on to, 0 if the regression stands, ``None`` if it does not.
        """
        unmeasured = max(0, self.cases - len({*self._looks, key}))
        quiet = replace(judgement, verdict=GO_ON, p=1.0)
        everyone: dict[Key, LookVerdict] = {**self._looks, key: judgement}
        everyone |= {("", str(index)): quiet for index in range(unmeasured)}
        corrected = correct_for_suite(everyone, profile.plan)
        if key in corrected.confirmed:
            return 0
        return corrected.go_on.get(key)

    def _is_lone(self) -> bool:
        slower = sum(result.latency_verdict == "slower" for result in self.results.values())
        return slower < _LONE

    def _say(self, made: int, needed: int) -> None:
        if self.on_launch is not None:
            self.on_launch(made, needed)


@dataclass(slots=True)
class _Measuring:
    """One pair on its way to a verdict."""

    gate: Gate
    pair: Pair
    profile: MachineClass
    until: Until | None = None
    launches: list[PairedLaunch] = field(default_factory=list)
    confirmation: list[PairedLaunch] = field(default_factory=list)
    _exchange: Exchange = field(init=False)
    _first: Launched | None = None
    _memories: dict[str, list[Memory]] = field(
        default_factory=lambda: {BASELINE: [], CONTENDER: []}
    )
    #: By the side: of each launch, what a metric of its timed units is in the middle.
    _units: dict[str, list[dict[str, float]]] = field(
        default_factory=lambda: {BASELINE: [], CONTENDER: []}
    )
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self._exchange = Exchange(pair=self.pair, path=self.gate.scratch / "side-outputs.npz")

    def run(self) -> tuple[Decided, ContrastVerdict | None]:
        """Launch until it is decided, then confirm a lone regression.

        Raises:
            SideFailed: if a side can't be measured.
        """
        timeout_s = self.pair.contender.sampling.timeout_s
        self._deadline = time.monotonic() + timeout_s
        key, plan = self.pair.contender.key, self.profile.plan
        not_before, needed = 0, plan.looks[0].launches
        stopped: Hindrance | None = None
        while True:
            if not self._has_time_for(needed, self.launches):
                assert self.until is not None
                if not self.launches:
                    # One tells how the answers and everything beside the time compare.
                    self._launch_until(1, self.launches, self.gate.seed)
                stopped = self._out_of_budget(len(self.launches), needed)
                break
            if not self._launch_until(needed, self.launches, self.gate.seed):
                stopped = self._ended_by(
                    f"the time limit was reached after {len(self.launches)} of {needed} launches",
                    len(self.launches),
                    needed,
                )
                break
            self.profile = choose_statistic(self.profile, self.launches)
            contrasts = statistics(self.launches)[self.profile.decides]
            judgement = take_looks(contrasts, plan, not_before=not_before)
            self.gate._looks[key] = judgement
            if judgement.verdict == GO_ON:
                assert judgement.next_look is not None
                needed = judgement.next_look
                continue
            if judgement.verdict != SLOWER:
                break
            ahead = self.gate._family(key, judgement, self.profile)
            if not ahead:
                if ahead is None:
                    stopped = Hindrance(
                        cause="suite",
                        reason=f"the regression is not significant among {self.gate.cases} cases",
                    )
                break
            needed = not_before = ahead
        return self._conclude(not_before, stopped)

    def _conclude(
        self, not_before: int, stopped: Hindrance | None
    ) -> tuple[Decided, ContrastVerdict | None]:
        decided = decide(
            self.launches,
            self.profile,
            flags=self._flags(),
            not_before=not_before,
            stopped=stopped,
        )
        if decided.verdict != "slower":
            return decided, None
        if stopped is not None:
            return replace(decided, verdict="inconclusive", hindrance=stopped), None
        if not self.gate._is_lone():
            return decided, None
        again = random.Random(f"{self.gate.seed} again").getrandbits(31)
        # As long again as the case had before: or a slow one could get slower and not fail.
        self._deadline = time.monotonic() + self.pair.contender.sampling.timeout_s
        confirmed, needed = confirms((), self.profile)
        while needed is not None:
            if not self._has_time_for(needed, self.confirmation):
                assert self.until is not None
                stopped = self._out_of_budget(len(self.confirmation), needed)
                return replace(decided, verdict="inconclusive", hindrance=stopped), None
            if not self._launch_until(needed, self.confirmation, again):
                over = self._ended_by(
                    "the time limit was reached before a regression could be measured again",
                    len(self.confirmation),
                    needed,
                )
                return replace(decided, verdict="inconclusive", hindrance=over), None
            confirmed, needed = confirms(self.confirmation, self.profile)
        return decided, confirmed

    @property
    def is_ended_by_budget(self) -> bool:
        """Whether the budget of the run ends the launches before the time limit of the case."""
        return self.until is not None and self.until.at < self._deadline

    def _ended_by(self, text: str, made: int, needed: int) -> Hindrance:
        """What ended the launches: the budget of the run, or the time limit of the case.

        Args:
            text: What is said of the time limit.
            made: How many launches were made.
            needed: How many the next look needs.
        """
        if self.is_ended_by_budget:
            return self._out_of_budget(made, needed)
        limit = f"--ort-timeout={self.pair.contender.sampling.timeout_s:g}"
        return Hindrance(cause="time", reason=f"{text} ({limit})")

    def _out_of_budget(self, made: int, needed: int) -> Hindrance:
        assert self.until is not None
        return self.until.hindrance(made, needed, longest_s=self._longest_s)

    @property
    def _longest_s(self) -> float:
        return max((launch.wall_s for launch in self.launches), default=0.0)

    def _has_time_for(self, needed: int, launches: list[PairedLaunch]) -> bool:
        """Whether the budget of the run allows all the launches that the next look needs.

        Fewer of them would decide nothing.
        """
        more = needed - len(launches)
        return self.until is None or self.until.allows(more, longest_s=self._longest_s)

    def _launch_until(self, needed: int, launches: list[PairedLaunch], seed: int) -> bool:
        """Make launches until there are so many; whether time allowed them all."""
        while len(launches) < needed:
            if self.launches and time.monotonic() + self._longest_s > self._deadline:
                return False
            self.gate._say(len(launches), needed)
            index = len(launches)
            try:
                launched = measure_launch(
                    self.pair,
                    self.gate.launcher,
                    seed=random.Random(f"{seed} {index}").getrandbits(31),
                    index=index,
                    deadline=self._deadline
                    if self.until is None
                    else min(self._deadline, self.until.at),
                    references=self._references() if self._first is None else None,
                    exchange=self._exchange if self._first is None else None,
                )
            except SideFailed as failed:
                if failed.failure.kind == "timeout" and self._first is not None:
                    return False
                raise
            self._note(launched)
            launches.append(launched.launch)
        return True

    def _note(self, launched: Launched) -> None:
        if self._first is None:
            self._first = launched
        self._memories[BASELINE].append(launched.baseline.memory)
        self._memories[CONTENDER].append(launched.contender.memory)
        for name, facts in ((BASELINE, launched.baseline), (CONTENDER, launched.contender)):
            self._units[name].append(medians_of_units(self.pair.side(name), facts.requests))

    def answers(self) -> Answers | None:
        """Return what both sides answered; ``None`` before a launch."""
        if self._first is None:
            return None
        answers = self._exchange.answers(
            baseline=self._first.baseline.accuracy,
            contender=self._first.contender.accuracy,
            labels=compare_labels(self.pair, self.gate.launcher, self.gate.scratch),
        )
        return with_spreads(answers, self.pair, self.gate.launcher, self.gate.scratch)

    def _references(self) -> tuple[Path | Accuracy, Path | Accuracy]:
        return self._reference(self.pair.baseline), self._reference(self.pair.contender)

    def _reference(self, case: Case) -> Path | Accuracy:
        if case.model.random_ops:
            names = ", ".join(case.model.random_ops)
            return Accuracy(reason=f"the graph draws random numbers ({names})")
        try:
            return self.gate.launcher.reference(case, self.gate.scratch)
        except WorkerError as error:
            return Accuracy(reason=f"no reference: {error.failure.told}")

    def _flags(self) -> tuple[Flag, ...]:
        assert self._first is not None
        sides = (self._first.baseline, self._first.contender)
        flags = launch_flags(
            self.launches,
            threads=max(side.threads for side in sides),
            cpus=min(side.cpus for side in sides),
            cpu_provider=all(
                case.provider.computes_on_host for case in (self.pair.baseline, self.pair.contender)
            ),
        )
        if can_suspend(self.pair):
            return flags
        detail = "workers of a runtime that is not a local process can't be suspended"
        return (*flags, Flag(name="SPIN", detail=detail))

    def side(self, name: str, scores: Mapping[str, Any]) -> MetricSide:
        """Return what is known of one side beside its durations.

        Args:
            name: The side.
            scores: What it scored on labelled data, by the field of a result.
        """
        assert self._first is not None
        facts: SideFacts = self._first.baseline if name == BASELINE else self._first.contender
        result = CaseResult(
            case=self.pair.side(name),
            status="measured",
            placement=facts.placement,
            accuracy=facts.accuracy,
            **scores,
        )
        if facts.placement is not None and is_fallback(facts.placement):
            result = replace(result, status="fallback")
        gate = self.gate
        result = with_spread(result, self.pair.side(name), gate.launcher, gate.scratch)
        result = replace(result, flags=flags_of_case(result))
        memories = self._memories[name]
        numbers: dict[str, Sequence[float | None]] = {
            "peak_rss": [memory.peak_bytes for memory in memories],
            "process_peak_rss": [memory.whole_process_bytes for memory in memories],
            "session_rss": [memory.session_bytes for memory in memories],
            "device_memory": [memory.device_bytes for memory in memories],
            "cpu_utilisation": [
                median(ratios) / facts.cpus
                for launch in self.launches
                if (
                    ratios := launch.baseline_core_ratio
                    if name == BASELINE
                    else launch.contender_core_ratio
                )
                and facts.cpus
            ],
        }
        for metric in {metric for medians in self._units[name] for metric in medians}:
            numbers[metric] = [medians.get(metric) for medians in self._units[name]]
        return MetricSide(
            result=result,
            summary=summarise(result),
            by_worker={
                metric: tuple(float(value) for value in values if value is not None)
                for metric, values in numbers.items()
            },
        )
