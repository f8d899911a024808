"""What every rendering of a comparison shows, gathered once so that none can say otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.sentences import digits_for, first_names
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.flags import FLAGS, ONE_WORKER
from pytest_ortbench.core.metrics import METRICS, metric_hint
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.units import common_scale, significant
from pytest_ortbench.fleet.numbers.evenness import (
    are_cells_even,
    are_sides_even,
    single_cells,
    single_sides,
)
from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.machine_share import machine_shares
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row, by_case, by_workload
from pytest_ortbench.fleet.numbers.ratios import Ratio
from pytest_ortbench.fleet.numbers.sentences import best_overall, conclusions, warnings
from pytest_ortbench.fleet.numbers.sides import AXES, choose_axis, lay_out_sides
from pytest_ortbench.fleet.numbers.words import metric_words
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.escape import one_line

#: What stands for a case that a side does not have.
HOLE = "·"
#: Different reasons of holes that are spelt out.
REASONS = 8

#: Axes on which machines differ, or the minutes of one, and the metric that a yardstick is of.
_OF_MACHINES = (("machine", "latency_p50"), ("time", "latency_p50"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table of a comparison and what stands above it."""

    key: str
    heading: str
    about: str
    matrix: Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """A part that stands between the answer and the tables: a table of its own, and sentences.

    Attributes:
        key: Its anchor in HTML.
        heading: Its heading.
        sentences: What to know of it.
        headings: Headings of the table's columns.
        rows: Its cells.
        right: Columns that are aligned to the right.
        details: Columns that a page shows in a table of their own, folded.
    """

    key: str
    heading: str
    sentences: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: frozenset[int] = frozenset()
    details: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A comparison, ready to be rendered.

    Attributes:
        title: What is compared.
        axis: A key of ``AXES``.
        metric: The metric of the ratios.
        baseline: Label of the baseline.
        answer: The sentences that answer the question: what to ship, then which is best over all.
        overall: The one among them about all cases.
        sections: Best by workload and case by case; the first is left out where it says the same.
        warnings: What a reader must mind.
        holes: Why cells are empty, each reason with its number of cells.
        runs: The runs that were compared.
        blocks: Further tables, between the overview and those of the comparison.
        aside: What the overview says by the metric, where the answer is another one: what to buy.
        cards: The answer about a purchase, where it is about one: before all else on a page.
        by_yardstick: What of the differences is the machine's; ``None`` where no yardstick tells.
    """

    title: str
    axis: str
    metric: str
    baseline: str
    answer: tuple[Told, ...]
    overall: Told
    sections: tuple[Section, ...]
    warnings: tuple[str, ...]
    holes: tuple[str, ...]
    runs: tuple[RunFacts, ...]
    blocks: tuple[Insert, ...] = ()
    aside: tuple[Told, ...] = ()
    cards: tuple[AnswerCard, ...] = ()
    by_yardstick: Insert | None = None

    @property
    def is_of_one(self) -> bool:
        """Whether there is one side alone, so that nothing is compared."""
        return len(self.main.sides) == 1

    @property
    def unsaid_warnings(self) -> tuple[str, ...]:
        """The warnings that the answer does not say already."""
        return tuple(text for text in self.warnings if text not in self.answer)

    @property
    def main(self) -> Matrix:
        """The case by case comparison."""
        return self.sections[-1].matrix

    @property
    def over_all(self) -> Matrix:
        """What the overview is of: all cases; the best of each side where no case is common."""
        best = self.sections[0].matrix
        return best if best.common and not self.main.common else self.main

    @property
    def shared(self) -> str:
        """What is behind every side alike; said once, not in every row."""
        return one_line(", ".join(self._alike))

    def about(self, index: int) -> str:
        """What is behind a side and not behind all."""
        alike = self._alike
        return one_line(
            ", ".join(part for part in self.main.sides[index].about if part not in alike)
        )

    @property
    def abouts(self) -> tuple[str, ...]:
        """:meth:`about` of each side; empty where nothing tells them apart."""
        texts = tuple(self.about(index) for index in range(len(self.main.sides)))
        return texts if any(texts) else ()

    @property
    def _alike(self) -> tuple[str, ...]:
        sides = self.main.sides
        return tuple(part for part in sides[0].about if all(part in side.about for side in sides))

    @property
    def counts(self) -> str:
        """How many cases count where."""
        matrix = self.over_all
        noun = "case" if matrix is self.main else "workload"
        count = len(matrix.rows)
        rows = f"{count} {noun}{'s' * (count != 1)}"
        if not matrix.common:
            return (
                f"Of {rows}, none has a number that can be compared on every side, so there is no "
                "geometric mean."
            )
        best = "" if matrix is self.main else ", each by the best variant of a side"
        return (
            f"Of {rows}{best}, {matrix.common} {'has' if matrix.common == 1 else 'have'} a number "
            "that can be compared on every side; the geometric mean is over "
            f"{'that one' if matrix.common == 1 else 'those'}."
        )


def build_view(
    runs: Sequence[RunFacts],
    *,
    axis: str = "",
    metric: str = "latency_p50",
    baseline: str = "",
    one_is_enough: bool = False,
) -> ComparisonView:
    """Compare runs in one metric.

    Args:
        runs: In the order in which the user named them; none twice.
        axis: A key of ``AXES``; empty chooses what differs.
        metric: Name of a metric.
        baseline: Label of the side that ratios refer to; empty takes the first.
        one_is_enough: Whether there may be one side alone, as where a single machine is priced.

    Raises:
        UsageError: for an unknown axis, metric or baseline, or if there is nothing to compare.
    """
    if metric not in METRICS:
        raise UsageError(f"{metric!r} is not a metric", place="--metric", hint=metric_hint(metric))
    chosen = axis or choose_axis(runs)
    layout = lay_out_sides(runs, chosen)
    labels = [side.label for side in layout.sides]
    if len(labels) < (1 if one_is_enough else 2):
        others = [f"--by={name}" for name in AXES if len(lay_out_sides(runs, name).sides) > 1]
        instead = f". To compare these runs, write {' or '.join(others)}" if others else ""
        of_time = chosen == "time"
        raise UsageError(
            (
                "only one run is given, of "
                if of_time and len(runs) == 1
                else f"there is only one {'point in time' if of_time else chosen} in these runs: "
            )
            + "".join(map(one_line, labels))
            if labels
            else "these runs contain no case that can be compared",
            place="compare",
            hint=f"Add {'a run of another time' if of_time else f'a run with another {chosen}'}"
            f"{instead}"
            if labels
            else "Name runs that have measured a case",
        )
    names = [side.short for side in layout.sides]
    if baseline and baseline not in (*labels, *names):
        raise UsageError(
            f"{baseline!r} is not a {chosen} of these runs",
            place="--baseline",
            hint=_of_axis(runs, baseline) or did_you_mean(baseline, map(one_line, names)),
        )
    base = (names if baseline in names else labels).index(baseline) if baseline else 0
    best = by_workload(layout, metric, baseline=base)
    cases = by_case(layout, metric, baseline=base)
    own = runs[0].answers if len(runs) == 1 else ()
    noun = {"time": "points in time"}.get(chosen, f"{chosen}s")
    # Of a rate the cells hold the bare number.
    counted = METRICS[metric].counted
    unit = f" ({counted}/s)" if counted else ""
    sections = [
        Section(
            key="best",
            heading=f"Best variant of each {chosen}{unit}",
            about="One row per workload: the same model, batch size, dimensions and I/O mode. "
            "Each cell is the best variant that can be ranked there, by "
            f"{metric_words(metric)}.",
            matrix=best,
        ),
        Section(
            key="cases",
            heading=f"Case by case{unit}",
            about=f"The same case on every side; {AXES[chosen]}.",
            matrix=cases,
        ),
    ]
    return ComparisonView(
        title=f"{metric_words(metric)} of {len(labels)} {noun}",
        axis=chosen,
        metric=metric,
        baseline=one_line(labels[base]),
        answer=tuple(text.cleaned(one_line) for text in conclusions(best, cases, chosen, own)),
        overall=best_overall(best, cases).cleaned(one_line),
        sections=tuple(sections if _says_more(best, cases) else sections[1:]),
        warnings=tuple(
            one_line(text) for text in warnings(cases, chosen, layout.replaced, layout.runtimes)
        ),
        holes=_holes(cases),
        runs=tuple(runs),
        by_yardstick=_by_yardstick(cases) if (chosen, metric) in _OF_MACHINES else None,
    )


def _of_axis(runs: Sequence[RunFacts], baseline: str) -> str:
    """The step where a baseline is a side by another axis than the one that was compared."""
    for axis in AXES:
        sides = lay_out_sides(runs, axis).sides
        if len(sides) > 1 and baseline in {
            text for side in sides for text in (side.label, side.short)
        }:
            return f"To compare by {axis}, write --by={axis}"
    return ""


def _by_yardstick(matrix: Matrix) -> Insert | None:
    """Write what of the differences is the machine's."""
    shares = machine_shares(matrix)
    if not shares:
        return None
    sentences = [
        "Each side took turns with the same other work, a yardstick. Machine: how much longer that "
        "took, other work and slow minutes included. Left: what the model took more or less of it, "
        "with its 95 % interval; as seen = machine × left.",
    ]
    kernels = sorted({name or "none" for share in shares for name in share.kernels})
    if len(kernels) > 1:
        sentences.append(
            "The library behind the yardstick chose other kernels on other machines: "
            f"{', '.join(map(one_line, kernels))}."
        )
    return Insert(
        key="by-yardstick",
        heading="What of it is the machine",
        sentences=tuple(sentences),
        # The first column of an insert is a mark.
        headings=("", "case", "side", "as seen", "machine", "left"),
        rows=tuple(
            (
                "",
                one_line(f"{share.row.model} {share.row.label}"),
                one_line(matrix.sides[share.side].label),
                ratio_text(share.seen),
                f"×{significant(share.machine)}",
                ratio_text(share.left),
            )
            for share in shares
        ),
        right=frozenset({3, 4, 5}),
    )


