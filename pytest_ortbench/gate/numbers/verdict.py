"""From the launches of one pair to a verdict on its latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from pytest_ortbench.analysis.order import MAD_SCALE
from pytest_ortbench.analysis.steadiness import UNSTEADY_SCATTERS, UNSTEADY_SHARE
from pytest_ortbench.analysis.validity import CORE_SHARE, STARVED_SHARE, STEAL_SHARE
from pytest_ortbench.core.gate import ContrastVerdict, Hindrance, PairedLaunch
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.core.run import NO_HYPERVISOR, NO_QUOTA, Machine
from pytest_ortbench.core.units import amounts_apart, counted, format_amount
from pytest_ortbench.gate.numbers.contrasts import (
    contrasts_of,
    errors_of,
    round_contrasts,
)
from pytest_ortbench.gate.numbers.looks import (
    DEDICATED,
    INCONCLUSIVE,
    NOT_SLOWER,
    SHARED_FLOOR,
    SHARED_TYPICAL,
    SLOWER,
    Look,
    LookPlan,
    LookVerdict,
    launch_deviation,
    smallest_margin,
    take_looks,
)

FLOOR, TYPICAL = "floor", "typical"
_IN_WORDS = {FLOOR: "shortest", TYPICAL: "typical"}
SHARED = "shared"

#: When a regression that is measured again may be confirmed: 7 % one-sided error altogether. With
#: the first gate's 1 % before it, an accident passes both less than once in a thousand gates. Five
#: launches of one sign are the fewest that can say it; a clear regression needs no more of them.
_CONFIRM_LOOKS = (
    Look(launches=5, alpha=1 / 32),
    Look(launches=8, alpha=0.02),
    Look(launches=12, alpha=0.01),
    Look(launches=20, alpha=0.01),
)

#: Flags that the standard pass does not have, or judges by other facts (see core/flags.py).
_THROTTLED_SHARE = 0.01
_UNSTEADY_LAUNCHES = 0.2
_FEWEST_FOR_THIRDS = 12

#: On a shared machine the typical contrast decides where the floor is so many times less certain.
#: With inferences longer than a time slice and other processes that always want to run, no
#: inference is undisturbed, and the fastest of a launch is a matter of luck.
_LESS_CERTAIN = 1.5

#: What makes any verdict on latency worthless: the sides were not measured under conditions that
#: more launches could even out.
_BLURS_ALL = frozenset({"THREADS>CPUS", "THROTTLED", "SPIN"})
#: What blurs the typical contrast of a dedicated machine, where it is not supposed to be. On a
#: shared one it falls on both sides alike, block by block in random order, and shows in the
#: interval: signs of equal sides stay as exact as on a quiet machine.
_BLURS_TYPICAL = frozenset({"STEAL", "CPU-SHARE", "UNSTEADY"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClass:
    """Which statistic decides on this machine, and at which margins.

    Attributes:
        name: ``shared`` or ``dedicated``.
        why: What says so, for people.
        decides: ``floor`` or ``typical``.
        plans: When to look, by statistic.
        floor_counts: Whether the floor says anything of the case.
    """

    name: str
    why: str
    decides: str
    plans: dict[str, LookPlan]
    floor_counts: bool = True

    @property
    def plan(self) -> LookPlan:
        """That of the deciding statistic."""
        return self.plans[self.decides]


def machine_class(machine: Machine, margin: float | None = None) -> MachineClass:
    """Choose by what the machine says of itself.

    Args:
        machine: Its stable facts.
        margin: Smallest slowdown that matters, if the user set one; the typical contrast of a
            shared machine, which scatters more, keeps its distance to it.
    """
    virtual = machine.stable.get("virtualisation", "unknown")
    quota = machine.stable.get("cpu_quota", NO_QUOTA)
    if virtual == NO_HYPERVISOR and quota == NO_QUOTA:
        plan = DEDICATED if margin is None else replace(DEDICATED, margin=margin)
        return MachineClass(
            name="dedicated",
            why="neither a hypervisor nor a quota was found",
            decides=TYPICAL,
            plans={FLOOR: plan, TYPICAL: plan},
        )
    why = f"virtualisation: {virtual}" if virtual != NO_HYPERVISOR else f"quota of {quota} CPUs"
    floor, typical = SHARED_FLOOR, SHARED_TYPICAL
    if margin is not None:
        wider = margin * SHARED_TYPICAL.margin / SHARED_FLOOR.margin
        floor, typical = replace(floor, margin=margin), replace(typical, margin=wider)
    return MachineClass(name=SHARED, why=why, decides=FLOOR, plans={FLOOR: floor, TYPICAL: typical})


def among_callers(profile: MachineClass, callers: int, margin: float | None = None) -> MachineClass:
    """Let the typical contrast decide alone where several callers are at work.

    The fastest of their inferences is one that met the others least, and what they do to each
    other is what such a case is about.

    Args:
        profile: For one caller.
        callers: Inferences in flight at a time.
        margin: What the user allows, which holds for whatever decides; ``None``: nothing.
    """
    if callers == 1:
        return profile
    plans = dict(profile.plans)
    if margin is not None:
        plans[TYPICAL] = replace(plans[TYPICAL], margin=margin)
    return replace(profile, decides=TYPICAL, floor_counts=False, plans=plans)


def choose_statistic(profile: MachineClass, launches: Sequence[PairedLaunch]) -> MachineClass:
    """Let the typical contrast decide where a shared machine leaves the floor too uncertain.

    It is chosen once, by the launches of the first look, and only by what does not depend on which
    side is which (see :class:`~pytest_ortbench.gate.numbers.contrasts.Errors`).

    Args:
        profile: That of the machine.
        launches: Those made so far; with fewer than the first look sees nothing is changed.
    """
    first = profile.plan.looks[0].launches
    if profile.decides != FLOOR or len(launches) < first:
        return profile
    errors = [errors_of(launch) for launch in launches[:first]]
    floor = median(error.floor for error in errors)
    typical = median(error.typical for error in errors)
    if not floor > _LESS_CERTAIN * typical:
        return profile
    margin = profile.plan.margin
    plans = {**profile.plans, TYPICAL: replace(profile.plans[TYPICAL], margin=margin)}
    return replace(profile, decides=TYPICAL, plans=plans)


def statistics(launches: Sequence[PairedLaunch]) -> dict[str, tuple[float, ...]]:
    """Return the contrasts of all launches, by statistic."""
    contrasts = [contrasts_of(launch) for launch in launches]
    return {
        FLOOR: tuple(entry.floor for entry in contrasts),
        TYPICAL: tuple(entry.typical for entry in contrasts),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A verdict on the latency of one case.

    Attributes:
        verdict: A key of :data:`~pytest_ortbench.core.gate.VERDICTS`.
        hindrance: Why it is inconclusive; ``None`` if it is not.
        contrasts: Both statistics, the deciding one first.
        flags: Reasons to trust it less.
    """

    verdict: str
    hindrance: Hindrance | None
    contrasts: tuple[ContrastVerdict, ...]
    flags: tuple[Flag, ...]


