"""Divides the time of a whole run over its parts, again each time that one begins.

A *part* is what one case takes of one kind: its standard pass, another pass, its gate. Everything
gets its least first, in the order of what decides; what is left goes to contenders, then to what
is held to limits or a gate, then to the others, until each has what it has without a budget; and
what is left then goes into more workers of all. What parts really took is learned on the way, and
what one of them leaves over is there for the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pytest_ortbench.core.case import Case, Key, Sampling
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.planning.estimate import Costs, Expected, pace_of

#: The first kinds of parts; the others are called like their pass.
STANDARD, GATE = "standard", "gate"

#: What decides comes first: variants of one model that are compared; cases that are held to a limit
#: or a gate; all others.
CONTENDER, HELD, OTHER = 0, 1, 2

#: Three processes are the fewest whose interval holds the median over processes as often as it
#: says (see :mod:`pytest_ortbench.analysis.between_processes`), and one block is the least that is
#: timed of each.
LEAST_WORKERS, LEAST_TIMED_S = 3, 0.25
#: More of them narrow an interval by less than a machine changes meanwhile.
MOST_WORKERS = 60
#: Launches of a gate: at its first look and at its last.
LEAST_LAUNCHES, MOST_LAUNCHES = 8, 20

#: What is expected of a test that makes its model before anything is known of that, in seconds:
#: of a worker, and of its case beside them.
WORKER_S, ONCE_S = 1.0, 2.0

#: A part may take so many times its least before it is ended, even where nothing is left over;
#: more while nothing like it was measured yet.
_PATIENCE, _PATIENCE_AT_FIRST = 2.0, 3.0
#: So many times the least of others is kept from what goes on and on, while it is a guess.
_KEPT_AT_FIRST = 1.5
#: By this share of the whole the last part may end late, rather than lose what it has measured.
_GRACE = 0.05
#: What is expected to take more than is left is tried all the same if so much of it is.
#: A pass takes what it takes.
_TRIED_SHARE, _TRIED_SHARE_OF_EXTRAS = 0.6, 0.93
#: So much of the least of others is not given to what decides less.
_KEPT_SHARE = 0.15
#: The most that a part may take is known less well than its least, and ends by itself.
_MOST_FACTOR = 2.0
#: Even what was expected to take no time takes some.
_INSTANT_S = 0.01
#: A case whose median is so many times that of a rival is no contender.
_OUTRUN = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What one part may take, in seconds.

    Attributes:
        least: Less gives no honest number.
        usual: What it takes without a budget.
        most: More is of no use.
        rank: :data:`CONTENDER`, :data:`HELD` or :data:`OTHER`.
        is_extra: Whether the number of the case stands without it: it comes last.
    """

    least: float
    usual: float
    most: float
    rank: int = OTHER
    is_extra: bool = False


def divide(wants: Sequence[Want], left_s: float) -> list[float]:
    """Return the seconds of each part; 0 for those whose least does not fit.

    Args:
        wants: The parts in the order in which they come.
        left_s: Seconds that are left for all of them.
    """
    given = [0.0] * len(wants)
    by_rank = sorted(
        range(len(wants)), key=lambda index: (wants[index].is_extra, wants[index].rank)
    )
    for index in by_rank:
        if wants[index].least <= left_s - _kept_for(wants, given, wants[index].rank):
            given[index] = wants[index].least
            left_s -= wants[index].least
    for index in by_rank:
        # It may take less than was expected of it, and the time is nobody else's.
        free_s = left_s - _kept_for(wants, given, wants[index].rank)
        share = _TRIED_SHARE_OF_EXTRAS if wants[index].is_extra else _TRIED_SHARE
        if not given[index] and share * wants[index].least <= free_s:
            given[index] = free_s
            left_s -= free_s
    if any(not own and not want.is_extra for own, want in zip(given, wants, strict=True)):
        return given  # what is left over may yet be enough for them
    fitting = sorted((index for index in by_rank if given[index]), key=lambda at: wants[at].rank)
    for _, group in groupby(fitting, key=lambda index: wants[index].rank):
        left_s -= _fill(given, {index: wants[index].usual for index in group}, left_s)
    _fill(given, {index: wants[index].most for index in fitting}, left_s)
    return given