def _says_more(best: Matrix, cases: Matrix) -> bool:
    """Whether some side had a choice, so that best by workload is another table."""
    return len(best.rows) < len(cases.rows)


def _holes(matrix: Matrix) -> tuple[str, ...]:
    counted: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    first_of: dict[str, str] = {}
    for row in matrix.rows:
        for side, cell in zip(matrix.sides, row.cells, strict=True):
            if not cell.comparable:
                reason = one_line(cell.reason)
                flag = reason.partition(":")[0]
                if flag in FLAGS:
                    # The first one's detail stands for all.
                    reason = first_of.setdefault(flag, reason)
                counted[reason] += 1
                where.setdefault(reason, []).append(one_line(side.label))
    reasons = [
        f"{count} × {reason} ({first_names(list(dict.fromkeys(where[reason])))})"
        for reason, count in counted.most_common(REASONS)
    ]
    rest = len(counted) - REASONS
    return (*reasons, f"and {rest} further reasons: see the CSV") if rest > 0 else tuple(reasons)


#: Mark of what can't be told from the best, nor is known to be like it, or of numbers of which one
#: is of a single process.
NOISY = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellText:
    """A cell in words.

    Attributes:
        number: ``3.21 ms``; empty for a hole.
        ratio: ``×0.561 [0.538, 0.585]``; empty where there is none, and for the baseline.
        mark: ``best``, ``tie``, :data:`NOISY` or empty.
        note: Why it is a hole or must not be compared, or what blurs it.
        brief: The same in a few words: ``unsupported``.
        short: The ratio without its interval.
        variant: How the case does its work, where sides choose for themselves.
        barred: Whether there is a number that must not be compared.
    """

    number: str = ""
    ratio: str = ""
    mark: str = ""
    note: str = ""
    brief: str = ""
    short: str = ""
    variant: str = ""
    barred: bool = False