def decide(
    launches: Sequence[PairedLaunch],
    profile: MachineClass,
    *,
    flags: Sequence[Flag] = (),
    not_before: int = 0,
    stopped: Hindrance | None = None,
) -> Decided:
    """Say what the launches come to.

    Args:
        launches: All that were made, at least one.
        profile: Which statistic decides.
        flags: See :func:`launch_flags`.
        not_before: See :func:`~pytest_ortbench.gate.numbers.looks.take_looks`.
        stopped: Why there are fewer launches than the rule asks for; ``None`` if there are not.
    """
    by_statistic = statistics(launches)
    names = (profile.decides, TYPICAL if profile.decides == FLOOR else FLOOR)
    judged = {
        name: take_looks(
            by_statistic[name],
            profile.plans[name],
            not_before=not_before if name == profile.decides else 0,
        )
        for name in names
    }
    first, second = judged[names[0]], judged[names[1]]
    verdict = _word(first)
    hindrance: Hindrance | None = None
    if verdict == "inconclusive":
        hindrance = stopped or _why_inconclusive(
            first, by_statistic[names[0]], profile.plans[names[0]]
        )
    blurring = [flag for flag in flags if flag.name in _blurs(profile)]
    if blurring and verdict != "inconclusive":
        shown = "; ".join(f"{flag.name}: {flag.detail}" for flag in blurring)
        verdict, hindrance = "inconclusive", Hindrance(cause="flags", reason=shown)
    elif _contradicts(first, second, names[1], profile, flags):
        reason = (
            f"the {_IN_WORDS[names[1]]} time changed by {format_effect(second.estimate)}, the "
            f"{_IN_WORDS[names[0]]} time by {format_effect(first.estimate)}: "
        )
        slower = names[1] if second.verdict == SLOWER else names[0]
        reason += (
            "the distribution changed, not the shortest time"
            if slower == TYPICAL
            else "they disagree"
        )
        verdict, hindrance = "inconclusive", Hindrance(cause="statistics", reason=reason)
    return Decided(
        verdict=verdict,
        hindrance=hindrance,
        contrasts=tuple(
            _contrast(name, judged[name], profile.plans[name].margin) for name in names
        ),
        flags=tuple(flags),
    )