def _kept_for(wants: Sequence[Want], given: Sequence[float], rank: int) -> float:
    """What is not given away in case that parts on which more depends take longer."""
    return _KEPT_SHARE * sum(
        own for want, own in zip(wants, given, strict=True) if want.rank < rank
    )


def _fill(given: list[float], up_to: dict[int, float], left_s: float) -> float:
    """Give all of them the same share of what they lack; return what that took."""
    lacking = {index: max(0.0, end - given[index]) for index, end in up_to.items()}
    total = sum(lacking.values())
    share = min(1.0, max(0.0, left_s) / total) if total else 0.0
    for index, more in lacking.items():
        given[index] += share * more
    return share * total


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPart:
    """One part of a run.

    Attributes:
        key: Its case; of a test that makes its model, what stands for the case.
        name: :data:`STANDARD`, :data:`GATE`, or a pass as it is asked for.
        case: The case; ``None`` of a test that makes its model.
        rank: How much depends on it, see :class:`Want`.
        rivals: What the cases have in common that are compared with this one; empty without any.
        launches_s: What the launches of a gate are expected to take until its first look.
        most_workers: More of them are of no use.
    """

    key: Key
    name: str = STANDARD
    case: Case | None = None
    rank: int = OTHER
    rivals: tuple[object, ...] = ()
    launches_s: float = 0.0
    most_workers: int = MOST_WORKERS

    @property
    def place(self) -> tuple[Key, str]:
        """What it is known by."""
        return self.key, self.name

    @property
    def kind(self) -> tuple[object, ...]:
        """What parts have in common that take about as long."""
        if self.case is None:
            return (self.name,)
        case = self.case
        who = (case.model.name, case.provider.label, case.runtime.label)
        return (self.name, *who, case.variant.precision, case.generation is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a part got when its turn came.

    Attributes:
        given_s: Seconds that it is to take; 0 if its least does not fit any more.
        until: When these are over, of the clock.
        at_most: When it is ended, of the clock.
        expected: What its case is expected to take with the least.
        outrun_s: A median that makes it no contender; 0 where nothing does.
        is_tight: Whether it is to take its least and no more, since not all have theirs.
        most_workers: More of them are of no use.
        least_s: Its least.
        left_s: What is left for it and all others.
    """

    given_s: float
    until: float
    at_most: float
    expected: Expected | None = None
    outrun_s: float = 0.0
    is_tight: bool = False
    most_workers: int = MOST_WORKERS
    least_s: float = 0.0
    left_s: float = 0.0


@dataclass(slots=True)
class Budget:
    """The time of a run: what is left of it, and for whom.

    Attributes:
        total_s: Seconds from the first case to the end of everything.
        costs: What parts of cases take.
        closing: Gives the seconds that are kept for what comes after the last case, as they are
            expected now.
        clock: Seconds of a clock that never goes back.
    """

    total_s: float
    costs: Costs = field(default_factory=Costs)
    closing: Callable[[], float] = float
    clock: Callable[[], float] = time.monotonic
    _began: float | None = None
    _parts: dict[tuple[Key, str], BudgetPart] = field(default_factory=dict)
    #: Seconds that parts took, and that are expected of such parts since, by their kind.
    _taken: dict[tuple[object, ...], list[tuple[float, float]]] = field(default_factory=dict)
    #: Seconds that the first of each kind took, and that were expected before anything was known.
    _guessed: list[tuple[float, float]] = field(default_factory=list)
    _best_s: dict[tuple[object, ...], float] = field(default_factory=dict)
    _referred: set[str] = field(default_factory=set)

    def expect(self, parts: Iterable[BudgetPart]) -> None:
        """Add parts that are still to come; those that are known already stay as they are."""
        for part in parts:
            self._parts.setdefault(part.place, part)

    def forget(self, key: Key) -> None:
        """Drop all parts of a case that do not come any more."""
        for place in [place for place in self._parts if place[0] == key]:
            del self._parts[place]

    @property
    def spent_s(self) -> float:
        """Seconds since the first part began."""
        return 0.0 if self._began is None else self.clock() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left for cases."""
        return self.total_s - self.closing() - self.spent_s

    def has_time_for(self, seconds: float) -> bool:
        """Whether the run still ends about in time if something takes so long now."""
        return self.spent_s + seconds <= (1 + _GRACE) * self.total_s

    @property
    def parts(self) -> tuple[BudgetPart, ...]:
        """What is still to come, in the order in which it was expected."""
        return tuple(self._parts.values())

    def plan(self) -> dict[tuple[Key, str], float]:
        """Return what each part gets as far as is known now, by its place; 0: it does not fit."""
        return dict(zip(self._parts, divide(self.wants(), self.left_s), strict=True))

    def wants(self) -> list[Want]:
        """Return what each part may take, in the order in which they come."""
        wants = []
        referred = set(self._referred)
        for part in self._parts.values():
            wants.append(self._want(part, has_reference=_reference_of(part) in referred))
            referred.add(_reference_of(part))
        return wants

    def _want(self, part: BudgetPart, *, has_reference: bool) -> Want:
        if part.name == STANDARD:
            usual_s = self._usual_s(part)
            least, usual, most = (
                self._pace(part)
                * self.expected(part, workers, timed_s, has_reference=has_reference).total_s
                for workers, timed_s in (
                    (LEAST_WORKERS, LEAST_TIMED_S),
                    (LEAST_WORKERS, usual_s),
                    (part.most_workers, usual_s),
                )
            )
            return Want(least=least, usual=usual, most=_MOST_FACTOR * most, rank=part.rank)
        if part.name == GATE:
            least = LEAST_LAUNCHES * self.launch_s(part)
            most = MOST_LAUNCHES * self.launch_s(part)
            return Want(least=least, usual=most, most=most, rank=part.rank)
        whole = max(_INSTANT_S, self._pace(part) * self._pass_s(part))
        return Want(least=whole, usual=whole, most=whole, rank=part.rank, is_extra=True)

    def shape(self, part: BudgetPart, given_s: float) -> tuple[int, float]:
        """Return about how many workers so many seconds are, and what each of them times."""
        usual_s, pace = self._usual_s(part), self._pace(part)
        expected = self.expected(part, LEAST_WORKERS, usual_s)
        worker_s = pace * expected.worker_s
        left_s = given_s - pace * (expected.reference_s + expected.first_s)
        workers = int(left_s / (worker_s + usual_s))
        if workers >= LEAST_WORKERS:
            return min(workers, part.most_workers), usual_s
        return LEAST_WORKERS, max(LEAST_TIMED_S, left_s / LEAST_WORKERS - worker_s)

    def launch_s(self, part: BudgetPart) -> float:
        """Return about how long one launch of a gate takes."""
        return max(_INSTANT_S, self._pace(part) * part.launches_s / LEAST_LAUNCHES)

    def expected(
        self, part: BudgetPart, workers: int, timed_s: float, *, has_reference: bool = False
    ) -> Expected:
        """Return what a case is expected to take with so many workers that time so long."""
        if part.case is None:
            return Expected(
                reference_s=ONCE_S,
                worker_s=WORKER_S,
                first_s=0.0,
                timed_s=workers * timed_s,
                workers=workers,
            )
        asked = with_sampling(part.case, workers, timed_s)
        return self.costs.expected(asked, has_reference=has_reference)

    def _usual_s(self, part: BudgetPart) -> float:
        return (part.case.sampling if part.case else Sampling()).time_s / LEAST_WORKERS

    def _pass_s(self, part: BudgetPart) -> float:
        assert part.case is not None
        return self.costs.expected(part.case, [part.name]).passes_s

    def _pace(self, part: BudgetPart) -> float:
        """By which factor parts like this one, else all, took longer than is expected of them.

        What a pass waits for is no question of how fast a machine is.
        """
        taken = self._taken.get(part.kind, [])
        for kind, others in self._taken.items():
            if not taken and kind[0] == part.name != STANDARD:
                taken = others
        if not taken and part.name in (STANDARD, GATE):
            taken = self._guessed
        return pace_of(sum(own for own, _ in taken), sum(expected for _, expected in taken))

    def part(self, case: Case, name: str = STANDARD) -> BudgetPart:
        """Return a part of a case as it was expected; one that nobody expected decides nothing."""
        return self._parts.get((case.key, name)) or BudgetPart(key=case.key, name=name, case=case)

    def turn(self, part: BudgetPart) -> Turn:
        """Return what a part gets that begins now. The clock starts with the first."""
        if self._began is None:
            self._began = self.clock()
        self._parts.setdefault(part.place, part)
        wants = dict(zip(self._parts, self.wants(), strict=True))
        plan = self.plan()
        given_s = plan.pop(part.place)
        others_s = sum(
            wants[place].least * (1.0 if self._parts[place].kind in self._taken else _KEPT_AT_FIRST)
            for place, given in plan.items()
            if given
        )
        most_s = self.left_s - others_s
        if given_s:
            patience = _PATIENCE if part.kind in self._taken else _PATIENCE_AT_FIRST
            most_s = max(given_s, most_s, patience * wants[part.place].least)
            most_s = min(most_s, self.left_s + _GRACE * self.total_s)
        now = self.clock()
        return Turn(
            given_s=given_s,
            until=now + given_s,
            at_most=now + most_s,
            expected=self._expected_now(part),
            outrun_s=_OUTRUN * self._best_s.get(part.rivals, 0.0),
            is_tight=any(not given and not wants[place].is_extra for place, given in plan.items()),
            most_workers=part.most_workers,
            least_s=wants[part.place].least,
            left_s=max(0.0, self.left_s),
        )

    def _expected_now(self, part: BudgetPart) -> Expected | None:
        if part.name != STANDARD:
            return None
        is_known = _reference_of(part) in self._referred
        expected = self.expected(part, LEAST_WORKERS, LEAST_TIMED_S, has_reference=is_known)
        pace = self._pace(part)
        return replace(
            expected,
            reference_s=pace * expected.reference_s,
            worker_s=pace * expected.worker_s,
            first_s=pace * expected.first_s,
        )

    # -- what is learned --------------------------------------------------------------------------

    def measured(self, part: BudgetPart, result: CaseResult, wall_s: float) -> None:
        """Learn what the standard pass of a case took; it is over.

        Args:
            part: The part.
            result: What came of it.
            wall_s: Seconds that it took.
        """
        workers = len(result.measurements)
        if workers:
            timed_s = sum(own.samples.wall_ns for own in result.measurements) * 1e-9 / workers
            as_given = with_sampling(result.case, workers, timed_s)
            if result.budget is not None:
                # What a last block takes beyond the time that was asked for is learned, too.
                timed_s = result.budget.timed_s / workers
            is_known = _reference_of(part) in self._referred
            guess = self.expected(part, workers, timed_s, has_reference=is_known)
            if part.kind not in self._taken:
                self._guessed.append((wall_s, guess.total_s))
            self.costs.learn(replace(result, case=as_given))
            known = self.expected(part, workers, timed_s, has_reference=is_known)
            self._note(part, wall_s, known.total_s)
            self._referred.add(_reference_of(part))
        self._parts.pop(part.place, None)

    def note_best(self, part: BudgetPart, high_s: float) -> None:
        """Learn the upper end of the median of a case that may be ranked."""
        if part.rivals:
            best_s = self._best_s.get(part.rivals, high_s)
            self._best_s[part.rivals] = min(best_s, high_s)

    def launched(self, part: BudgetPart, wall_s: float, launches: int) -> None:
        """Learn what the launches of a gate took; it is over."""
        if launches:
            self._note(part, wall_s, part.launches_s * launches / LEAST_LAUNCHES)
        self._parts.pop(part.place, None)

    def carried_out(self, part: BudgetPart, wall_s: float) -> None:
        """Learn what another pass took; it is over."""
        self._note(part, wall_s, self._pass_s(part))
        self._parts.pop(part.place, None)

    def left_out(self, part: BudgetPart) -> None:
        """Drop a part whose least did not fit."""
        self._parts.pop(part.place, None)

    def _note(self, part: BudgetPart, wall_s: float, expected_s: float) -> None:
        self._taken.setdefault(part.kind, []).append((wall_s, expected_s))


def _reference_of(part: BudgetPart) -> str:
    """What cases have in common that are held against the same reference outputs."""
    return "" if part.case is None else f"{part.case.model.path} {part.case.inputs}"


def with_sampling(case: Case, workers: int, timed_s: float) -> Case:
    """Return a case that is measured by so many workers, each of which times so long."""
    sampling = replace(case.sampling, workers=workers, time_s=workers * timed_s)
    return replace(case, sampling=sampling)