def cell_texts(row: Row, matrix: Matrix) -> list[CellText]:
    """Write the cells of a row, their numbers in one unit."""
    unit = METRICS[matrix.metric].unit
    known = [cell.quantity.value for cell in row.cells if cell.quantity is not None]
    factor, name = (1.0, "") if unit == "1/s" else common_scale(known, unit)
    made: list[CellText] = []
    is_noisy = any(cell.tie for cell in row.cells) and not are_cells_even(row)
    single = single_cells(row, matrix.metric)
    for index, cell in enumerate(row.cells):
        mark = "best" if cell.best else "tie" if cell.tie else ""
        mark = NOISY if mark and (is_noisy or single) else mark
        names = [*(cell.case.blurred_by if cell.case else ())]
        blur = " ".join([*names, ONE_WORKER] if index in single else names)
        made.append(
            CellText(
                number=_number(cell.quantity, factor, name),
                ratio="" if index == matrix.baseline else _ratio(cell),
                short="" if index == matrix.baseline else _short(cell),
                mark=mark if cell.comparable else "",
                note=one_line(cell.reason or blur),
                brief=one_line(cell.reason.partition(":")[0] or blur),
                variant=one_line(cell.variant),
                barred=cell.quantity is not None and not cell.comparable,
            )
        )
    return made