def _blurs(profile: MachineClass) -> frozenset[str]:
    return _BLURS_ALL if profile.name == SHARED else _BLURS_ALL | _BLURS_TYPICAL


def _contradicts(
    first: LookVerdict, second: LookVerdict, name: str, profile: MachineClass, flags: Sequence[Flag]
) -> bool:
    """Whether the statistic that does not decide says the opposite, and can be believed."""
    if not profile.floor_counts:
        return False
    if first.verdict == NOT_SLOWER and second.verdict == SLOWER:
        blurs = _BLURS_ALL if name == FLOOR else _BLURS_ALL | _BLURS_TYPICAL
        return not any(flag.name in blurs for flag in flags)
    # Where the floor was only too uncertain to decide, it can still acquit.
    return (
        profile.name == SHARED
        and name == FLOOR
        and first.verdict == SLOWER
        and second.verdict == NOT_SLOWER
    )


def _word(judgement: LookVerdict) -> str:
    if judgement.verdict == SLOWER:
        return "slower"
    if judgement.verdict == NOT_SLOWER:
        return "faster" if judgement.improved else "same"
    return "inconclusive"


def _why_inconclusive(
    judgement: LookVerdict, contrasts: Sequence[float], plan: LookPlan
) -> Hindrance:
    deviation = launch_deviation(contrasts)
    if deviation is not None and judgement.verdict == INCONCLUSIVE:
        least = smallest_margin(deviation, plan.last.launches)
        if plan.margin < least:
            margin, resolved = amounts_apart(plan.margin, least, "ratio")
            return Hindrance(
                cause="margin",
                reason=f"a margin of {margin} is below what this machine can resolve now, "
                f"{resolved}",
            )
    return Hindrance(
        cause="launches",
        reason=f"{judgement.launches} launches neither show nor exclude a slowdown of the margin",
    )


def _contrast(name: str, judgement: LookVerdict, margin: float) -> ContrastVerdict:
    return ContrastVerdict(
        statistic=name,
        verdict=_word(judgement),
        effect=judgement.estimate,
        low=judgement.low,
        high=judgement.high,
        margin=margin,
        p=judgement.p,
        launches=judgement.launches,
        detectable=judgement.detectable,
    )


