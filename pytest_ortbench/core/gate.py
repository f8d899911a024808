"""What a gate measured and said: two sides of one case, launch by launch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_ortbench.core.case import ROLES, Case, role_note
from pytest_ortbench.core.outcome import Answers, Flag

#: What a gate may say of a case: of its answers if these are not good, else of its latency.
VERDICTS: dict[str, str] = {
    "faster": "the contender takes less time, by the margin or more",
    "slower": "the contender takes more time, by the margin or more",
    "same": "a slowdown of the margin or more is excluded",
    "inconclusive": "a slowdown as large as the margin is neither shown nor excluded",
    "incomparable": "the two sides do not measure the same thing",
    "less accurate": "the contender's outputs differ from the baseline's by more than is allowed",
    "unjudged": "the outputs of the two sides could not be compared",
}

#: Cause of a case whose tests did not reach their end.
UNREACHED = "unreached"

#: Why there is no verdict on the latency of a case.
CAUSES: dict[str, str] = {
    "inputs": "the two sides have different inputs",
    "status": "one of the two sides could not be measured",
    "machine": "the two runs come from different machines",
    "device": "a program computed in the place of the device, and not the same one in both runs",
    "workload": "the two runs did different work",
    "shared": "times of two runs can't be compared on a shared machine",
    "yardstick": "the two runs have no yardstick in common, or its turns do not compare",
    "canary": "the machine itself changed, or may have changed",
    UNREACHED: "no test of the case reached its end",
    "limits": "there is no baseline, so only absolute limits were checked",
    "removed": "the case is no longer planned",
    "time": "the time limit of the case was reached",
    "budget": "the budget of the run has no time for the launches that a verdict takes",
    "suite": "among so many cases the slowdown is not significant",
    "unconfirmed": "a second measurement did not find the slowdown again",
    "launches": "the launches neither show nor exclude a slowdown as large as the margin",
    "margin": "the margin is below what the machine can resolve",
    "flags": "flags of the case forbid a comparison of its times",
    "statistics": "two statistics of the launches contradict each other",
    "median": "one of the two sides has no median",
    "noise": "the noise in both runs is too large for the margin",
}

#: A whole revision of git, and the digits of it that people read.
_REVISION = re.compile(r"\b[0-9a-f]{40}\b")
_DIGITS = 12


def short_side(side: str) -> str:
    """Return the other side for people: a revision of git with as many digits as they read."""
    return _REVISION.sub(lambda match: match[0][:_DIGITS], side)


#: What stands for the other side of a case that has none: only its absolute limits are held.
NO_BASELINE = "no baseline"

MODEL_SAME, MODEL_CHANGED, MODEL_UNPROVEN = "same", "changed", "unproven"

#: How the model files of the two sides of a case are related.
MODEL_RELATIONS: dict[str, str] = {
    MODEL_SAME: "the content is the same",
    MODEL_CHANGED: "it is the same model, but the content of its file changed",
    MODEL_UNPROVEN: "the content differs, and only names and folders suggest the same model",
}

#: What it may say of any other metric; and ``inconclusive`` and ``incomparable`` as above.
METRIC_VERDICTS: dict[str, str] = {
    "better": "the contender's value is better",
    "worse": "the contender's value is worse by more than is allowed",
    "same": "within what is allowed",
    "informs": "shown only, never fails the gate",
    "less accurate": "the contender's outputs differ from the baseline's by more than is allowed",
    "unjudged": "the evidence is missing, incomplete or not a number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedLaunch:
    """One fresh pair of workers: raw facts of its rounds, in order.

    Attributes:
        seed: Seed of the order inside the rounds.
        iterations: Inferences in a block; the same for both sides.
        warm_up_runs: Runs before the first block; the same for both sides.
        baseline_min_ns: Fastest inference of each of the baseline's blocks.
        contender_min_ns: Likewise for the contender.
        baseline_median_ns: Median inference of each of the baseline's blocks.
        contender_median_ns: Likewise for the contender.
        baseline_core_ratio: CPU time by wall time of each of the baseline's blocks.
        contender_core_ratio: Likewise for the contender.
        baseline_peak_bytes: Rise of the resident size at its peak; ``None`` if unreadable.
        contender_peak_bytes: Likewise for the contender.
        steal_ratio: Share of CPU time that the hypervisor took in the blocks; ``None`` if
            unreadable.
        throttled_ns: Time for which the cgroup was throttled in the blocks; ``None`` if unreadable.
        wall_s: Seconds that the launch took altogether.
    """

    seed: int
    iterations: int
    warm_up_runs: int
    baseline_min_ns: tuple[int, ...]
    contender_min_ns: tuple[int, ...]
    baseline_median_ns: tuple[float, ...]
    contender_median_ns: tuple[float, ...]
    baseline_core_ratio: tuple[float, ...] = ()
    contender_core_ratio: tuple[float, ...] = ()
    baseline_peak_bytes: int | None = None
    contender_peak_bytes: int | None = None
    steal_ratio: float | None = None
    throttled_ns: int | None = None
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastVerdict:
    """What one statistic over the launches comes to. Effects are shares: 0.05 is 5 % longer.

    Attributes:
        statistic: ``floor`` (fastest inferences), ``typical`` (medians of blocks), ``median`` (of
            two runs) or ``relative`` (ratios to a yardstick, which only inform).
        verdict: A key of :data:`VERDICTS`.
        effect: Contender ÷ baseline − 1, the Hodges–Lehmann estimate.
        low: Exact lower bound at the look's one-sided error; ``None`` with too few launches.
        high: Exact upper bound at 5 %, likewise.
        margin: Smallest slowdown that matters.
        p: One-sided p-value of "not slower".
        launches: Launches it stands on.
        detectable: Smallest slowdown that so many launches would find in nine of ten cases;
            ``None`` with too few launches to tell.
    """

    statistic: str
    verdict: str
    effect: float
    low: float | None
    high: float | None
    margin: float
    p: float
    launches: int
    detectable: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricVerdict:
    """What a metric other than paired latency comes to.

    Attributes:
        metric: Name in the registry, or ``status``.
        verdict: A key of :data:`METRIC_VERDICTS` or :data:`VERDICTS`.
        baseline: Number of the baseline in SI units; ``None`` where it has none.
        contender: Likewise for the contender.
        bound: Number of an absolute limit; ``None`` where it is compared with the baseline.
        allowed: What was allowed, for people: ``+2 % or +1 MiB, whichever is more``.
        reason: Why, in plain words; empty where the numbers say it.
        allowance: How much worse than the baseline's number it may be, in SI units; ``None`` where
            it is not compared with one.
    """

    metric: str
    verdict: str
    baseline: float | None = None
    contender: float | None = None
    bound: float | None = None
    allowed: str = ""
    reason: str = ""
    allowance: float | None = None


#: What a finding may be about beside a metric of the registry.
SUBJECTS: dict[str, str] = {
    "latency": "the time of an inference",
    "accuracy": "flags that bar a number, the outputs of both sides, and every accuracy_* metric",
    "answers": "the outputs of the two sides, compared",
    "status": "whether the case can still be measured",
    "comparison": "whether the two sides can be compared at all",
    "removed": "whether the case is still there",
}

#: What an entry of the project's file of acceptances may come to.
ACCEPTED, EXPIRED, EXCEEDED, OTHER_FILE = "accepted", "expired", "exceeded", "other file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What the project's file of acceptances says of one finding.

    Attributes:
        state: ``accepted``; or why it does not cover the finding: ``expired``, ``exceeded`` (it is
            worse than what was accepted), ``other file`` (another model file was accepted).
        case: The pattern of the entry.
        metric: The metric of the entry; empty for one that covers everything of the case.
        reason: Why it is accepted, in the words of whoever accepted it.
        until: The last day, ISO 8601; empty without one.
        worse_by: The share of the baseline that it may be worse by; ``None`` for any.
    """

    state: str
    case: str
    metric: str = ""
    reason: str = ""
    until: str = ""
    worse_by: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFinding:
    """One thing that a gate found worse in a case, accepted or not.

    Attributes:
        about: A metric of the registry, or a key of :data:`SUBJECTS`.
        text: What is wrong, one sentence.
        fails: Whether it fails the case; if not, it is a warning.
        worse_by: How much worse than the baseline (or than an absolute limit), as a share of it;
            ``None`` where that is no number.
        slack: What repeated measuring may add to it.
        acceptance: What the project's file says of it; ``None``: nothing.
    """

    about: str
    text: str
    fails: bool = True
    worse_by: float | None = None
    slack: float = 0.0
    acceptance: Acceptance | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether an acceptance covers it."""
        return self.acceptance is not None and self.acceptance.state == ACCEPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """Why there is no verdict on a latency.

    Attributes:
        cause: A key of :data:`CAUSES`.
        reason: The same as a sentence, with what was seen.
    """

    cause: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedModel:
    """A model that a baseline has and that nothing in a run names: it was not judged.

    Attributes:
        place: Its file in the working tree, or its name in a stored run.
        baseline: The other side: ``git:main``, the id of a stored run.
        is_there: Whether the file is still there.
    """

    place: str
    baseline: str
    is_there: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSizes:
    """What an input is fed that nobody set the sizes of, where the two models have other defaults.

    Attributes:
        input: Name of the input.
        fed: The shape that both sides are fed.
        baseline: The shape that the baseline's model is fed by default.
        contender: Likewise of the contender's model.
    """

    input: str
    fed: tuple[int, ...]
    baseline: tuple[int, ...]
    contender: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One case against its baseline.

    Attributes:
        case_id: Case of the contender.
        runtime: Label of its runtime.
        baseline: The other side: ``model:old.onnx``, the id of a stored run, or
            :data:`NO_BASELINE`.
        verdict: A key of :data:`VERDICTS`: ``less accurate`` or ``unjudged`` where the answers are
            not good, else that on the latency.
        reason: For ``incomparable`` the field that differs, for ``inconclusive`` why; a sentence.
        decided_by: ``floor``, ``typical``, ``stored`` (intervals of two runs), ``relative`` (ratios
            of stored runs to a yardstick), or empty.
        baseline_case_id: Case of the baseline, where the sides have different ids.
        contrasts: What each statistic says, the deciding one first.
        metrics: Verdicts on the other metrics.
        launches: Raw facts of every launch.
        confirmation: Launches with a new seed, made because the first ones said ``slower``.
        confirmed: What they say.
        flags: Reasons to trust it less.
        failures: Why the case fails, one sentence each; empty if it does not. What was accepted is
            not among them.
        warnings: What it warns of; ``--ort-gate-strict`` makes failures of them.
        findings: What is wrong with it, accepted or not, as it was judged.
        model_digest: Digest of the contender's model; empty where there is none.
        wall_s: Seconds that it took.
        removed: Whether the baseline has the case and the plan of this run has not.
        model: Name of the model of a case that was removed.
        identical: Whether both sides are the same files under the same settings, which were
            therefore not measured.
        latency: What the latency alone comes to, where the verdict is another; empty otherwise.
        answers: What both sides answered; ``None`` where nothing was measured in one run.
        model_relation: How the model files of the sides are related, a key of
            :data:`MODEL_RELATIONS`; empty where that is not looked at.
        baseline_digest: Digest of the baseline's model, where it is another one.
        moved_to: What the model of a removed case is called now, if its content is there under
            another name.
        has_baseline: Whether it has another side at all; without one, only its absolute limits are
            held.
        cause: Why there is no verdict on the latency, a key of :data:`CAUSES`; empty if there is.
        role: What the case runs on, one of :data:`~pytest_ortbench.core.case.ROLES`.
        baseline_role: Likewise of the baseline, where that runs on another provider, engine or
            framework; empty otherwise.
        default_sizes: What the inputs are fed of which the two models have other default sizes.
    """

    case_id: str
    runtime: str
    baseline: str
    verdict: str
    reason: str = ""
    decided_by: str = ""
    baseline_case_id: str = ""
    contrasts: tuple[ContrastVerdict, ...] = ()
    metrics: tuple[MetricVerdict, ...] = ()
    launches: tuple[PairedLaunch, ...] = ()
    confirmation: tuple[PairedLaunch, ...] = ()
    confirmed: ContrastVerdict | None = None
    flags: tuple[Flag, ...] = ()
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    wall_s: float = 0.0
    removed: bool = False
    findings: tuple[GateFinding, ...] = ()
    model_digest: str = ""
    model: str = ""
    identical: bool = False
    latency: str = ""
    answers: Answers | None = None
    model_relation: str = ""
    baseline_digest: str = ""
    moved_to: str = ""
    has_baseline: bool = True
    cause: str = ""
    role: str = ROLES[0]
    baseline_role: str = ""
    default_sizes: tuple[DefaultSizes, ...] = ()

    @classmethod
    def undecided(cls, case: Case, *, baseline: str, before: Case | None = None) -> GateResult:
        """Return the result of a case on which there is no verdict yet.

        Args:
            case: Of the contender; of the baseline where the contender has none.
            baseline: What the other side is called.
            before: The case of the other side, where it is known.
        """
        others = before is not None and before.provider.label != case.provider.label
        return cls(
            case_id=case.case_id,
            runtime=case.runtime.label,
            baseline=baseline,
            verdict="incomparable",
            role=case.provider.role,
            baseline_role=before.provider.role if before is not None and others else "",
        )

    @property
    def role_note(self) -> str:
        """What stands behind the name of the case for people."""
        return role_note(self.role)

    @property
    def against(self) -> str:
        """The other side for people: ``provider:torch (framework)``."""
        side = short_side(self.baseline)
        return side + (role_note(self.baseline_role) if self.baseline_role else "")

    @property
    def latency_verdict(self) -> str:
        """What the latency alone comes to."""
        return self.latency or self.verdict

    @property
    def compares(self) -> bool:
        """Whether two sides of the case were compared."""
        return self.has_baseline and not self.removed

    @property
    def accepted(self) -> tuple[GateFinding, ...]:
        """What is wrong with it and was accepted."""
        return tuple(finding for finding in self.findings if finding.is_accepted)

    def with_findings(self, findings: Iterable[GateFinding]) -> GateResult:
        """Return the result with further findings, each among its failures or its warnings."""
        further = tuple(findings)
        return replace(
            self,
            findings=(*self.findings, *further),
            failures=(*self.failures, *(entry.text for entry in further if entry.fails)),
            warnings=(*self.warnings, *(entry.text for entry in further if not entry.fails)),
        )