def _number(quantity: Quantity | None, factor: float, name: str) -> str:
    if quantity is None:
        return ""
    digits = digits_for(quantity.value, quantity.low, quantity.high)
    return f"{significant(quantity.value / factor, digits)} {name}".rstrip()


def _ratio(cell: Cell) -> str:
    return "" if cell.ratio is None else ratio_text(cell.ratio)


def ratio_text(ratio: Ratio) -> str:
    """Write a ratio with its interval: ``×0.561 [0.538, 0.585]``."""
    if ratio.low is None or ratio.high is None:
        return f"×{significant(ratio.value)}"
    digits = digits_for(ratio.value, ratio.low, ratio.high)
    ends = (significant(end, digits) for end in (ratio.low, ratio.high))
    return f"×{significant(ratio.value, digits)} [{', '.join(ends)}]"


def _short(cell: Cell) -> str:
    return "" if cell.ratio is None else f"×{significant(cell.ratio.value)}"


def overall_text(matrix: Matrix, index: int) -> str:
    """Write the geometric mean of a side, as a ratio to the baseline."""
    ratio = matrix.overall[index].ratio
    if index == matrix.baseline:
        return "1 (baseline)"
    if ratio is None:
        return HOLE
    return ratio_text(ratio)


def counted_text(matrix: Matrix, index: int) -> str:
    """Return ``20 of 36``: cases of a side that may be compared, of all."""
    return f"{matrix.overall[index].cells} of {len(matrix.rows)}"


def overall_mark(matrix: Matrix, index: int) -> str:
    """Return ``best``, ``tie``, :data:`NOISY` or nothing for a side over all rows.

    The first of sides that can't be told apart is no better than the others: all are a tie, or
    unclear where they are too noisy.
    """
    mean = matrix.overall[index]
    tied = [number for number, other in enumerate(matrix.overall) if other.tie]
    if not (mean.best or mean.tie):
        return ""
    if single_sides(matrix):
        return NOISY
    if not tied:
        return "best"
    best = next(number for number, other in enumerate(matrix.overall) if other.best)
    return "tie" if are_sides_even(matrix, best, tied) else NOISY