def confirms(
    launches: Sequence[PairedLaunch], profile: MachineClass
) -> tuple[ContrastVerdict | None, int | None]:
    """Judge the launches that were made again because the first ones said ``slower``.

    Returns:
        What they say, ``None`` before the first; and how many are needed to go on, ``None`` once
        they have decided. Only ``slower`` confirms.
    """
    if not launches:
        return None, _CONFIRM_LOOKS[0].launches
    looks = tuple(look for look in _CONFIRM_LOOKS if look.launches <= profile.plan.last.launches)
    plan = replace(profile.plan, looks=looks)
    judgement = take_looks(statistics(launches)[profile.decides], plan)
    contrast = _contrast(profile.decides, judgement, plan.margin)
    return contrast, judgement.next_look


def format_effect(share: float) -> str:
    """Return ``+5.3 %``."""
    return f"{100 * share:+.1f} %"


def launch_flags(
    launches: Sequence[PairedLaunch], *, threads: int, cpus: int, cpu_provider: bool
) -> tuple[Flag, ...]:
    """Return the reasons to trust the launches of a pair less.

    Args:
        launches: All of them.
        threads: Intra-op threads in force, the larger number of both sides.
        cpus: CPUs that the workers may use.
        cpu_provider: Whether the model runs on the CPU, so that CPU time says something.
    """
    details = {
        "UNSTEADY": _unsteady(launches),
        "STEAL": _steal(launches),
        "CPU-SHARE": _cpu_share(launches) if cpu_provider else "",
        "THROTTLED": _throttled(launches),
        "THREADS>CPUS": f"{threads} threads, {counted(cpus, 'CPU')}" if 0 < cpus < threads else "",
    }
    return tuple(Flag(name=name, detail=detail) for name, detail in details.items() if detail)


def _steal(launches: Sequence[PairedLaunch]) -> str:
    read = [launch.steal_ratio for launch in launches if launch.steal_ratio is not None]
    share = sum(read) / len(read) if read else 0.0
    return f"{100 * share:.1f} % of the CPU time" if share > STEAL_SHARE else ""


def _cpu_share(launches: Sequence[PairedLaunch]) -> str:
    """Blocks that got less CPU time by wall time than the best blocks of their side and launch."""
    starved = total = 0
    for launch in launches:
        for ratios in (launch.baseline_core_ratio, launch.contender_core_ratio):
            best = max(ratios, default=0.0)
            starved += sum(ratio < CORE_SHARE * best for ratio in ratios)
            total += len(ratios)
    if not total or starved / total <= STARVED_SHARE:
        return ""
    return f"in {100 * starved / total:.0f} % of the blocks"


def _throttled(launches: Sequence[PairedLaunch]) -> str:
    waited = sum(launch.throttled_ns or 0 for launch in launches)
    timed = sum(
        launch.iterations * (sum(launch.baseline_median_ns) + sum(launch.contender_median_ns))
        for launch in launches
    )
    if not timed or waited / timed <= _THROTTLED_SHARE:
        return ""
    return f"for {format_amount(waited / 1e9, 's')} in {format_amount(timed / 1e9, 's')}"


def _unsteady(launches: Sequence[PairedLaunch]) -> str:
    """Launches in which the ratio itself drifted; a drift of both sides alike cancels out."""
    drifted = sum(_drifts(round_contrasts(launch)) for launch in launches)
    if drifted <= _UNSTEADY_LAUNCHES * len(launches):
        return ""
    return f"the ratio drifted within {drifted} of {len(launches)} launches"


def _drifts(contrasts: Sequence[float]) -> bool:
    if len(contrasts) < _FEWEST_FOR_THIRDS:
        return False
    third = len(contrasts) // 3
    first, last = contrasts[:third], contrasts[-third:]
    scatter = median(abs(value - median(part)) for part in (first, last) for value in part)
    # The difference of two medians of so many rounds each.
    error = MAD_SCALE * scatter * math.sqrt(2 / third) * 1.25
    return abs(median(last) - median(first)) > max(UNSTEADY_SHARE, UNSTEADY_SCATTERS * error)
